/* Answers to programs in boxes. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "sandbox/grant.h"
#include "tools/bridge_impl.h"
#include "json/jw.h"
#include "json/rpc.h"

long bridge_code(int err, long otherwise)
{
	switch (err) {
	case EPERM:
		return BRIDGE_DENIED;
	case EAGAIN:
		return BRIDGE_BUSY;
	case ETIMEDOUT:
		return BRIDGE_LATE;
	case EPIPE:
		return BRIDGE_LOST;
	default:
		return otherwise;
	}
}

static void write_error(struct jw *w, const char *id, const struct mcpc_outcome *o)
{
	_cleanup_(buf_done) struct buf data = { 0 };
	struct jw d = jw_begin(&data);
	bool has_data = jv_kind(o->data) != JV_ABSENT;

	if (has_data)
		jw_value(&d, o->data);
	rpc_error(w, id, o->rpc_code ? o->rpc_code : bridge_code(o->err.code, RPC_INTERNAL),
		  o->err.text, has_data && jw_end(&d) == 0 ? buf_str(&data) : NULL);
}

static void put_value(struct buf *b, struct jv v)
{
	struct jw w = jw_begin(b);

	jw_value(&w, v);
	(void)jw_end(&w);
}

/* What a person would read: texts as they are, other parts by their kind. */
static void put_part(struct buf *b, struct jv part)
{
	const char *text = jv_text(jv_get(part, "text"));
	const char *type = jv_text(jv_get(part, "type"));
	const char *mime = jv_text(jv_get(part, "mimeType"));
	const char *uri = jv_text(jv_get(part, "uri"));

	if (b->len > 0)
		(void)buf_putc(b, '\n');
	if (text)
		(void)buf_puts(b, text);
	else
		(void)buf_printf(b, "[%s %s]", type ? type : "?", uri ? uri : mime ? mime : "");
}

static void write_plain(struct jw *w, struct jv result)
{
	_cleanup_(buf_done) struct buf text = { 0 };
	bool is_error = false;

	(void)jv_bool(jv_get(result, "isError"), &is_error);
	JV_FOREACH (jv_get(result, "content"), it)
		put_part(&text, it.value);
	if (text.len == 0 && jv_kind(jv_get(result, "structuredContent")) != JV_ABSENT)
		put_value(&text, jv_get(result, "structuredContent"));
	jw_object_begin(w);
	jw_bool_field(w, "isError", is_error);
	jw_key(w, "text");
	jw_string_n(w, buf_str(&text), text.len);
	jw_object_end(w);
}

void bridge_write_outcome(struct jw *w, const char *id, const struct mcpc_outcome *o, bool is_plain)
{
	if (o->err.code != 0)
		return write_error(w, id, o);
	rpc_result_begin(w, id);
	if (is_plain)
		write_plain(w, o->result);
	else
		jw_value(w, o->result);
	rpc_end(w);
}

struct telling {
	struct jw *w;
	struct buf *text; /* of a plain one, else NULL */
	const struct bridge_query *q;
	uint64_t n;
};

static void put_line(struct buf *b, const struct mcpc_tool *tool)
{
	const char *about = tool->about[0] ? tool->about : tool->title;
	size_t n = strcspn(about, "\r\n");

	(void)buf_printf(b, "%s.%s", tool->server, tool->name);
	if (n > 0)
		(void)buf_printf(b, "\t%.*s", (int)(n < 200 ? n : 200), about);
	(void)buf_putc(b, '\n');
}

static bool tell(void *user, const struct mcpc_tool *tool)
{
	struct telling *t = user;

	if (!grant_has(t->q->b->grant, tool->server))
		return true;
	if (t->text)
		put_line(t->text, tool);
	else
		mcpc_tool_write(t->w, tool, t->q->detail);
	return ++t->n < t->q->limit;
}

void bridge_write_tools(struct jw *w, const char *id, const struct bridge_query *q)
{
	_cleanup_(buf_done) struct buf text = { .max = BRIDGE_RESULT_MAX };
	struct telling t = { .w = w, .text = q->is_plain ? &text : NULL, .q = q };

	rpc_result_begin(w, id);
	jw_object_begin(w);
	if (!q->is_plain) {
		jw_key(w, "tools");
		jw_array_begin(w);
	}
	mcpc_servers_search(q->b->all->deps.servers, q->server, q->query, SIZE_MAX, tell, &t);
	if (q->is_plain) {
		jw_bool_field(w, "isError", false);
		jw_key(w, "text");
		jw_string_n(w, buf_str(&text), text.len);
	} else {
		jw_array_end(w);
	}
	jw_object_end(w);
	rpc_end(w);
}
