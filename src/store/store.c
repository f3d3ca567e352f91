/* The typed calls: each makes a job and hands it to the implementation. */
#include "store/store.h"

#include <errno.h>

#include "base/err.h"
#include "store/job.h"
#include "store/rows.h"

static int submit(const struct store *st, struct store_job **job, int r)
{
	if (r == 0)
		r = st->ops->submit(st->self, *job);
	if (r == 0)
		*job = NULL; /* theirs now */
	return r;
}

static int put(const struct store *st, enum job_kind kind, const void *row, store_done_fn *cb,
	       void *user)
{
	_cleanup_(job_free_p) struct store_job *job =
		job_create(kind, (union job_cb){ .done = cb }, user);

	return job ? submit(st, &job, job_set_row(job, row)) : -ENOMEM;
}

static int drop(const struct store *st, enum job_kind kind, const char *id, store_done_fn *cb,
		void *user)
{
	_cleanup_(job_free_p) struct store_job *job =
		job_create(kind, (union job_cb){ .done = cb }, user);

	return job ? submit(st, &job, job_set_id(job, id)) : -ENOMEM;
}

static int get(const struct store *st, enum job_kind kind, const char *id, union job_cb cb,
	       void *user)
{
	_cleanup_(job_free_p) struct store_job *job = job_create(kind, cb, user);

	if (!job)
		return -ENOMEM;
	job->max = 1;
	return submit(st, &job, job_set_id(job, id));
}

/* space: of what kind or stream, NULL where there is none. */
static int load(const struct store *st, enum job_kind kind, const char *space, union job_cb cb,
		void *user, struct err *err)
{
	_cleanup_(job_free_p) struct store_job *job = job_create(kind, cb, user);
	int r = job ? 0 : -ENOMEM;

	if (r == 0 && space)
		r = job_set_space(job, space);
	return r < 0 ? err_sys(err, r, "store") : st->ops->load(st->self, job, err);
}

/* At most max rows that lie before the cut. */
static int trim(const struct store *st, struct store_job **job, int64_t cut, uint32_t max)
{
	(*job)->time_ms = cut;
	(*job)->max = max;
	return submit(st, job, max > 0 && max <= STORE_DELETE_MAX ? 0 : -EINVAL);
}

void store_close(struct store *st)
{
	if (st->ops)
		st->ops->close(st->self);
	*st = (struct store){ 0 };
}

int store_fd(const struct store *st)
{
	return st->ops->fd(st->self);
}

void store_dispatch(const struct store *st)
{
	st->ops->dispatch(st->self);
}

int store_flush(const struct store *st)
{
	return st->ops->flush(st->self);
}

void store_hold(const struct store *st, bool on)
{
	if (st->ops->hold)
		st->ops->hold(st->self, on);
}

int store_put_key(const struct store *st, const struct key_row *row, store_done_fn *cb, void *user)
{
	return put(st, JOB_PUT_KEY, row, cb, user);
}

int store_touch_key(const struct store *st, const char *id, int64_t last_used_ms, store_done_fn *cb,
		    void *user)
{
	_cleanup_(job_free_p) struct store_job *job =
		job_create(JOB_TOUCH_KEY, (union job_cb){ .done = cb }, user);

	if (!job)
		return -ENOMEM;
	job->time_ms = last_used_ms;
	return submit(st, &job, job_set_id(job, id));
}

int store_delete_key(const struct store *st, const char *id, store_done_fn *cb, void *user)
{
	return drop(st, JOB_DELETE_KEY, id, cb, user);
}

int store_put_sandbox(const struct store *st, const struct sandbox_row *row, store_done_fn *cb,
		      void *user)
{
	return put(st, row->is_kept ? JOB_KEEP_SANDBOX : JOB_PUT_SANDBOX, row, cb, user);
}

int store_delete_sandbox(const struct store *st, const char *id, store_done_fn *cb, void *user)
{
	return drop(st, JOB_DELETE_SANDBOX, id, cb, user);
}

int store_put_execution(const struct store *st, const struct execution_row *row, store_done_fn *cb,
			void *user)
{
	return put(st, JOB_PUT_EXECUTION, row, cb, user);
}

int store_end_execution(const struct store *st, const struct execution_row *row,
			const struct usage_row *used, store_done_fn *cb, void *user)
{
	_cleanup_(job_free_p) struct store_job *job =
		job_create(JOB_PUT_EXECUTION, (union job_cb){ .done = cb }, user);
	int r;

	if (!job)
		return -ENOMEM;
	r = job_set_row(job, row);
	return submit(st, &job, r < 0 ? r : job_set_used(job, used));
}

