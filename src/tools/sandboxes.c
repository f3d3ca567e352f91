/* sandbox_create, sandbox_list, sandbox_kill, sandbox_fork, sandbox_snapshot: for callers who work
 * in more than one. */
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "config/config.h"
#include "sandbox/sandbox.h"
#include "sandbox/snapshot.h"
#include "tools/impl.h"
#include "json/jw.h"

#define LIST_MAX 100u
#define TIMEOUT_MIN 1000

#define BOX_ID(struct_, what_)                                               \
	JV_FIELD("sandbox_id", STRING, struct struct_, sandbox_id, .min = 1, \
		 .max = SANDBOX_NAME_MAX,                                    \
		 .help = "id or name of the sandbox " what_ "; "             \
			 "yours unless given")

static void write_box(struct tool_call *t, struct jw *w, const struct sandbox_info *info)
{
	jw_object_begin(w);
	jw_str_field(w, "sandbox_id", info->id);
	if (info->name[0] != '\0')
		jw_str_field(w, "name", info->name);
	jw_str_field(w, "template", info->template);
	jw_str_field(w, "state", state_name(info->state));
	if (info->created_ms > 0)
		jw_iso_field(w, "created_at", info->created_ms);
	if (info->expires_ms > 0)
		jw_iso_field(w, "expires_at", info->expires_ms);
	jw_bool_field(w, "is_own", t->home && strcmp(info->name, t->home) == 0);
	jw_object_end(w);
}

static void tell_box(struct tool_call *t, const struct sandbox_info *info)
{
	struct jw w = jw_begin(&t->structured);

	write_box(t, &w, info);
	tool_end(t, &w);
}

/* The one that is meant; NULL after tool_fail(). */
static struct sandbox *pick(struct tool_call *t, const char *id)
{
	struct sandbox *sb = NULL;

	if (id)
		sb = tool_look_up(t, id);
	else if (t->home)
		sb = sandboxes_find(t->all->deps.sandboxes, t->home, t->who.owner);
	if (sb)
		return sb;
	if (id)
		tool_fail(t, "there is no sandbox '%.64s', or it has ended", id);
	else
		tool_fail(t, "you have no sandbox of your own yet: give a sandbox_id");
	return NULL;
}

/* ---- sandbox_create ---- */

struct create_args {
	const char *name, *template, *snapshot;
	uint64_t timeout_ms;
	struct jv_strings env;
};

static void ended_unasked(void *user, struct sandbox *sb, const struct err *err)
{
	(void)user, (void)sb, (void)err;
}

static void made(void *user, struct sandbox *sb, const struct err *err)
{
	struct tool_call *t = user;
	struct sandbox_info info;

	if (err)
		return tool_fail_err(t, err);
	sandbox_info(sb, &info);
	if (t->is_cancelled && !info.is_existing) { /* nobody would know of it */
		sandbox_delete(sb, "the call that made it was cancelled", ended_unasked, NULL);
		return tool_fail(t, "cancelled");
	}
	tell_box(t, &info);
}

static void run_create(struct tool_call *t)
{
	const struct create_args *a = t->args;
	struct sandbox_request req = {
		.owner = t->who.owner,
		.key_id = t->who.key_id[0] ? t->who.key_id : NULL,
		.name = a->name ? a->name : "",
		.template = a->template ? a->template : "",
		.snapshot = a->snapshot,
		.grant = tool_grant(t),
		.timeout_ms = a->timeout_ms,
	};

	if (!tool_env(t, &a->env, &req.env, &req.n_env))
		return;
	sandbox_create(t->all->deps.sandboxes, &req, made, t);
}

static const struct jv_field create_in[] = {
	JV_FIELD("name", STRING, struct create_args, name, .min = 1, .max = SANDBOX_NAME_MAX,
		 .help = "a name such as build-1 ([a-z0-9][a-z0-9._-]*); only one of your running "
			 "sandboxes may have it"),
	JV_FIELD("template", STRING, struct create_args, template, .min = 1, .max = 128,
		 .help = "python, node, bash, base, or one of your own. Default: the daemon's"),
	JV_FIELD("snapshot", STRING, struct create_args, snapshot, .min = 1,
		 .max = SANDBOX_NAME_MAX,
		 .help = "instead of a template: a snapshot that sandbox_snapshot made"),
	JV_FIELD("timeout_ms", U64, struct create_args, timeout_ms, .min = TIMEOUT_MIN,
		 .help = "milliseconds after which the sandbox ends"),
	TOOL_ENV_FIELD(create_args, env, "environment variables of everything in it"),
};

