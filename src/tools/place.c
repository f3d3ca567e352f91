/* From a call to a tool that runs: arguments, rights, and the sandbox that is meant. */
#include <errno.h>
#include <string.h>

#include "auth/principal.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "config/config.h"
#include "sandbox/sandbox.h"
#include "sandbox/session.h"
#include "tools/bridge.h"
#include "tools/impl.h"

/* Better no deed than one that leaves no trace. */
static void run(struct tool_call *t)
{
	if (!(t->tool->hints & TOOL_READ_ONLY) && !tool_note(t, "began"))
		return tool_fail(t, "the audit log cannot be written to now: try again later");
	t->tool->run(t);
}

static void cancelled(struct tool_call *t)
{
	tool_fail(t, "cancelled");
}

static void end_soon(void *user)
{
	cancelled(user);
}

void tool_cancel_soon(struct tool_call *t)
{
	loop_task_init(&t->soon, end_soon, t);
	loop_task_post(t->all->deps.loop, &t->soon);
}

const char *tool_grant(const struct tool_call *t)
{
	return t->all->deps.bridges && t->all->deps.config->mcp_code_mode ? "true" : NULL;
}

const char *tool_owner(const struct tool_call *t)
{
	return t->who.scopes & SCOPE_ADMIN ? NULL : t->who.owner;
}

const char *tool_path(struct tool_call *t, const char *path)
{
	const char *whole = path;

	if (path[0] != '/')
		whole = arena_printf(t->arena, TOOL_HOME "/%s", path);
	if (!whole || strlen(whole) >= TOOL_PATH_MAX) {
		tool_fail(t, "path: want less than %u bytes", TOOL_PATH_MAX);
		return NULL;
	}
	return whole;
}

bool tool_env(struct tool_call *t, const struct jv_strings *given, const struct sandbox_pair **ret,
	      size_t *ret_n)
{
	struct sandbox_pair *env = arena_array(t->arena, given->len, sizeof(*env));

	for (size_t i = 0; env && i < given->len; i++) {
		const char *text = given->items[i], *mark = strchr(text, '=');

		if (!mark || mark == text) {
			tool_fail(t, "env: want each as NAME=value, not '%.64s'", text);
			return false;
		}
		env[i].name = arena_strndup(t->arena, text, (size_t)(mark - text));
		env[i].value = mark + 1;
		if (!env[i].name)
			env = NULL;
	}
	if (!env) {
		tool_fail(t, "out of memory");
		return false;
	}
	*ret = env;
	*ret_n = given->len;
	return true;
}

/* ---- the sandbox ---- */

/* An admin's own sandbox of that name goes before another owner's. */
struct sandbox *tool_look_up(const struct tool_call *t, const char *id)
{
	struct sandbox *sb = sandboxes_find(t->all->deps.sandboxes, id, t->who.owner);
	struct sandbox_info info;

	if (!sb && !tool_owner(t))
		sb = sandboxes_find(t->all->deps.sandboxes, id, NULL);
	if (!sb)
		return NULL;
	sandbox_info(sb, &info);
	return principal_may_enter(&t->who, info.owner, info.id) ? sb : NULL;
}

struct sandbox *tool_find_box(const struct tool_call *t)
{
	return tool_look_up(t, t->box_id);
}

struct sandbox *tool_box(struct tool_call *t)
{
	struct sandbox *sb = tool_find_box(t);

	if (sb) {
		sandbox_touch(sb);
		return sb;
	}
	tool_fail(t, "there is no sandbox '%s' any more", t->box_id);
	return NULL;
}

void tool_set_box(struct tool_call *t, const struct sandbox *sb)
{
	(void)str_copy(t->box_id, sizeof(t->box_id), sandbox_id(sb));
}

/* What was made without being asked for lives as long as it is used: its owner has no word for its
 * end but not to come back. */
static bool is_kept(const struct tool_call *t, const struct sandbox_info *info)
{
	return (t->home && strcmp(info->name, t->home) == 0) ||
	       session_is_kept(t->all->deps.sandboxes, info);
}

