/* completion/complete: values that an argument could have. */
#include <string.h>

#include "auth/principal.h"
#include "base/arena.h"
#include "base/str.h"
#include "mcp/box.h"
#include "mcp/handlers.h"
#include "mcp/prompts.h"
#include "mcp/server_impl.h"
#include "sandbox/context.h"
#include "tools/skill_uri.h"
#include "tools/skills.h"

#define VALUES_MAX 100u /* the protocol's own bound */

struct values { /* those that begin with what is typed */
	struct mcp_request *q;
	const char *typed;
	const char *items[VALUES_MAX]; /* arena, or constant */
	size_t n, total;
};

static void add(struct values *v, const char *value)
{
	if (!value || !str_starts(str_of(value), v->typed))
		return;
	v->total++;
	if (v->n < VALUES_MAX)
		v->items[v->n++] = arena_strndup(v->q->arena, value, strlen(value));
}

static void add_box(void *user, const struct sandbox_info *info)
{
	add(user, info->id);
	if (info->name[0] != '\0')
		add(user, info->name);
}

static void add_boxes(struct values *v)
{
	mcp_box_each(v->q, add_box, v);
}

static void add_languages(struct values *v)
{
	for (int i = 0; i < CONTEXT_LANGUAGE_COUNT; i++)
		add(v, context_language_name((enum context_language)i));
}

static const struct skill_set *skills_of(const struct mcp_request *q)
{
	if (!q->server->deps.skills || principal_check(&q->who, SCOPE_FILE_READ, NULL) < 0)
		return NULL;
	return skills_now(q->server->deps.skills);
}

static void add_skills(struct values *v)
{
	const struct skill_set *set = skills_of(v->q);

	for (size_t i = 0; set && i < set->n_skills; i++)
		add(v, set->skills[i].front.name);
}

/* Of the skill that was chosen before. */
static void add_skill_files(struct values *v)
{
	struct jv before = jv_get(jv_get(v->q->params, "context"), "arguments");
	const char *name = jv_text(jv_get(before, "name"));
	const struct skill_set *set = skills_of(v->q);
	const struct skill *s = set && name ? skill_set_find(set, name) : NULL;

	for (size_t i = 0; s && i < s->n_files; i++)
		add(v, s->files[i].path);
}

/* scheme NULL: of a prompt. */
static const struct {
	const char *scheme, *argument;
	void (*add)(struct values *v);
} sources[] = {
	{ NULL, "sandbox_id", add_boxes },           { NULL, "language", add_languages },
	{ MCP_BOX_SCHEME, "sandbox_id", add_boxes }, { SKILL_SCHEME, "name", add_skills },
	{ SKILL_SCHEME, "path", add_skill_files },
};

static void answer(struct values *v)
{
	struct jw *w = mcp_result_begin(v->q);

	jw_key(w, "completion");
	jw_object_begin(w);
	jw_key(w, "values");
	jw_array_begin(w);
	for (size_t i = 0; i < v->n; i++)
		if (v->items[i])
			jw_string(w, v->items[i]);
	jw_array_end(w);
	jw_uint_field(w, "total", v->total);
	jw_bool_field(w, "hasMore", v->total > v->n);
	jw_object_end(w);
	mcp_result_end(v->q);
}

/* What is meant: false after an answer. *ret_uri: NULL of a prompt. */
static bool check_ref(struct mcp_request *q, const char **ret_uri)
{
	struct jv ref = jv_get(q->params, "ref");
	const char *type = jv_text(jv_get(ref, "type"));
	const char *name = jv_text(jv_get(ref, "name"));

	*ret_uri = jv_text(jv_get(ref, "uri"));
	if (type && strcmp(type, "ref/resource") == 0 && *ret_uri)
		return true;
	if (!type || strcmp(type, "ref/prompt") != 0 || !name) {
		mcp_fail(q, RPC_PARAMS,
			 "ref: want a ref/prompt with its name, or a ref/resource "
			 "with its uri");
		return false;
	}
	*ret_uri = NULL;
	if (mcp_prompt_find(q->server, name))
		return true;
	mcp_fail(q, RPC_PARAMS, "there is no prompt '%.100s'", name);
	return false;
}

void mcp_complete(struct mcp_request *q)
{
	struct jv argument = jv_get(q->params, "argument");
	const char *name = jv_text(jv_get(argument, "name"));
	const char *typed = jv_text(jv_get(argument, "value"));
	struct values *v = arena_alloc(q->arena, sizeof(*v));
	const char *uri = NULL;

	if (!v)
		return mcp_fail(q, RPC_INTERNAL, "out of memory");
	if (!check_ref(q, &uri))
		return;
	if (!name || !typed)
		return mcp_fail(q, RPC_PARAMS, "argument: want its name and value");
	*v = (struct values){ .q = q, .typed = typed };
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		bool is_meant =
			uri ? sources[i].scheme && str_starts(str_of(uri), sources[i].scheme)
			    : !sources[i].scheme;

		if (is_meant && strcmp(sources[i].argument, name) == 0)
			sources[i].add(v);
	}
	answer(v);
}
