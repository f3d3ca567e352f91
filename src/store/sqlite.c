/* The embedded store: one thread writes, one reads, the caller's waits for neither. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "store/batch.h"
#include "store/db.h"
#include "store/job.h"
#include "store/place.h"
#include "store/read.h"
#include "store/start.h"

#define QUEUE_MAX 4096u
#define QUEUE_BYTES_MAX ((size_t)64 << 20)
/* Of one commit, so that none takes long. */
#define BATCH_MAX 512u
#define BATCH_BYTES_MAX ((size_t)8 << 20)
/* Results that nobody has fetched yet: the reader waits above this. */
#define RESULT_BYTES_MAX ((size_t)64 << 20)

struct sqlite {
	struct place place;
	struct batch batch; /* the writer's; the opener's before it starts and after it has ended */
	struct db *conn;    /* owned, the reader's: NULL until it is needed */
	size_t queue_max, queue_bytes_max;
	void (*on_write)(void *user, int r, uint64_t took_us, size_t batch);
	void *user;
	size_t n_writes, n_queries; /* the caller's: not yet called back */
	bool is_closing;            /* the caller's: its last callbacks may ask for nothing */
	int held;                   /* the caller's: the writer is woken later */
	bool must_wake;             /* the caller's: and has something to do then */
	int event_fd;               /* owned */
	pthread_t writer, reader;
	bool has_writer, has_reader;

	pthread_mutex_t lock; /* of all below */
	pthread_cond_t to_write, to_read, flushed;
	struct list writes, queries; /* owned jobs that wait, and */
	struct list done;            /* those that wait for store_dispatch() */
	size_t write_bytes, result_bytes;
	bool no_reads, no_writes; /* closing: the queries are over, then the writes */
};

static void wake_caller(struct sqlite *s)
{
	/* Fails only when the counter is about to overflow: then it is readable anyway. */
	(void)eventfd_write(s->event_fd, 1);
}

/* ---- the writer ---- */

/* A flush goes alone, and ends the batch before it. */
static bool is_room(const struct store_job *job, size_t n, size_t bytes, bool has_flush)
{
	if (n == 0)
		return true;
	return !has_flush && job->kind != JOB_FLUSH && n < BATCH_MAX && bytes < BATCH_BYTES_MAX;
}

static size_t take_batch(struct sqlite *s, struct list *ret)
{
	size_t n = 0, bytes = 0;
	bool has_flush = false;

	list_init(ret);
	pthread_mutex_lock(&s->lock);
	while (list_is_empty(&s->writes) && !s->no_writes)
		pthread_cond_wait(&s->to_write, &s->lock);
	while (!list_is_empty(&s->writes)) {
		struct store_job *job = LIST_ENTRY(s->writes.next, struct store_job, node);

		if (!is_room(job, n, bytes, has_flush))
			break;
		list_remove(&job->node);
		list_push_back(ret, &job->node);
		has_flush = job->kind == JOB_FLUSH;
		bytes += job_bytes(job);
		n++;
	}
	s->write_bytes -= bytes;
	pthread_mutex_unlock(&s->lock);
	return n;
}

static void post(struct sqlite *s, struct list *jobs)
{
	bool is_first;

	pthread_mutex_lock(&s->lock);
	is_first = list_is_empty(&s->done);
	LIST_FOREACH (jobs, job, struct store_job, node) {
		list_remove(&job->node);
		list_push_back(&s->done, &job->node);
		if (job_type(job)->class == JOB_QUERY)
			s->result_bytes += job_bytes(job);
	}
	pthread_mutex_unlock(&s->lock);
	if (is_first)
		wake_caller(s);
}

static void answer_flush(struct sqlite *s, struct store_job *job)
{
	int r = batch_flush(&s->batch);

	pthread_mutex_lock(&s->lock);
	job->result = r;
	job->done_ns = clock_now_ns();
	pthread_cond_broadcast(&s->flushed);
	pthread_mutex_unlock(&s->lock);
}

static void *run_writer(void *arg)
{
	struct sqlite *s = arg;
	struct list jobs;
	size_t n;

	while ((n = take_batch(s, &jobs)) > 0) {
		struct store_job *first = LIST_ENTRY(jobs.next, struct store_job, node);

		if (first->kind == JOB_FLUSH) {
			list_remove(&first->node);
			answer_flush(s, first);
			continue;
		}
		batch_run(&s->batch, &jobs, n);
		post(s, &jobs);
		batch_trim(&s->batch);
		batch_checkpoint(&s->batch);
	}
	return NULL;
}

/* ---- the reader ---- */