/* It is there and awake. */
static void enter(struct tool_call *t, struct sandbox *sb)
{
	struct sandbox_info info;

	sandbox_info(sb, &info);
	tool_set_box(t, sb);
	if (is_kept(t, &info))
		sandbox_prolong(sb);
	sandbox_touch(sb);
	run(t);
}

static void woken(void *user, struct sandbox *sb, const struct err *err)
{
	struct tool_call *t = user;

	if (t->is_cancelled)
		return cancelled(t);
	if (err)
		return tool_fail(t, "the sandbox could not be woken: %s", err->text);
	enter(t, sb);
}

static void use(struct tool_call *t, struct sandbox *sb)
{
	struct sandbox_info info;

	sandbox_info(sb, &info);
	if (sandbox_wakes(sb))
		return sandbox_wake(sb, woken, t);
	if (info.state != SANDBOX_RUNNING)
		return tool_fail(t, "sandbox '%s' is %s: nothing can be done in it now", info.id,
				 state_name(info.state));
	enter(t, sb);
}

/* ---- one's own ---- */

/* Its programs find the tools that they may call, or will not. */
static void equipped(void *user)
{
	struct tool_call *t = user;
	struct sandbox *sb = tool_find_box(t);

	if (t->is_cancelled)
		return cancelled(t);
	if (!sb)
		return tool_fail(t, "the sandbox '%s' ended at once", t->box_id);
	use(t, sb);
}

static void made(void *user, struct sandbox *sb, const struct err *err)
{
	struct tool_call *t = user;
	struct sandbox_info info;

	if (t->is_cancelled) /* the sandbox stays: the next call wants it, too */
		return cancelled(t);
	if (err)
		return tool_fail(t, "no sandbox could be made: %s", err->text);
	sandbox_info(sb, &info);
	t->is_new_box = !info.is_existing;
	t->is_cold = t->is_new_box && !info.warm;
	if (!info.grant[0])
		return use(t, sb);
	tool_set_box(t, sb);
	bridges_settle(t->all->deps.bridges, info.id, equipped, t);
}

static void make(struct tool_call *t)
{
	struct sandbox_request req = {
		.owner = t->who.owner,
		.key_id = t->who.key_id[0] ? t->who.key_id : NULL,
		.name = t->home,
		.get_or_create = true,
		.template = "",
		.grant = tool_grant(t),
	};

	if (t->is_cancelled)
		return cancelled(t);
	sandbox_create(t->all->deps.sandboxes, &req, made, t);
}

/* Who comes back to an empty sandbox is to know why it is empty. */
static void looked_back(void *user, const struct sandbox_info *infos, size_t n, bool more,
			const struct err *err)
{
	struct tool_call *t = user;

	(void)more;
	if (!err && n > 0)
		t->lost_box = arena_printf(t->arena, "%s (%s)", infos[0].id,
					   infos[0].reason && infos[0].reason[0]
						   ? infos[0].reason
						   : state_name(infos[0].state));
	make(t);
}

static void look_back(struct tool_call *t)
{
	struct sandbox_filter f = {
		.owner = t->who.owner,
		.states = 1u << SANDBOX_STOPPED | 1u << SANDBOX_FAILED,
		.name = t->home,
		.limit = 1,
	};

	sandbox_list(t->all->deps.sandboxes, &f, looked_back, t);
}

static void find_own(struct tool_call *t)
{
	struct sandbox *sb = NULL;
	struct sandbox_info info;
	struct err err = { 0 };

	if (t->home)
		sb = sandboxes_find(t->all->deps.sandboxes, t->home, t->who.owner);
	if (sb) {
		sandbox_info(sb, &info);
		if (info.state == SANDBOX_CREATING)
			return make(t); /* waits for the one that is on its way */
		return use(t, sb);
	}
	if (!t->home)
		return tool_fail(t, "sandbox_id: want the id or name of a sandbox");
	if (principal_check(&t->who, SCOPE_SANDBOX_WRITE, &err) < 0)
		return tool_fail(t, "no sandbox of your own can be made: %s", err.text);
	look_back(t);
}

