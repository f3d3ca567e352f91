/* Durable state behind one seam: keys, sandboxes, executions, objects of other kinds, logs, usage
 * and named texts.
 *
 * Everything but loading and flushing is asynchronous. A call copies what it is given and returns
 * 0: its callback then comes exactly once, from store_dispatch() and from nowhere else. Or it
 * refuses at once and the callback never comes: -EAGAIN (too much is waiting already), -E2BIG (a
 * text or blob above its limit), -EINVAL, -ENOMEM, -ECANCELED (it is being closed).
 *
 * Writes are done, and called back, in the order of the calls; many share one commit, and one that
 * fails takes no other with it. Results of writes: 0, or
 *   -EEXIST  the name (of a live sandbox or an object of that owner), the hash (of a key) or the
 *            place (in a log) is taken
 *   -ENOENT  an execution of a sandbox that is not there; what is to be deleted or touched is not
 *   -EINVAL  metadata is not a JSON object
 *   -ENOSPC, -EDQUOT, -EROFS, -EACCES, -EBUSY, -EIO   the disk or the database would not
 *   -EUCLEAN the database is damaged; -ESTALE: its file was taken away under us
 * After the last two lines the next write tries anew, so the store heals with its disk. What failed
 * so is not there, unless the process ends before that: then it may be found by the next one.
 * A query sees at least all that was called back before it was asked for.
 *
 * All functions are for one thread, the loop's; the store has threads of its own inside. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct store_job;

#define STORE_HASH_LEN 32
#define STORE_NAME_MAX 255           /* bytes of an id, name, owner, template */
#define STORE_TEXT_MAX (4u << 20)    /* of any other text */
#define STORE_OUTPUT_MAX (72u << 20) /* of an execution's output: 64 MiB and its chunks' heads */
#define STORE_PAGE_MAX 1000u         /* rows of a page */
#define STORE_PAGE_BYTES (8u << 20)  /* a page ends early above this: more is then true */
#define STORE_FILTER_PAIRS_MAX 16u
#define STORE_DELETE_MAX 10000u

/* Rows. On a put, texts are borrowed for the call (NULL counts as ""); in a callback, for the
 * callback. Times are wall clock milliseconds, 0: none. States and kinds are the domain's. */

struct key_row {
	const char *id;
	uint8_t hash[STORE_HASH_LEN];
	const char *name, *owner;
	uint8_t role;
	int64_t created_ms, expires_ms, revoked_ms, last_used_ms;
	uint32_t scopes;        /* 0: what the role gives */
	const char *sandbox_id; /* "": any; else the one that it is good for */
	const char *parent_id;  /* the key that it ends with, which made it; "": none */
};

struct sandbox_row {
	const char *id, *owner;
	const char *name; /* "": none; unique among the owner's live ones */
	const char *box_id, *template, *reason;
	const char *key_id; /* which key made it; "": none of ours */
	uint8_t state, level;
	bool is_live;
	uint32_t flags;
	const char *spec, *env; /* JSON text, not looked at */
	const char *metadata;   /* JSON object of strings ("": {}), can be filtered by */
	int64_t created_ms, updated_ms, ended_ms;
	int64_t expires_ms;   /* 0: never */
	int64_t remaining_ms; /* of a paused one */
	int64_t timeout_ms, idle_ms;
	bool is_kept; /* no column: it outlives the machine, so it is on disk before it is called
			 back */
};

struct execution_row {
	const char *id, *sandbox_id, *owner;
	uint8_t kind, state;
	bool is_live;
	uint32_t flags;
	uint32_t guest_id, pid;
	int32_t exit_code, signal;
	const char *reason;
	int64_t started_ms, ended_ms;
	uint64_t wall_us, cpu_us, peak_bytes;
	uint64_t output_bytes; /* all that there was */
	uint64_t output_start; /* position of the first byte kept */
	const char *content;   /* JSON text of the request, not looked at */
	const void *output;    /* opaque; NULL in lists */
	size_t output_len;
};

