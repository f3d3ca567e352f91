/* run_code: code by itself (an execution), or in a context that keeps its state, which then tells
 * values and pictures, too. */
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/id.h"
#include "base/str.h"
#include "sandbox/context.h"
#include "sandbox/exec.h"
#include "tools/impl.h"
#include "tools/result.h"
#include "tools/running.h"

#define ONE_SHOT_MAX (48u << 10) /* what goes to a box in one piece */
#define TEXT_SHOWN (8u << 10)    /* bytes of a value's text */
#define VALUES_MAX 64u           /* that are told of one run */

struct args {
	const char *language, *code, *context_id;
	uint64_t timeout_ms;
};

struct cell { /* arena: code in a context */
	struct tool_call *call;
	struct cell_wish wish;
	struct context_run *run; /* borrowed; NULL: has not begun, or has ended */
	struct buf out[2];       /* owned */
	struct buf values;       /* owned: members of a JSON list */
	struct buf error;        /* owned: JSON; the first counts */
	size_t n_values;
	bool has_failed; /* out of memory on the way */
	char context_id[ID_LEN + 1], execution_id[ID_LEN + 1];
};

/* ---- a context ---- */

static void cell_done(struct cell *c)
{
	buf_done(&c->out[0]);
	buf_done(&c->out[1]);
	buf_done(&c->values);
	buf_done(&c->error);
}

static void cancel_cell(struct tool_call *t)
{
	struct cell *c = t->work;

	if (c->run)
		context_run_leave(TAKE(c->run), true);
	cell_done(c);
	tool_cancel_soon(t);
}

static void add_picture(struct tool_call *t, struct jv value, const char *key, const char *type)
{
	struct str data;

	if (jv_str(jv_get(value, key), &data) < 0)
		return;
	/* Pictures come in lines sometimes; blocks want plain base64. */
	while (data.len > 0 && data.data[data.len - 1] == '\n')
		data.len--;
	tool_image(t, type, data.data, data.len);
}

/* What a value is, as text; pictures are blocks of their own. */
static int add_value(struct cell *c, bool is_main, const char *json, size_t n)
{
	static const char *const forms[] = { "text", "markdown", "html", "latex", "json" };
	struct jv_doc *doc = NULL;
	struct jw w;
	struct jv v;
	int r = jv_parse(json, n, n, &doc, NULL);

	if (r < 0)
		return r == -ENOMEM ? r : 0; /* too deep for us: the code's own choice */
	v = jv_root(doc);
	if (c->n_values > 0)
		(void)buf_putc(&c->values, ',');
	w = jw_begin(&c->values);
	jw_object_begin(&w);
	jw_bool_field(&w, "is_main", is_main);
	for (size_t i = 0; i < TOOL_ARRAY_LEN(forms); i++) {
		struct str text;

		if (jv_str(jv_get(v, forms[i]), &text) < 0)
			continue;
		jw_key(&w, "text");
		jw_string_n(&w, text.data, text.len < TEXT_SHOWN ? text.len : TEXT_SHOWN);
		break;
	}
	jw_object_end(&w);
	add_picture(c->call, v, "png", "image/png");
	add_picture(c->call, v, "jpeg", "image/jpeg");
	jv_free(doc);
	c->n_values++;
	return jw_end(&w);
}

static int gather(struct cell *c, const struct context_event *e)
{
	switch (e->type) {
	case CONTEXT_STDOUT:
	case CONTEXT_STDERR:
		return buf_append(&c->out[e->type == CONTEXT_STDERR], e->data, e->len);
	case CONTEXT_RESULT:
	case CONTEXT_DISPLAY:
		if (c->n_values == VALUES_MAX)
			return 0;
		return add_value(c, e->type == CONTEXT_RESULT, e->data, e->len);
	case CONTEXT_ERROR:
		return c->error.len > 0 ? 0 : buf_append(&c->error, e->data, e->len);
	case CONTEXT_END:
		return 0;
	}
	return 0;
}

static void note_cell(struct result *r, const struct context_end *end)
{
	if (end->status == CONTEXT_TIMED_OUT)
		result_note(r, "timed out, and was interrupted");
	if (end->status == CONTEXT_INTERRUPTED)
		result_note(r, "it was interrupted");
	if (end->status == CONTEXT_LOST)
		result_note(r, "the interpreter has ended: %s", end->reason);
	if (end->state_lost)
		result_note(r, "the interpreter began anew: variables and imports are gone");
	if (end->truncated)
		result_note(r, "there was more output, or more values, than is kept");
}