static struct store_job *take_query(struct sqlite *s)
{
	struct store_job *job = NULL;

	pthread_mutex_lock(&s->lock);
	while (!s->no_reads && (list_is_empty(&s->queries) || s->result_bytes > RESULT_BYTES_MAX))
		pthread_cond_wait(&s->to_read, &s->lock);
	if (!s->no_reads) {
		job = LIST_ENTRY(s->queries.next, struct store_job, node);
		list_remove(&job->node);
	}
	pthread_mutex_unlock(&s->lock);
	return job;
}

static int answer_query(struct sqlite *s, struct store_job *job)
{
	struct err err = { 0 };
	int r = 0;

	if (!s->conn)
		r = db_open(s->place.path, CONN_READER, &s->conn, &err);
	if (r == 0)
		r = read_query(s->conn, job);
	if (r < 0 && !db_is_own_fault(r))
		s->conn = db_close(s->conn); /* the next one begins afresh */
	return r;
}

static void *run_reader(void *arg)
{
	struct sqlite *s = arg;
	struct store_job *job;
	struct list jobs;

	while ((job = take_query(s))) {
		job->result = answer_query(s, job);
		list_init(&jobs);
		list_push_back(&jobs, &job->node);
		post(s, &jobs);
	}
	return NULL;
}

/* ---- the caller ---- */

/* Behind the lock: who is woken takes it first. */
static void wake_writer(struct sqlite *s)
{
	s->must_wake = s->held > 0;
	if (!s->must_wake)
		pthread_cond_signal(&s->to_write);
}

static int submit_write(struct sqlite *s, struct store_job *job)
{
	size_t bytes = job_bytes(job);
	int r = -EAGAIN;

	if (s->n_writes >= s->queue_max)
		return r;
	pthread_mutex_lock(&s->lock);
	/* One that is larger than the limit passes alone. */
	if (s->write_bytes == 0 || s->write_bytes + bytes <= s->queue_bytes_max) {
		s->write_bytes += bytes;
		list_push_back(&s->writes, &job->node);
		r = 0;
	}
	pthread_mutex_unlock(&s->lock);
	if (r < 0)
		return r;
	s->n_writes++;
	wake_writer(s);
	return 0;
}

/* What is written between the two goes into one commit, if there is room. */
static void sqlite_hold(void *self, bool on)
{
	struct sqlite *s = self;

	s->held += on ? 1 : -1;
	if (s->must_wake && s->held == 0)
		wake_writer(s);
}

static int submit_query(struct sqlite *s, struct store_job *job)
{
	if (s->n_queries >= s->queue_max)
		return -EAGAIN;
	s->n_queries++;
	pthread_mutex_lock(&s->lock);
	list_push_back(&s->queries, &job->node);
	pthread_mutex_unlock(&s->lock);
	pthread_cond_signal(&s->to_read);
	return 0;
}

static int sqlite_submit(void *self, struct store_job *job)
{
	struct sqlite *s = self;

	if (s->is_closing)
		return -ECANCELED;
	job->queued_ns = clock_now_ns();
	return job_type(job)->class == JOB_WRITE ? submit_write(s, job) : submit_query(s, job);
}

static int sqlite_load(void *self, struct store_job *job, struct err *err)
{
	_cleanup_(db_close_p) struct db *c = NULL;
	struct sqlite *s = self;
	int r;

	r = db_open(s->place.path, CONN_READER, &c, err);
	if (r < 0)
		return r;
	r = read_load(c, job);
	return r < 0 ? err_set(err, -r, "load: %s", sqlite3_errmsg(c->db)) : 0;
}

static int sqlite_fd(void *self)
{
	struct sqlite *s = self;

	return s->event_fd;
}

/* The counts go down first: a callback may already ask for more. */
static void call_back(struct sqlite *s, struct store_job *job)
{
	bool is_write = job_type(job)->class == JOB_WRITE;

	if (is_write)
		s->n_writes--;
	else
		s->n_queries--;
	if (is_write && s->on_write)
		s->on_write(s->user, job->result, (job->done_ns - job->queued_ns) / 1000,
			    job->batch);
	job_call_back(job);
}

