/* GET .../builds/:bid/events: a build from its beginning to its end, whenever one looks. */
#include <errno.h>
#include <stdlib.h>

#include "api/build_json.h"
#include "api/call.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "api/text.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "net/http.h"
#include "net/sse.h"
#include "sandbox/build.h"
#include "sandbox/output.h"
#include "json/jw.h"

#define PENDING_MAX (4u << 20) /* a client that reads less is cut */

struct watch {
	struct api_call *call;
	struct call_stream base;
	struct build_follower follower;
	struct sse *sse;
	size_t step;       /* the one that is told of */
	bool is_begun;     /* that it runs was told */
	uint64_t position; /* of its output */
	struct text_tail tails[2];
	char id[ID_LEN + 1];
};

static void end(struct watch *w)
{
	build_unfollow(&w->follower);
	call_stream_end(&w->base);
	free(w);
}

static void gone(void *user, struct http_request *r)
{
	(void)r;
	end(user);
}

static void cut(struct call_stream *s)
{
	struct watch *w = LIST_ENTRY(s, struct watch, base);
	struct sse *sse = w->sse;

	end(w);
	sse_end(sse);
}

/* False: the client does not read. */
static bool send(struct watch *w, const char *event, struct jw *json, const struct buf *b)
{
	return jw_end(json) == 0 &&
	       sse_event(w->sse, NULL, event, b->data, b->len) <= (ssize_t)PENDING_MAX;
}

static bool send_step(struct watch *w, const struct build *build)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw json = jw_begin(&b);

	jw_object_begin(&json);
	jw_uint_field(&json, "index", w->step + 1);
	jw_uint_field(&json, "count", build->n_steps);
	jw_key(&json, "step");
	build_json_step(&json, &build->steps[w->step], false);
	jw_object_end(&json);
	return send(w, "step", &json, &b);
}

static bool send_output(struct watch *w, int stream, const struct buf *text, uint64_t omitted)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw json = jw_begin(&b);

	if (text->len == 0)
		return true;
	jw_object_begin(&json);
	jw_uint_field(&json, "index", w->step + 1);
	jw_str_field(&json, "stream", stream == 2 ? "stderr" : "stdout");
	jw_uint_field(&json, "omitted", omitted);
	jw_key(&json, "data");
	jw_string_n(&json, text->data, text->len);
	jw_object_end(&json);
	return send(w, "output", &json, &b);
}

static bool send_more(struct watch *w, const struct build_step *s)
{
	struct output_chunk chunk;
	uint64_t omitted;
	bool ok = true;

	while (ok && build_step_read(s, w->position, &chunk, &omitted)) {
		_cleanup_(buf_done) struct buf text = { 0 };

		w->position = chunk.seq + chunk.len;
		ok = text_feed(&w->tails[chunk.stream == 2], chunk.data, chunk.len, &text) == 0 &&
		     send_output(w, chunk.stream, &text, omitted);
	}
	return ok;
}

static bool send_rest(struct watch *w)
{
	bool ok = true;

	for (int i = 0; i < 2 && ok; i++) {
		_cleanup_(buf_done) struct buf text = { 0 };

		ok = text_end(&w->tails[i], &text) == 0 && send_output(w, i + 1, &text, 0);
	}
	return ok;
}

/* All that can be told of the steps until now. */
static bool send_steps(struct watch *w, const struct build *build)
{
	while (w->step < build->n_steps) {
		const struct build_step *s = &build->steps[w->step];
		bool is_over = s->state == BUILD_STEP_DONE || s->state == BUILD_STEP_FAILED;

		if (s->state == BUILD_STEP_WAITING)
			return true;
		if (!w->is_begun && !is_over && !send_step(w, build))
			return false;
		w->is_begun = true;
		if (!send_more(w, s))
			return false;
		if (!is_over)
			return true;
		if (!send_rest(w) || !send_step(w, build))
			return false;
		w->step++;
		w->is_begun = false;
		w->position = 0;
	}
	return true;
}

static bool send_end(struct watch *w, const struct build *build)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw json = jw_begin(&b);

	jw_object_begin(&json);
	jw_str_field(&json, "status", build_status_names[build->status]);
	jw_str_field(&json, "template", build->template[0] ? build->template : NULL);
	jw_str_field(&json, "reason", build->reason[0] ? build->reason : NULL);
	jw_object_end(&json);
	return send(w, "end", &json, &b);
}

static void pump(void *user)
{
	struct watch *w = user;
	struct objects *t = sandboxes_objects(w->base.api->deps.sandboxes, OBJECTS_BUILD);
	const struct object *o = objects_find(t, w->id, NULL);
	const struct build *build = o ? o->data : NULL;

	if (!build || !send_steps(w, build))
		return cut(&w->base);
	if (!build_is_over((enum build_status)build->status))
		return;
	(void)send_end(w, build);
	cut(&w->base);
}

void api_build_events(struct api_call *c)
{
	struct object *o = build_of_call(c);
	struct watch *w = o ? calloc(1, sizeof(*w)) : NULL;

	if (!o)
		return;
	if (!w)
		return problem_reply(c, &(struct err){ ENOMEM, "events" });
	w->base.cut = cut;
	(void)str_copy(w->id, sizeof(w->id), o->id);
	if (!call_stream_begin(c, &w->base, "sse", o->id)) {
		free(w);
		return;
	}
	w->sse = sse_begin(c->http);
	if (!w->sse) {
		call_stream_end(&w->base);
		free(w);
		return problem_reply(c, &(struct err){ ENOMEM, "events" });
	}
	w->call = c;
	w->follower = (struct build_follower){ .changed = pump, .user = w };
	http_on_gone(c->http, gone, w);
	(void)build_follow(c->api->deps.sandboxes, w->id, &w->follower);
	pump(w);
}
