/* One thing that the store is asked to do, from the call to its callback: what implementers of the
 * seam see. A job owns copies of all that it needs, and is with one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/list.h"
#include "store/store.h"

struct arena;
struct row_table;

enum job_kind {
	JOB_PUT_KEY,
	JOB_PUT_SANDBOX,
	JOB_KEEP_SANDBOX, /* the same, on disk */
	JOB_PUT_EXECUTION,
	JOB_PUT_META,
	JOB_PUT_OBJECT,
	JOB_PUT_USAGE,
	JOB_APPEND,
	JOB_TOUCH_KEY,
	JOB_DELETE_KEY,
	JOB_DELETE_SANDBOX,
	JOB_DELETE_OLD,
	JOB_DELETE_OBJECT,
	JOB_TRIM_JOURNAL,
	JOB_TRIM_USAGE,
	JOB_PROBE,
	JOB_FLUSH, /* of an implementation's own: never submitted */
	JOB_LIST_SANDBOXES,
	JOB_GET_SANDBOX,
	JOB_LIST_EXECUTIONS,
	JOB_GET_EXECUTION,
	JOB_GET_META,
	JOB_LIST_OBJECTS,
	JOB_GET_OBJECT,
	JOB_LIST_JOURNAL,
	JOB_LIST_USAGE,
	JOB_LOAD_KEYS,
	JOB_LOAD_SANDBOXES,
	JOB_LOAD_EXECUTIONS,
	JOB_LOAD_OBJECTS,
	JOB_LOAD_LAST_JOURNAL,
	JOB_LOAD_USAGE,
	JOB_LOAD_LAST_USAGE,
	JOB_KIND_COUNT
};

enum job_class { JOB_WRITE, JOB_QUERY, JOB_LOAD };

struct job_type {
	const struct row_table *table; /* of a put: what it writes; of a query or load: reads */
	enum job_class class;
	bool is_durable; /* to be on disk before it is called back */
};

union job_cb {
	store_done_fn *done;
	store_sandboxes_fn *sandboxes;
	store_executions_fn *executions;
	store_text_fn *text;
	store_objects_fn *objects;
	store_journal_fn *journal;
	store_usage_fn *usage;
	void (*each_key)(void *user, const struct key_row *row);
	void (*each_sandbox)(void *user, const struct sandbox_row *row);
	void (*each_execution)(void *user, const struct execution_row *row);
	void (*each_object)(void *user, const struct object_row *row);
	void (*each_journal)(void *user, const struct journal_row *row);
	void (*each_usage)(void *user, const struct usage_row *row);
};

struct store_job {
	struct list node;    /* of whoever has the job */
	struct arena *arena; /* owned: this job and all that it points to */
	enum job_kind kind;
	union job_cb cb; /* any may be NULL */
	void *user;

	const void *row;                    /* arena: of a put */
	const void *used;                   /* arena: a row of usage to go with it, or NULL */
	const char *id;                     /* arena: of what is deleted, touched or looked for */
	const char *space;                  /* arena: an object's kind, a log's stream */
	int64_t time_ms;                    /* of a touch; the cut of what is deleted; a day */
	uint32_t max;                       /* rows to delete or read at most */
	struct store_sandbox_filter filter; /* arena */
	struct store_object_filter objects; /* arena */
	struct store_journal_filter log;    /* arena */
	struct store_usage_filter usage;    /* arena */
	struct store_cursor cursor;         /* arena */

	int result;
	void *rows; /* arena: an array of the table's rows */
	size_t n_rows;
	bool more;
	size_t batch; /* writes that shared the commit */
	uint64_t queued_ns, done_ns;
};

/* NULL without memory. */
struct store_job *job_create(enum job_kind kind, union job_cb cb, void *user);
struct store_job *job_free(struct store_job *job); /* takes NULL, returns NULL */
CLEANUP_FUNC(struct store_job *, job_free)

const struct job_type *job_type(const struct store_job *job);
size_t job_bytes(const struct store_job *job); /* all memory it has */
int job_set_row(struct store_job *job, const void *row);
int job_set_used(struct store_job *job, const struct usage_row *used);
int job_set_id(struct store_job *job, const char *id);
int job_set_space(struct store_job *job, const char *space);
int job_set_objects(struct store_job *job, const struct store_object_filter *filter);
int job_set_log(struct store_job *job, const struct store_journal_filter *filter);
int job_set_usage(struct store_job *job, const struct store_usage_filter *filter);
int job_set_filter(struct store_job *job, const struct store_sandbox_filter *filter);
int job_set_page(struct store_job *job, const struct store_cursor *cursor, uint32_t limit);

/* Calls back with what is in result and rows. The job is the caller's still. */
void job_call_back(const struct store_job *job);
/* Of a loading job: one row. */
void job_call_each(const struct store_job *job, const void *row);