static void sqlite_dispatch(void *self)
{
	struct sqlite *s = self;
	struct list jobs;
	eventfd_t count;
	bool was_full;

	(void)eventfd_read(s->event_fd, &count);
	list_init(&jobs);
	pthread_mutex_lock(&s->lock);
	LIST_FOREACH (&s->done, job, struct store_job, node) {
		list_remove(&job->node);
		list_push_back(&jobs, &job->node);
	}
	was_full = s->result_bytes > RESULT_BYTES_MAX;
	s->result_bytes = 0;
	pthread_mutex_unlock(&s->lock);
	if (was_full) /* else it waits for a query */
		pthread_cond_signal(&s->to_read);

	sqlite_hold(s, true); /* what the results lead to */
	while (!list_is_empty(&jobs)) {
		struct store_job *job = LIST_ENTRY(jobs.next, struct store_job, node);

		list_remove(&job->node);
		call_back(s, job);
		job_free(job);
	}
	sqlite_hold(s, false);
}

static int sqlite_flush(void *self)
{
	struct sqlite *s = self;
	_cleanup_(job_free_p) struct store_job *job =
		job_create(JOB_FLUSH, (union job_cb){ NULL }, NULL);
	int r;

	if (!job)
		return -ENOMEM;
	pthread_mutex_lock(&s->lock);
	s->write_bytes += job_bytes(job);
	list_push_back(&s->writes, &job->node);
	pthread_cond_signal(&s->to_write);
	while (job->done_ns == 0)
		pthread_cond_wait(&s->flushed, &s->lock);
	r = job->result;
	pthread_mutex_unlock(&s->lock);
	return r;
}

static void stop(struct sqlite *s, bool *flag, pthread_cond_t *cond, pthread_t thread)
{
	pthread_mutex_lock(&s->lock);
	*flag = true;
	pthread_cond_signal(cond);
	pthread_mutex_unlock(&s->lock);
	(void)pthread_join(thread, NULL);
}

/* The reader ends first: the last connection that closes moves the log into the database, and must
 * be able to write. */
static void sqlite_close(void *self)
{
	struct sqlite *s = self;

	s->is_closing = true;
	if (s->has_reader)
		stop(s, &s->no_reads, &s->to_read, s->reader);
	if (s->has_writer)
		stop(s, &s->no_writes, &s->to_write, s->writer);
	LIST_FOREACH (&s->queries, job, struct store_job, node)
		job->result = -ECANCELED;
	post(s, &s->queries);
	sqlite_dispatch(s);
	s->conn = db_close(s->conn);
	s->batch.conn = db_close(s->batch.conn);
	place_close(&s->place);
	s->event_fd = fd_close(s->event_fd);
	(void)pthread_cond_destroy(&s->flushed);
	(void)pthread_cond_destroy(&s->to_read);
	(void)pthread_cond_destroy(&s->to_write);
	(void)pthread_mutex_destroy(&s->lock);
	free(s);
}

static const struct store_ops ops = {
	.name = "sqlite",
	.submit = sqlite_submit,
	.load = sqlite_load,
	.fd = sqlite_fd,
	.dispatch = sqlite_dispatch,
	.flush = sqlite_flush,
	.hold = sqlite_hold,
	.close = sqlite_close,
};

/* Signals are the caller's: our threads take none. */
static int start_threads(struct sqlite *s)
{
	sigset_t all, old;
	int r;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&s->writer, NULL, run_writer, s);
	s->has_writer = r == 0;
	if (r == 0) {
		r = pthread_create(&s->reader, NULL, run_reader, s);
		s->has_reader = r == 0;
	}
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -r;
}

static struct sqlite *create(const struct store_options *options)
{
	struct sqlite *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->batch.place = &s->place;
	s->batch.is_durable = options->durable;
	s->batch.size_max = options->size_max;
	s->queue_max = options->queue_max ? options->queue_max : QUEUE_MAX;
	s->queue_bytes_max = options->queue_bytes_max ? options->queue_bytes_max : QUEUE_BYTES_MAX;
	s->on_write = options->on_write;
	s->user = options->user;
	list_init(&s->writes);
	list_init(&s->queries);
	list_init(&s->done);
	(void)pthread_mutex_init(&s->lock, NULL);
	(void)pthread_cond_init(&s->to_write, NULL);
	(void)pthread_cond_init(&s->to_read, NULL);
	(void)pthread_cond_init(&s->flushed, NULL);
	s->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return s;
}

int store_open_sqlite(const struct store_options *options, struct store *ret, struct err *err)
{
	struct sqlite *s = create(options);
	int r;

	if (!s)
		return err_sys(err, ENOMEM, "store");
	if (s->event_fd < 0)
		r = err_sys(err, errno, "store");
	else
		r = start_database(options, &s->place, &s->batch.conn, err);
	if (r == 0) {
		r = start_threads(s);
		if (r < 0)
			(void)err_sys(err, r, "store: thread");
	}
	if (r < 0) {
		sqlite_close(s);
		return r;
	}
	*ret = (struct store){ &ops, s };
	return 0;
}
