/* An execution as the store keeps it. */
#include <errno.h>
#include <signal.h>

#include "base/log.h"
#include "base/str.h"
#include "sandbox/execution.h"
#include "json/jw.h"

static void write_what(struct jw *w, const struct exec_request *req)
{
	static const char *const types[EXECUTION_KIND_COUNT] = {
		[EXECUTION_COMMAND] = "command",
		[EXECUTION_CODE] = "code",
		[EXECUTION_PTY] = "pty",
		[EXECUTION_CONTEXT] = "context",
	};

	jw_str_field(w, "type", types[req->kind]);
	if (req->kind == EXECUTION_CODE) {
		jw_str_field(w, "language", req->language);
		jw_str_field(w, "code", req->code);
	} else if (req->command) {
		jw_str_field(w, "command", req->command);
	} else if (req->argc > 0) {
		jw_key(w, "argv");
		jw_array_begin(w);
		for (size_t i = 0; i < req->argc; i++)
			jw_string(w, req->argv[i]);
		jw_array_end(w);
	}
}

int execution_content(const struct exec_request *req, char **ret)
{
	struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	int r;

	if (req->content) {
		*ret = str_dup(str_of(req->content));
		return *ret ? 0 : -ENOMEM;
	}
	jw_object_begin(&w);
	write_what(&w, req);
	if (req->cwd && req->cwd[0] != '\0')
		jw_str_field(&w, "cwd", req->cwd);
	if (req->user && req->user[0] != '\0')
		jw_str_field(&w, "user", req->user);
	if (req->tag)
		jw_str_field(&w, "tag", req->tag);
	if (req->timeout_ms > 0)
		jw_uint_field(&w, "timeoutMs", req->timeout_ms);
	if (req->n_env > 0) { /* names only: values are often secrets */
		jw_key(&w, "envNames");
		jw_array_begin(&w);
		for (size_t i = 0; i < req->n_env; i++)
			jw_string(&w, req->env[i].name);
		jw_array_end(&w);
	}
	jw_object_end(&w);
	r = jw_end(&w);
	if (r == 0)
		*ret = buf_take(&b);
	buf_done(&b);
	return r;
}

void execution_fill_row(const struct execution *x, struct execution_row *ret)
{
	*ret = (struct execution_row){
		.id = x->id,
		.sandbox_id = x->sandbox_id,
		.owner = x->owner,
		.kind = (uint8_t)x->kind,
		.state = (uint8_t)x->state,
		.is_live = x->state == EXECUTION_RUNNING,
		.flags = x->flags,
		.guest_id = x->guest_id,
		.pid = x->pid,
		.exit_code = x->exit_code,
		.signal = x->signal,
		.reason = x->reason,
		.started_ms = x->started_ms,
		.ended_ms = x->ended_ms,
		.wall_us = x->wall_us,
		.cpu_us = x->cpu_us,
		.peak_bytes = x->peak_bytes,
		.output_bytes = x->output ? output_end(x->output) : 0,
		.output_start = x->output ? output_begin(x->output) : 0,
		.content = x->content ? x->content : "null",
	};
}

bool execution_row_is_sound(const struct execution_row *row)
{
	bool is = row->kind < EXECUTION_KIND_COUNT && row->state < EXECUTION_STATE_COUNT &&
		  row->signal >= 0 && row->signal < _NSIG;

	if (!is)
		log_warn("sandbox", "the record of execution %s is damaged", row->id);
	return is;
}

void execution_read_row(const struct execution_row *row, struct exec_info *ret)
{
	*ret = (struct exec_info){
		.id = row->id,
		.sandbox_id = row->sandbox_id,
		.reason = row->reason,
		.kind = row->kind,
		.state = row->state,
		.flags = row->flags,
		.content = row->content,
		.exit_code = row->exit_code,
		.signal = row->signal,
		.pid = row->pid,
		.started_ms = row->started_ms,
		.ended_ms = row->ended_ms,
		.wall_us = row->wall_us,
		.cpu_us = row->cpu_us,
		.peak_bytes = row->peak_bytes,
		.output_begin = row->output_start,
		.output_end = row->output_bytes,
	};
	if (execution_row_is_sound(row))
		return;
	ret->kind = EXECUTION_COMMAND;
	ret->state = EXECUTION_FAILED;
	ret->exit_code = -1;
	ret->signal = 0;
	ret->reason = "its record is damaged";
}

const char *exec_status(const struct exec_info *info)
{
	static const char *const names[EXECUTION_STATE_COUNT] = {
		[EXECUTION_RUNNING] = "running",
		[EXECUTION_EXITED] = "completed",
		[EXECUTION_FAILED] = "failed",
		[EXECUTION_INTERRUPTED] = "interrupted",
	};

	if (info->state == EXECUTION_EXITED && info->flags & EXECUTION_TIMED_OUT)
		return "timeout";
	if (info->state == EXECUTION_EXITED && info->flags & EXECUTION_CANCELLED)
		return "cancelled";
	return names[info->state];
}