/* Users, templates, snapshots and the like. Key: kind and id. */
struct object_row {
	const char *kind, *id, *owner;
	const char *name; /* "": none; unique among the owner's of that kind */
	uint32_t state;
	const char *text; /* JSON, not looked at */
	int64_t created_ms, updated_ms;
};

/* A line of a log that only grows. Key: stream and seq. seq is below 2^63. at_ms does not go back
 * from one seq to the next of a stream: filters by time rely on it. */
struct journal_row {
	const char *stream;
	uint64_t seq;
	int64_t at_ms;
	const char *owner, *kind, *text;
	uint8_t hash[STORE_HASH_LEN];
};

/* What one sandbox used on one day, all of it: putting it twice counts it once. Values are below
 * 2^63. Key: sandbox, day and owner. */
struct usage_row {
	int32_t day; /* since 1970, UTC */
	const char *owner, *key_id;
	const char *sandbox_id; /* STORE_KEPT: what the owner keeps on the disk besides */
	uint64_t cpu_us, memory_byte_ms, disk_byte_ms, net_bytes, executions, wall_ms;
	int64_t until_ms;                 /* counted until then */
	uint64_t box_cpu_us, exec_cpu_us; /* how far its box and its executions are in cpu_us */
};
#define STORE_KEPT "kept"

struct usage_sum_row { /* what is not grouped by is 0 or "" */
	int32_t day;
	const char *owner, *key_id, *sandbox_id;
	uint64_t cpu_us, memory_mib_ms, disk_mib_ms, net_bytes, executions, wall_ms;
};

struct store_ops { /* for implementers: job.h */
	const char *name;
	/* Takes the job when it returns 0; -EAGAIN. */
	int (*submit)(void *self, struct store_job *job);
	/* Blocking: runs a loading job on the caller's thread. */
	int (*load)(void *self, struct store_job *job, struct err *err);
	int (*fd)(void *self);
	void (*dispatch)(void *self);
	int (*flush)(void *self);
	void (*hold)(void *self, bool on); /* NULL: there is nothing to hold */
	void (*close)(void *self);
};

struct store {
	const struct store_ops *ops;
	void *self; /* owned: store_close() */
};

struct store_options {
	const char *dir;  /* must exist, be ours and writable by nobody else */
	const char *file; /* name of the database in it; NULL: "holt.db" */
	/* false: a commit survives the end of the process, those of keys and meta also the
	 * machine's. true: every commit survives the machine's too, and costs an fsync. */
	bool durable;
	size_t queue_max;       /* writes, and as many queries, not yet called back; 0: 4096 */
	size_t queue_bytes_max; /* of waiting writes' rows together; 0: 64 MiB */
	/* Bytes of the database: above, rows that ended first go before their time, so that what
	 * is written down does not fill the disk. 0: no limit. */
	uint64_t size_max;
	/* For metrics, from store_dispatch(): one write's result, its time from call to commit,
	 * and how many writes shared that commit. May be NULL. */
	void (*on_write)(void *user, int r, uint64_t took_us, size_t batch);
	void *user;
};

/* Opens or makes the database, and brings its schema up to date. -EBUSY: another process has it;
 * -EUCLEAN: damaged; -EPROTO: made by a newer version, or its schema is not the one we know;
 * -EPERM: others can write to the directory. Nothing is ever recreated over what is there. */
int store_open_sqlite(const struct store_options *options, struct store *ret, struct err *err);
/* Waiting writes are done first, and called back; queries not yet begun get -ECANCELED. The struct
 * is empty afterwards. Takes an empty one. Not from inside a callback. */
void store_close(struct store *st);

int store_fd(const struct store *st);        /* readable when callbacks wait; borrowed */
void store_dispatch(const struct store *st); /* not from inside a callback */
/* Blocks until all writes of before are done and on disk, whatever `durable` says; their callbacks
 * still wait for store_dispatch(). 0 or why the disk did not take them. For shutdown and tests. */
