#include "tools/plain_text.h"

#include <inttypes.h>

#include "base/buf.h"
#include "json/jw.h"

/* ---- any object: a member a line ---- */

static void put_line_end(struct buf *b)
{
	if (b->len > 0 && b->data[b->len - 1] != '\n')
		(void)buf_putc(b, '\n');
}

static void put_value(struct jv v, struct buf *b)
{
	struct str text;
	struct jw w;

	if (jv_str(v, &text) == 0) {
		(void)buf_append(b, text.data, text.len);
		return;
	}
	w = jw_begin(b);
	jw_value(&w, v);
	if (jw_end(&w) < 0)
		b->failed = true;
}

/* "path: a.txt, line: 3" */
static void put_item(struct jv v, struct buf *b)
{
	bool is_first = true;

	if (jv_kind(v) != JV_OBJECT)
		return put_value(v, b);
	JV_FOREACH (v, it) {
		if (jv_kind(it.value) == JV_NULL)
			continue;
		(void)buf_printf(b, "%s%.*s: ", is_first ? "" : ", ", (int)it.key.len, it.key.data);
		put_value(it.value, b);
		is_first = false;
	}
}

static void put_list(struct str key, struct jv list, struct buf *b)
{
	(void)buf_printf(b, "%.*s:%s", (int)key.len, key.data, jv_len(list) ? "" : " none");
	put_line_end(b);
	JV_FOREACH (list, it) {
		(void)buf_puts(b, "- ");
		put_item(it.value, b);
		put_line_end(b);
	}
}

static void put_members(struct jv object, struct buf *b)
{
	JV_FOREACH (object, it) {
		enum jv_kind kind = jv_kind(it.value);

		put_line_end(b);
		if (kind == JV_NULL)
			continue;
		if (kind == JV_ARRAY) {
			put_list(it.key, it.value, b);
			continue;
		}
		(void)buf_printf(b, "%.*s: ", (int)it.key.len, it.key.data);
		if (kind == JV_OBJECT)
			put_item(it.value, b);
		else
			put_value(it.value, b);
	}
}

/* ---- what a program did: as a terminal shows it ---- */

static void put_error(struct jv error, struct buf *b)
{
	struct jv trace = jv_get(error, "traceback");

	if (jv_kind(error) != JV_OBJECT)
		return;
	put_line_end(b);
	if (jv_kind(trace) == JV_ARRAY) {
		JV_FOREACH (trace, it) {
			put_value(it.value, b);
			put_line_end(b);
		}
	} else if (jv_len(trace) > 0) {
		put_value(trace, b);
	} else {
		put_value(jv_get(error, "name"), b);
		(void)buf_puts(b, ": ");
		put_value(jv_get(error, "value"), b);
	}
}

static void put_output(struct jv o, struct buf *b)
{
	put_value(jv_get(o, "stdout"), b);
	if (jv_len(jv_get(o, "stderr")) > 0) {
		put_line_end(b);
		(void)buf_puts(b, "[stderr]\n");
		put_value(jv_get(o, "stderr"), b);
	}
	JV_FOREACH (jv_get(o, "results"), it) {
		put_line_end(b);
		if (jv_kind(jv_get(it.value, "text")) == JV_STRING)
			put_value(jv_get(it.value, "text"), b);
	}
	put_error(jv_get(o, "error"), b);
}

static void put_end(struct jv o, struct buf *b)
{
	int64_t code = 0;
	bool is_known = jv_i64(jv_get(o, "exit_code"), &code) == 0;

	put_line_end(b);
	if (!is_known)
		(void)buf_puts(b, "[the exit code is not known]\n");
	else if (code != 0 || b->len == 0)
		(void)buf_printf(b, "[exit code %" PRId64 "%s]\n", code,
				 b->len == 0 ? ", no output" : "");
	if (jv_len(jv_get(o, "output_file")) > 0) {
		(void)buf_puts(b, "[all of the output is in ");
		put_value(jv_get(o, "output_file"), b);
		(void)buf_puts(b, "]\n");
	}
	JV_FOREACH (jv_get(o, "notes"), it) {
		(void)buf_puts(b, "[");
		put_value(it.value, b);
		(void)buf_puts(b, "]\n");
	}
}

void plain_text(struct jv object, struct buf *ret)
{
	bool is_run = jv_kind(jv_get(object, "stdout")) == JV_STRING &&
		      jv_kind(jv_get(object, "exit_code")) != JV_ABSENT;

	if (!is_run)
		return put_members(object, ret);
	put_output(object, ret);
	put_end(object, ret);
}