static void set_create_bounds(const struct tools *all, struct jv_field *fields, void *args)
{
	struct create_args *a = args;

	tools_field(fields, "timeout_ms")->max = (int64_t)all->deps.config->sandbox_timeout_max_ms;
	a->timeout_ms = all->deps.config->sandbox_timeout_ms;
}

/* ---- sandbox_list ---- */

static void listed(void *user, const struct sandbox_info *infos, size_t n, bool more,
		   const struct err *err)
{
	struct tool_call *t = user;
	struct jw w = jw_begin(&t->structured);

	if (err)
		return tool_fail_err(t, err);
	jw_object_begin(&w);
	jw_key(&w, "sandboxes");
	jw_array_begin(&w);
	for (size_t i = 0; i < n; i++)
		write_box(t, &w, &infos[i]);
	jw_array_end(&w);
	jw_bool_field(&w, "truncated", more);
	jw_object_end(&w);
	tool_end(t, &w);
}

/* One's own, of an admin too: others' would be a surprise in a model's hands. */
static void run_list(struct tool_call *t)
{
	struct sandbox_filter f = { .owner = t->who.owner, .limit = LIST_MAX };

	sandbox_list(t->all->deps.sandboxes, &f, listed, t);
}

/* ---- sandbox_kill ---- */

struct kill_args {
	const char *sandbox_id;
};

static void ended(void *user, struct sandbox *sb, const struct err *err)
{
	struct tool_call *t = user;
	struct jw w = jw_begin(&t->structured);

	(void)sb;
	if (err)
		return tool_fail_err(t, err);
	jw_object_begin(&w);
	jw_bool_field(&w, "ok", true);
	jw_str_field(&w, "sandbox_id", t->box_id);
	jw_object_end(&w);
	tool_end(t, &w);
}

static void run_kill(struct tool_call *t)
{
	const struct kill_args *a = t->args;
	struct sandbox *sb = pick(t, a->sandbox_id);

	if (!sb)
		return;
	tool_set_box(t, sb);
	sandbox_delete(sb, "deleted", ended, t);
}

static const struct jv_field kill_in[] = { BOX_ID(kill_args, "to end") };

/* ---- sandbox_fork ---- */

struct fork_args {
	const char *sandbox_id, *name;
	uint32_t count;
};

static void forked(void *user, struct sandbox *const *boxes, size_t n, const struct err *err)
{
	struct tool_call *t = user;
	struct jw w = jw_begin(&t->structured);
	struct sandbox_info info;

	if (err)
		return tool_fail_err(t, err);
	jw_object_begin(&w);
	jw_key(&w, "sandboxes");
	jw_array_begin(&w);
	for (size_t i = 0; i < n; i++) {
		sandbox_info(boxes[i], &info);
		write_box(t, &w, &info);
	}
	jw_array_end(&w);
	jw_object_end(&w);
	tool_end(t, &w);
}

static void run_fork(struct tool_call *t)
{
	const struct fork_args *a = t->args;
	struct sandbox *sb = pick(t, a->sandbox_id);
	struct sandbox_info info;

	if (!sb)
		return;
	sandbox_info(sb, &info);
	sandbox_fork(sb,
		     &(struct fork_request){ .count = a->count,
					     .name = a->name ? a->name : "",
					     .owner = info.owner,
					     .key_id = t->who.key_id },
		     forked, t);
}

static const struct jv_field fork_in[] = {
	BOX_ID(fork_args, "to copy"),
	JV_FIELD("count", U32, struct fork_args, count, .min = 1, .max = FORK_MAX,
		 .help = "how many copies: one unless given"),
	JV_FIELD("name", STRING, struct fork_args, name, .min = 1, .max = SANDBOX_NAME_MAX,
		 .help = "of the copy; of several it is the beginning of their names"),
};
static const struct fork_args fork_defaults = { .count = 1 };

/* ---- sandbox_snapshot ---- */

struct snapshot_args {
	const char *sandbox_id, *name;
};

static void taken(void *user, struct object *o, const struct err *err)
{
	struct tool_call *t = user;
	struct jw w = jw_begin(&t->structured);

	if (err)
		return tool_fail_err(t, err);
	jw_object_begin(&w);
	jw_str_field(&w, "snapshot_id", o->id);
	if (o->name[0] != '\0')
		jw_str_field(&w, "name", o->name);
	jw_uint_field(&w, "bytes", ((const struct snapshot *)o->data)->bytes);
	jw_object_end(&w);
	tool_end(t, &w);
}

