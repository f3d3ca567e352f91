/* The skills extension: what there is, with its sums; and skill:// as resources. */
#include <string.h>

#include "auth/principal.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "mcp/handlers.h"
#include "mcp/page.h"
#include "mcp/resources.h"
#include "mcp/server_impl.h"
#include "tools/skill_uri.h"
#include "tools/skills.h"

#define SKILLS_PAGE 32u /* an entry may be large: all files of a skill */

static const struct skill_set *set_of(const struct mcp_request *q)
{
	static const struct skill_set none;

	return q->server->deps.skills ? skills_now(q->server->deps.skills) : &none;
}

/* What skills say is for whoever may read at all. */
static bool may_read(struct mcp_request *q)
{
	struct err err = { 0 };

	if (principal_check(&q->who, SCOPE_FILE_READ, &err) == 0)
		return true;
	mcp_fail(q, RPC_PARAMS, "%s", err.text);
	return false;
}

static const char *uri_of(struct mcp_request *q, const char *name, const char *path)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	return skill_uri(&b, name, path) < 0 ? NULL : arena_strndup(q->arena, b.data, b.len);
}

/* The skill that an address names, and what in it; NULL: none. */
static const struct skill *find(struct mcp_request *q, const char *uri, const char **ret_path)
{
	char *text = arena_alloc(q->arena, SKILL_URI_MAX);
	const char *name;

	if (!text || skill_uri_read(uri, text, &name, ret_path) < 0)
		return NULL;
	return skill_set_find(set_of(q), name);
}

/* ---- skills/list, skills/get ---- */

static void write_skill(struct jw *w, const struct skill *s)
{
	_cleanup_(buf_done) struct buf uri = { 0 };
	char digest[sizeof("sha256:") + 2 * HASH_LEN];

	(void)skill_uri(&uri, s->front.name, SKILL_MANIFEST);
	jw_object_begin(w);
	jw_str_field(w, "uri", buf_str(&uri));
	jw_raw_field(w, "frontmatter", s->front.json, s->front.json_len);
	jw_key(w, "resources");
	jw_array_begin(w);
	for (size_t i = 0; i < s->n_files; i++) {
		buf_clear(&uri);
		(void)skill_uri(&uri, s->front.name, s->files[i].path);
		(void)str_format(digest, sizeof(digest), "sha256:%s", s->files[i].digest);
		jw_object_begin(w);
		jw_str_field(w, "uri", buf_str(&uri));
		jw_str_field(w, "digest", digest);
		jw_uint_field(w, "size", s->files[i].size);
		jw_object_end(w);
	}
	jw_array_end(w);
	jw_object_end(w);
}

void mcp_skills_list(struct mcp_request *q)
{
	const struct skill_set *set = set_of(q);
	struct mcp_page p;
	struct jw *w;

	if (!may_read(q) || !mcp_page_begin(q, &p))
		return;
	p.max = SKILLS_PAGE;
	w = mcp_result_begin(q);
	jw_key(w, "skills");
	jw_array_begin(w);
	for (size_t i = 0; i < set->n_skills && !p.is_full; i++)
		if (mcp_page_takes(&p, set->skills[i].front.name))
			write_skill(w, &set->skills[i]);
	jw_array_end(w);
	mcp_page_end(q, &p, w);
	mcp_result_end(q);
}

void mcp_skills_get(struct mcp_request *q)
{
	const char *uri = jv_text(jv_get(q->params, "uri"));
	const char *path = "";
	const struct skill *s;
	struct jw *w;

	if (!may_read(q))
		return;
	s = uri ? find(q, uri, &path) : NULL;
	if (!s || strcmp(path, SKILL_MANIFEST) != 0)
		return mcp_fail_data(q, RPC_PARAMS, "there is no such skill",
				     uri ? mcp_uri_data(q, uri) : NULL);
	w = mcp_result_begin(q);
	jw_key(w, "skill");
	write_skill(w, s);
	mcp_result_end(q);
}

/* ---- as resources ---- */

static void list(struct mcp_request *q, struct mcp_listing *l)
{
	const struct skill_set *set = set_of(q);

	if (principal_check(&q->who, SCOPE_FILE_READ, NULL) < 0)
		return;
	for (size_t i = 0; i < set->n_skills; i++) {
		const struct skill_front *f = &set->skills[i].front;

		mcp_listing_add(l, &(struct mcp_resource){
					   .uri = uri_of(q, f->name, SKILL_MANIFEST),
					   .name = f->name,
					   .about = f->about,
					   .type = "text/markdown",
					   .size = (int64_t)skill_manifest(&set->skills[i])->size,
				   });
	}
}

