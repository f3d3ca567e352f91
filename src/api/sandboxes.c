/* POST, GET, PATCH and DELETE of /sandboxes. */
#include "sandbox/sandbox.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "api/bodies.h"
#include "api/call.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "api/sandbox_json.h"
#include "api/sandbox_usage.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "config/config.h"
#include "net/http.h"
#include "sandbox/grant.h"
#include "sandbox/pairs.h"
#include "sandbox/profile.h"
#include "sandbox/template.h"
#include "sandbox/template_own.h"
#include "sandbox/volume.h"
#include "tools/bridge.h"
#include "json/jw.h"

#define LIST_DEFAULT 50
#define LIST_BYTES (4u << 20) /* a page ends early above this: others want their answers too */
#define FILTER_PAIRS_MAX 16

static void reply_info(struct api_call *c, int status, const struct sandbox_info *info)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	sandbox_json(&w, info);
	call_reply(c, status, &w);
}

/* ---- making ---- */

/* Who asks for more isolation or for a network must not get less, or none, without a word. */
bool call_profile(struct api_call *c, int level, const struct body_security *security,
		  uint32_t *ret)
{
	const char *missing = profile_unavailable((enum profile_id)level);

	if (missing) {
		problem_field(c, "securityLevel", "securityLevel '%s' cannot be had: %s",
			      profiles[level].name, missing);
		return false;
	}
	for (unsigned key = 0; key < PROFILE_KEY_COUNT; key++) {
		const char *choice = security->chosen[key];
		struct err err = { 0 };

		if (!choice)
			continue;
		if (level != PROFILE_ID_CUSTOM) {
			problem_field(c, "security", "only securityLevel 'custom' takes settings");
			return false;
		}
		if (profile_choose(key, choice, ret, &err) < 0) {
			problem_field(c, "security", "security.%s", err.text);
			return false;
		}
	}
	return true;
}

static bool check_level(struct api_call *c, const struct body_sandbox *body,
			struct sandbox_request *req)
{
	const char *network = jv_text(body->network);

	if (!call_profile(c, body->level, &body->security, &req->strict))
		return false;
	req->profile = (uint8_t)body->level;
	if (jv_kind(body->network) != JV_ABSENT && jv_kind(body->network) != JV_NULL &&
	    !(network && strcmp(network, "none") == 0)) {
		problem_field(c, "networkAccess",
			      "sandboxes have no network on this server: only 'none' can be had");
		return false;
	}
	return true;
}

static bool find_template(struct api_call *c, const struct body_sandbox *body, const char **ret)
{
	const char *field = body->template ? "template" : "runtime";
	const char *name = body->template ? body->template : body->runtime;
	const struct template_row *row = template_find(name ? name : "");

	if (body->template && body->runtime && strcmp(body->template, body->runtime) != 0 &&
	    (!row || row != template_find(body->runtime))) {
		problem_field(c, "runtime",
			      "template and runtime are two names of one thing: give "
			      "one of them");
		return false;
	}
	if (!row && template_own_find(c->api->deps.sandboxes, c->who->owner, name)) {
		*ret = name; /* the service knows what it stands for */
		return true;
	}
	if (!row) {
		problem_field(c, field, "there is no %s '%.64s'", field, name);
		return false;
	}
	*ret = row->name;
	return true;
}

static bool check_times(struct api_call *c, uint64_t timeout_ms, uint64_t idle_ms)
{
	uint64_t max = c->api->deps.config->sandbox_timeout_max_ms;
	const char *bad = timeout_ms > max ? "timeout" : idle_ms > max ? "idleTimeout" : NULL;

	if (bad)
		problem_field(c, bad, "%s: want at most %" PRIu64 " seconds (sandbox_timeout_max)",
			      bad, max / 1000);
	return !bad;
}

static void reply_created(struct api_call *c, const struct sandbox *sb)
{
	struct sandbox_info info;
	char path[128];

	sandbox_info(sb, &info);
	if (str_format(path, sizeof(path), "/api/v1/sandboxes/%s", info.id) == 0)
		(void)http_header_add(c->http, "Location", path);
	reply_info(c, info.is_existing ? 200 : 201, &info);
}

