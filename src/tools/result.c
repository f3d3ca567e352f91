#include "tools/result.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/signals.h"
#include "base/utf8.h"
#include "config/config.h"
#include "sandbox/exec.h"
#include "sandbox/files.h"
#include "sandbox/output.h"
#include "tools/impl.h"

#define PLACE TOOL_HOME "/.holt/output"

#define FIELD(name_, type_, ...)                                                 \
	{                                                                        \
		.name = name_, .type = JV_TYPE_##type_, .offset = 0, __VA_ARGS__ \
	}
const struct jv_field result_fields[RESULT_FIELDS] = {
	FIELD("stdout", STRING, .flags = JV_REQUIRED),
	FIELD("stderr", STRING, .flags = JV_REQUIRED),
	FIELD("exit_code", I64, .flags = JV_REQUIRED | JV_NULLABLE,
	      .help = "null when nobody knows it"),
	FIELD("timed_out", BOOL, .flags = JV_REQUIRED),
	FIELD("truncated", BOOL, .flags = JV_REQUIRED,
	      .help = "stdout or stderr is not all there was: see output_file and notes"),
	FIELD("duration_ms", DOUBLE, .flags = JV_REQUIRED),
	FIELD("sandbox_id", STRING, .flags = JV_REQUIRED),
	FIELD("execution_id", STRING),
	FIELD("output_file", STRING,
	      .help = "file in the sandbox with the output that was left out"),
	FIELD("notes", STRINGS, .flags = JV_REQUIRED, .help = "what else happened"),
};

struct result *result_begin(struct tool_call *t)
{
	struct result *r = arena_alloc(t->arena, sizeof(*r));

	if (!r) {
		tool_fail(t, "out of memory");
		return NULL;
	}
	r->call = t;
	r->file.data.max = OUTPUT_KEEP_MAX;
	r->w = jw_begin(&t->structured);
	jw_object_begin(&r->w);
	return r;
}

void result_note(struct result *r, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap); /* a long one is cut */
	va_end(ap);
	if (r->n_notes == RESULT_NOTES_MAX)
		return;
	r->notes[r->n_notes] = arena_strndup(r->call->arena, text, strlen(text));
	r->n_notes += r->notes[r->n_notes] != NULL;
}

/* ---- texts ---- */

/* Not in the middle of a character. */
static size_t head_len(const char *data, size_t n)
{
	while (n > 0 && ((unsigned char)data[n] & 0xc0) == 0x80)
		n--;
	return n;
}

static size_t tail_at(const char *data, size_t at, size_t n)
{
	while (at < n && ((unsigned char)data[at] & 0xc0) == 0x80)
		at++;
	return at;
}

static int cut(struct buf *b, const char *data, size_t n, size_t most)
{
	size_t head = head_len(data, most / 2), tail = tail_at(data, n - most / 2, n);

	(void)buf_append(b, data, head);
	(void)buf_printf(b, "\n[... %zu bytes left out ...]\n", tail - head);
	return buf_append(b, data + tail, n - tail);
}

void result_text(struct result *r, const char *key, const char *data, size_t n)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	size_t most = r->call->all->deps.config->mcp_output_bytes;

	if (!utf8_is_valid(data, n))
		result_note(r, "%s is not UTF-8: what is none was replaced", key);
	jw_key(&r->w, key);
	if (n <= most)
		return jw_string_n(&r->w, data, n);
	r->is_cut = true;
	if (cut(&b, data, n, most) < 0)
		r->w.failed = -ENOMEM;
	jw_string_n(&r->w, buf_str(&b), b.len);
}

/* ---- the end ---- */

static void note_box(struct result *r)
{
	struct tool_call *t = r->call;

	if (t->is_new_box && t->lost_box)
		result_note(r,
			    "the sandbox you had before, %s, has ended: this is a new one, and "
			    "what was in the other is gone",
			    t->lost_box);
	else if (t->is_new_box)
		result_note(r, "a new sandbox was made for this");
	if (t->is_cold)
		result_note(r, "it was started cold: none was waiting");
}

static void finish(struct result *r)
{
	struct tool_call *t = r->call;

	note_box(r);
	if (r->file.path)
		jw_str_field(&r->w, "output_file", r->file.path);
	jw_key(&r->w, "notes");
	jw_array_begin(&r->w);
	for (size_t i = 0; i < r->n_notes; i++)
		jw_string(&r->w, r->notes[i]);
	jw_array_end(&r->w);
	jw_object_end(&r->w);
	buf_done(&r->file.data);
	t->leave = NULL;
	tool_end(t, &r->w);
}

/* ---- the rest in a file ---- */

static void drop(struct tool_call *t)
{
	file_work_end(t->work);
}

