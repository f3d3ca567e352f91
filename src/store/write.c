#include "store/write.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/id.h"
#include "store/db.h"
#include "store/rows.h"

/* Given back to the file system with each delete_old: four megabytes of pages. */
#define VACUUM_SQL "PRAGMA incremental_vacuum(1024)"
/* Rows that make room: few at a time, because each may be large, and so often that many small ones
 * do not hold it up. */
#define TRIM_ROWS 16
#define TRIM_ROUNDS 64

static void build_put(const struct row_table *t, struct buf *sql)
{
	(void)buf_printf(sql, "INSERT INTO %s (", t->name);
	for (size_t i = 0; i < t->n_columns; i++)
		(void)buf_printf(sql, "%s%s", i ? ", " : "", t->columns[i].name);
	(void)buf_puts(sql, ") VALUES (");
	for (size_t i = 0; i < t->n_columns; i++)
		(void)buf_printf(sql, "%s?%zu", i ? ", " : "", i + 1);
	if (t->is_append_only) {
		(void)buf_puts(sql, ")");
		return;
	}
	for (size_t i = 0; i < t->n_key; i++)
		(void)buf_printf(sql, "%s%s", i ? ", " : ") ON CONFLICT (", t->columns[i].name);
	for (size_t i = t->n_key; i < t->n_columns; i++)
		(void)buf_printf(sql, "%s%s = excluded.%s",
				 i > t->n_key ? ", " : ") DO UPDATE SET ", t->columns[i].name,
				 t->columns[i].name);
}

static int prepare_put(struct db *c, enum job_kind kind, const struct row_table *t)
{
	_cleanup_(buf_done) struct buf sql = { 0 };

	if (c->puts[kind])
		return 0;
	build_put(t, &sql);
	return sql.failed ? -ENOMEM : db_prepare(c, buf_str(&sql), &c->puts[kind]);
}

static int put(struct db *c, enum job_kind kind, const struct row_table *t, const void *row)
{
	sqlite3_stmt *stmt;
	int r;

	r = prepare_put(c, kind, t);
	if (r < 0)
		return r;
	stmt = c->puts[kind];
	r = db_bind_row(c, stmt, t, row);
	if (r == 0)
		r = db_errno(c, sqlite3_step(stmt));
	(void)sqlite3_reset(stmt); /* says again what the step said */
	(void)sqlite3_clear_bindings(stmt);
	return r;
}

/* Queries look into metadata, and must not fail on what one writer put there. Not a CHECK of the
 * schema, which may call no JSON functions while it is not trusted. */
static int check_metadata(struct db *c, const char *metadata)
{
	_cleanup_(db_finalize_p) sqlite3_stmt *stmt = NULL;
	int rc, r;

	if (strcmp(metadata, "{}") == 0)
		return 0;
	r = db_prepare(c, "SELECT json_type(?1) = 'object' WHERE json_valid(?1)", &stmt);
	if (r == 0)
		r = db_errno(c, sqlite3_bind_text(stmt, 1, metadata, -1, SQLITE_STATIC));
	if (r < 0)
		return r;
	rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW)
		return sqlite3_column_int(stmt, 0) ? 0 : -EINVAL;
	return rc == SQLITE_DONE ? -EINVAL : db_errno(c, rc);
}

/* What it used comes first: a sandbox whose row is gone has used it all the same. */
static int put_execution(struct db *c, const struct store_job *job)
{
	int r = job->used ? put(c, JOB_PUT_USAGE, &rows_usage, job->used) : 0;

	return r < 0 ? r : put(c, JOB_PUT_EXECUTION, &rows_executions, job->row);
}

static int put_sandbox(struct db *c, const struct sandbox_row *row)
{
	int r = check_metadata(c, row->metadata);

	return r < 0 ? r : put(c, JOB_PUT_SANDBOX, &rows_sandboxes, row);
}

/* Runs a statement whose parameters are an id (?1) or numbers; returns how many rows it changed. */
static int change(struct db *c, const char *sql, const char *id, int64_t a, int64_t b)
{
	_cleanup_(db_finalize_p) sqlite3_stmt *stmt = NULL;
	int r = db_prepare(c, sql, &stmt);

	if (r < 0)
		return r;
	if (id)
		r = db_errno(c, sqlite3_bind_text(stmt, 1, id, -1, SQLITE_STATIC));
	if (r == 0 && sqlite3_bind_parameter_count(stmt) >= 2)
		r = db_errno(c, sqlite3_bind_int64(stmt, 2, a));
	if (r == 0 && sqlite3_bind_parameter_count(stmt) >= 3)
		r = db_errno(c, sqlite3_bind_int64(stmt, 3, b));
	if (r == 0)
		r = db_errno(c, sqlite3_step(stmt));
	return r < 0 ? r : sqlite3_changes(c->db);
}