int store_flush(const struct store *st);
/* What is written between on and off goes into one commit, unless one is under way already. May be
 * nested; not across turns of the loop: nobody's write waits for another's time. */
void store_hold(const struct store *st, bool on);

/* ---- writing; cb may be NULL ---- */

typedef void store_done_fn(void *user, int r);

int store_put_key(const struct store *st, const struct key_row *row, store_done_fn *cb, void *user);
/* Only when it was used last: not worth an fsync. */
int store_touch_key(const struct store *st, const char *id, int64_t last_used_ms, store_done_fn *cb,
		    void *user);
int store_delete_key(const struct store *st, const char *id, store_done_fn *cb, void *user);
int store_put_sandbox(const struct store *st, const struct sandbox_row *row, store_done_fn *cb,
		      void *user);
/* With its executions. */
int store_delete_sandbox(const struct store *st, const char *id, store_done_fn *cb, void *user);
int store_put_execution(const struct store *st, const struct execution_row *row, store_done_fn *cb,
			void *user);
/* With what it used, in one commit. */
int store_end_execution(const struct store *st, const struct execution_row *row,
			const struct usage_row *used, store_done_fn *cb, void *user);
/* Deletes what ended before cut_ms: executions, then sandboxes that have none left; at most max
 * rows, so that others need not wait long. The result is their number: again while it is above 0.
 */
int store_delete_old(const struct store *st, int64_t cut_ms, uint32_t max, store_done_fn *cb,
		     void *user);
int store_put_meta(const struct store *st, const char *name, const char *text, store_done_fn *cb,
		   void *user);
/* On disk before it is called back, as is its deletion. */
int store_put_object(const struct store *st, const struct object_row *row, store_done_fn *cb,
		     void *user);
int store_delete_object(const struct store *st, const char *kind, const char *id, store_done_fn *cb,
			void *user);
int store_append(const struct store *st, const struct journal_row *row, store_done_fn *cb,
		 void *user);
/* Deletes the oldest of a log, of before that time; at most max. The result is their number. */
int store_trim_journal(const struct store *st, const char *stream, int64_t before_ms, uint32_t max,
		       store_done_fn *cb, void *user);
int store_put_usage(const struct store *st, const struct usage_row *row, store_done_fn *cb,
		    void *user);
int store_trim_usage(const struct store *st, int32_t before_day, uint32_t max, store_done_fn *cb,
		     void *user);
/* Writes a mark: 0 when the store can be written to now. */
int store_probe(const struct store *st, store_done_fn *cb, void *user);

/* ---- asking ---- */

struct store_pair {
	const char *name, *value;
};

struct store_cursor {
	int64_t before_ms;     /* 0: from the newest */
	const char *before_id; /* of those with that very time, only smaller ids */
};

enum store_live { STORE_ANY, STORE_LIVE, STORE_ENDED };

struct store_sandbox_filter {
	const char *owner; /* NULL: anybody's */
	enum store_live live;
	uint32_t states;      /* bits 1 << state; 0: any */
	const char *template; /* NULL: any */
	const char *name;     /* NULL: any */
	const struct store_pair *metadata;
	size_t n_metadata; /* all of them must match */
};

/* r: 0 or -errno (rows is then NULL); more: there are others behind the last of the page. */
typedef void store_sandboxes_fn(void *user, int r, const struct sandbox_row *rows, size_t n,
				bool more);
typedef void store_executions_fn(void *user, int r, const struct execution_row *rows, size_t n,
				 bool more);
typedef void store_text_fn(void *user, int r, const char *text);
typedef void store_objects_fn(void *user, int r, const struct object_row *rows, size_t n,
			      bool more);
typedef void store_journal_fn(void *user, int r, const struct journal_row *rows, size_t n,
			      bool more);
