#include "api/exec_plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/bodies.h"
#include "base/arena.h"
#include "base/str.h"
#include "config/config.h"
#include "sandbox/pairs.h"
#include "json/jv_decode.h"

static int bad(struct jv_problem *p, const char *field, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int bad(struct jv_problem *p, const char *field, const char *fmt, ...)
{
	va_list ap;

	(void)str_copy(p->field, sizeof(p->field), field);
	va_start(ap, fmt);
	(void)vsnprintf(p->text, sizeof(p->text), fmt, ap); /* a long one is cut */
	va_end(ap);
	return -EINVAL;
}

/* Languages as others write them. */
static const char *language_of(const char *name)
{
	static const struct {
		const char *alias, *language;
	} aliases[] = {
		{ "python", "python" },     { "python3", "python" },
		{ "py", "python" },         { "javascript", "javascript" },
		{ "js", "javascript" },     { "node", "javascript" },
		{ "nodejs", "javascript" }, { "bash", "bash" },
		{ "sh", "bash" },           { "shell", "bash" },
	};

	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (strcasecmp(aliases[i].alias, name) == 0)
			return aliases[i].language;
	return NULL;
}

/* /execute says type and content, /executions one of three fields. */
static int plan_program(const struct body_exec *body, struct exec_request *req,
			struct jv_problem *p)
{
	const char *code = body->type == BODY_EXEC_CODE ? body->content : body->code;
	const char *command = body->type == BODY_EXEC_COMMAND ? body->content : body->command;
	int given = !!code + !!command + (body->argv.len > 0);

	if (given > 1 || (given == 0 && !body->pty))
		return bad(p, "command", "want exactly one of command, argv and code");
	req->kind = body->pty ? EXECUTION_PTY : code ? EXECUTION_CODE : EXECUTION_COMMAND;
	req->command = command;
	req->argv = body->argv.items;
	req->argc = body->argv.len;
	req->code = code;
	if (!code)
		return 0;
	if (body->pty)
		return bad(p, "pty", "code does not run in a terminal");
	if (!body->language)
		return bad(p, "language", "code needs a language");
	req->language = language_of(body->language);
	if (!req->language)
		return bad(p, "language", "want python, javascript or bash");
	return 0;
}

static int plan_stdin(const struct body_exec *body, struct arena *a, struct exec_plan *plan,
		      struct jv_problem *p)
{
	struct str text;
	bool open = false;

	if (jv_kind(body->stdin_value) == JV_ABSENT || jv_kind(body->stdin_value) == JV_NULL)
		return 0;
	if (jv_bool(body->stdin_value, &open) == 0) {
		if (open && !body->background && !body->stream)
			return bad(p, "stdin",
				   "stays open only with background or stream: "
				   "otherwise nobody could write to it");
		plan->req.has_stdin = open;
		return 0;
	}
	if (jv_str(body->stdin_value, &text) < 0)
		return bad(p, "stdin", "want a text, true or false");
	if (body->pty)
		return bad(p, "stdin", "a terminal takes its input while it runs");
	plan->stdin_text = arena_strndup(a, text.data, text.len);
	plan->stdin_len = text.len;
	plan->req.has_stdin = true;
	return plan->stdin_text ? 0 : -ENOMEM;
}

static int check_together(const struct body_exec *body, const struct config *config,
			  struct jv_problem *p)
{
	uint64_t max = config->exec_timeout_max_ms;

	if (body->timeout_ms > max)
		return bad(p, "timeout", "want at most %" PRIu64 " seconds (exec_timeout_max)",
			   max / 1000);
	if (body->background && body->stream)
		return bad(p, "background", "does not go together with stream");
	if (body->background && body->cancel_on_disconnect)
		return bad(p, "cancelOnDisconnect", "does not go together with background");
	return 0;
}

int exec_plan(const struct body_exec *body, const struct config *config, struct arena *a,
	      struct exec_plan *ret, struct jv_problem *problem)
{
	struct exec_plan plan = {
		.req = { .cwd = body->cwd ? body->cwd : "",
			 .user = body->user ? body->user : "",
			 .env = pairs_given(a, &body->env),
			 .n_env = body->env.len,
			 .timeout_ms = body->timeout_ms,
			 .background = body->background,
			 .rows = (uint16_t)body->rows,
			 .cols = (uint16_t)body->cols },
	};
	int r;

	if (plan.req.n_env > 0 && !plan.req.env)
		return -ENOMEM;
	r = plan_program(body, &plan.req, problem);
	if (r == 0)
		r = plan_stdin(body, a, &plan, problem);
	if (r == 0)
		r = check_together(body, config, problem);
	if (r == 0)
		*ret = plan;
	return r;
}
