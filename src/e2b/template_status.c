/* How a build is: its status, and what it has said since the client asked last. Lines are counted
 * from its beginning, also those that are not kept any more. */
#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/problem.h"
#include "api/queries.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "e2b/handlers.h"
#include "e2b/templates.h"
#include "sandbox/build.h"
#include "sandbox/output.h"
#include "json/jw.h"

#define ENTRIES_MAX 1000u /* of one answer */

const struct route_query e2b_query_build_status[] = {
	{ "logsOffset", QUERY_U64, 0, INT64_MAX, NULL, "entries that the client has" },
	{ "limit", QUERY_U64, 0, ENTRIES_MAX, NULL, "entries of one answer" },
	{ 0 },
};

struct entries {
	struct jw *w;
	uint64_t at;         /* number of the next entry */
	uint64_t from, left; /* the first that is wanted; how many still are */
	int64_t when_ms;
	bool is_text; /* the texts alone */
};

static void add(struct entries *e, size_t step, const char *level, struct str text)
{
	char number[24];

	if (e->at++ < e->from || e->left == 0)
		return;
	e->left--;
	if (e->is_text)
		return jw_string_n(e->w, text.data, text.len);
	(void)str_format(number, sizeof(number), "%zu", step);
	jw_object_begin(e->w);
	jw_iso_field(e->w, "timestamp", e->when_ms);
	jw_key(e->w, "message");
	jw_string_n(e->w, text.data, text.len);
	jw_str_field(e->w, "level", level);
	jw_str_field(e->w, "step", number);
	jw_object_end(e->w);
}

/* What its client has written, not what it became. */
static const char *subject_of(const struct build_step *s)
{
	bool is_shell = s->type == BUILD_RUN && s->args.len == 4;

	if (s->type == BUILD_RUN && s->files && s->args.len > 5)
		return s->args.items[4];
	return s->args.len == 0 ? "" : s->args.items[is_shell ? 3 : 0];
}

static const char *name_of(const struct build_step *s)
{
	return s->files ? "COPY" : build_step_names[s->type];
}

/* How many of the first n steps its client has said. */
static size_t count_said(const struct build *b, size_t n)
{
	size_t said = 0;

	for (size_t i = 0; i < n; i++)
		said += !template_step_is_ours(&b->steps[i]);
	return said;
}

static void add_head(struct entries *e, const struct build *b, const struct build_step *s,
		     size_t number)
{
	_cleanup_(buf_done) struct buf text = { 0 };

	(void)buf_printf(&text, "%s[builder %zu/%zu] %s %s", s->is_cached ? "CACHED " : "", number,
			 count_said(b, b->n_steps), name_of(s), subject_of(s));
	add(e, number, "info", (struct str){ buf_str(&text), text.len });
}

static void add_lines(struct entries *e, const struct build_step *s, size_t number)
{
	_cleanup_(buf_done) struct buf text = { 0 };
	bool is_over = s->state == BUILD_STEP_DONE || s->state == BUILD_STEP_FAILED;
	struct output_chunk chunk;
	uint64_t kept = 0, gap;
	struct str rest, line;

	for (uint64_t at = 0; build_step_read(s, at, &chunk, &gap); at = chunk.seq + chunk.len)
		if (buf_append(&text, chunk.data, chunk.len) < 0)
			e->w->failed = -ENOMEM;
	for (size_t k = 0; k < text.len; k++)
		kept += text.data[k] == '\n';
	e->at += s->lines > kept ? s->lines - kept : 0;
	rest = (struct str){ buf_str(&text), text.len };
	for (; kept > 0 && str_split(&rest, '\n', &line); kept--)
		add(e, number, "info", line);
	if (is_over && rest.len > 0)
		add(e, number, "info", rest);
}

