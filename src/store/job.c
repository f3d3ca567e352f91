#include "store/job.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "store/rows.h"

/* What one job can hold: its largest row or page, and room for the texts around it. */
#define JOB_BYTES_MAX ((size_t)STORE_OUTPUT_MAX + 8 * (size_t)STORE_TEXT_MAX)

static const struct job_type types[JOB_KIND_COUNT] = {
	[JOB_PUT_KEY] = { &rows_keys, JOB_WRITE, true },
	[JOB_PUT_SANDBOX] = { &rows_sandboxes, JOB_WRITE, false },
	[JOB_KEEP_SANDBOX] = { &rows_sandboxes, JOB_WRITE, true },
	[JOB_PUT_EXECUTION] = { &rows_executions, JOB_WRITE, false },
	[JOB_PUT_META] = { &rows_meta, JOB_WRITE, true },
	[JOB_PUT_OBJECT] = { &rows_objects, JOB_WRITE, true },
	[JOB_PUT_USAGE] = { &rows_usage, JOB_WRITE, false },
	[JOB_APPEND] = { &rows_journal, JOB_WRITE, false },
	[JOB_TOUCH_KEY] = { &rows_keys, JOB_WRITE, false },
	[JOB_DELETE_KEY] = { &rows_keys, JOB_WRITE, true },
	[JOB_DELETE_SANDBOX] = { &rows_sandboxes, JOB_WRITE, false },
	[JOB_DELETE_OLD] = { &rows_sandboxes, JOB_WRITE, false },
	[JOB_DELETE_OBJECT] = { &rows_objects, JOB_WRITE, true },
	[JOB_TRIM_JOURNAL] = { &rows_journal, JOB_WRITE, false },
	[JOB_TRIM_USAGE] = { &rows_usage, JOB_WRITE, false },
	[JOB_PROBE] = { &rows_meta, JOB_WRITE, false },
	[JOB_FLUSH] = { NULL, JOB_WRITE, false },
	[JOB_LIST_SANDBOXES] = { &rows_sandboxes, JOB_QUERY, false },
	[JOB_GET_SANDBOX] = { &rows_sandboxes, JOB_QUERY, false },
	[JOB_LIST_EXECUTIONS] = { &rows_executions, JOB_QUERY, false },
	[JOB_GET_EXECUTION] = { &rows_executions, JOB_QUERY, false },
	[JOB_GET_META] = { &rows_meta, JOB_QUERY, false },
	[JOB_LIST_OBJECTS] = { &rows_objects, JOB_QUERY, false },
	[JOB_GET_OBJECT] = { &rows_objects, JOB_QUERY, false },
	[JOB_LIST_JOURNAL] = { &rows_journal, JOB_QUERY, false },
	[JOB_LIST_USAGE] = { &rows_usage_sums, JOB_QUERY, false },
	[JOB_LOAD_KEYS] = { &rows_keys, JOB_LOAD, false },
	[JOB_LOAD_SANDBOXES] = { &rows_sandboxes, JOB_LOAD, false },
	[JOB_LOAD_EXECUTIONS] = { &rows_executions, JOB_LOAD, false },
	[JOB_LOAD_OBJECTS] = { &rows_objects, JOB_LOAD, false },
	[JOB_LOAD_LAST_JOURNAL] = { &rows_journal, JOB_LOAD, false },
	[JOB_LOAD_USAGE] = { &rows_usage, JOB_LOAD, false },
	[JOB_LOAD_LAST_USAGE] = { &rows_usage, JOB_LOAD, false },
};

struct store_job *job_create(enum job_kind kind, union job_cb cb, void *user)
{
	struct arena *a = arena_create(JOB_BYTES_MAX);
	struct store_job *job = a ? arena_alloc(a, sizeof(*job)) : NULL;

	if (!job) {
		arena_free(a);
		return NULL;
	}
	list_init(&job->node);
	job->arena = a;
	job->kind = kind;
	job->cb = cb;
	job->user = user;
	return job;
}

struct store_job *job_free(struct store_job *job)
{
	if (job)
		arena_free(job->arena);
	return NULL;
}

const struct job_type *job_type(const struct store_job *job)
{
	return &types[job->kind];
}

size_t job_bytes(const struct store_job *job)
{
	return arena_used(job->arena);
}

int job_set_row(struct store_job *job, const void *row)
{
	return rows_copy(job_type(job)->table, row, job->arena, &job->row);
}

int job_set_used(struct store_job *job, const struct usage_row *used)
{
	return rows_copy(&rows_usage, used, job->arena, &job->used);
}

static int copy_name(struct store_job *job, const char *text, size_t max, const char **ret)
{
	size_t n = strnlen(text, max + 1);

	if (n > max)
		return -E2BIG;
	*ret = arena_strndup(job->arena, text, n);
	return *ret ? 0 : -ENOMEM;
}