static void find_box(struct tool_call *t, const char *wanted)
{
	struct sandbox *sb;

	if (t->is_bound)
		wanted = t->box_id;
	if (!wanted)
		return find_own(t);
	sb = tool_look_up(t, wanted);
	if (!sb)
		return tool_fail(t, "there is no sandbox '%.64s', or it has ended", wanted);
	use(t, sb);
}

/* ---- arguments ---- */

/* The tool's own fields, and behind its struct the sandbox. */
static int decode(struct tool_call *t, const char **ret_box, struct jv_problem *problem)
{
	struct jv_field fields[TOOL_FIELDS_MAX + 1];
	size_t n, at = TOOL_BOX_AT(t->tool);
	const char **box;
	int r;

	t->args = arena_alloc(t->arena, at + sizeof(char *));
	if (!t->args)
		return -ENOMEM;
	n = tools_fields(t->all, t->tool, t->is_bound, at, fields, t->args);
	r = jv_decode(t->raw, fields, n, t->arena, t->args, problem);
	box = (const char **)(void *)((char *)t->args + at);
	*ret_box = *box;
	return r;
}

/* False: the call has ended. */
static bool take_arguments(struct tool_call *t, const char **ret_box)
{
	struct jv_problem problem = { 0 };
	int r = 0;

	if (jv_kind(t->raw) != JV_OBJECT)
		r = -EINVAL;
	else if (t->tool->flags & TOOL_RAW)
		*ret_box = jv_text(jv_get(t->raw, "sandbox_id"));
	else
		r = decode(t, ret_box, &problem);
	if (r == 0)
		return true;
	if (r == -ENOMEM)
		tool_fail(t, "out of memory");
	else if (problem.field[0] == '\0')
		tool_fail(t, "arguments: want an object");
	else
		tool_fail(t, "%s: %s", problem.field, problem.text);
	return false;
}

static void begin(void *user)
{
	struct tool_call *t = user;
	const char *box = NULL;
	struct err err = { 0 };

	if (t->is_cancelled)
		return cancelled(t);
	if (t->is_bound && t->tool->flags & TOOL_FREE_ONLY)
		return tool_fail(t, "this key is good for one sandbox only");
	if (principal_check(&t->who, t->tool->scopes, &err) < 0) {
		(void)tool_note(t, "refused");
		return tool_fail_err(t, &err);
	}
	if (!take_arguments(t, &box))
		return;
	if (t->tool->flags & TOOL_IN_BOX)
		find_box(t, box);
	else
		run(t);
}

void tools_call(struct tool_call *t, const struct tool *tool, struct jv arguments)
{
	bool is_absent = jv_kind(arguments) == JV_ABSENT || jv_kind(arguments) == JV_NULL;

	t->tool = tool;
	t->raw = is_absent ? jv_root(t->all->nothing) : arguments;
	t->outcome = TOOL_DONE;
	list_init(&t->asks);
	/* A token of one sandbox is good for no other, whatever door it came to. */
	if (t->who.sandbox_id[0] != '\0') {
		t->is_bound = true;
		(void)str_copy(t->box_id, sizeof(t->box_id), t->who.sandbox_id);
	}
	loop_task_init(&t->soon, begin, t);
	loop_task_post(t->all->deps.loop, &t->soon);
}

void tools_cancel(struct tool_call *t)
{
	void (*cancel)(struct tool_call *) = t->cancel;

	if (t->is_cancelled)
		return;
	t->is_cancelled = true;
	t->cancel = NULL;
	if (cancel)
		cancel(t);
}

void tools_leave(struct tool_call *t)
{
	void (*leave)(struct tool_call *) = t->leave ? t->leave : t->cancel;

	t->leave = t->cancel = NULL;
	if (leave)
		leave(t);
	loop_task_cancel(&t->soon);
}
