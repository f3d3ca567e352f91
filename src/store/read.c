#include "store/read.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "store/db.h"
#include "store/rows.h"

#define PARAMS_MAX (16 + 2 * STORE_FILTER_PAIRS_MAX)

struct param {
	const char *text; /* borrowed; NULL: the number */
	int64_t number;
};

/* A statement in the making. Texts of callers only ever go in as parameters. */
struct query {
	struct buf sql;
	struct param params[PARAMS_MAX];
	size_t n_params;
};

static void add(struct query *q, const char *sql)
{
	(void)buf_puts(&q->sql, sql);
}

static void add_text(struct query *q, const char *sql, const char *text)
{
	add(q, sql);
	q->params[q->n_params++] = (struct param){ .text = text };
}

static void add_number(struct query *q, const char *sql, int64_t number)
{
	add(q, sql);
	q->params[q->n_params++] = (struct param){ .number = number };
}

/* Output is megabytes: a list goes without. */
static void add_select(struct query *q, const struct row_table *t, bool with_blobs)
{
	for (size_t i = 0; i < t->n_columns; i++) {
		const struct column *col = &t->columns[i];
		bool is_left_out = col->type == COLUMN_BLOB && !with_blobs;

		(void)buf_printf(&q->sql, "%s%s", i ? ", " : "SELECT ",
				 is_left_out ? "NULL" : col->name);
	}
	(void)buf_printf(&q->sql, " FROM %s WHERE 1", t->name);
}

static void add_filter(struct query *q, const struct store_sandbox_filter *f)
{
	if (f->owner)
		add_text(q, " AND owner = ?", f->owner);
	if (f->live != STORE_ANY)
		add(q, f->live == STORE_LIVE ? " AND is_live" : " AND NOT is_live");
	if (f->states)
		add_number(q, " AND (1 << state) & ?", f->states);
	if (f->template)
		add_text(q, " AND template = ?", f->template);
	if (f->name)
		add_text(q, " AND name = ?", f->name);
	for (size_t i = 0; i < f->n_metadata; i++) {
		add_text(q,
			 " AND EXISTS (SELECT 1 FROM json_each(sandboxes.metadata) AS pair"
			 " WHERE pair.key = ?",
			 f->metadata[i].name);
		add_text(q, " AND pair.value = ?)", f->metadata[i].value);
	}
}

/* One row more than wanted tells whether there are more. */
static void add_page(struct query *q, const struct store_job *job, const char *time)
{
	if (job->cursor.before_id) {
		(void)buf_printf(&q->sql, " AND (%s, id)", time);
		add_number(q, " < (?", job->cursor.before_ms);
		add_text(q, ", ?)", job->cursor.before_id);
	}
	(void)buf_printf(&q->sql, " ORDER BY %s DESC, id DESC", time);
	add_number(q, " LIMIT ?", (int64_t)job->max + 1);
}

static void build(struct query *q, const struct store_job *job)
{
	const struct row_table *t = job_type(job)->table;

	add_select(q, t, job->kind == JOB_GET_EXECUTION);
	switch (job->kind) {
	case JOB_LIST_SANDBOXES:
		add_filter(q, &job->filter);
		add_page(q, job, "created_ms");
		break;
	case JOB_LIST_EXECUTIONS:
		add_text(q, " AND sandbox_id = ?", job->id);
		add_page(q, job, "started_ms");
		break;
	case JOB_LOAD_KEYS:
		add(q, " ORDER BY created_ms, id");
		break;
	case JOB_LOAD_SANDBOXES:
		add(q, " AND is_live ORDER BY created_ms, id");
		break;
	case JOB_LOAD_EXECUTIONS:
		add(q, " AND is_live ORDER BY started_ms, id");
		break;
	default:
		(void)buf_printf(&q->sql, " AND %s", t->columns[0].name);
		add_text(q, " = ?", job->id);
	}
}

static int prepare(struct db *c, const struct store_job *job, sqlite3_stmt **ret)
{
	struct query q = { 0 };
	int r;

	build(&q, job);
	r = q.sql.failed ? -ENOMEM : db_prepare(c, buf_str(&q.sql), ret);
	buf_done(&q.sql);
	for (size_t i = 0; i < q.n_params && r == 0; i++) {
		const struct param *p = &q.params[i];
		int at = (int)i + 1;

		r = db_errno(c, p->text ? sqlite3_bind_text(*ret, at, p->text, -1, SQLITE_STATIC)
					: sqlite3_bind_int64(*ret, at, p->number));
	}
	return r;
}

static int take_row(struct store_job *job, sqlite3_stmt *stmt)
{
	const struct row_table *t = job_type(job)->table;
	int r;

	if (job->n_rows == job->max || job_bytes(job) > STORE_PAGE_BYTES) {
		job->more = true;
		return 0;
	}
	r = db_read_row(stmt, t, job->arena, (char *)job->rows + job->n_rows * t->row_size);
	if (r == 0)
		job->n_rows++;
	return r;
}

int read_query(struct db *c, struct store_job *job)
{
	_cleanup_(db_finalize_p) sqlite3_stmt *stmt = NULL;
	int r = prepare(c, job, &stmt), rc = SQLITE_DONE;

	if (r < 0)
		return r;
	job->rows = arena_array(job->arena, job->max, job_type(job)->table->row_size);
	if (!job->rows)
		return -ENOMEM;
	while (r == 0 && !job->more && (rc = sqlite3_step(stmt)) == SQLITE_ROW)
		r = take_row(job, stmt);
	if (r == 0)
		r = db_errno(c, rc);
	if (r == 0 && job->id && job->n_rows == 0 && job->kind != JOB_LIST_EXECUTIONS)
		r = -ENOENT;
	if (r < 0)
		job->n_rows = 0;
	return r;
}

int read_load(struct db *c, const struct store_job *job)
{
	_cleanup_(db_finalize_p) sqlite3_stmt *stmt = NULL;
	const struct row_table *t = job_type(job)->table;
	union {
		struct key_row key;
		struct sandbox_row sandbox;
		struct execution_row execution;
	} row;
	int r = prepare(c, job, &stmt), rc = SQLITE_DONE;

	memset(&row, 0, sizeof(row));
	while (r == 0 && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		r = db_read_row(stmt, t, NULL, &row);
		if (r == 0)
			job_call_each(job, &row);
	}
	return r < 0 ? r : db_errno(c, rc);
}
