/* GET of /skills: what agents are given as instructions, and what was left out. */
#include "tools/skills.h"

#include "api/call.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "base/buf.h"
#include "json/jw.h"

static const struct skill_set *set_of(const struct api_call *c)
{
	static const struct skill_set none;

	return c->api->deps.skills ? skills_now(c->api->deps.skills) : &none;
}

static void write_summary(struct jw *w, const struct skill *s)
{
	jw_str_field(w, "name", s->front.name);
	jw_str_field(w, "description", s->front.about);
	jw_uint_field(w, "files", s->n_files);
	jw_uint_field(w, "bytes", s->bytes);
}

/* What lies in an operator's folder is an operator's business. */
static void write_problems(const struct api_call *c, const struct skill_set *set, struct jw *w)
{
	bool is_told = c->who->scopes & SCOPE_ADMIN;

	jw_key(w, "problems");
	jw_array_begin(w);
	for (size_t i = 0; is_told && i < set->n_problems; i++) {
		jw_object_begin(w);
		jw_str_field(w, "name", set->problems[i].name);
		jw_str_field(w, "reason", set->problems[i].why);
		jw_object_end(w);
	}
	jw_array_end(w);
}

void api_skill_list(struct api_call *c)
{
	const struct skill_set *set = set_of(c);
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	jw_object_begin(&w);
	jw_key(&w, "items");
	jw_array_begin(&w);
	for (size_t i = 0; i < set->n_skills; i++) {
		jw_object_begin(&w);
		write_summary(&w, &set->skills[i]);
		jw_object_end(&w);
	}
	jw_array_end(&w);
	write_problems(c, set, &w);
	jw_object_end(&w);
	call_reply(c, 200, &w);
}

void api_skill_get(struct api_call *c)
{
	const char *name = call_param(c, "name");
	const struct skill *s = skill_set_find(set_of(c), name);
	const struct skill_file *text = s ? skill_manifest(s) : NULL;
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	if (!text)
		return problem_status(c, 404, "there is no skill '%.64s'", name);
	jw_object_begin(&w);
	write_summary(&w, s);
	jw_raw_field(&w, "frontmatter", s->front.json, s->front.json_len);
	jw_key(&w, "text");
	jw_string_n(&w, text->data, text->size);
	jw_key(&w, "contents");
	jw_array_begin(&w);
	for (size_t i = 0; i < s->n_files; i++) {
		jw_object_begin(&w);
		jw_str_field(&w, "path", s->files[i].path);
		jw_uint_field(&w, "size", s->files[i].size);
		jw_str_field(&w, "sha256", s->files[i].digest);
		jw_str_field(&w, "mimeType", s->files[i].type);
		jw_object_end(&w);
	}
	jw_array_end(&w);
	jw_object_end(&w);
	call_reply(c, 200, &w);
}
