/* Making sandboxes, and looking at one. */
#include "sandbox/sandbox.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "api/bodies.h"
#include "api/call.h"
#include "api/problem.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "config/config.h"
#include "e2b/client.h"
#include "e2b/handlers.h"
#include "e2b/note.h"
#include "e2b/sandbox_bodies.h"
#include "e2b/sandbox_json.h"
#include "e2b/sandboxes.h"
#include "e2b/template_names.h"
#include "net/http.h"
#include "sandbox/pairs.h"
#include "sandbox/volume.h"
#include "json/jw.h"

void e2b_reply_sandbox(struct api_call *c, int status, struct sandbox *sb)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct sandbox_info info;

	sandbox_info(sb, &info);
	call_set_subject(c, info.id);
	e2b_write_sandbox(c, &w, &info);
	call_reply(c, status, &w);
}

bool e2b_timeout(struct api_call *c, uint64_t seconds, uint64_t *ret_ms)
{
	uint64_t max = c->api->deps.config->sandbox_timeout_max_ms;

	/* None at all is as soon as it can be: 0 would be the server's default. */
	*ret_ms = seconds > 0 ? seconds * 1000 : 1;
	if (max > 0 && *ret_ms > max) {
		problem_field(c, "timeout",
			      "timeout: want at most %" PRIu64 " seconds (sandbox_timeout_max)",
			      max / 1000);
		return false;
	}
	return true;
}

/* ---- making ---- */

static void created(void *user, struct sandbox *sb, const struct err *err)
{
	if (err)
		return problem_reply(user, err);
	e2b_reply_sandbox(user, 201, sb);
}

/* What is not to be had here is refused: who was told nothing would rely on it. */
static bool check_missing(struct api_call *c, const struct body_new_sandbox *body)
{
	if (jv_len(jv_get(body->iam, "tokens")) > 0) {
		problem_field(c, "iam", "iam: this server gives no workload tokens");
		return false;
	}
	return true;
}

static bool take_life(struct api_call *c, const struct body_new_sandbox *body,
		      struct lifecycle *ret)
{
	const char *policy = body->auto_resume.policy;
	bool resumes = body->auto_resume.enabled || (policy && strcmp(policy, "any") == 0);

	if (resumes && body->auto_pause && !body->auto_pause_memory) {
		problem_field(c, "autoResume",
			      "autoResume: what was paused without its memory is resumed by a "
			      "client, not by traffic");
		return false;
	}
	ret->auto_resume = resumes;
	if (body->auto_pause)
		ret->on_timeout = body->auto_pause_memory ? LAPSE_PAUSE : LAPSE_STOP;
	return true;
}

static bool take_volumes(struct api_call *c, const struct body_new_sandbox *body,
			 struct volume_mounts *ret)
{
	const struct body_volume_mount *from = body->volumes.items;

	for (size_t i = 0; i < body->volumes.len; i++) {
		struct volume_mount *to = &ret->items[ret->n++]; /* as many as the table allows */

		if (str_copy(to->name, sizeof(to->name), from[i].name) < 0 ||
		    str_copy(to->path, sizeof(to->path), from[i].path) < 0) {
			problem_field(c, "volumeMounts", "volumeMounts: a name is too long");
			return false;
		}
	}
	return true;
}

static bool take_note(struct api_call *c, const struct body_new_sandbox *body, struct buf *b)
{
	struct note note = { .template = body->template,
			     .internet = body->internet.said == E2B_UNSAID ? -1 : body->internet.on,
			     .network = body->network };
	struct err err = { 0 };

	if (note_write(&note, http_arena(c->http), b, &err) == 0)
		return true;
	problem_reply(c, &err);
	return false;
}

void e2b_sandbox_create(struct api_call *c)
{
	_cleanup_(buf_done) struct buf note = { 0 };
	const struct body_new_sandbox *body = c->body;
	struct arena *a = http_arena(c->http);
	struct volume_mounts volumes = { 0 };
	struct sandbox_request req = {
		.owner = c->who->owner,
		.key_id = c->who->key_id,
		.name = "",
		.volumes = body->volumes.len > 0 ? &volumes : NULL,
		.env = pairs_given(a, &body->env),
		.n_env = body->env.len,
		.metadata = pairs_given(a, &body->metadata),
		.n_metadata = body->metadata.len,
		.trace = call_trace(c),
	};

	if (!client_is_known(c) || !e2b_timeout(c, body->timeout_s, &req.timeout_ms) ||
	    !check_missing(c, body) || !take_life(c, body, &req.life) ||
	    !take_volumes(c, body, &volumes) || !template_names_find(c, body->template, &req) ||
	    !take_note(c, body, &note))
		return;
	if ((req.n_env > 0 && !req.env) || (req.n_metadata > 0 && !req.metadata))
		return problem_reply(c, &(struct err){ ENOMEM, "sandbox" });
	req.note = buf_str(&note);
	sandbox_create(c->api->deps.sandboxes, &req, created, c);
}

/* ---- looking ---- */

void e2b_sandbox_get(struct api_call *c)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct sandbox *sb = e2b_find(c);
	struct jw w = jw_begin(&b);
	struct sandbox_info info;

	if (!sb)
		return;
	sandbox_info(sb, &info);
	e2b_write_detail(c, &w, &info, false);
	call_reply(c, 200, &w);
}
