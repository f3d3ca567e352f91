/* Any bytes as a message of MCP, behind the head that came with it: three lines (version, method,
 * name) and then the body. What is a message is written again and read as the same; what the modern
 * era's checks let pass says the same in head and body. */
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "fuzz.h"
#include "mcp/server_impl.h"
#include "tools/toolbox.h"
#include "json/jv.h"
#include "json/jw.h"
#include "json/rpc.h"

#define BODY_MAX (1u << 16)

static const struct tool rows[] = {
	{ .name = "t",
	  .about = "",
	  .in_json = "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-"
		     "header\":"
		     "\"A\"},\"b\":{\"properties\":{\"c\":{\"type\":\"integer\",\"x-mcp-header\":"
		     "\"C\"}}}}}",
	  .flags = TOOL_RAW },
};
static const struct tool_table table = { rows, 1 };
static const struct tool_table *const more[] = { &table, NULL };

/* The text up to the end of the line, in the arena; NULL when there is none left. */
static const char *take_line(const uint8_t **at, size_t *left, struct arena *a)
{
	const uint8_t *end = *left ? memchr(*at, '\n', *left) : NULL;
	const char *line;

	if (!end)
		return NULL;
	line = arena_strndup(a, (const char *)*at, (size_t)(end - *at));
	*left -= (size_t)(end - *at) + 1;
	*at = end + 1;
	return line && line[0] ? line : NULL;
}

static void put_id(struct jw *w, const struct rpc_message *m, const char *id)
{
	switch (m->kind) {
	case RPC_REQUEST:
		rpc_request_begin(w, id, m->method);
		jw_value(w, m->params);
		break;
	case RPC_NOTIFICATION:
		rpc_notification_begin(w, m->method);
		jw_value(w, m->params);
		break;
	case RPC_RESULT:
		rpc_result_begin(w, id);
		jw_value(w, m->result);
		break;
	default:
		rpc_error(w, id[0] ? id : NULL, m->code, m->text, NULL);
		return;
	}
	rpc_end(w);
}

static void write_again(const struct rpc_message *m)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct rpc_message again = { 0 };
	struct jv_doc *doc = NULL;
	char id[RPC_ID_MAX] = "", id2[RPC_ID_MAX] = "";
	struct err err = { 0 };

	if (rpc_id(m->id, id, sizeof(id)) < 0 && m->kind != RPC_NOTIFICATION &&
	    m->kind != RPC_ERROR)
		return; /* longer than any that is answered */
	if (jv_kind(m->params) == JV_ABSENT && m->kind <= RPC_NOTIFICATION)
		return; /* written as null, which is none */
	put_id(&w, m, id);
	if (jw_end(&w) < 0)
		return;
	MUST(jv_parse(b.data, b.len, SIZE_MAX, &doc, &err) == 0);
	MUST(rpc_read(jv_root(doc), &again, &err) == 0);
	MUST(again.kind == m->kind);
	(void)rpc_id(again.id, id2, sizeof(id2));
	MUST(strcmp(id, id2) == 0);
	if (m->method)
		MUST(strcmp(m->method, again.method) == 0);
	(void)jv_free(doc);
}

static void check_head(struct mcp_server *s, const struct mcp_head *h, const struct rpc_message *m,
		       struct arena *a)
{
	struct mcp_said said = { 0 };
	const char *text = NULL, *data = NULL;
	struct jv_doc *doc = NULL;

	if (h->name)
		(void)mcp_head_decode(h->name, a);
	if (m->kind != RPC_REQUEST)
		return;
	if (mcp_head_check(s, h, m, false, a, &said, &text, &data) == 0)
		MUST(strcmp(h->version, MCP_MODERN_VERSION) == 0 &&
		     strcmp(h->method, m->method) == 0);
	else
		MUST(text && text[0]);
	if (data) { /* is put into an answer as it is */
		MUST(jv_parse(data, strlen(data), SIZE_MAX, &doc, NULL) == 0);
		(void)jv_free(doc);
	}
}

static void run(struct mcp_server *s, const uint8_t *data, size_t size, struct arena *a)
{
	struct mcp_head head = { .version = take_line(&data, &size, a) };
	struct rpc_message m = { 0 };
	struct jv_doc *doc = NULL;
	struct err err = { 0 };

	head.method = take_line(&data, &size, a);
	head.name = take_line(&data, &size, a);
	if (jv_parse(data, size, BODY_MAX, &doc, &err) < 0)
		return;
	if (rpc_read(jv_root(doc), &m, &err) == 0) {
		write_again(&m);
		check_head(s, &head, &m, a);
	} else {
		MUST(err.code != 0 && err.text[0]);
	}
	(void)jv_free(doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct tools_deps deps = { .more = more };
	struct mcp_server s = { 0 };
	struct arena *a = arena_create(4 * BODY_MAX);
	struct err err = { 0 };

	if (a && tools_create(&deps, &s.deps.tools, &err) == 0)
		run(&s, data, size, a);
	s.deps.tools = tools_free(s.deps.tools);
	(void)arena_free(a);
	return 0;
}