struct equipping {
	struct api_call *call;
	char id[ID_LEN + 1];
};

/* Its programs find the tools that they may call, or will not. */
static void equipped(void *user)
{
	const struct equipping *e = user;
	struct api_call *c = e->call;
	const struct sandbox *sb = sandboxes_find(c->api->deps.sandboxes, e->id, NULL);

	if (sb)
		reply_created(c, sb);
	else
		problem_reply(c, &(struct err){ EPIPE, "the sandbox ended at once" });
}

static void created(void *user, struct sandbox *sb, const struct err *err)
{
	struct api_call *c = user;
	struct sandbox_info info;
	struct equipping *e;

	if (err)
		return problem_reply(c, err);
	sandbox_info(sb, &info);
	e = info.grant[0] ? arena_alloc(http_arena(c->http), sizeof(*e)) : NULL;
	if (!e)
		return reply_created(c, sb);
	e->call = c;
	(void)str_copy(e->id, sizeof(e->id), info.id);
	bridges_settle(c->api->deps.bridges, e->id, equipped, e);
}

/* False: answered. */
static bool take_volumes(struct api_call *c, const struct body_sandbox *body,
			 struct volume_mounts *ret)
{
	const struct body_mount *from = body->volumes.items;

	for (size_t i = 0; i < body->volumes.len; i++) {
		struct volume_mount *to = &ret->items[ret->n++]; /* as many as the table allows */

		if (str_copy(to->name, sizeof(to->name), from[i].name) < 0 ||
		    str_copy(to->path, sizeof(to->path), from[i].path) < 0) {
			problem_field(c, "volumes", "a name or path is too long");
			return false;
		}
		to->read_only = from[i].read_only;
	}
	return true;
}

/* False: answered. */
static bool take_tools(struct api_call *c, struct jv tools, const char **ret)
{
	struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	bool is_some = true;
	struct err err = { 0 };

	if (jv_kind(tools) == JV_ABSENT || jv_kind(tools) == JV_NULL ||
	    (jv_bool(tools, &is_some) == 0 && !is_some))
		return true;
	jw_value(&w, tools);
	*ret = jw_end(&w) == 0 ? arena_strndup(http_arena(c->http), buf_str(&b), b.len) : NULL;
	buf_done(&b);
	if (*ret && grant_check(*ret, &err) == 0)
		return true;
	problem_field(c, "tools", "%s", *ret ? err.text : "out of memory");
	return false;
}

static bool check_names(struct api_call *c, const struct body_sandbox *body)
{
	if (body->snapshot && (body->template || body->runtime)) {
		problem_field(c, "snapshot",
			      "a snapshot says what its template was: give one of them");
		return false;
	}
	if (body->get_or_create && !body->name) {
		problem_field(c, "name", "getOrCreate needs a name");
		return false;
	}
	return true;
}

void api_sandbox_create(struct api_call *c)
{
	struct volume_mounts volumes = { 0 };
	const struct body_sandbox *body = c->body;
	struct arena *a = http_arena(c->http);
	struct sandbox_request req = {
		.owner = c->who->owner,
		.key_id = c->who->key_id,
		.name = body->name ? body->name : "",
		.get_or_create = body->get_or_create,
		.snapshot = body->snapshot,
		.volumes = body->volumes.len > 0 ? &volumes : NULL,
		.limits = { .memory_bytes = body->resources.memory_bytes,
			    .disk_bytes = body->resources.disk_bytes,
			    .cpu_milli = body->resources.cpu_milli,
			    .pids = body->resources.pids },
		.timeout_ms = body->timeout_ms,
		.idle_ms = body->idle_ms,
		.life = { (uint8_t)body->on_timeout, body->auto_resume },
		.cold = !body->use_warm_pool,
		.env = pairs_given(a, &body->env),
		.n_env = body->env.len,
		.metadata = pairs_given(a, &body->metadata),
		.n_metadata = body->metadata.len,
		.trace = call_trace(c),
	};

	if (!check_level(c, body, &req) || !find_template(c, body, &req.template) ||
	    !check_times(c, body->timeout_ms, body->idle_ms) || !check_names(c, body) ||
	    !take_volumes(c, body, &volumes) || !take_tools(c, body->tools, &req.grant))
		return;
	if ((req.n_env > 0 && !req.env) || (req.n_metadata > 0 && !req.metadata))
		return problem_reply(c, &(struct err){ ENOMEM, "sandbox" });
	sandbox_create(c->api->deps.sandboxes, &req, created, c);
}

