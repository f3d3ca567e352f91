#include "api/execution_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/encode.h"
#include "base/signals.h"
#include "sandbox/exec.h"
#include "sandbox/output.h"
#include "json/jw.h"

int encoding_from(const char *name, enum encoding *ret)
{
	if (strcmp(name, "text") == 0)
		*ret = ENCODING_TEXT;
	else if (strcmp(name, "base64") == 0)
		*ret = ENCODING_BASE64;
	else
		return -EINVAL;
	return 0;
}

void encoding_json(struct jw *w, enum encoding e, const char *data, size_t n)
{
	_free_ char *text = NULL;

	if (e == ENCODING_TEXT)
		return jw_string_n(w, n ? data : "", n);
	text = malloc(BASE64_SIZE(n));
	if (!text) {
		w->failed = -ENOMEM;
		return;
	}
	jw_string_n(w, text, encode_base64(data, n, text));
}

const char *stream_name(int stream)
{
	return stream == 2 ? "stderr" : "stdout";
}

/* As a shell says it: 128 and the signal for what was ended by one. */
void execution_json_exit(struct jw *w, const struct exec_info *info)
{
	const char *name = signal_name(info->signal);

	if (info->state != EXECUTION_EXITED)
		jw_null_field(w, "exitCode");
	else
		jw_int_field(w, "exitCode", info->signal ? 128 + info->signal : info->exit_code);
	if (info->signal && !name)
		jw_int_field(w, "signal", info->signal);
	else
		jw_str_field(w, "signal", info->signal ? name : NULL);
}

void execution_json_fields(struct jw *w, const struct exec_info *info)
{
	jw_str_field(w, "executionId", info->id);
	execution_json_result(w, info);
}

void execution_json_result(struct jw *w, const struct exec_info *info)
{
	static const char *const kinds[EXECUTION_KIND_COUNT] = { "command", "code", "pty",
								 "context" };

	jw_str_field(w, "sandboxId", info->sandbox_id);
	jw_str_field(w, "kind", kinds[info->kind]);
	jw_str_field(w, "status", exec_status(info));
	jw_str_field(w, "reason", info->reason && info->reason[0] ? info->reason : NULL);
	jw_iso_field(w, "startedAt", info->started_ms);
	jw_iso_field(w, "completedAt", info->ended_ms);
	execution_json_exit(w, info);
	jw_bool_field(w, "timedOut", info->flags & EXECUTION_TIMED_OUT);
	jw_bool_field(w, "truncated", info->flags & EXECUTION_TRUNCATED);
	jw_bool_field(w, "oomKilled", info->flags & EXECUTION_OOM_KILLED);
	jw_bool_field(w, "cancelled", info->flags & EXECUTION_CANCELLED);
	jw_bool_field(w, "leftovers", info->flags & EXECUTION_LEFTOVERS);
	jw_bool_field(w, "warm", info->flags & EXECUTION_WARM);
	jw_bool_field(w, "background", info->flags & EXECUTION_BACKGROUND);
	jw_double_field(w, "durationMs", (double)info->wall_us / 1e3);
	jw_double_field(w, "cpuMs", (double)info->cpu_us / 1e3);
	jw_uint_field(w, "peakMemoryBytes", info->peak_bytes);
	jw_uint_field(w, "outputBytes", info->output_end);
	jw_uint_field(w, "omittedBytes", info->output_begin);
}

static void write_stream(struct jw *w, int stream, const struct output *output, enum encoding e)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	int r;

	buf_init(&b, OUTPUT_KEEP_MAX);
	r = output ? output_collect(output, stream, &b) : 0;
	if (r < 0 && w->failed == 0)
		w->failed = r;
	jw_key(w, stream_name(stream));
	encoding_json(w, e, buf_str(&b), b.len);
}

void execution_json(struct jw *w, const struct exec_info *info, const struct output *output,
		    enum encoding e)
{
	jw_object_begin(w);
	execution_json_fields(w, info);
	write_stream(w, 1, output, e);
	write_stream(w, 2, output, e);
	jw_object_end(w);
}