static void write_cell(struct cell *c, struct result *r, const struct context_end *end)
{
	int64_t code = end->exit_code >= 0 ? end->exit_code : end->status != CONTEXT_OK;

	result_text(r, "stdout", buf_str(&c->out[0]), c->out[0].len);
	result_text(r, "stderr", buf_str(&c->out[1]), c->out[1].len);
	if (end->status == CONTEXT_LOST)
		jw_null_field(&r->w, "exit_code");
	else
		jw_int_field(&r->w, "exit_code", code);
	jw_bool_field(&r->w, "timed_out", end->status == CONTEXT_TIMED_OUT);
	jw_bool_field(&r->w, "truncated", r->is_cut || end->truncated);
	jw_double_field(&r->w, "duration_ms", (double)end->wall_us / 1e3);
	jw_str_field(&r->w, "sandbox_id", c->call->box_id);
	jw_str_field(&r->w, "execution_id", c->execution_id);
	jw_str_field(&r->w, "context_id", c->context_id);
	jw_key(&r->w, "results");
	jw_array_begin(&r->w);
	if (c->values.len > 0)
		jw_raw(&r->w, c->values.data, c->values.len);
	jw_array_end(&r->w);
	if (c->error.len > 0)
		jw_raw_field(&r->w, "error", c->error.data, c->error.len);
}

static void end_cell(struct cell *c, const struct context_end *end)
{
	struct tool_call *t = c->call;
	struct result *r;

	t->cancel = NULL;
	if (c->has_failed) {
		cell_done(c);
		return tool_fail(t, "out of memory");
	}
	r = result_begin(t);
	if (!r)
		return cell_done(c);
	write_cell(c, r, end);
	note_cell(r, end);
	if (r->is_cut) {
		r->name = arena_printf(t->arena, "%s-%llu", c->context_id,
				       (unsigned long long)end->count);
		(void)buf_append(&r->file.data, buf_str(&c->out[0]), c->out[0].len);
		(void)buf_append(&r->file.data, buf_str(&c->out[1]), c->out[1].len);
	}
	if (end->status == CONTEXT_LOST)
		t->outcome = TOOL_FAILED;
	cell_done(c);
	if (r->is_cut && !r->name)
		r->w.failed = -ENOMEM;
	result_end(r);
}

static void on_event(void *user, const struct context_event *e)
{
	struct cell *c = user;

	if (gather(c, e) < 0)
		c->has_failed = true;
	if (e->type != CONTEXT_END)
		return;
	c->run = NULL;
	end_cell(c, e->end);
}

static void run_in(struct cell *c, struct context *ctx)
{
	struct tool_call *t = c->call;
	struct context_code code = {
		.code = c->wish.code,
		.len = strlen(c->wish.code),
		.env = c->wish.env,
		.n_env = c->wish.n_env,
		.timeout_ms = c->wish.timeout_ms,
	};
	struct context_info info;
	struct err err = { 0 };

	context_info(ctx, &info);
	(void)str_copy(c->context_id, sizeof(c->context_id), info.id);
	(void)str_copy(c->execution_id, sizeof(c->execution_id), info.execution_id);
	if (context_run(ctx, &code, on_event, c, &c->run, &err) < 0)
		return tool_fail_err(t, &err);
	t->work = c;
	t->cancel = cancel_cell;
}

static void made(void *user, struct context *ctx, const struct err *err)
{
	struct cell *c = user;

	if (c->call->is_cancelled)
		return tool_fail(c->call, "cancelled");
	if (err)
		return tool_fail_err(c->call, err);
	run_in(c, ctx);
}

/* A name that is not there yet makes a context; an id that is not there is a mistake. */
void cell_start(struct tool_call *t, struct sandbox *sb, const struct cell_wish *a)
{
	struct context *ctx = context_find(sb, a->context_id);
	struct cell *c = arena_alloc(t->arena, sizeof(*c));
	struct context_request req = { .name = a->context_id, .cwd = "" };
	struct context_info info;

	if (!c)
		return tool_fail(t, "out of memory");
	c->call = t;
	c->wish = *a;
	c->values.max = CONTEXT_RESULTS_MAX;
	if (context_language_from(a->language, &req.language) < 0)
		return tool_fail(t, "language: contexts do not have '%.32s'", a->language);
	if (!ctx && id_is_valid(a->context_id))
		return tool_fail(t, "there is no context '%s'", a->context_id);
	if (!ctx)
		return context_create(sb, &req, made, c);
	context_info(ctx, &info);
	if (info.language != req.language)
		return tool_fail(t, "'%.64s' is a context of %s, not of %s: use another name",
				 a->context_id, context_language_name(info.language),
				 context_language_name(req.language));
	run_in(c, ctx);
}

/* ---- the tool ---- */