typedef void store_usage_fn(void *user, int r, const struct usage_sum_row *rows, size_t n,
			    bool more);

struct store_object_filter {
	const char *kind;
	const char *owner; /* NULL: anybody's */
	const char *name;  /* NULL: any */
};

struct store_journal_filter { /* 0 and NULL: no bound */
	const char *owner, *kind;
	uint64_t after_seq, before_seq; /* neither is among the result */
	int64_t from_ms, to_ms;         /* from is, to is not */
	bool newest_first;
};

enum store_group { STORE_BY_DAY = 1, STORE_BY_OWNER = 2, STORE_BY_KEY = 4, STORE_BY_SANDBOX = 8 };

struct store_usage_filter {
	const char *owner, *key_id; /* NULL: any */
	int32_t from_day, to_day;   /* to is not among the result; 0: no bound */
	uint32_t group;             /* bits of enum store_group; 0: one sum */
	uint32_t offset;            /* rows to leave out, for the next page */
};

/* Newest first, by creation. limit: 1 to STORE_PAGE_MAX. cursor may be NULL. */
int store_list_sandboxes(const struct store *st, const struct store_sandbox_filter *filter,
			 const struct store_cursor *cursor, uint32_t limit, store_sandboxes_fn *cb,
			 void *user);
/* One row, or -ENOENT. */
int store_get_sandbox(const struct store *st, const char *id, store_sandboxes_fn *cb, void *user);
/* Newest first, by start; without their output. */
int store_list_executions(const struct store *st, const char *sandbox_id,
			  const struct store_cursor *cursor, uint32_t limit,
			  store_executions_fn *cb, void *user);
/* One row with its output, or -ENOENT. */
int store_get_execution(const struct store *st, const char *id, store_executions_fn *cb,
			void *user);
int store_get_meta(const struct store *st, const char *name, store_text_fn *cb, void *user);
/* Newest first, by creation. */
int store_list_objects(const struct store *st, const struct store_object_filter *filter,
		       const struct store_cursor *cursor, uint32_t limit, store_objects_fn *cb,
		       void *user);
/* One row, or -ENOENT. */
int store_get_object(const struct store *st, const char *kind, const char *id, store_objects_fn *cb,
		     void *user);
/* By seq, oldest first unless asked otherwise. */
int store_list_journal(const struct store *st, const char *stream,
		       const struct store_journal_filter *filter, uint32_t limit,
		       store_journal_fn *cb, void *user);
/* Sums, by day, owner, key and sandbox as far as they are grouped by. */
int store_list_usage(const struct store *st, const struct store_usage_filter *filter,
		     uint32_t limit, store_usage_fn *cb, void *user);

/* ---- loading, at start: blocks; one call each row, oldest first; output is left out ---- */

int store_load_keys(const struct store *st, void (*each)(void *user, const struct key_row *row),
		    void *user, struct err *err);
int store_load_live_sandboxes(const struct store *st,
			      void (*each)(void *user, const struct sandbox_row *row), void *user,
			      struct err *err);
int store_load_live_executions(const struct store *st,
			       void (*each)(void *user, const struct execution_row *row),
			       void *user, struct err *err);
int store_load_objects(const struct store *st, const char *kind,
		       void (*each)(void *user, const struct object_row *row), void *user,
		       struct err *err);
/* The last line of a log, if there is one. */
int store_last_journal(const struct store *st, const char *stream,
		       void (*each)(void *user, const struct journal_row *row), void *user,
		       struct err *err);
/* The last day's of each live sandbox, and of what owners keep. */
int store_load_last_usage(const struct store *st,
			  void (*each)(void *user, const struct usage_row *row), void *user,
			  struct err *err);
/* Of that day and later. */
int store_load_usage(const struct store *st, int32_t from_day,
		     void (*each)(void *user, const struct usage_row *row), void *user,
		     struct err *err);