int store_delete_old(const struct store *st, int64_t cut_ms, uint32_t max, store_done_fn *cb,
		     void *user)
{
	_cleanup_(job_free_p) struct store_job *job =
		job_create(JOB_DELETE_OLD, (union job_cb){ .done = cb }, user);

	return job ? trim(st, &job, cut_ms, max) : -ENOMEM;
}

int store_put_meta(const struct store *st, const char *name, const char *text, store_done_fn *cb,
		   void *user)
{
	return put(st, JOB_PUT_META, &(struct meta_row){ name, text }, cb, user);
}

int store_probe(const struct store *st, store_done_fn *cb, void *user)
{
	_cleanup_(job_free_p) struct store_job *job =
		job_create(JOB_PROBE, (union job_cb){ .done = cb }, user);

	return job ? submit(st, &job, 0) : -ENOMEM;
}

int store_list_sandboxes(const struct store *st, const struct store_sandbox_filter *filter,
			 const struct store_cursor *cursor, uint32_t limit, store_sandboxes_fn *cb,
			 void *user)
{
	_cleanup_(job_free_p) struct store_job *job =
		job_create(JOB_LIST_SANDBOXES, (union job_cb){ .sandboxes = cb }, user);
	int r;

	if (!job)
		return -ENOMEM;
	r = job_set_page(job, cursor, limit);
	return submit(st, &job, r < 0 ? r : job_set_filter(job, filter));
}

int store_get_sandbox(const struct store *st, const char *id, store_sandboxes_fn *cb, void *user)
{
	return get(st, JOB_GET_SANDBOX, id, (union job_cb){ .sandboxes = cb }, user);
}

int store_list_executions(const struct store *st, const char *sandbox_id,
			  const struct store_cursor *cursor, uint32_t limit,
			  store_executions_fn *cb, void *user)
{
	_cleanup_(job_free_p) struct store_job *job =
		job_create(JOB_LIST_EXECUTIONS, (union job_cb){ .executions = cb }, user);
	int r;

	if (!job)
		return -ENOMEM;
	r = job_set_page(job, cursor, limit);
	return submit(st, &job, r < 0 ? r : job_set_id(job, sandbox_id));
}

int store_get_execution(const struct store *st, const char *id, store_executions_fn *cb, void *user)
{
	return get(st, JOB_GET_EXECUTION, id, (union job_cb){ .executions = cb }, user);
}

int store_get_meta(const struct store *st, const char *name, store_text_fn *cb, void *user)
{
	return get(st, JOB_GET_META, name, (union job_cb){ .text = cb }, user);
}

int store_load_keys(const struct store *st, void (*each)(void *user, const struct key_row *row),
		    void *user, struct err *err)
{
	return load(st, JOB_LOAD_KEYS, NULL, (union job_cb){ .each_key = each }, user, err);
}

int store_load_live_sandboxes(const struct store *st,
			      void (*each)(void *user, const struct sandbox_row *row), void *user,
			      struct err *err)
{
	return load(st, JOB_LOAD_SANDBOXES, NULL, (union job_cb){ .each_sandbox = each }, user,
		    err);
}

int store_load_live_executions(const struct store *st,
			       void (*each)(void *user, const struct execution_row *row),
			       void *user, struct err *err)
{
	return load(st, JOB_LOAD_EXECUTIONS, NULL, (union job_cb){ .each_execution = each }, user,
		    err);
}

/* ---- objects, logs, usage ---- */

int store_put_object(const struct store *st, const struct object_row *row, store_done_fn *cb,
		     void *user)
{
	return put(st, JOB_PUT_OBJECT, row, cb, user);
}

int store_delete_object(const struct store *st, const char *kind, const char *id, store_done_fn *cb,
			void *user)
{
	_cleanup_(job_free_p) struct store_job *job =
		job_create(JOB_DELETE_OBJECT, (union job_cb){ .done = cb }, user);
	int r;

	if (!job)
		return -ENOMEM;
	r = job_set_space(job, kind);
	return submit(st, &job, r < 0 ? r : job_set_id(job, id));
}

