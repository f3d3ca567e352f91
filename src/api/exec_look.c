#include "api/exec_look.h"

#include <errno.h>

#include "api/call.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/err.h"
#include "net/http.h"
#include "sandbox/exec.h"

struct look {
	struct api_call *call;
	const char *id;
	exec_look_fn *found;
};

static void got(void *user, const struct exec_info *info, const struct output *output,
		const struct err *err)
{
	struct look *l = user;

	if (err && err->code == ENOENT)
		return problem_status(l->call, 404, "there is no execution '%.64s'", l->id);
	if (err)
		return problem_reply(l->call, err);
	l->found(l->call, NULL, info, output);
}

void exec_look_id(struct api_call *c, const char *id, exec_look_fn *found)
{
	struct sandbox *sb = call_find_sandbox(c);
	struct execution *x = sb ? exec_find(sb, id) : NULL;
	struct sandbox_info sandbox = { .id = call_param(c, "id") };
	struct exec_info info;
	struct look *l;

	if (x) {
		exec_info(x, &info);
		return found(c, x, &info, exec_output(x));
	}
	l = arena_alloc(http_arena(c->http), sizeof(*l));
	if (!l)
		return problem_reply(c, &(struct err){ ENOMEM, "execution" });
	l->call = c;
	l->id = id;
	l->found = found;
	if (sb)
		sandbox_info(sb, &sandbox);
	exec_get(c->api->deps.sandboxes, sandbox.id, call_owner(c), id, got, l);
}

void exec_look(struct api_call *c, exec_look_fn *found)
{
	exec_look_id(c, call_param(c, "eid"), found);
}