/* ---- looking ---- */

static bool parse_states(struct api_call *c, unsigned *ret)
{
	const char *text = NULL;
	struct str rest, one;
	enum sandbox_state state;
	char name[32];

	if (!call_query(c, "status", &text))
		return false;
	rest = str_of(text);
	while (str_split(&rest, ',', &one)) {
		if (str_is(one, "all")) {
			*ret |= (1u << SANDBOX_STATE_COUNT) - 1;
			continue;
		}
		if (str_format(name, sizeof(name), "%.*s", (int)one.len, one.data) < 0 ||
		    state_from(name, &state) < 0) {
			problem_field(c, "status", "there is no status '%.*s'",
				      (int)(one.len < 32 ? one.len : 32), one.data);
			return false;
		}
		*ret |= 1u << state;
	}
	return true;
}

/* ?metadata.team=red: all of them must match. */
static bool parse_pairs(struct api_call *c, struct sandbox_filter *f)
{
	static const char prefix[] = "metadata.";
	struct str rest = str_of(http_query_string(c->http));
	struct sandbox_pair *pairs =
		arena_array(http_arena(c->http), FILTER_PAIRS_MAX, sizeof(*pairs));
	const char *name, *value;
	int r = pairs ? 1 : -ENOMEM;

	while (r > 0) {
		r = http_query_next(c->http, &rest, &name, &value);
		if (r <= 0 || strncmp(name, prefix, sizeof(prefix) - 1) != 0)
			continue;
		if (f->n_metadata == FILTER_PAIRS_MAX) {
			problem_field(c, "metadata", "at most %d pairs can be asked for",
				      FILTER_PAIRS_MAX);
			return false;
		}
		pairs[f->n_metadata++] = (struct sandbox_pair){ name + sizeof(prefix) - 1, value };
	}
	f->metadata = pairs;
	if (r == -EINVAL)
		problem_status(c, 400, "a query parameter is not well-formed");
	else if (r < 0)
		problem_reply(c, &(struct err){ -r, "list" });
	return r == 0;
}

static void listed(void *user, const struct sandbox_info *infos, size_t n, bool more,
		   const struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct api_call *c = user;
	struct jw w = jw_begin(&b);
	size_t told = 0;
	bool usage = false;

	if (err)
		return problem_reply(c, err);
	if (!call_query_bool(c, "usage", &usage))
		return;
	if (usage)
		return sandbox_usage_page(c, infos, n, more);
	jw_object_begin(&w);
	jw_key(&w, "items");
	jw_array_begin(&w);
	for (; told < n && b.len < LIST_BYTES; told++)
		sandbox_json(&w, &infos[told]);
	jw_array_end(&w);
	call_write_cursor(&w, (more || told < n) && told > 0, told ? infos[told - 1].created_ms : 0,
			  told ? infos[told - 1].id : "");
	jw_object_end(&w);
	call_reply(c, 200, &w);
}

void api_sandbox_list(struct api_call *c)
{
	struct sandbox_filter f = { .owner = call_owner(c) };
	struct cursor cursor = { 0 };
	uint64_t limit = LIST_DEFAULT;

	if (!parse_states(c, &f.states) || !call_query(c, "template", &f.template) ||
	    !call_query(c, "name", &f.name) || !parse_pairs(c, &f) ||
	    !call_query_u64(c, "limit", &limit) || !call_query_cursor(c, &cursor))
		return;
	f.limit = limit;
	f.before_ms = cursor.before_ms;
	f.before_id = cursor.before_ms ? cursor.before_id : NULL;
	sandbox_list(c->api->deps.sandboxes, &f, listed, c);
}

