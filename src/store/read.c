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

/* A name is never empty where it is unique: saying so lets that index be used. */
static void add_objects(struct query *q, const struct store_job *job)
{
	add_text(q, " AND kind = ?", job->space);
	if (job->objects.owner)
		add_text(q, " AND owner = ?", job->objects.owner);
	if (job->objects.name && *job->objects.name)
		add(q, " AND name <> ''");
	if (job->objects.name)
		add_text(q, " AND name = ?", job->objects.name);
}

/* The times of a log never go back, so that they are found as places in it. */
static void add_time(struct query *q, const struct store_job *job, const char *op, int64_t ms)
{
	(void)buf_printf(&q->sql, " AND seq %s ifnull((SELECT seq FROM journal WHERE stream", op);
	add_text(q, " = ?", job->space);
	add_number(q, " AND at_ms >= ? ORDER BY at_ms, seq LIMIT 1), 9223372036854775807)", ms);
}

static void add_log(struct query *q, const struct store_job *job)
{
	const struct store_journal_filter *f = &job->log;

	add_text(q, " AND stream = ?", job->space);
	if (f->owner) /* few lines of many are one owner's: their index, not a walk over all */
		add_text(q, " AND unlikely(owner = ?)", f->owner);
	if (f->kind)
		add_text(q, " AND kind = ?", f->kind);
	if (f->after_seq)
		add_number(q, " AND seq > ?", (int64_t)f->after_seq);
	if (f->before_seq)
		add_number(q, " AND seq < ?", (int64_t)f->before_seq);
	if (f->from_ms)
		add_time(q, job, ">=", f->from_ms);
	if (f->to_ms)
		add_time(q, job, "<", f->to_ms);
	add(q, f->newest_first ? " ORDER BY seq DESC" : " ORDER BY seq");
	add_number(q, " LIMIT ?", (int64_t)job->max + 1);
}

static void add_usage(struct query *q, const struct store_job *job)
{
	const struct store_usage_filter *f = &job->usage;

	add_number(q, " AND day >= ?", f->from_day);
	add_number(q, " AND day < ?", f->to_day ? f->to_day : INT32_MAX);
	if (f->owner)
		add_text(q, " AND owner = ?", f->owner);
	if (f->key_id)
		add_text(q, " AND key_id = ?", f->key_id);
	add_number(q, " GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4 LIMIT ?", (int64_t)job->max + 1);
	add_number(q, " OFFSET ?", f->offset);
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

static void build_load(struct query *q, const struct store_job *job)
{
	const struct row_table *t = job_type(job)->table;

	switch (job->kind) {
	case JOB_LOAD_KEYS:
		add(q, " ORDER BY created_ms, id");
		break;
	case JOB_LOAD_SANDBOXES:
		add(q, " AND is_live ORDER BY created_ms, id");
		break;
	case JOB_LOAD_EXECUTIONS:
		add(q, " AND is_live ORDER BY started_ms, id");
		break;
	case JOB_LOAD_OBJECTS:
		add_text(q, " AND kind = ?", job->space);
		add(q, " ORDER BY created_ms, id");
		break;
	case JOB_LOAD_LAST_JOURNAL:
		add_text(q, " AND stream = ?", job->space);
		add(q, " ORDER BY seq DESC LIMIT 1");
		break;
	case JOB_LOAD_USAGE:
		add_number(q, " AND day >= ?", job->time_ms);
		add(q, " ORDER BY day, sandbox_id");
		break;
	case JOB_LOAD_LAST_USAGE:
		add(q, " AND (sandbox_id = '" STORE_KEPT "' OR sandbox_id IN (SELECT id FROM"
		       " sandboxes WHERE is_live)) AND day = (SELECT max(day) FROM usage u WHERE"
		       " u.sandbox_id = usage.sandbox_id AND u.owner = usage.owner)");
		break;
	default:
		(void)buf_printf(&q->sql, " AND %s", t->columns[0].name);
		add_text(q, " = ?", job->id);
	}
}

static void build(struct query *q, const struct store_job *job)
{
	const struct row_table *t = job_type(job)->table;

	add_select(q, t, job->kind == JOB_GET_EXECUTION);
	if (job->kind == JOB_LIST_USAGE) /* its columns ask for ?1 */
		q->params[q->n_params++] = (struct param){ .number = job->usage.group };
	switch (job->kind) {
	case JOB_LIST_SANDBOXES:
		add_filter(q, &job->filter);
		add_page(q, job, "created_ms");
		break;
	case JOB_LIST_EXECUTIONS:
		add_text(q, " AND sandbox_id = ?", job->id);
		add_page(q, job, "started_ms");
		break;
	case JOB_LIST_OBJECTS:
		add_objects(q, job);
		add_page(q, job, "created_ms");
		break;
	case JOB_LIST_JOURNAL:
		add_log(q, job);
		break;
	case JOB_LIST_USAGE:
		add_usage(q, job);
		break;
	case JOB_GET_OBJECT:
		add_objects(q, job);
		add_text(q, " AND id = ?", job->id);
		break;
	default:
		build_load(q, job);
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
		struct object_row object;
		struct journal_row journal;
		struct usage_row usage;
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
