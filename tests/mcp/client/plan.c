#include "plan.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "mcpc/mcpc.h"
#include "json/jw.h"

static const struct {
	const char *capability, *method, *use, *key;
} lists[] = {
	{ "tools", "tools/list", "tools/call", "name" },
	{ "resources", "resources/list", "resources/read", "uri" },
	{ "prompts", "prompts/list", "prompts/get", "name" },
};
#define N_LISTS (sizeof(lists) / sizeof(lists[0]))

static void next_list(struct plan *p);
static void next_step(struct plan *p);

void plan_done(struct plan *p)
{
	buf_done(&p->steps);
	p->tools = jv_free(p->tools);
}

static void fail(struct plan *p, const char *what, const struct err *err)
{
	(void)fprintf(stderr, "%s: %s\n", what, err->text);
	p->has_failed = true;
}

/* ---- arguments ---- */

static void write_object(struct jw *w, struct jv schema)
{
	jw_object_begin(w);
	JV_FOREACH (jv_get(schema, "properties"), it) {
		jw_key_n(w, it.key.data, it.key.len);
		plan_write_value(w, it.value);
	}
	jw_object_end(w);
}

void plan_write_value(struct jw *w, struct jv schema)
{
	const char *type = jv_text(jv_get(schema, "type"));

	if (jv_kind(jv_get(schema, "default")) != JV_ABSENT)
		jw_value(w, jv_get(schema, "default"));
	else if (jv_len(jv_get(schema, "enum")) > 0)
		jw_value(w, jv_at(jv_get(schema, "enum"), 0));
	else if (!type || strcmp(type, "object") == 0)
		write_object(w, schema);
	else if (strcmp(type, "integer") == 0 || strcmp(type, "number") == 0)
		jw_int(w, 5);
	else if (strcmp(type, "boolean") == 0)
		jw_bool(w, true);
	else if (strcmp(type, "array") == 0)
		jw_raw(w, "[]", 2);
	else
		jw_string(w, "test");
}

static struct jv find_tool(const struct plan *p, const char *name)
{
	JV_FOREACH (jv_get(jv_root(p->tools), "tools"), it) {
		const char *one = jv_text(jv_get(it.value, "name"));

		if (one && strcmp(one, name) == 0)
			return it.value;
	}
	return (struct jv){ 0 };
}

/* The one tool whose argument is another's schema, as it came. */
static bool write_echo(const struct plan *p, struct jw *w, const char *name)
{
	if (strcmp(name, "json_schema_echo") != 0)
		return false;
	jw_object_begin(w);
	jw_key(w, "schema");
	jw_value(w, jv_get(find_tool(p, "json_schema_2020_12_tool"), "inputSchema"));
	jw_object_end(w);
	return true;
}

/* ---- steps ---- */

static void add_step(struct plan *p, const char *method, const struct buf *params)
{
	(void)buf_append(&p->steps, method, strlen(method) + 1);
	(void)buf_append(&p->steps, params->data, params->len + 1);
}

static void add_use(struct plan *p, struct jv item)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	const char *name = jv_text(jv_get(item, lists[p->list].key));
	struct jw w = jw_begin(&b);

	if (!name)
		return;
	jw_object_begin(&w);
	jw_str_field(&w, lists[p->list].key, name);
	if (p->list == 0) {
		jw_key(&w, "arguments");
		if (!write_echo(p, &w, name))
			plan_write_value(&w, jv_get(item, "inputSchema"));
	}
	jw_object_end(&w);
	if (jw_end(&w) == 0)
		add_step(p, lists[p->list].use, &b);
}

/* The scenario's own calls. */
static bool add_given(struct plan *p)
{
	struct jv calls = p->context ? jv_get(jv_root(p->context), "toolCalls") : (struct jv){ 0 };

	JV_FOREACH (calls, it) {
		_cleanup_(buf_done) struct buf b = { 0 };
		struct jw w = jw_begin(&b);

		jw_object_begin(&w);
		jw_str_field(&w, "name", jv_text(jv_get(it.value, "name")));
		jw_key(&w, "arguments");
		jw_value(&w, jv_get(it.value, "arguments"));
		jw_object_end(&w);
		if (jw_end(&w) == 0)
			add_step(p, "tools/call", &b);
	}
	return jv_len(calls) > 0;
}

static void keep_tools(struct plan *p, struct jv result)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	jw_value(&w, result);
	p->tools = jv_free(p->tools);
	if (jw_end(&w) == 0)
		(void)jv_parse(b.data, b.len, b.len, &p->tools, NULL);
}

static void listed(void *user, const struct mcpc_outcome *o)
{
	struct plan *p = user;

	if (o->err.code) {
		fail(p, lists[p->list].method, &o->err);
	} else {
		if (p->list == 0)
			keep_tools(p, o->result);
		if (p->list > 0 || !add_given(p))
			JV_FOREACH (jv_get(o->result, lists[p->list].capability), it)
				add_use(p, it.value);
	}
	p->list++;
	next_list(p);
}

static void next_list(struct plan *p)
{
	struct err err = { 0 };

	/* Tools are asked for in any case: a server that was not discovered has not said. */
	while (p->list > 0 && p->list < N_LISTS &&
	       !mcpc_offers(p->client, lists[p->list].capability))
		p->list++;
	if (p->list == N_LISTS) {
		next_step(p);
		return;
	}
	if (mcpc_list(p->client, lists[p->list].method, lists[p->list].capability, listed, p,
		      &err) < 0) {
		fail(p, lists[p->list].method, &err);
		p->over(p->user, false);
	}
}

static void used(void *user, const struct mcpc_outcome *o)
{
	struct plan *p = user;

	if (o->err.code && o->rpc_code == 0)
		fail(p, "request", &o->err);
	next_step(p);
}

static void next_step(struct plan *p)
{
	const char *method = p->steps.data + p->at, *params;
	struct err err = { 0 };

	if (p->at >= p->steps.len) {
		p->over(p->user, !p->has_failed);
		return;
	}
	params = method + strlen(method) + 1;
	p->at = (size_t)(params + strlen(params) + 1 - p->steps.data);
	if (mcpc_request(p->client,
			 &(struct mcpc_request){
				 .method = method, .params = params, .done = used, .user = p },
			 NULL, &err) < 0) {
		fail(p, method, &err);
		p->over(p->user, false);
	}
}

void plan_run(struct plan *p)
{
	next_list(p);
}
