/* install_packages: a package manager in the box, with a way out to its registries while it runs.
 */
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "sandbox/build.h"
#include "sandbox/exec.h"
#include "tools/impl.h"
#include "tools/result.h"
#include "tools/running.h"
#include "json/jw.h"

struct args {
	int manager;
	struct jv_strings packages;
	const char *file;
	uint64_t timeout_ms;
};

struct install { /* arena */
	struct tool_call *call;
	struct build_way *way; /* owned; NULL: closed */
	void (*close)(struct build_way *way);
	struct package_want want;
};

static const char *const managers[] = { "pip", "npm", "cargo", "go", NULL };

static void close_way(void *user)
{
	struct install *i = user;

	if (i->way)
		i->close(TAKE(i->way));
}

static void leave(struct tool_call *t)
{
	close_way(t->work);
}

/* What is recorded of it, as of those by the API. NULL without memory. */
static const char *content_of(struct install *i)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	jw_object_begin(&w);
	jw_str_field(&w, "manager", managers[i->want.manager]);
	jw_key(&w, "packages");
	jw_array_begin(&w);
	for (size_t k = 0; k < i->want.packages.len; k++)
		jw_string(&w, i->want.packages.items[k]);
	jw_array_end(&w);
	if (i->want.file)
		jw_str_field(&w, "file", i->want.file);
	jw_object_end(&w);
	return jw_end(&w) < 0 ? NULL : arena_strndup(i->call->arena, buf_str(&b), b.len);
}

static void ready(void *user, const struct exec_request *plan, const struct err *err)
{
	struct install *i = user;
	struct tool_call *t = i->call;
	const struct args *a = t->args;
	struct exec_request req = { .kind = EXECUTION_COMMAND, .user = "" };
	struct sandbox *sb = NULL;

	t->leave = NULL;
	if (err || t->is_cancelled) {
		close_way(i);
		return err ? tool_fail_err(t, err) : tool_fail(t, "cancelled");
	}
	req.argv = plan->argv;
	req.argc = plan->argc;
	req.env = plan->env;
	req.n_env = plan->n_env;
	req.cwd = plan->cwd;
	req.timeout_ms = a->timeout_ms;
	req.content = content_of(i);
	sb = tool_box(t);
	if (sb)
		running_start_over(t, sb, &req, close_way, i);
	else
		close_way(i);
}

static void run_install(struct tool_call *t)
{
	const struct build_network *n = builds_network(t->all->deps.sandboxes);
	const struct args *a = t->args;
	struct install *i = arena_alloc(t->arena, sizeof(*i));
	struct err err = { 0 };
	struct sandbox *sb;

	if (!i)
		return tool_fail(t, "out of memory");
	if (!n)
		return tool_fail(t, "packages cannot be installed now");
	if ((a->packages.len > 0) == (a->file != NULL))
		return tool_fail(t, "want packages, or a file that names them, and not both");
	*i = (struct install){ .call = t, .close = n->close };
	i->want = (struct package_want){ .manager = a->manager, .packages = a->packages };
	if (a->file) {
		i->want.file = tool_path(t, a->file);
		if (!i->want.file)
			return;
	}
	sb = tool_box(t);
	if (!sb)
		return;
	t->work = i;
	t->leave = leave;
	if (n->open_packages(n->user, sb, &i->want, ready, i, &i->way, &err) < 0) {
		t->leave = NULL;
		tool_fail_err(t, &err);
	}
}

static const struct jv_field in[] = {
	JV_FIELD("manager", CHOICE, struct args, manager, .choices = managers, .flags = JV_REQUIRED,
		 .help = "the package manager to use"),
	JV_FIELD("packages", STRINGS, struct args, packages, .max = 64, .text_max = 214,
		 .help = "names, with versions where wanted: requests==2.32.0 (pip), "
			 "@types/node@22 (npm), ripgrep@14 (cargo), "
			 "example.com/cmd/tool@latest (go)"),
	JV_FIELD("file", STRING, struct args, file, .min = 1, .max = TOOL_PATH_MAX - 1,
		 .help = "instead of packages: the file in the sandbox that names them, such as "
			 "requirements.txt, package.json, Cargo.toml or go.mod"),
	JV_FIELD("timeout_ms", U64, struct args, timeout_ms, .min = 1,
		 .help = "milliseconds after which it is ended"),
};

#define TIMEOUT_MS 600000u

static void set_bounds(const struct tools *all, struct jv_field *fields, void *args)
{
	struct args *a = args;
	uint64_t max;

	tools_bound_timeout(all, fields, &a->timeout_ms);
	max = (uint64_t)tools_field(fields, "timeout_ms")->max;
	a->timeout_ms = max < TIMEOUT_MS ? max : TIMEOUT_MS;
}

static const struct tool rows[] = {
	{ .name = "install_packages",
	  .title = "Install packages",
	  .about =
		  "Installs packages in the sandbox with pip, npm, cargo or go, by their names or "
		  "from a file of the project. The sandbox has no network; this tool alone reaches "
		  "the package registries that the operator has set.",
	  .set_bounds = set_bounds,
	  TOOL_IN(in, args),
	  .out = result_fields,
	  .n_out = RESULT_FIELDS,
	  .hints = TOOL_OPEN_WORLD,
	  .flags = TOOL_IN_BOX | TOOL_LONG,
	  .scopes = SCOPE_EXEC,
	  .run = run_install },
};
const struct tool_table tools_package_table = { rows, TOOL_ARRAY_LEN(rows) };