static void run_code(struct tool_call *t)
{
	const struct args *a = t->args;
	struct sandbox *sb;

	sb = tool_box(t);
	if (!sb)
		return;
	if (a->context_id)
		return cell_start(t, sb,
				  &(struct cell_wish){ .language = a->language,
						       .code = a->code,
						       .context_id = a->context_id,
						       .timeout_ms = a->timeout_ms });
	if (strlen(a->code) > ONE_SHOT_MAX)
		return tool_fail(t,
				 "code: want at most %u bytes, or a context_id; or write it to a "
				 "file and run that",
				 ONE_SHOT_MAX);
	running_start(t, sb,
		      &(struct exec_request){ .kind = EXECUTION_CODE,
					      .language = a->language,
					      .code = a->code,
					      .cwd = "",
					      .user = "",
					      .timeout_ms = a->timeout_ms });
}

static const struct jv_field in[] = {
	JV_FIELD("language", STRING, struct args, language, .min = 1, .max = 32,
		 .help = "python, javascript or bash; with a context_id also typescript, r and "
			 "java, where the sandbox has them"),
	JV_FIELD("code", STRING, struct args, code, .flags = JV_REQUIRED, .min = 1,
		 .max = CONTEXT_CODE_MAX, .help = "the code to run"),
	JV_FIELD("context_id", STRING, struct args, context_id, .min = 1, .max = CONTEXT_NAME_MAX,
		 .help = "a name of your choice: code with the same one shares variables and "
			 "imports, and the value of the last expression and pictures come back"),
	JV_FIELD("timeout_ms", U64, struct args, timeout_ms, .min = 1,
		 .help = "milliseconds after which the code is ended"),
};

static void set_bounds(const struct tools *all, struct jv_field *fields, void *args)
{
	tools_bound_timeout(all, fields, &((struct args *)args)->timeout_ms);
}

static const struct jv_field values[] = {
	{ .name = "is_main", .type = JV_TYPE_BOOL, .help = "of the last expression" },
	{ .name = "text", .type = JV_TYPE_STRING },
};
static const struct jv_field errors[] = {
	{ .name = "name", .type = JV_TYPE_STRING },
	{ .name = "value", .type = JV_TYPE_STRING },
	{ .name = "traceback", .type = JV_TYPE_VALUE },
};
/* Those of an execution, and: */
static const struct jv_field out[] = {
	{ .name = "stdout", .type = JV_TYPE_STRING, .flags = JV_REQUIRED },
	{ .name = "stderr", .type = JV_TYPE_STRING, .flags = JV_REQUIRED },
	{ .name = "exit_code", .type = JV_TYPE_I64, .flags = JV_REQUIRED | JV_NULLABLE },
	{ .name = "timed_out", .type = JV_TYPE_BOOL, .flags = JV_REQUIRED },
	{ .name = "truncated", .type = JV_TYPE_BOOL, .flags = JV_REQUIRED },
	{ .name = "duration_ms", .type = JV_TYPE_DOUBLE, .flags = JV_REQUIRED },
	{ .name = "sandbox_id", .type = JV_TYPE_STRING, .flags = JV_REQUIRED },
	{ .name = "execution_id", .type = JV_TYPE_STRING },
	{ .name = "context_id", .type = JV_TYPE_STRING },
	{ .name = "results",
	  .type = JV_TYPE_OBJECTS,
	  .sub = values,
	  .sub_count = TOOL_ARRAY_LEN(values),
	  .help = "values that a context told; pictures are blocks" },
	{ .name = "error",
	  .type = JV_TYPE_OBJECT,
	  .sub = errors,
	  .sub_count = TOOL_ARRAY_LEN(errors),
	  .help = "what the code raised, in a context" },
	{ .name = "output_file", .type = JV_TYPE_STRING },
	{ .name = "notes", .type = JV_TYPE_STRINGS, .flags = JV_REQUIRED },
};

static const struct args defaults = { .language = "python" };

static const struct tool rows[] = {
	{ .name = "run_code",
	  .title = "Run code",
	  .about = "Runs code in the sandbox and waits until it ends. Without a context_id it runs "
		   "in a new interpreter. With one, variables and imports stay from call to call, "
		   "as in a notebook, and the value of the last expression and pictures are "
		   "returned.",
	  .set_bounds = set_bounds,
	  .in = in,
	  .n_in = TOOL_ARRAY_LEN(in),
	  .size = sizeof(struct args),
	  .defaults = &defaults,
	  .out = out,
	  .n_out = TOOL_ARRAY_LEN(out),
	  .hints = TOOL_DESTRUCTIVE,
	  .flags = TOOL_IN_BOX | TOOL_LONG,
	  .scopes = SCOPE_EXEC,
	  .run = run_code },
};
const struct tool_table tools_code_table = { rows, TOOL_ARRAY_LEN(rows) };
