/* What changes a sandbox: its end, its time, and whether it stands still. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/body.h"
#include "api/call.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "config/config.h"
#include "e2b/client.h"
#include "e2b/handlers.h"
#include "e2b/network.h"
#include "e2b/note.h"
#include "e2b/sandbox_bodies.h"
#include "e2b/sandbox_json.h"
#include "e2b/sandboxes.h"
#include "net/http.h"
#include "sandbox/sandbox.h"
#include "json/jv.h"

static void done(void *user, struct sandbox *sb, const struct err *err)
{
	(void)sb;
	if (err)
		return problem_reply(user, err);
	call_reply_empty(user);
}

void e2b_sandbox_delete(struct api_call *c)
{
	struct sandbox *sb = e2b_find(c);

	if (sb)
		sandbox_delete(sb, "deleted", done, c);
}

/* ---- its time ---- */

static void set_timeout(struct sandbox *sb, uint64_t ms, sandbox_cb cb, void *user)
{
	sandbox_patch(sb, &(struct sandbox_patch){ .has_timeout = true, .timeout_ms = ms }, cb,
		      user);
}

void e2b_sandbox_timeout(struct api_call *c)
{
	const struct body_timeout *body = c->body;
	struct sandbox *sb = e2b_find(c);
	uint64_t ms;

	if (sb && e2b_timeout(c, body->timeout_s, &ms))
		set_timeout(sb, ms, done, c);
}

/* Whether it would end before that: time is given, never taken. */
static bool is_short(const struct sandbox *sb, uint64_t ms)
{
	struct sandbox_info info;

	sandbox_info(sb, &info);
	return info.expires_ms != 0 && info.expires_ms < clock_wall_ms() + (int64_t)ms;
}

void e2b_sandbox_refresh(struct api_call *c)
{
	const struct body_timeout *body = c->body;
	struct sandbox *sb = e2b_find(c);
	uint64_t ms;

	if (!sb || !e2b_timeout(c, body->timeout_s, &ms))
		return;
	if (is_short(sb, ms))
		set_timeout(sb, ms, done, c);
	else
		call_reply_empty(c);
}

/* ---- standing still ---- */

void e2b_sandbox_pause(struct api_call *c)
{
	const struct body_pause *body = c->body;
	struct sandbox *sb = e2b_find(c);
	struct sandbox_info info;

	if (!sb)
		return;
	sandbox_info(sb, &info);
	if (!e2b_is_running(&info))
		return problem_status(c, 409, "sandbox '%s' is already paused", info.id);
	if (body->memory)
		sandbox_pause(sb, done, c);
	else
		sandbox_suspend(sb, done, c);
}

struct wakening { /* in the request's arena */
	struct api_call *call;
	uint64_t ms;
	int status;
	bool from_disk;  /* what is in its memory is not wanted */
	bool pauses_too; /* the lifecycle is said anew */
	uint8_t on_timeout;
};

static void changed(void *user, struct sandbox *sb, const struct err *err)
{
	struct wakening *w = user;

	if (err)
		return problem_reply(w->call, err);
	e2b_reply_sandbox(w->call, w->status, sb);
}

static void woken(void *user, struct sandbox *sb, const struct err *err)
{
	struct wakening *w = user;

	if (err)
		return problem_reply(w->call, err);
	if (is_short(sb, w->ms))
		set_timeout(sb, w->ms, changed, w);
	else
		changed(w, sb, NULL);
}

static void timed(void *user, struct sandbox *sb, const struct err *err)
{
	struct wakening *w = user;

	if (err)
		return problem_reply(w->call, err);
	sandbox_wake(sb, woken, w);
}

/* One that stands still has the time that it is given; before it wakes, so that the rest of its own
 * does not end it on the way. */
static void give_time(struct wakening *w, struct sandbox *sb)
{
	struct sandbox_patch p = { .has_timeout = true,
				   .timeout_ms = w->ms,
				   .has_on_timeout = w->pauses_too,
				   .life.on_timeout = w->on_timeout };
	struct sandbox_info info;

	sandbox_info(sb, &info);
	if (info.state == SANDBOX_PAUSED || info.state == SANDBOX_SUSPENDED)
		sandbox_patch(sb, &p, timed, w);
	else
		sandbox_wake(sb, woken, w);
}

static void suspended(void *user, struct sandbox *sb, const struct err *err)
{
	struct wakening *w = user;

	if (err)
		return problem_reply(w->call, err);
	give_time(w, sb);
}

static void wake(struct api_call *c, struct sandbox *sb, const struct wakening *wish)
{
	struct wakening *w = arena_alloc(http_arena(c->http), sizeof(*w));
	struct sandbox_info info;

	if (!w)
		return problem_reply(c, &(struct err){ ENOMEM, "connect" });
	*w = *wish;
	sandbox_info(sb, &info);
	if (w->from_disk && info.state == SANDBOX_PAUSED)
		sandbox_suspend(sb, suspended, w);
	else
		give_time(w, sb);
}

void e2b_sandbox_connect(struct api_call *c)
{
	const struct body_connect *body = c->body;
	struct wakening w = { .call = c, .from_disk = !body->memory };
	struct sandbox *sb = client_is_known(c) ? e2b_find(c) : NULL;
	struct sandbox_info info;

	if (!sb || !e2b_timeout(c, body->timeout_s, &w.ms))
		return;
	sandbox_info(sb, &info);
	w.status = info.state == SANDBOX_RUNNING ? 200 : 201;
	wake(c, sb, &w);
}

void e2b_sandbox_resume(struct api_call *c)
{
	const struct body_connect *body = c->body;
	struct wakening w = { .call = c,
			      .status = 201,
			      .from_disk = !body->memory,
			      .pauses_too = body->auto_pause.said != E2B_UNSAID };
	struct sandbox *sb = client_is_known(c) ? e2b_find(c) : NULL;
	struct sandbox_info info;

	if (!sb || !e2b_timeout(c, body->timeout_s, &w.ms))
		return;
	sandbox_info(sb, &info);
	if (info.state == SANDBOX_RUNNING)
		return problem_status(c, 409, "sandbox '%s' is already running", info.id);
	if (w.pauses_too)
		w.on_timeout = body->auto_pause.on ? LAPSE_PAUSE : LAPSE_DELETE;
	wake(c, sb, &w);
}

/* ---- its network ---- */

static void network_done(void *user, struct sandbox *sb, const struct err *err)
{
	if (!err)
		e2b_network_changed(user, sb);
	done(user, sb, err);
}

static void got_network(struct api_call *c, const void *user, struct jv_doc **doc)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct sandbox *sb = e2b_find(c);
	struct sandbox_info info;
	struct err err = { 0 };

	(void)user;
	if (!sb)
		return;
	if (jv_kind(jv_root(*doc)) != JV_OBJECT)
		return problem_status(c, 400, "a JSON object is wanted as the body");
	sandbox_info(sb, &info);
	if (note_update(info.note, jv_root(*doc), http_arena(c->http), &b, &err) < 0)
		return problem_reply(c, &err);
	sandbox_patch(sb, &(struct sandbox_patch){ .note = buf_str(&b) }, network_done, c);
}

/* Taken as it is: what is absent is cleared, what is unknown stays away. */
void e2b_sandbox_network(struct api_call *c)
{
	if (e2b_find(c))
		body_take(c, &(struct body_plan){ .max = c->api->deps.config->max_json_bytes,
						  .got = got_network });
}
