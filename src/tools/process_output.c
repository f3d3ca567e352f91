/* process_output: what a process has written, page by page. */
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/utf8.h"
#include "config/config.h"
#include "sandbox/exec.h"
#include "sandbox/output.h"
#include "tools/impl.h"
#include "tools/process.h"
#include "json/jw.h"

#define WAIT_MAX_MS 60000u

struct output_args {
	const char *process_id;
	uint64_t position, wait_ms;
};

struct look { /* arena */
	struct tool_call *call;
	struct execution *x;        /* held; NULL */
	struct exec_reader *reader; /* owned */
	struct loop_timer *timer;   /* owned */
};

struct page {
	struct buf text[2]; /* owned */
	uint64_t at, omitted;
	bool has_more;
};

static void page_done(struct page *p)
{
	buf_done(&p->text[0]);
	buf_done(&p->text[1]);
}

/* Without a character at the end that is not whole; one that is nothing else is taken as it is, so
 * that whoever reads on gets on. */
static size_t whole(const char *data, size_t n, bool may_be_none)
{
	bool is_cut = false;
	size_t prefix = utf8_prefix(data, n, &is_cut);

	return is_cut && (prefix > 0 || may_be_none) && n - prefix < 4 ? prefix : n;
}

static int fill(struct page *p, const struct output *o, size_t most, bool is_running)
{
	struct output_chunk c;
	uint64_t omitted;

	while (o && output_read(o, p->at, &c, &omitted)) {
		size_t room = most - p->text[0].len - p->text[1].len;
		bool is_cut = c.len > room;
		bool is_open = is_running && c.seq + c.len >= output_end(o);
		size_t n = is_cut ? room : c.len;
		int r;

		if (is_cut || is_open)
			n = whole(c.data, n, room < most);
		r = buf_append(&p->text[c.stream == 2], c.data, n);
		if (r < 0)
			return r;
		p->omitted += omitted;
		p->at = c.seq + n;
		p->has_more = is_cut;
		if (is_cut || n < c.len) /* the rest is the next page's, or yet to come */
			break;
	}
	return 0;
}

static void tell_output(struct tool_call *t, const struct exec_info *info, const struct output *o)
{
	const struct output_args *a = t->args;
	_cleanup_(page_done) struct page p = { .at = a->position };
	struct jw w = jw_begin(&t->structured);

	if (p.at > info->output_end)
		p.at = info->output_end;
	if (fill(&p, o, t->all->deps.config->mcp_output_bytes, info->state == EXECUTION_RUNNING) <
	    0)
		w.failed = -ENOMEM;
	jw_object_begin(&w);
	process_write(&w, info);
	for (int i = 0; i < 2; i++) {
		jw_key(&w, i == 0 ? "stdout" : "stderr");
		jw_string_n(&w, buf_str(&p.text[i]), p.text[i].len);
	}
	jw_uint_field(&w, "position", p.at);
	jw_bool_field(&w, "has_more", p.has_more);
	jw_uint_field(&w, "omitted_bytes", p.omitted);
	jw_object_end(&w);
	tool_end(t, &w);
}

static void look_done(struct look *l)
{
	l->timer = loop_timer_free(l->timer);
	exec_reader_close(TAKE(l->reader));
	if (l->x)
		exec_unref(TAKE(l->x));
}

static void cancel_look(struct tool_call *t)
{
	look_done(t->work);
	tool_cancel_soon(t);
}

static void looked(void *user)
{
	struct look *l = user;
	struct tool_call *t = l->call;
	struct execution *x = exec_ref(l->x);
	struct exec_info info;

	look_done(l);
	exec_info(x, &info);
	tell_output(t, &info, exec_output(x));
	exec_unref(x);
}

/* It may be that there is something: one that is just starting has nothing yet. */
static void may_look(void *user)
{
	struct look *l = user;
	const struct output_args *a = l->call->args;
	struct exec_info info;

	exec_info(l->x, &info);
	if (info.state != EXECUTION_RUNNING || info.output_end > a->position)
		looked(l);
}

/* Until something is there, the time is over or it has ended. */
static void wait_for(struct tool_call *t, struct execution *x)
{
	const struct output_args *a = t->args;
	struct look *l = arena_alloc(t->arena, sizeof(*l));
	struct loop *loop = t->all->deps.loop;

	if (!l)
		return tool_fail(t, "out of memory");
	l->call = t;
	l->x = exec_ref(x);
	l->reader = exec_reader_open(x, a->position, may_look, l);
	if (!l->reader || loop_timer_create(loop, looked, l, &l->timer) < 0) {
		look_done(l);
		return tool_fail(t, "too many wait for this process");
	}
	loop_timer_start(l->timer, a->wait_ms, 0);
	t->work = l;
	t->cancel = cancel_look;
}

static void got_output(void *user, const struct exec_info *info, const struct output *o,
		       const struct err *err)
{
	struct tool_call *t = user;
	const struct output_args *a = t->args;

	if (err && err->code == ENOENT)
		return tool_fail(t, "there is no process '%.32s'", a->process_id);
	if (err)
		return tool_fail_err(t, err);
	tell_output(t, info, o);
}

static void run_output(struct tool_call *t)
{
	const struct output_args *a = t->args;
	struct sandbox *sb = tool_box(t);
	struct execution *x = sb ? exec_find(sb, a->process_id) : NULL;
	struct exec_info info;

	if (!sb)
		return;
	if (!x)
		return exec_get(t->all->deps.sandboxes, t->box_id, tool_owner(t), a->process_id,
				got_output, t);
	exec_info(x, &info);
	if (info.state == EXECUTION_RUNNING && info.output_end <= a->position && a->wait_ms > 0)
		return wait_for(t, x);
	tell_output(t, &info, exec_output(x));
}

static const struct jv_field output_in[] = {
	PROCESS_ID(output_args),
	JV_FIELD("position", U64, struct output_args, position,
		 .help = "where to begin: what the call before gave back; 0 unless given"),
	JV_FIELD("wait_ms", U64, struct output_args, wait_ms, .min = 0, .max = WAIT_MAX_MS,
		 .help = "milliseconds to wait for output when there is none yet"),
};

static const struct jv_field output_out[] = {
	PROCESS_STATE,
	{ .name = "stdout", .type = JV_TYPE_STRING, .flags = JV_REQUIRED },
	{ .name = "stderr", .type = JV_TYPE_STRING, .flags = JV_REQUIRED },
	{ .name = "position",
	  .type = JV_TYPE_U64,
	  .flags = JV_REQUIRED,
	  .help = "where the next call goes on" },
	{ .name = "has_more", .type = JV_TYPE_BOOL, .flags = JV_REQUIRED },
	{ .name = "omitted_bytes",
	  .type = JV_TYPE_U64,
	  .flags = JV_REQUIRED,
	  .help = "were not kept, before this" },
};

static const struct tool rows[] = {
	{ .name = "process_output",
	  .title = "Output of a process",
	  .about = "What a process has written from a position on, and whether it still runs.",
	  TOOL_IN(output_in, output_args),
	  TOOL_OUT(output_out),
	  .hints = TOOL_READ_ONLY | TOOL_IDEMPOTENT,
	  .flags = TOOL_IN_BOX,
	  .scopes = SCOPE_EXEC,
	  .run = run_output },
};
const struct tool_table tools_output_table = { rows, TOOL_ARRAY_LEN(rows) };
