/* What is done to sandboxes that are there: inspect, rm, pause, resume, stop, start, extend. */
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/act.h"
#include "cli/client.h"
#include "cli/command.h"
#include "json/jw.h"

#define IDS_MAX 10000
#define HOUR_MS (3600ull * 1000)

struct act_args {
	struct client_args client;
	bool all, yes;
};

#define AT(field) offsetof(struct act_args, field)
const struct opt sandbox_rm_opts[] = {
	{ .name = "all",
	  .letter = 'a',
	  .type = OPT_FLAG,
	  .help = "every live one that the key reaches; needs --yes",
	  .offset = AT(all) },
	{ .name = "yes",
	  .letter = 'y',
	  .type = OPT_FLAG,
	  .help = "do not ask; --all needs it",
	  .offset = AT(yes) },
	CLIENT_OPTS(struct act_args, client),
	{ 0 },
};

struct extend_args {
	struct client_args client;
	uint64_t timeout_ms;
};

const struct opt sandbox_extend_opts[] = {
	{ .name = "timeout",
	  .type = OPT_DURATION,
	  .arg = "TIME",
	  .help = "how long they live from now on (1h)",
	  .offset = offsetof(struct extend_args, timeout_ms),
	  .min = 1000,
	  .max = 8760 * HOUR_MS },
	CLIENT_OPTS(struct extend_args, client),
	{ 0 },
};

static int extend_each(struct client *c, void *args, int n, char **ids, struct err *err)
{
	_cleanup_(buf_done) struct buf body = { 0 };
	struct jw w = jw_begin(&body);
	const struct extend_args *a = args;
	struct act act = { "PATCH", "sandboxes/%", c, NULL, 0, &body };

	(void)err;
	jw_object_begin(&w);
	jw_double_field(&w, "timeout", (double)a->timeout_ms / 1000);
	jw_object_end(&w);
	return jw_end(&w) < 0 ? -ENOMEM : act_on_each(&act, n, ids);
}

const struct opt sandbox_stop_opts[] = {
	{ .name = "all",
	  .letter = 'a',
	  .type = OPT_FLAG,
	  .help = "every running or paused one that the key reaches, as before a reboot",
	  .offset = AT(all) },
	CLIENT_OPTS(struct act_args, client),
	{ 0 },
};

static int check_all(const struct act_args *a, int n, struct err *err)
{
	if (a->all && n > 0)
		return err_set(err, EINVAL, "--all and ids exclude each other");
	if (!a->all && n == 0)
		return err_set(err, EINVAL, "wants ID... or --all");
	return 0;
}

static int rm(struct client *c, void *args, int n, char **ids, struct err *err)
{
	struct act act = { "DELETE", "sandboxes/%", c, NULL, 0, NULL };
	const struct act_args *a = args;
	int r = check_all(a, n, err);

	if (r < 0)
		return r;
	if (a->all && !a->yes)
		return err_set(err, EINVAL, "--all removes every sandbox: say --yes too");
	return a->all ? act_on_all(&act, "/api/v1/sandboxes") : act_on_each(&act, n, ids);
}

static int pause_each(struct client *c, void *args, int n, char **ids, struct err *err)
{
	struct act act = { "POST", "sandboxes/%/pause", c, NULL, 0, NULL };

	(void)args;
	(void)err;
	return act_on_each(&act, n, ids);
}

static int resume_each(struct client *c, void *args, int n, char **ids, struct err *err)
{
	struct act act = { "POST", "sandboxes/%/resume", c, NULL, 0, NULL };

	(void)args;
	(void)err;
	return act_on_each(&act, n, ids);
}

static int stop_each(struct client *c, void *args, int n, char **ids, struct err *err)
{
	struct act act = { "POST", "sandboxes/%/stop", c, NULL, 0, NULL };
	const struct act_args *a = args;
	int r = check_all(a, n, err);

	if (r < 0)
		return r;
	return a->all ? act_on_all(&act, "/api/v1/sandboxes?status=running,paused")
		      : act_on_each(&act, n, ids);
}

static int start_each(struct client *c, void *args, int n, char **ids, struct err *err)
{
	struct act act = { "POST", "sandboxes/%/start", c, NULL, 0, NULL };

	(void)args;
	(void)err;
	return act_on_each(&act, n, ids);
}

static int inspect(struct client *c, void *args, int n, char **ids, struct err *err)
{
	(void)args;
	(void)n;
	return client_show(c, "sandboxes/%", ids[0], err);
}

int cmd_sandbox_rm(const struct command *cmd, int argc, char **argv)
{
	struct act_args args = { 0 };
	struct client_task task = { &args, &args.client, 0, IDS_MAX, rm };

	return client_run(cmd, argc, argv, &task);
}

int cmd_sandbox_pause(const struct command *cmd, int argc, char **argv)
{
	struct act_args args = { 0 };
	struct client_task task = { &args, &args.client, 1, IDS_MAX, pause_each };

	return client_run(cmd, argc, argv, &task);
}

int cmd_sandbox_resume(const struct command *cmd, int argc, char **argv)
{
	struct act_args args = { 0 };
	struct client_task task = { &args, &args.client, 1, IDS_MAX, resume_each };

	return client_run(cmd, argc, argv, &task);
}

int cmd_sandbox_stop(const struct command *cmd, int argc, char **argv)
{
	struct act_args args = { 0 };
	struct client_task task = { &args, &args.client, 0, IDS_MAX, stop_each };

	return client_run(cmd, argc, argv, &task);
}

int cmd_sandbox_start(const struct command *cmd, int argc, char **argv)
{
	struct act_args args = { 0 };
	struct client_task task = { &args, &args.client, 1, IDS_MAX, start_each };

	return client_run(cmd, argc, argv, &task);
}

int cmd_sandbox_inspect(const struct command *cmd, int argc, char **argv)
{
	struct act_args args = { 0 };
	struct client_task task = { &args, &args.client, 1, 1, inspect };

	return client_run(cmd, argc, argv, &task);
}

CLIENT_COMMAND(cmd_sandbox_extend, extend_args, 1, IDS_MAX, extend_each, .timeout_ms = HOUR_MS)
