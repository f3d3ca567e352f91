/* /templates and /runtimes: what sandboxes are made of, built in and of users' own. */
#include "sandbox/template.h"

#include <errno.h>
#include <string.h>

#include "api/bodies.h"
#include "api/call.h"
#include "api/handlers.h"
#include "api/object_list.h"
#include "api/problem.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "config/config.h"
#include "net/http.h"
#include "sandbox/pairs.h"
#include "sandbox/profile.h"
#include "sandbox/template_own.h"
#include "json/jw.h"

static void write_limits(struct jw *w, const struct limits *l)
{
	jw_key(w, "resources");
	jw_object_begin(w);
	jw_double_field(w, "cpu", l->cpu_milli / 1e3);
	jw_uint_field(w, "memory", l->memory_bytes);
	jw_uint_field(w, "disk", l->disk_bytes);
	jw_uint_field(w, "pids", l->pids);
	jw_object_end(w);
}

static void write_env(struct jw *w, const struct pairs *env)
{
	jw_key(w, "envNames");
	jw_array_begin(w);
	for (size_t i = 0; env && i < env->len; i++)
		jw_string(w, env->items[i].name);
	jw_array_end(w);
}

static void write_text(struct jw *w, const char *name, const char *text)
{
	if (text && text[0] != '\0')
		jw_str_field(w, name, text);
	else
		jw_null_field(w, name);
}

static void write_list(struct jw *w, const char *name, const struct jv_strings *l)
{
	jw_key(w, name);
	jw_array_begin(w);
	for (size_t i = 0; i < l->len; i++)
		jw_string(w, l->items[i]);
	jw_array_end(w);
}

static void write_start(struct jw *w, const struct makeup_start *s)
{
	uint64_t ms = s->timeout_ms ? s->timeout_ms : START_TIMEOUT_DEFAULT_MS;

	if (!s->command)
		return jw_null_field(w, "start");
	jw_key(w, "start");
	jw_object_begin(w);
	jw_str_field(w, "command", s->command);
	write_text(w, "readyCommand", s->ready_command);
	if (s->ready_port > 0)
		jw_uint_field(w, "readyPort", s->ready_port);
	else
		jw_null_field(w, "readyPort");
	write_text(w, "readyHttp", s->ready_http);
	jw_double_field(w, "timeout", (double)ms / 1e3);
	jw_object_end(w);
}

static void write_makeup(struct jw *w, const char *source, const struct makeup *m)
{
	jw_str_field(w, "source", source[0] != '\0' ? source : "host");
	jw_str_field(w, "securityLevel", profiles[m->profile].name);
	write_text(w, "user", m->user);
	write_text(w, "workdir", m->workdir);
	jw_bool_field(w, "writableRoot", m->writable_root);
	write_list(w, "writablePaths", &m->writable);
	write_list(w, "preload", &m->preload);
	write_list(w, "preloadNode", &m->preload_node);
	write_start(w, &m->start);
}

static void write_builtin(struct jw *w, const struct template_row *row)
{
	jw_object_begin(w);
	jw_str_field(w, "id", row->name);
	jw_str_field(w, "name", row->name);
	jw_str_field(w, "description", row->about);
	jw_bool_field(w, "builtIn", true);
	jw_str_field(w, "from", row->name);
	jw_null_field(w, "resources");
	write_env(w, NULL);
	jw_uint_field(w, "layers", 0);
	write_makeup(w, "", &(struct makeup){ 0 });
	jw_null_field(w, "createdAt");
	jw_object_end(w);
}

static void write_own(struct jw *w, const struct object *o)
{
	const struct template_own *t = o->data;

	jw_object_begin(w);
	jw_str_field(w, "id", o->id);
	jw_str_field(w, "name", o->name);
	jw_str_field(w, "description", t->about);
	jw_bool_field(w, "builtIn", false);
	jw_str_field(w, "from", t->base);
	write_limits(w, &t->limits);
	write_env(w, &t->env);
	jw_uint_field(w, "layers", t->layers.n);
	write_makeup(w, t->source, &t->make);
	jw_iso_field(w, "createdAt", o->created_ms);
	jw_object_end(w);
}