static void got(void *user, const struct sandbox_info *info, const struct err *err)
{
	if (err)
		return problem_reply(user, err);
	reply_info(user, 200, info);
}

void api_sandbox_get(struct api_call *c)
{
	struct sandbox *sb = call_find_sandbox(c);
	struct sandbox_info info;

	if (sb) {
		sandbox_info(sb, &info);
		return reply_info(c, 200, &info);
	}
	sandbox_get(c->api->deps.sandboxes, call_param(c, "id"), call_owner(c), got, c);
}

static void got_status(void *user, const struct sandbox_info *info, const struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct api_call *c = user;
	struct jw w = jw_begin(&b);

	if (err)
		return problem_reply(c, err);
	sandbox_json_status(&w, info);
	call_reply(c, 200, &w);
}

void api_sandbox_status(struct api_call *c)
{
	struct sandbox *sb = call_find_sandbox(c);
	struct sandbox_info info;

	if (sb) {
		sandbox_info(sb, &info);
		return got_status(c, &info, NULL);
	}
	sandbox_get(c->api->deps.sandboxes, call_param(c, "id"), call_owner(c), got_status, c);
}

/* ---- changing ---- */

static void changed(void *user, struct sandbox *sb, const struct err *err)
{
	struct sandbox_info info;

	if (err)
		return problem_reply(user, err);
	sandbox_info(sb, &info);
	reply_info(user, 200, &info);
}

void api_sandbox_patch(struct api_call *c)
{
	const struct body_patch *body = c->body;
	struct sandbox *sb;
	struct sandbox_patch p = {
		.has_timeout = body->timeout_ms > 0,
		.timeout_ms = body->timeout_ms,
		.has_metadata = body->metadata.len != SIZE_MAX,
		.metadata = pairs_given(http_arena(c->http), &body->metadata),
		.n_metadata = body->metadata.len == SIZE_MAX ? 0 : body->metadata.len,
		.has_on_timeout = body->on_timeout >= 0,
		.has_auto_resume = body->auto_resume.said != BODY_UNSAID,
	};

	if (p.has_on_timeout)
		p.life.on_timeout = (uint8_t)body->on_timeout;
	if (p.has_auto_resume)
		p.life.auto_resume = body->auto_resume.on;
	sb = call_sandbox(c);
	if (!sb || !check_times(c, body->timeout_ms, 0))
		return;
	if (p.n_metadata > 0 && !p.metadata)
		return problem_reply(c, &(struct err){ ENOMEM, "metadata" });
	sandbox_patch(sb, &p, changed, c);
}

static void deleted(void *user, struct sandbox *sb, const struct err *err)
{
	(void)sb;
	if (err)
		return problem_reply(user, err);
	call_reply_empty(user);
}

void api_sandbox_delete(struct api_call *c)
{
	struct sandbox *sb = call_sandbox(c);

	if (sb)
		sandbox_delete(sb, "deleted", deleted, c);
}

void api_sandbox_pause(struct api_call *c)
{
	struct sandbox *sb = call_sandbox(c);

	if (sb)
		sandbox_pause(sb, changed, c);
}

void api_sandbox_resume(struct api_call *c)
{
	struct sandbox *sb = call_sandbox(c);

	if (sb)
		sandbox_resume(sb, changed, c);
}

void api_sandbox_stop(struct api_call *c)
{
	struct sandbox *sb = call_sandbox(c);

	if (sb)
		sandbox_suspend(sb, changed, c);
}

void api_sandbox_start(struct api_call *c)
{
	struct sandbox *sb = call_sandbox(c);

	if (sb)
		sandbox_start(sb, changed, c);
}