static void spilt(void *user, uint64_t count)
{
	struct result *r = user;

	(void)count;
	r->file.op = NULL;
	finish(r);
}

static void not_spilt(void *user, const struct err *err)
{
	struct result *r = user;

	r->file.op = NULL;
	r->file.path = NULL;
	result_note(r, "what was left out could not be kept in a file: %s", err->text);
	finish(r);
}

static int spill(struct result *r, struct err *err)
{
	static const struct file_ops ops = {
		.room = file_work_room,
		.done = spilt,
		.failed = not_spilt,
	};
	struct guest_file f = { .op = FILE_WRITE, .flags = FILE_PARENTS };
	int e;

	r->file.call = r->call;
	r->file.path = arena_printf(r->call->arena, PLACE "/%s.log", r->name);
	if (!r->file.path)
		return err_set(err, ENOMEM, "out of memory");
	e = file_work_try(&r->file, &f, &ops, err);
	if (e < 0)
		return e;
	r->call->leave = drop;
	file_work_room(&r->file);
	return 0;
}

void result_end(struct result *r)
{
	struct err err = { 0 };

	if (!r->is_cut || r->file.data.len == 0)
		return finish(r);
	if (spill(r, &err) == 0)
		return;
	r->file.path = NULL;
	result_note(r, "what was left out could not be kept in a file: %s", err.text);
	finish(r);
}

/* ---- of executions ---- */

static void stream(struct result *r, const char *key, const struct output *output, int n)
{
	_cleanup_(buf_done) struct buf b = { .max = OUTPUT_KEEP_MAX };

	if (output && output_collect(output, n, &b) < 0)
		r->w.failed = -ENOMEM;
	result_text(r, key, buf_str(&b), b.len);
}

static void keep_rest(struct result *r, const struct output *output)
{
	struct output_chunk chunk;
	uint64_t at = 0, omitted;

	while (output && output_read(output, at, &chunk, &omitted)) {
		(void)buf_append(&r->file.data, chunk.data, chunk.len);
		at = chunk.seq + chunk.len;
	}
}

static void note_end(struct result *r, const struct exec_info *info)
{
	const char *name = signal_name(info->signal);

	if (info->flags & EXECUTION_TIMED_OUT)
		result_note(r,
			    "timed out after %" PRIu64 " ms: it was ended, with all that it "
			    "had started",
			    info->wall_us / 1000);
	if (info->flags & EXECUTION_CANCELLED)
		result_note(r, "cancelled: it was ended, with all that it had started");
	if (info->flags & EXECUTION_OOM_KILLED)
		result_note(r, "the sandbox's memory was used up, and the kernel killed for it");
	if (info->signal && !(info->flags & (EXECUTION_TIMED_OUT | EXECUTION_CANCELLED)))
		result_note(r, "ended by signal %d%s%s", info->signal, name ? " " : "",
			    name ? name : "");
	if (info->flags & EXECUTION_LEFTOVERS)
		result_note(r, "processes that it started are still running");
	if (info->state == EXECUTION_FAILED)
		result_note(r, "it could not be started: %s", info->reason);
	if (info->state == EXECUTION_INTERRUPTED)
		result_note(r, "it was interrupted: %s", info->reason);
	if (info->output_begin > 0)
		result_note(r, "the first %" PRIu64 " bytes of its output were not kept",
			    info->output_begin);
}

void result_tell(struct tool_call *t, const struct exec_info *info, const struct output *output)
{
	struct result *r = result_begin(t);
	bool is_known = info->state == EXECUTION_EXITED;

	if (!r)
		return;
	if (!is_known && info->state != EXECUTION_RUNNING)
		t->outcome = TOOL_FAILED;
	r->name = arena_strndup(t->arena, info->id, strlen(info->id));
	stream(r, "stdout", output, 1);
	stream(r, "stderr", output, 2);
	if (is_known) /* as a shell says it */
		jw_int_field(&r->w, "exit_code",
			     info->signal ? 128 + info->signal : info->exit_code);
	else
		jw_null_field(&r->w, "exit_code");
	jw_bool_field(&r->w, "timed_out", info->flags & EXECUTION_TIMED_OUT);
	jw_bool_field(&r->w, "truncated", r->is_cut || info->output_begin > 0);
	jw_double_field(&r->w, "duration_ms", (double)info->wall_us / 1e3);
	jw_str_field(&r->w, "sandbox_id", info->sandbox_id);
	jw_str_field(&r->w, "execution_id", info->id);
	note_end(r, info);
	if (r->is_cut)
		keep_rest(r, output);
	if (!r->name)
		r->w.failed = -ENOMEM;
	result_end(r);
}