static void reply_builtins(struct api_call *c, bool as_page)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	const struct template_row *rows;
	size_t n;

	rows = template_rows(&n);
	jw_object_begin(&w);
	jw_key(&w, "items");
	jw_array_begin(&w);
	for (size_t i = 0; i < n; i++)
		write_builtin(&w, &rows[i]);
	jw_array_end(&w);
	if (as_page)
		jw_null_field(&w, "nextCursor");
	jw_object_end(&w);
	call_reply(c, 200, &w);
}

static void made(void *user, struct object *o, const struct err *err)
{
	if (err)
		return problem_reply(user, err);
	object_reply(user, 201, o, write_own);
}

bool api_template_traits(struct api_call *c, const struct body_traits *body,
			 struct template_traits *ret)
{
	*ret = (struct template_traits){
		.about = body->about,
		.limits = { .memory_bytes = body->resources.memory_bytes,
			    .disk_bytes = body->resources.disk_bytes,
			    .cpu_milli = body->resources.cpu_milli,
			    .pids = body->resources.pids },
		.env = pairs_given(http_arena(c->http), &body->env),
		.n_env = body->env.len,
		.make = body->make,
	};
	if (!call_profile(c, body->level, &body->security, &ret->make.strict))
		return false;
	ret->make.profile = (uint8_t)body->level;
	if (ret->n_env > 0 && !ret->env) {
		problem_reply(c, &(struct err){ ENOMEM, "template" });
		return false;
	}
	return true;
}

void api_template_create(struct api_call *c)
{
	const struct body_template *body = c->body;
	struct template_wish wish = {
		.owner = c->who->owner,
		.name = body->name,
		.from = body->from ? body->from : "",
		.snapshot = body->snapshot ? body->snapshot : "",
	};

	if (body->from && body->snapshot)
		return problem_field(c, "snapshot", "from and snapshot exclude each other");
	if (api_template_traits(c, &body->traits, &wish.said))
		template_create(c->api->deps.sandboxes, &wish, made, c);
}

void api_template_list(struct api_call *c)
{
	bool is_builtin = false;

	if (!call_query_bool(c, "builtIn", &is_builtin))
		return;
	if (is_builtin)
		return reply_builtins(c, true);
	object_reply_list(c, OBJECTS_TEMPLATE, &(struct object_filter){ .owner = call_owner(c) },
			  write_own);
}

static void reply_builtin(struct api_call *c, const struct template_row *row)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	write_builtin(&w, row);
	call_reply(c, 200, &w);
}

static struct object *find(struct api_call *c)
{
	const char *name = call_param(c, "name");
	struct object *o = template_own_find(c->api->deps.sandboxes, c->who->owner, name);

	return o ? o : object_of_call(c, OBJECTS_TEMPLATE, "template", name);
}

void api_template_get(struct api_call *c)
{
	const struct template_row *row = template_find(call_param(c, "name"));
	struct object *o;

	if (row)
		return reply_builtin(c, row);
	o = find(c);
	if (o)
		object_reply(c, 200, o, write_own);
}

void api_template_delete(struct api_call *c)
{
	struct object *o;

	if (template_find(call_param(c, "name")))
		return problem_status(c, 409, "a built-in template stays");
	o = find(c);
	if (o)
		template_delete(c->api->deps.sandboxes, o->id, object_removed, c);
}

void api_runtime_list(struct api_call *c)
{
	reply_builtins(c, false);
}

void api_runtime_get(struct api_call *c)
{
	const struct template_row *row = template_find(call_param(c, "name"));

	if (!row)
		return problem_status(c, 404, "there is no runtime '%.64s'", call_param(c, "name"));
	reply_builtin(c, row);
}
