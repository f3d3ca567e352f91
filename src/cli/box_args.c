#include "cli/box_args.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "cli/term.h"

const char *const box_net_names[] = { [NET_NONE] = "none", [NET_HOST] = "host", NULL };
const char *const box_level_names[] = {
	[LEVEL_STANDARD] = "standard", [LEVEL_HIGH] = "high", NULL
};

const struct box_limit box_limits[] = {
	{ CONTROLLER_MEMORY, "memory" },
	{ CONTROLLER_PIDS, "pids" },
	{ CONTROLLER_CPU, "cpu" },
	{ CONTROLLER_CPUSET, "pin" },
	{ 0, NULL },
};

unsigned box_args_limits(const struct box_args *a)
{
	const struct limits *l = &a->limits;

	return (l->memory_bytes ? CONTROLLER_MEMORY : 0u) | (l->pids ? CONTROLLER_PIDS : 0u) |
	       (l->cpu_milli ? CONTROLLER_CPU : 0u) | (l->cpu_mask ? CONTROLLER_CPUSET : 0u);
}

#define AT(field) offsetof(struct box_args, field)
const struct opt box_opts[] = {
	{ .name = "template",
	  .type = OPT_TEXT,
	  .arg = "NAME|DIR",
	  .help = "root of the box: 'host' (this system, read-only) or a directory",
	  .offset = AT(template) },
	LIMIT_OPTS(struct box_args, limits),
	{ .name = "pin",
	  .type = OPT_CPUS,
	  .arg = "CPUS",
	  .help = "run on these processors only: 0,2-3",
	  .offset = AT(limits.cpu_mask) },
	{ .name = "timeout",
	  .type = OPT_DURATION,
	  .arg = "TIME",
	  .help = "end it after this long (30s; none with --tty); 0: never",
	  .offset = AT(timeout_ms),
	  .max = TIMEOUT_MAX_MS },
	{ .name = "env",
	  .letter = 'e',
	  .type = OPT_LIST,
	  .arg = "K=V",
	  .help = "environment; K alone passes yours on; may be repeated",
	  .offset = AT(env) },
	{ .name = "workdir",
	  .letter = 'w',
	  .type = OPT_TEXT,
	  .arg = "DIR",
	  .help = "directory in the box to start in",
	  .offset = AT(workdir) },
	{ .name = "user",
	  .letter = 'u',
	  .type = OPT_TEXT,
	  .arg = "USER",
	  .help = "user of the box, by name or number",
	  .offset = AT(user) },
	{ .name = "net",
	  .type = OPT_CHOICE,
	  .arg = "none|host",
	  .help = "network of the box (none)",
	  .offset = AT(net),
	  .choices = box_net_names },
	{ .name = "level",
	  .type = OPT_CHOICE,
	  .arg = "standard|high",
	  .help = "security level (standard)",
	  .offset = AT(level),
	  .choices = box_level_names },
	{ .name = "output-limit",
	  .type = OPT_SIZE,
	  .arg = "SIZE",
	  .help = "drop output beyond this (with --json 1M, else none)",
	  .offset = AT(output_limit),
	  .min = 1,
	  .max = OUTPUT_MAX },
	{ .name = "json",
	  .type = OPT_FLAG,
	  .help = "print one JSON object with the result instead of the output",
	  .offset = AT(json) },
	{ .name = "tty",
	  .letter = 't',
	  .type = OPT_FLAG,
	  .help = "give the command a terminal",
	  .offset = AT(tty) },
	{ 0 },
};

/* "K=V" as it is; "K" becomes ours, or nothing when we have none. */
static int add_env(const char *text, struct guest_exec *e, struct err *err)
{
	size_t n = strcspn(text, "=");

	if (n == 0)
		return err_set(err, EINVAL, "--env '%.60s': wants NAME=value or NAME", text);
	if (text[n] == '\0') {
		for (char **p = environ; *p && text[n] == '\0'; p++)
			if (strncmp(*p, text, n) == 0 && (*p)[n] == '=')
				text = *p;
		if (text[n] == '\0')
			return 0;
	}
	e->envp[e->envc++] = text; /* fits: OPT_LIST_MAX and TERM are fewer than GUEST_ARGS_MAX */
	return 0;
}

_Static_assert(OPT_LIST_MAX + 8 < GUEST_ARGS_MAX, "every --env has its place");

static void add_default(struct guest_exec *e, const char *text)
{
	size_t n = strcspn(text, "=") + 1;

	for (size_t i = 0; i < e->envc; i++)
		if (strncmp(e->envp[i], text, n) == 0)
			return;
	e->envp[e->envc++] = text;
}

static void add_terminal(struct guest_exec *e)
{
	const char *term = getenv("TERM");

	e->flags |= EXEC_PTY;
	(void)term_size(&e->rows, &e->cols);
	if (term)
		add_default(e, term - strlen("TERM=")); /* getenv points behind the name */
}

static uint32_t deadline(const struct box_args *a)
{
	if (a->timeout_ms == TIMEOUT_UNSET)
		return a->tty ? 0 : TIMEOUT_DEFAULT_MS;
	return (uint32_t)a->timeout_ms;
}

int box_args_exec(const struct box_args *a, struct guest_exec *ret, struct err *err)
{
	int r;

	if (a->json && a->tty)
		return err_set(err, EINVAL, "--json and --tty exclude each other");
	if (a->json && a->output_limit > OUTPUT_JSON_MAX)
		return err_set(err, ERANGE, "--output-limit is at most 32M with --json");
	ret->flags = EXEC_STDIN | EXEC_LOGIN;
	ret->user = a->user ? a->user : "";
	ret->cwd = a->workdir ? a->workdir : "";
	if (!ret->code)
		ret->code = "";
	ret->timeout_ms = deadline(a);
	ret->grace_ms = GUEST_SIGNAL_DEFAULT_GRACE_MS;
	ret->output_limit = a->output_limit;
	if (a->json && ret->output_limit == 0)
		ret->output_limit = OUTPUT_JSON_DEFAULT;
	for (size_t i = 0; i < a->env.len; i++) {
		r = add_env(a->env.items[i], ret, err);
		if (r < 0)
			return r;
	}
	if (a->tty)
		add_terminal(ret);
	add_default(ret, BOX_DEFAULT_PATH);
	add_default(ret, BOX_DEFAULT_LANG);
	return 0;
}
