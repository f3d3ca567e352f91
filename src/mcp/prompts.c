/* prompts/list and prompts/get. */
#include "mcp/prompts.h"

#include <string.h>

#include "mcp/handlers.h"
#include "mcp/page.h"
#include "mcp/server_impl.h"

#define ARGUMENT_MAX 4096u /* bytes of one */

const struct mcp_prompt *mcp_prompt_at(const struct mcp_server *s, size_t i)
{
	const struct mcp_fixtures *f = s->deps.fixtures;

	if (i < mcp_n_own_prompts)
		return &mcp_own_prompts[i];
	i -= mcp_n_own_prompts;
	return f && i < f->n_prompts ? &f->prompts[i] : NULL;
}

const struct mcp_prompt *mcp_prompt_find(const struct mcp_server *s, const char *name)
{
	const struct mcp_prompt *p;

	for (size_t i = 0; (p = mcp_prompt_at(s, i)) != NULL; i++)
		if (strcmp(p->name, name) == 0)
			return p;
	return NULL;
}

static void write_prompt(struct jw *w, const struct mcp_prompt *p)
{
	jw_object_begin(w);
	jw_str_field(w, "name", p->name);
	jw_str_field(w, "title", p->title);
	jw_str_field(w, "description", p->about);
	jw_key(w, "arguments");
	jw_array_begin(w);
	for (const struct mcp_prompt_arg *a = p->args; a && a->name; a++) {
		jw_object_begin(w);
		jw_str_field(w, "name", a->name);
		jw_str_field(w, "description", a->about);
		jw_bool_field(w, "required", a->is_required);
		jw_object_end(w);
	}
	jw_array_end(w);
	jw_object_end(w);
}

void mcp_prompts_list(struct mcp_request *q)
{
	const struct mcp_prompt *p;
	struct jw *w;

	if (!mcp_page_is_whole(q))
		return;
	w = mcp_result_begin(q);
	jw_key(w, "prompts");
	jw_array_begin(w);
	for (size_t i = 0; (p = mcp_prompt_at(q->server, i)) != NULL; i++)
		write_prompt(w, p);
	jw_array_end(w);
	mcp_result_end(q);
}

/* False: answered. What a prompt does not know is passed over. */
static bool check_arguments(struct mcp_request *q, const struct mcp_prompt *p)
{
	struct jv given = jv_get(q->params, "arguments");

	for (const struct mcp_prompt_arg *a = p->args; a && a->name; a++) {
		struct jv v = jv_get(given, a->name);
		bool is_there = jv_kind(v) != JV_ABSENT;

		if (is_there && jv_text(v) && jv_len(v) <= ARGUMENT_MAX)
			continue;
		if (!is_there && !a->is_required)
			continue;
		mcp_fail(q, RPC_PARAMS,
			 is_there ? "arguments.%s: want a text of up to %u bytes"
				  : "arguments.%s: is required",
			 a->name, ARGUMENT_MAX);
		return false;
	}
	return true;
}

void mcp_prompts_get(struct mcp_request *q)
{
	const char *name = jv_text(jv_get(q->params, "name"));
	const struct mcp_prompt *p = name ? mcp_prompt_find(q->server, name) : NULL;

	if (!p)
		return mcp_fail(q, RPC_PARAMS, "there is no prompt '%.100s'", name ? name : "");
	if (check_arguments(q, p))
		p->get(q, p);
}
