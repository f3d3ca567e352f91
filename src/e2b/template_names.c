#include "e2b/template_names.h"

#include <string.h>

#include "api/call.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/str.h"
#include "e2b/templates.h"
#include "net/http.h"
#include "sandbox/objects.h"
#include "sandbox/sandbox.h"
#include "sandbox/template.h"
#include "sandbox/template_own.h"

#define OWN "e2b" /* what theirs is here */
#define INTERPRETER "code-interpreter"

const char *template_names_own(const char *name)
{
	/* The last has no gateway here: who wants one is told by their own client. */
	static const char *const names[] = { "base", "code-interpreter-v1", "code-interpreter",
					     "mcp-gateway" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], name) == 0)
			return OWN;
	return NULL;
}

/* "name" of "team/name:default": there is one team to a key, and one tag to a snapshot. */
static bool bare_name(const char *name, char ret[OBJECT_NAME_MAX + 1])
{
	const char *slash = strrchr(name, '/'), *begin = slash ? slash + 1 : name;
	size_t n = strcspn(begin, ":");

	if (begin[n] != '\0' && strcmp(begin + n, ":default") != 0)
		return false;
	return str_format(ret, OBJECT_NAME_MAX + 1, "%.*s", (int)n, begin) == 0;
}

struct object *template_names_snapshot(struct api_call *c, const char *name)
{
	char bare[OBJECT_NAME_MAX + 1];

	if (!bare_name(name, bare))
		return NULL;
	return objects_find(sandboxes_objects(c->api->deps.sandboxes, OBJECTS_SNAPSHOT), bare,
			    c->who->owner);
}

/* "team/name:default" and the like, of the caller's or of E2B's own. */
static bool find_by_ref(struct api_call *c, const char *name, struct sandbox_request *req)
{
	struct template_ref ref;
	const struct object *o;

	if (!template_ref_parse(name, &ref))
		return false;
	o = template_ref_find(c, &ref);
	if (o) /* in the arena: it must not go while the sandbox is made */
		req->template = arena_strndup(http_arena(c->http), o->name, strlen(o->name));
	else
		req->template = ref.tag[0] ? NULL : template_names_own(ref.name);
	return req->template != NULL;
}

/* One of theirs, as it is here: who has built a template for the interpreter's code gets that. */
static const char *own_name(struct api_call *c, const char *name)
{
	const char *own = template_names_own(name);

	if (own && strncmp(name, INTERPRETER, strlen(INTERPRETER)) == 0 &&
	    template_own_find(c->api->deps.sandboxes, c->who->owner, INTERPRETER))
		return INTERPRETER;
	return own;
}

bool template_names_find(struct api_call *c, const char *name, struct sandbox_request *req)
{
	const char *own = own_name(c, name);
	struct object *snapshot;

	req->template = own ? own : name;
	if (template_find(req->template) ||
	    template_own_find(c->api->deps.sandboxes, c->who->owner, req->template) ||
	    find_by_ref(c, name, req))
		return true;
	snapshot = template_names_snapshot(c, name);
	if (!snapshot) {
		problem_status(c, 404, "template '%.64s' not found", name);
		return false;
	}
	req->template = "";
	req->snapshot = snapshot->id;
	return true;
}
