#include "store/batch.h"

#include <errno.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "store/db.h"
#include "store/place.h"
#include "store/write.h"

/* The log is moved every so many pages, as far as its readers let us; from the second number on
 * they are waited for, a little, so that a steady stream of them cannot let it grow without end. */
#define LOG_PAGES 1000
#define LOG_PAGES_MAX (8 * LOG_PAGES)
#define READERS_MS 100
#define TRIM_EVERY ((size_t)256 << 10) /* bytes written between two looks at the size */

static int try_begin(struct batch *b, bool is_durable)
{
	int r = db_set_sync(b->conn, is_durable);

	return r < 0 ? r : db_exec(b->conn, "BEGIN IMMEDIATE");
}

/* The old connection goes only when there is a new one: the last to close takes the log's index
 * with it, and on a disk that cannot be written to nobody could read any more. */
static bool reconnect(struct batch *b)
{
	struct db *fresh;
	struct err err = { 0 };

	if (db_open(b->place->path, CONN_WRITER, &fresh, &err) < 0) {
		log_debug("store", "reopen: %s", err.text);
		return false;
	}
	db_close(b->conn);
	b->conn = fresh;
	return true;
}

static int begin(struct batch *b, bool is_durable)
{
	int r;

	/* A file that was removed or replaced still takes writes, but nobody will find them. */
	r = b->place ? place_check(b->place) : 0;
	if (r < 0)
		return r;
	r = try_begin(b, is_durable);
	if (r == 0 || r == -EBUSY || r == -ENOMEM || !b->place || !reconnect(b))
		return r;
	return try_begin(b, is_durable);
}

/* SQLite has undone the transaction itself after the worse ones of its errors. */
static void give_up(struct batch *b)
{
	log_debug("store", "transaction: %s", sqlite3_errmsg(b->conn->db));
	if (!sqlite3_get_autocommit(b->conn->db))
		(void)db_exec(b->conn, "ROLLBACK");
}

static int commit(struct batch *b)
{
	int r = db_exec(b->conn, "COMMIT");

	if (r < 0)
		give_up(b);
	return r;
}

/* A fault of the write's own undoes its statement alone, and the transaction goes on. */
static int apply(struct batch *b, struct store_job *job)
{
	job->result = write_apply(b->conn, job);
	if (job->result >= 0 || db_is_own_fault(job->result))
		return 0;
	return job->result;
}

static int apply_all(struct batch *b, struct list *jobs)
{
	LIST_FOREACH (jobs, job, struct store_job, node) {
		int r = apply(b, job);

		if (r < 0) {
			give_up(b);
			return r;
		}
	}
	return 0;
}

static void run_alone(struct batch *b, struct store_job *job)
{
	int r = begin(b, b->is_durable || job_type(job)->is_durable);

	if (r == 0) {
		r = apply(b, job);
		if (r < 0)
			give_up(b);
		else
			r = commit(b);
	}
	if (r < 0)
		job->result = r;
	job->batch = 1;
}

static bool any_durable(struct list *jobs)
{
	LIST_FOREACH (jobs, job, struct store_job, node)
		if (job_type(job)->is_durable)
			return true;
	return false;
}

static void finish(struct list *jobs)
{
	uint64_t now = clock_now_ns();

	LIST_FOREACH (jobs, job, struct store_job, node)
		job->done_ns = now;
}

/* Nobody's write is to blame when not even a transaction can be begun: none is tried alone. */
static void fail_all(struct list *jobs, int r)
{
	LIST_FOREACH (jobs, job, struct store_job, node)
		job->result = r;
}

void batch_run(struct batch *b, struct list *jobs, size_t n)
{
	int r = begin(b, b->is_durable || any_durable(jobs));

	LIST_FOREACH (jobs, job, struct store_job, node) {
		job->batch = n;
		b->written += job_bytes(job);
	}
	if (r < 0) {
		fail_all(jobs, r);
	} else {
		r = apply_all(b, jobs);
		if (r == 0)
			r = commit(b);
		/* One of them does not fit on the disk, say: the others still may. */
		if (r < 0 && n > 1)
			LIST_FOREACH (jobs, job, struct store_job, node)
				run_alone(b, job);
		else if (r < 0)
			fail_all(jobs, r);
	}
	finish(jobs);
}

void batch_trim(struct batch *b)
{
	int r;

	if (b->size_max == 0 || b->written < TRIM_EVERY)
		return;
	b->written = 0;
	if (write_is_below(b->conn, b->size_max) || begin(b, false) < 0)
		return;
	r = write_trim(b->conn, b->size_max);
	if (r < 0)
		give_up(b);
	else
		(void)commit(b);
}

void batch_checkpoint(struct batch *b)
{
	struct db *c = b->conn;
	int mode = SQLITE_CHECKPOINT_PASSIVE;

	if (c->wal_pages < c->wal_moved)
		c->wal_moved = 0; /* it has begun anew */
	if (c->wal_pages - c->wal_moved < LOG_PAGES)
		return;
	if (c->wal_pages >= LOG_PAGES_MAX)
		mode = SQLITE_CHECKPOINT_RESTART;
	db_set_patience(c, READERS_MS);
	(void)sqlite3_wal_checkpoint_v2(c->db, NULL, mode, NULL, NULL);
	db_set_patience(c, 0);
	c->wal_moved = c->wal_pages;
}

/* A checkpoint begins with an fsync of the log. */
int batch_flush(struct batch *b)
{
	return db_errno(b->conn, sqlite3_wal_checkpoint_v2(b->conn->db, NULL,
							   SQLITE_CHECKPOINT_PASSIVE, NULL, NULL));
}