static void templates(struct mcp_request *q, struct jw *w)
{
	if (!q->server->deps.skills)
		return;
	jw_object_begin(w);
	jw_str_field(w, "uriTemplate", SKILL_SCHEME "{name}/{+path}");
	jw_str_field(w, "name", "skill file");
	jw_str_field(w, "description", "A file of a skill; SKILL.md has its instructions.");
	jw_object_end(w);
}

static void read_file(struct mcp_request *q, const char *uri)
{
	const struct skill_file *f;
	const struct skill *s;
	const char *path = "";

	if (!may_read(q))
		return;
	s = find(q, uri, &path);
	f = s ? skill_find_file(s, path) : NULL;
	if (!f)
		return mcp_no_resource(q, uri);
	mcp_content_answer(q, uri, f->type, f->data, f->size);
}

static bool has_item(const struct mcp_listing *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->items[i].name, name) == 0)
			return true;
	return false;
}

/* What of a file's path is directly below dir ("" or with a slash at its end). */
static void add_child(struct mcp_request *q, struct mcp_listing *l, const struct skill *s,
		      const struct skill_file *f, const char *dir)
{
	const char *rest = f->path + strlen(dir);
	size_t n = strcspn(rest, "/");
	char *name = arena_strndup(q->arena, rest, n);
	char *path = arena_strndup(q->arena, f->path, strlen(dir) + n);

	if (!name || !path || has_item(l, name))
		return;
	mcp_listing_add(l, &(struct mcp_resource){
				   .uri = uri_of(q, s->front.name, path),
				   .name = name,
				   .type = rest[n] ? MCP_DIRECTORY : f->type,
				   .size = rest[n] ? -1 : (int64_t)f->size,
			   });
}

static void read_dir(struct mcp_request *q, const char *uri)
{
	struct mcp_listing l = { .q = q };
	const struct skill *s;
	const char *path = "", *dir = "";
	size_t n;

	if (!may_read(q))
		return;
	s = find(q, uri, &path);
	n = strlen(path);
	if (n > 0 && path[n - 1] == '/')
		n--;
	if (n > 0)
		dir = arena_printf(q->arena, "%.*s/", (int)n, path);
	for (size_t i = 0; s && dir && i < s->n_files; i++)
		if (str_starts(str_of(s->files[i].path), dir))
			add_child(q, &l, s, &s->files[i], dir);
	if (l.n == 0)
		return mcp_fail_data(q, RPC_PARAMS, "there is no such directory",
				     mcp_uri_data(q, uri));
	mcp_listing_answer(&l);
}

/* ---- changes ---- */

#define TOLD_MAX 65536u

/* Everybody of this owner hears of an address at once: once is enough. */
static void tell(struct mcp_server *s, struct map *told, const char *owner, const char *uri)
{
	_cleanup_(buf_done) struct buf key = { 0 };

	if (!str_starts(str_of(uri), SKILL_SCHEME) || buf_printf(&key, "%s %s", owner, uri) < 0 ||
	    map_get(told, key.data, key.len))
		return;
	if (map_put(told, key.data, key.len, s, NULL) == 0)
		mcp_server_updated(s, owner, uri);
}

/* All of them are told of by mcp_skills_changed(). */
static int watch(struct mcp_request *q, const char *uri, struct mcp_wait *wait, struct err *err)
{
	(void)uri, (void)wait;
	return principal_check(&q->who, SCOPE_FILE_READ, err);
}

void mcp_skills_changed(struct mcp_server *s)
{
	struct map *told = map_create(TOLD_MAX);

	mcp_server_changed(s, MCP_CHANGE_TOOLS | MCP_CHANGE_RESOURCES);
	if (!told)
		return;
	LIST_FOREACH (&s->sessions, n, struct mcp_session, node)
		for (size_t i = 0; i < n->n_uris; i++)
			tell(s, told, n->owner, n->uris[i]);
	LIST_FOREACH (&s->requests, q, struct mcp_request, node)
		for (size_t i = 0; i < q->n_uris; i++)
			tell(s, told, q->who.owner, q->uris[i]);
	(void)map_free(told);
}

const struct mcp_resources mcp_skill_resources = {
	.scheme = SKILL_SCHEME,
	.list = list,
	.templates = templates,
	.read = read_file,
	.read_dir = read_dir,
	.watch = watch,
};