/* NULL stays NULL: it means something else than "". */
static int copy_choice(struct store_job *job, const char *text, const char **ret)
{
	*ret = NULL;
	return text ? copy_name(job, text, STORE_NAME_MAX, ret) : 0;
}

int job_set_id(struct store_job *job, const char *id)
{
	return id && *id ? copy_name(job, id, STORE_NAME_MAX, &job->id) : -EINVAL;
}

int job_set_space(struct store_job *job, const char *space)
{
	return space && *space ? copy_name(job, space, STORE_NAME_MAX, &job->space) : -EINVAL;
}

int job_set_objects(struct store_job *job, const struct store_object_filter *filter)
{
	int r = job_set_space(job, filter->kind);

	if (r == 0)
		r = copy_choice(job, filter->owner, &job->objects.owner);
	if (r == 0)
		r = copy_choice(job, filter->name, &job->objects.name);
	return r;
}

int job_set_log(struct store_job *job, const struct store_journal_filter *filter)
{
	int r;

	job->log = *filter;
	r = copy_choice(job, filter->owner, &job->log.owner);
	return r < 0 ? r : copy_choice(job, filter->kind, &job->log.kind);
}

int job_set_usage(struct store_job *job, const struct store_usage_filter *filter)
{
	int r;

	job->usage = *filter;
	r = copy_choice(job, filter->owner, &job->usage.owner);
	return r < 0 ? r : copy_choice(job, filter->key_id, &job->usage.key_id);
}

static int copy_pairs(struct store_job *job, const struct store_pair *pairs, size_t n)
{
	struct store_pair *copy;
	int r = 0;

	if (n == 0)
		return 0;
	if (n > STORE_FILTER_PAIRS_MAX)
		return -E2BIG;
	copy = arena_array(job->arena, n, sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	for (size_t i = 0; i < n && r == 0; i++) {
		r = copy_name(job, pairs[i].name, STORE_TEXT_MAX, &copy[i].name);
		if (r == 0)
			r = copy_name(job, pairs[i].value, STORE_TEXT_MAX, &copy[i].value);
	}
	job->filter.metadata = copy;
	return r;
}

int job_set_filter(struct store_job *job, const struct store_sandbox_filter *filter)
{
	int r;

	job->filter = *filter;
	r = copy_choice(job, filter->owner, &job->filter.owner);
	if (r == 0)
		r = copy_choice(job, filter->template, &job->filter.template);
	if (r == 0)
		r = copy_choice(job, filter->name, &job->filter.name);
	if (r == 0)
		r = copy_pairs(job, filter->metadata, filter->n_metadata);
	return r;
}

int job_set_page(struct store_job *job, const struct store_cursor *cursor, uint32_t limit)
{
	if (limit < 1 || limit > STORE_PAGE_MAX)
		return -EINVAL;
	job->max = limit;
	if (!cursor || cursor->before_ms == 0)
		return 0;
	job->cursor.before_ms = cursor->before_ms;
	return copy_name(job, cursor->before_id ? cursor->before_id : "", STORE_NAME_MAX,
			 &job->cursor.before_id);
}

static void call_text(const struct store_job *job)
{
	const struct meta_row *row = job->rows;

	job->cb.text(job->user, job->result, job->result < 0 ? NULL : row->text);
}

void job_call_back(const struct store_job *job)
{
	const struct row_table *table = job_type(job)->table;

	if (!job->cb.done) /* whichever it is */
		return;
	if (job_type(job)->class == JOB_WRITE)
		job->cb.done(job->user, job->result);
	else if (table == &rows_sandboxes)
		job->cb.sandboxes(job->user, job->result, job->rows, job->n_rows, job->more);
	else if (table == &rows_executions)
		job->cb.executions(job->user, job->result, job->rows, job->n_rows, job->more);
	else if (table == &rows_objects)
		job->cb.objects(job->user, job->result, job->rows, job->n_rows, job->more);
	else if (table == &rows_journal)
		job->cb.journal(job->user, job->result, job->rows, job->n_rows, job->more);
	else if (table == &rows_usage_sums)
		job->cb.usage(job->user, job->result, job->rows, job->n_rows, job->more);
	else
		call_text(job);
}

void job_call_each(const struct store_job *job, const void *row)
{
	const struct row_table *table = job_type(job)->table;

	if (table == &rows_keys)
		job->cb.each_key(job->user, row);
	else if (table == &rows_sandboxes)
		job->cb.each_sandbox(job->user, row);
	else if (table == &rows_executions)
		job->cb.each_execution(job->user, row);
	else if (table == &rows_objects)
		job->cb.each_object(job->user, row);
	else if (table == &rows_journal)
		job->cb.each_journal(job->user, row);
	else
		job->cb.each_usage(job->user, row);
}