static void add_all(struct entries *e, const struct build *b)
{
	e->when_ms = (int64_t)b->started_ms;
	for (size_t i = 0; i < b->n_steps && b->steps[i].state != BUILD_STEP_WAITING; i++) {
		const struct build_step *s = &b->steps[i];
		size_t number = count_said(b, i + 1);

		if (!template_step_is_ours(s))
			add_head(e, b, s, number);
		add_lines(e, s, number);
		e->when_ms += (int64_t)s->ms;
	}
	if (b->status == BUILD_READY)
		add(e, count_said(b, b->n_steps), "info", str_of("Build finished"));
	else if (build_is_over((enum build_status)b->status))
		add(e, count_said(b, b->n_steps), "error", str_of(b->reason));
}

static void write_entries(struct jw *w, const char *key, const struct build *b,
			  struct entries which)
{
	which.w = w;
	jw_key(w, key);
	jw_array_begin(w);
	add_all(&which, b);
	jw_array_end(w);
}

static const char *status_of(const struct build *b)
{
	switch ((enum build_status)b->status) {
	case BUILD_WAITING:
		return "waiting";
	case BUILD_BUILDING:
		return "building";
	case BUILD_READY:
		return "ready";
	default:
		return "error";
	}
}

/* In their words where clients look for them; else in ours, behind which step it was. */
static void say_reason(struct buf *text, const struct build_step *s, const char *reason)
{
	const char *user = strstr(reason, "it could not be started: user '");

	if (user && s->type == BUILD_RUN && s->user)
		(void)buf_printf(text,
				 "failed to run command '%s': command failed: unauthenticated: "
				 "invalid username: '%s'",
				 subject_of(s), s->user);
	else
		(void)buf_printf(text, "%s '%s': %s", name_of(s), subject_of(s), reason);
}

static void write_reason(struct jw *w, const struct build *b)
{
	const char *reason = b->reason[0] ? b->reason : "the build has failed";
	_cleanup_(buf_done) struct buf text = { 0 };
	char step[24] = "base";

	for (size_t i = 0; i < b->n_steps; i++)
		if (b->steps[i].state == BUILD_STEP_FAILED) {
			(void)str_format(step, sizeof(step), "%zu", count_said(b, i + 1));
			say_reason(&text, &b->steps[i], reason);
		}
	if (text.len == 0)
		(void)buf_puts(&text, reason);
	jw_key(w, "reason");
	jw_object_begin(w);
	jw_str_field(w, "message", buf_str(&text));
	jw_str_field(w, "step", step);
	jw_key(w, "logEntries");
	jw_array_begin(w);
	jw_array_end(w);
	jw_object_end(w);
}

/* NULL after 404. */
static const struct object *find(struct api_call *c, struct entries *ret)
{
	const struct object *o = template_build_find(c);

	*ret = (struct entries){ .left = ENTRIES_MAX };
	if (!o)
		problem_status(c, 404, "build '%.64s' not found", call_param(c, "bid"));
	return o;
}

void e2b_build_status(struct api_call *c)
{
	_cleanup_(buf_done) struct buf buf = { 0 };
	struct jw w = jw_begin(&buf);
	struct entries which;
	const struct object *o = find(c, &which);
	const struct build *b = o ? o->data : NULL;
	char uuid[BUILD_UUID_SIZE];

	if (!b || !call_query_u64(c, "logsOffset", &which.from) ||
	    !call_query_u64(c, "limit", &which.left))
		return;
	build_id_write(o->id, uuid);
	jw_object_begin(&w);
	jw_str_field(&w, "templateID", b->name);
	jw_str_field(&w, "buildID", uuid);
	jw_str_field(&w, "status", status_of(b));
	write_entries(&w, "logEntries", b, which);
	which.is_text = true;
	write_entries(&w, "logs", b, which);
	if (strcmp(status_of(b), "error") == 0)
		write_reason(&w, b);
	jw_object_end(&w);
	call_reply(c, 200, &w);
}

void e2b_build_logs(struct api_call *c)
{
	_cleanup_(buf_done) struct buf buf = { 0 };
	struct jw w = jw_begin(&buf);
	struct entries which;
	const struct object *o = find(c, &which);

	if (!o)
		return;
	jw_object_begin(&w);
	write_entries(&w, "logs", o->data, which);
	jw_object_end(&w);
	call_reply(c, 200, &w);
}