int store_list_objects(const struct store *st, const struct store_object_filter *filter,
		       const struct store_cursor *cursor, uint32_t limit, store_objects_fn *cb,
		       void *user)
{
	_cleanup_(job_free_p) struct store_job *job =
		job_create(JOB_LIST_OBJECTS, (union job_cb){ .objects = cb }, user);
	int r;

	if (!job)
		return -ENOMEM;
	r = job_set_page(job, cursor, limit);
	return submit(st, &job, r < 0 ? r : job_set_objects(job, filter));
}

int store_get_object(const struct store *st, const char *kind, const char *id, store_objects_fn *cb,
		     void *user)
{
	_cleanup_(job_free_p) struct store_job *job =
		job_create(JOB_GET_OBJECT, (union job_cb){ .objects = cb }, user);
	int r;

	if (!job)
		return -ENOMEM;
	job->max = 1;
	r = job_set_space(job, kind);
	return submit(st, &job, r < 0 ? r : job_set_id(job, id));
}

int store_load_objects(const struct store *st, const char *kind,
		       void (*each)(void *user, const struct object_row *row), void *user,
		       struct err *err)
{
	return load(st, JOB_LOAD_OBJECTS, kind, (union job_cb){ .each_object = each }, user, err);
}

int store_append(const struct store *st, const struct journal_row *row, store_done_fn *cb,
		 void *user)
{
	if (row->seq > INT64_MAX)
		return -EINVAL;
	return put(st, JOB_APPEND, row, cb, user);
}

int store_trim_journal(const struct store *st, const char *stream, int64_t before_ms, uint32_t max,
		       store_done_fn *cb, void *user)
{
	_cleanup_(job_free_p) struct store_job *job =
		job_create(JOB_TRIM_JOURNAL, (union job_cb){ .done = cb }, user);
	int r;

	if (!job)
		return -ENOMEM;
	r = job_set_id(job, stream);
	return r < 0 ? r : trim(st, &job, before_ms, max);
}

int store_list_journal(const struct store *st, const char *stream,
		       const struct store_journal_filter *filter, uint32_t limit,
		       store_journal_fn *cb, void *user)
{
	_cleanup_(job_free_p) struct store_job *job =
		job_create(JOB_LIST_JOURNAL, (union job_cb){ .journal = cb }, user);
	int r;

	if (!job)
		return -ENOMEM;
	r = job_set_page(job, NULL, limit);
	if (r == 0)
		r = job_set_space(job, stream);
	return submit(st, &job, r < 0 ? r : job_set_log(job, filter));
}

int store_last_journal(const struct store *st, const char *stream,
		       void (*each)(void *user, const struct journal_row *row), void *user,
		       struct err *err)
{
	return load(st, JOB_LOAD_LAST_JOURNAL, stream, (union job_cb){ .each_journal = each }, user,
		    err);
}

int store_put_usage(const struct store *st, const struct usage_row *row, store_done_fn *cb,
		    void *user)
{
	return put(st, JOB_PUT_USAGE, row, cb, user);
}

int store_trim_usage(const struct store *st, int32_t before_day, uint32_t max, store_done_fn *cb,
		     void *user)
{
	_cleanup_(job_free_p) struct store_job *job =
		job_create(JOB_TRIM_USAGE, (union job_cb){ .done = cb }, user);

	return job ? trim(st, &job, before_day, max) : -ENOMEM;
}

int store_list_usage(const struct store *st, const struct store_usage_filter *filter,
		     uint32_t limit, store_usage_fn *cb, void *user)
{
	_cleanup_(job_free_p) struct store_job *job =
		job_create(JOB_LIST_USAGE, (union job_cb){ .usage = cb }, user);
	int r;

	if (!job)
		return -ENOMEM;
	r = job_set_page(job, NULL, limit);
	return submit(st, &job, r < 0 ? r : job_set_usage(job, filter));
}

int store_load_last_usage(const struct store *st,
			  void (*each)(void *user, const struct usage_row *row), void *user,
			  struct err *err)
{
	return load(st, JOB_LOAD_LAST_USAGE, NULL, (union job_cb){ .each_usage = each }, user, err);
}

int store_load_usage(const struct store *st, int32_t from_day,
		     void (*each)(void *user, const struct usage_row *row), void *user,
		     struct err *err)
{
	_cleanup_(job_free_p) struct store_job *job =
		job_create(JOB_LOAD_USAGE, (union job_cb){ .each_usage = each }, user);

	if (!job)
		return err_sys(err, ENOMEM, "store");
	job->time_ms = from_day;
	return st->ops->load(st->self, job, err);
}
