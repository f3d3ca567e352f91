#include "cli/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/pump.h"
#include "cli/session.h"

#define JSON_MAX (512u << 20) /* 32 MiB of output, escaped */

/* Our own failure: a line for people, and with --json an object for programs. */
static int fail(const struct box_args *a, const struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	const char *name = strerrorname_np(err->code);

	if (a->json) {
		(void)buf_printf(&b, "{\"error\":{\"code\":\"%s\",\"message\":\"",
				 name ? name : "");
		(void)utf8_json_escape(&b, err->text, strnlen(err->text, sizeof(err->text)));
		(void)buf_puts(&b, "\"}}\n");
		(void)fputs(buf_str(&b), stdout);
	}
	return cli_fail(err);
}

static int report(const struct run_facts *f, bool json)
{
	_cleanup_(buf_done) struct buf reason = { 0 }, text = { .max = JSON_MAX };
	int code = outcome_exit_code(f, &reason);

	if (!json) {
		if (reason.len)
			cli_say("%s", buf_str(&reason));
		return code;
	}
	if (outcome_json(f, &text) < 0 || fd_write_all(STDOUT_FILENO, text.data, text.len) < 0) {
		cli_say("the result could not be written");
		return CLI_ERROR;
	}
	return code;
}

static int run(const struct run_request *req, struct session *s, struct pump *p, struct err *err)
{
	int r;

	if (req->file_path) {
		r = guest_write_sync(s->guest, req->file_path, req->file_data, req->file_len, 0644,
				     err);
		if (r < 0)
			return r;
	}
	return pump_run(p, s->guest, req->exec, err);
}

/* Limits that were asked for and that this machine cannot hold. */
static void warn_limits(const struct box_args *a, unsigned missing)
{
	for (const struct box_limit *l = box_limits; l->name; l++)
		if (box_args_limits(a) & missing & l->controller)
			cli_say("warning: --%s is not enforced here: see 'holt doctor'", l->name);
}

int run_in_box(const struct run_request *req)
{
	const struct box_args *a = req->box;
	_cleanup_(pump_done) struct pump p = { .collect = a->json };
	struct session s;
	struct err err = { 0 };
	struct run_facts facts;
	struct launcher_box box;
	unsigned missing;
	int r;

	r = box_args_exec(a, req->exec, &err);
	if (r < 0)
		return fail(a, &err);
	if (req->no_input)
		req->exec->flags &= (uint8_t)~EXEC_STDIN;
	pump_block_signals();
	r = session_open(&s, a, &err);
	if (r < 0) {
		r = fail(a, &err);
		if (a->level == LEVEL_STANDARD)
			cli_hint("'holt doctor' checks this machine and says how to mend it");
		return r;
	}
	box = s.box;
	missing = launcher_info(s.launcher)->cgroup_missing;
	warn_limits(a, missing);
	r = run(req, &s, &p, &err);
	if (session_close(&s, &p.outcome.usage, r < 0 ? NULL : &err) < 0 && r == 0)
		cli_say("the box did not go away: %s", err.text);
	if (r < 0)
		return fail(a, &err);
	facts = (struct run_facts){ .box = &box,
				    .outcome = &p.outcome,
				    .out = &p.out,
				    .err = &p.err,
				    .level = box_level_names[a->level],
				    .net = box_net_names[a->net],
				    .timeout_ms = req->exec->timeout_ms,
				    .not_enforced = missing };
	return report(&facts, a->json);
}
