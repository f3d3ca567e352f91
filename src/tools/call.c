/* What tools say: blocks of content, questions, and the end of a call. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "tools/impl.h"
#include "tools/plain_text.h"
#include "json/jw.h"

void tool_done(struct tool_call *t)
{
	t->cancel = NULL;
	t->ops->done(t);
}

void tool_fail(struct tool_call *t, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n < 0)
		n = 0;
	t->outcome = TOOL_FAILED;
	buf_clear(&t->content);
	buf_clear(&t->structured);
	tool_text(t, text, strnlen(text, sizeof(text)));
	tool_done(t);
}

void tool_fail_err(struct tool_call *t, const struct err *err)
{
	tool_fail(t, "%s", err->text[0] ? err->text : strerror(err->code));
}

void tool_block(struct tool_call *t, const char *json)
{
	if (t->content.len > 0)
		(void)buf_putc(&t->content, ',');
	(void)buf_puts(&t->content, json);
}

/* A block is written in place: the comma first. */
static struct jw block_begin(struct tool_call *t, const char *type)
{
	struct jw w;

	if (t->content.len > 0)
		(void)buf_putc(&t->content, ',');
	w = jw_begin(&t->content);
	jw_object_begin(&w);
	jw_str_field(&w, "type", type);
	return w;
}

static void block_end(struct jw *w)
{
	jw_object_end(w);
	(void)jw_end(w);
}

void tool_text(struct tool_call *t, const char *text, size_t n)
{
	struct jw w = block_begin(t, "text");

	jw_key(&w, "text");
	jw_string_n(&w, text, n);
	block_end(&w);
}

void tool_image(struct tool_call *t, const char *type, const char *base64, size_t n)
{
	struct jw w = block_begin(t, "image");

	jw_key(&w, "data");
	jw_string_n(&w, base64, n);
	jw_str_field(&w, "mimeType", type);
	block_end(&w);
}

void tool_link(struct tool_call *t, const char *uri, const char *name, const char *type)
{
	struct jw w = block_begin(t, "resource_link");

	jw_str_field(&w, "uri", uri);
	jw_str_field(&w, "name", name);
	if (type)
		jw_str_field(&w, "mimeType", type);
	block_end(&w);
}

void tool_text_structured(struct tool_call *t)
{
	tool_text(t, buf_str(&t->structured), t->structured.len);
}

/* What is deeper than we read is told as it is. */
static void add_plain_text(struct tool_call *t)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jv_doc *doc = NULL;

	if (jv_parse(t->structured.data, t->structured.len, t->structured.len, &doc, NULL) < 0)
		return tool_text_structured(t);
	plain_text(jv_root(doc), &b);
	(void)jv_free(doc);
	if (b.failed)
		t->content.failed = true;
	else
		tool_text(t, buf_str(&b), b.len);
}

void tool_end(struct tool_call *t, struct jw *w)
{
	int r = jw_end(w);

	if (r < 0)
		return tool_fail(t, "the result could not be written: %s", strerror(-r));
	add_plain_text(t);
	tool_done(t);
}

struct jv tool_answer(const struct tool_call *t, const char *key)
{
	return jv_get(t->answers, key);
}

void tool_ask(struct tool_call *t, const char *key, const char *method, const char *params)
{
	struct tool_ask *a = arena_alloc(t->arena, sizeof(*a));

	if (!a)
		return;
	a->key = arena_strndup(t->arena, key, strlen(key));
	a->method = arena_strndup(t->arena, method, strlen(method));
	a->params = arena_strndup(t->arena, params, strlen(params));
	if (a->key && a->method && a->params)
		list_push_back(&t->asks, &a->node);
}

void tool_asks_end(struct tool_call *t, const char *state)
{
	t->outcome = TOOL_ASKS;
	t->next_state = arena_strndup(t->arena, state, strlen(state));
	if (!t->next_state)
		return tool_fail(t, "out of memory");
	tool_done(t);
}

void tool_progress(struct tool_call *t, double at, double total, const char *text)
{
	if (t->ops->progress)
		t->ops->progress(t, at, total, text);
}

void tool_log(struct tool_call *t, const char *level, const char *json)
{
	if (t->ops->log)
		t->ops->log(t, level, t->tool->name, json);
}

void tool_call_done(struct tool_call *t)
{
	buf_done(&t->content);
	buf_done(&t->structured);
}