/* Both texts are the key. */
static int delete_object(struct db *c, const struct store_job *job)
{
	_cleanup_(db_finalize_p) sqlite3_stmt *stmt = NULL;
	int r = db_prepare(c, "DELETE FROM objects WHERE kind = ?1 AND id = ?2", &stmt);

	if (r == 0)
		r = db_errno(c, sqlite3_bind_text(stmt, 1, job->space, -1, SQLITE_STATIC));
	if (r == 0)
		r = db_errno(c, sqlite3_bind_text(stmt, 2, job->id, -1, SQLITE_STATIC));
	if (r == 0)
		r = db_errno(c, sqlite3_step(stmt));
	if (r < 0)
		return r;
	return sqlite3_changes(c->db) > 0 ? 0 : -ENOENT;
}

static int change_one(struct db *c, const char *sql, const struct store_job *job)
{
	int r = change(c, sql, job->id, job->time_ms, 0);

	if (r < 0)
		return r;
	return r > 0 ? 0 : -ENOENT;
}

/* Sandboxes wait until their executions are gone: one that has many must not make one statement
 * delete them all. */
static int delete_old(struct db *c, const struct store_job *job)
{
	int gone, r;

	gone = change(c,
		      "DELETE FROM executions WHERE id IN (SELECT id FROM executions"
		      " WHERE NOT is_live AND ended_ms < ?2 LIMIT ?3)",
		      NULL, job->time_ms, job->max);
	if (gone < 0 || gone == (int)job->max)
		return gone;
	r = change(c,
		   "DELETE FROM sandboxes WHERE id IN (SELECT id FROM sandboxes s"
		   " WHERE NOT is_live AND ended_ms < ?2 AND NOT EXISTS"
		   " (SELECT 1 FROM executions WHERE sandbox_id = s.id) LIMIT ?3)",
		   NULL, job->time_ms, (int64_t)job->max - gone);
	if (r < 0)
		return r;
	gone += r;
	r = db_exec(c, VACUUM_SQL);
	return r < 0 ? r : gone;
}

bool write_is_below(struct db *c, uint64_t size_max)
{
	_cleanup_(db_finalize_p) sqlite3_stmt *stmt = NULL;

	/* Pages that hold something: deleting makes others free, and the file no shorter. */
	if (db_prepare(c,
		       "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count,"
		       " pragma_freelist_count, pragma_page_size",
		       &stmt) < 0 ||
	    sqlite3_step(stmt) != SQLITE_ROW)
		return true; /* the next write says what is wrong */
	return (uint64_t)sqlite3_column_int64(stmt, 0) <= size_max;
}

/* A sandbox goes behind its executions. Which rows of others' there are does not matter: without
 * this nobody could write any. */
static int delete_oldest(struct db *c)
{
	int gone = change(c,
			  "DELETE FROM executions WHERE id IN (SELECT id FROM executions"
			  " WHERE NOT is_live ORDER BY ended_ms LIMIT ?2)",
			  NULL, TRIM_ROWS, 0);

	if (gone != 0)
		return gone;
	return change(c,
		      "DELETE FROM sandboxes WHERE id IN (SELECT id FROM sandboxes s"
		      " WHERE NOT is_live AND NOT EXISTS"
		      " (SELECT 1 FROM executions WHERE sandbox_id = s.id)"
		      " ORDER BY ended_ms LIMIT ?2)",
		      NULL, TRIM_ROWS, 0);
}

int write_trim(struct db *c, uint64_t size_max)
{
	int gone = 1;

	for (int i = 0; i < TRIM_ROUNDS && gone > 0 && !write_is_below(c, size_max); i++)
		gone = delete_oldest(c);
	return gone < 0 ? gone : 0;
}

/* Something new each time: SQLite does not write what is there already. */
static int probe(struct db *c)
{
	char mark[ID_LEN + 1];

	id_make(mark);
	return put(c, JOB_PUT_META, &rows_meta, &(struct meta_row){ "probe", mark });
}

int write_apply(struct db *c, const struct store_job *job)
{
	switch (job->kind) {
	case JOB_PUT_SANDBOX:
	case JOB_KEEP_SANDBOX:
		return put_sandbox(c, job->row);
	case JOB_PUT_EXECUTION:
		return put_execution(c, job);
	case JOB_TOUCH_KEY:
		return change_one(c, "UPDATE keys SET last_used_ms = ?2 WHERE id = ?1", job);
	case JOB_DELETE_KEY:
		return change_one(c, "DELETE FROM keys WHERE id = ?1", job);
	case JOB_DELETE_SANDBOX:
		return change_one(c, "DELETE FROM sandboxes WHERE id = ?1", job);
	case JOB_DELETE_OLD:
		return delete_old(c, job);
	case JOB_PROBE:
		return probe(c);
	case JOB_DELETE_OBJECT:
		return delete_object(c, job);
	case JOB_TRIM_JOURNAL:
		return change(c,
			      "DELETE FROM journal WHERE stream = ?1 AND seq IN (SELECT seq FROM"
			      " journal WHERE stream = ?1 AND at_ms < ?2 ORDER BY at_ms, seq"
			      " LIMIT ?3)",
			      job->id, job->time_ms, job->max);
	case JOB_TRIM_USAGE:
		return change(c,
			      "DELETE FROM usage WHERE (sandbox_id, day) IN (SELECT sandbox_id, day"
			      " FROM usage WHERE day < ?2 LIMIT ?3)",
			      NULL, job->time_ms, job->max);
	default:
		return put(c, job->kind, job_type(job)->table, job->row);
	}
}
