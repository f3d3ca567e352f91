#include "api/file_sink.h"

#include "api/call.h"
#include "base/err.h"
#include "net/http.h"
#include "sandbox/files.h"

void file_sink_done(struct file_sink *s)
{
	file_job_end(&s->job);
	buf_done(&s->rest);
}

/* An operation that has failed takes nothing any more, and says so itself. */
static int push(struct file_sink *s)
{
	while (s->rest.len > 0) {
		ssize_t n = file_send(s->job.op, s->rest.data, s->rest.len);

		if (n <= 0)
			return 0;
		buf_drop(&s->rest, (size_t)n);
	}
	if (s->is_ended)
		(void)file_send(s->job.op, NULL, 0);
	return 1;
}

int file_sink_put(struct file_sink *s, const void *data, size_t n)
{
	int r = buf_append(&s->rest, data, n);

	return r < 0 ? r : push(s);
}

void file_sink_end(struct file_sink *s)
{
	s->is_ended = true;
	(void)push(s);
}

static void on_room(void *user)
{
	struct file_sink *s = user;

	if (s->rest.len > 0 && push(s) && !s->is_ended)
		s->room(s);
}

static void on_entry(void *user, const struct guest_entry *entry)
{
	struct file_sink *s = user;

	s->job.has_entry =
		file_entry_copy(http_arena(s->job.call->http), entry, &s->job.entry) == 0;
}

static void on_done(void *user, uint64_t count)
{
	struct file_sink *s = user;

	s->job.op = NULL;
	file_sink_done(s);
	s->finished(s, count, NULL);
}

static void on_failed(void *user, const struct err *err)
{
	struct file_sink *s = user;

	s->job.op = NULL;
	file_sink_done(s);
	s->finished(s, 0, err);
}

int file_sink_start(struct file_sink *s, const struct guest_file *f, struct err *err)
{
	static const struct file_ops ops = {
		.entry = on_entry,
		.room = on_room,
		.done = on_done,
		.failed = on_failed,
	};

	s->is_ended = false;
	s->job.has_entry = false;
	return file_job_try(&s->job, f, &ops, s, err);
}