static void run_snapshot(struct tool_call *t)
{
	const struct snapshot_args *a = t->args;
	struct sandbox *sb = pick(t, a->sandbox_id);

	if (sb)
		snapshot_create(sb, a->name ? a->name : "", taken, t);
}

static const struct jv_field snapshot_in[] = {
	BOX_ID(snapshot_args, "whose files are kept"),
	JV_FIELD("name", STRING, struct snapshot_args, name, .min = 1, .max = SANDBOX_NAME_MAX,
		 .help = "for sandbox_create"),
};

/* ---- the table ---- */

static const struct jv_field box_out[] = {
	{ .name = "sandbox_id", .type = JV_TYPE_STRING, .flags = JV_REQUIRED },
	{ .name = "name", .type = JV_TYPE_STRING },
	{ .name = "template", .type = JV_TYPE_STRING, .flags = JV_REQUIRED },
	{ .name = "state", .type = JV_TYPE_STRING, .flags = JV_REQUIRED },
	{ .name = "created_at", .type = JV_TYPE_STRING },
	{ .name = "expires_at", .type = JV_TYPE_STRING },
	{ .name = "is_own",
	  .type = JV_TYPE_BOOL,
	  .flags = JV_REQUIRED,
	  .help = "it is what is used where no sandbox_id is given" },
};
static const struct jv_field list_out[] = {
	{ .name = "sandboxes",
	  .type = JV_TYPE_OBJECTS,
	  .flags = JV_REQUIRED,
	  .sub = box_out,
	  .sub_count = TOOL_ARRAY_LEN(box_out) },
	{ .name = "truncated", .type = JV_TYPE_BOOL },
};
static const struct jv_field kill_out[] = {
	{ .name = "ok", .type = JV_TYPE_BOOL, .flags = JV_REQUIRED },
	{ .name = "sandbox_id", .type = JV_TYPE_STRING, .flags = JV_REQUIRED },
};
static const struct jv_field snapshot_out[] = {
	{ .name = "snapshot_id", .type = JV_TYPE_STRING, .flags = JV_REQUIRED },
	{ .name = "name", .type = JV_TYPE_STRING },
	{ .name = "bytes", .type = JV_TYPE_U64, .flags = JV_REQUIRED },
};

static const struct tool rows[] = {
	{ .name = "sandbox_create",
	  .title = "Make a sandbox",
	  .about = "Creates another sandbox. Ordinary work needs none: your own is created as "
		   "soon as a tool needs it.",
	  .set_bounds = set_create_bounds,
	  TOOL_IN(create_in, create_args),
	  TOOL_OUT(box_out),
	  .flags = TOOL_FREE_ONLY,
	  .scopes = SCOPE_SANDBOX_WRITE,
	  .run = run_create },
	{ .name = "sandbox_list",
	  .title = "List sandboxes",
	  .about = "Lists your sandboxes that have not ended, newest first.",
	  TOOL_OUT(list_out),
	  .hints = TOOL_READ_ONLY | TOOL_IDEMPOTENT,
	  .flags = TOOL_FREE_ONLY,
	  .scopes = SCOPE_SANDBOX_READ,
	  .run = run_list },
	{ .name = "sandbox_kill",
	  .title = "End a sandbox",
	  .about = "Ends a sandbox and deletes everything in it.",
	  TOOL_IN(kill_in, kill_args),
	  TOOL_OUT(kill_out),
	  .hints = TOOL_DESTRUCTIVE,
	  .flags = TOOL_FREE_ONLY,
	  .scopes = SCOPE_SANDBOX_WRITE,
	  .run = run_kill },
	{ .name = "sandbox_fork",
	  .title = "Copy a sandbox",
	  .about = "Creates sandboxes with the same files as another has now. Processes are not "
		   "copied.",
	  TOOL_IN(fork_in, fork_args),
	  .defaults = &fork_defaults,
	  TOOL_OUT(list_out),
	  .flags = TOOL_FREE_ONLY,
	  .scopes = SCOPE_SANDBOX_WRITE,
	  .run = run_fork },
	{ .name = "sandbox_snapshot",
	  .title = "Keep a sandbox's files",
	  .about = "Saves the files that a sandbox has written, to create other sandboxes from "
		   "them.",
	  TOOL_IN(snapshot_in, snapshot_args),
	  TOOL_OUT(snapshot_out),
	  .flags = TOOL_FREE_ONLY,
	  .scopes = SCOPE_SANDBOX_WRITE,
	  .run = run_snapshot },
};
const struct tool_table tools_sandbox_table = { rows, TOOL_ARRAY_LEN(rows) };
