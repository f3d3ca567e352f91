/* The modern era: what a request's head and its _meta say, and whether they say the same. */
#include <string.h>

#include "base/arena.h"
#include "base/encode.h"
#include "base/parse.h"
#include "base/str.h"
#include "mcp/server_impl.h"
#include "net/http.h"
#include "tools/toolbox.h"

#define META "io.modelcontextprotocol/"
#define SENTINEL "=?base64?"
#define SENTINEL_END "?="
#define PARAM "Mcp-Param-"

struct check {
	struct mcp_server *server;
	const struct mcp_head *head;
	const struct rpc_message *message;
	bool is_bound;
	struct arena *arena;
	const char *text, *data; /* of the error */
};

const char *mcp_head_decode(const char *value, struct arena *a)
{
	struct str s = str_trim(str_of(value));
	size_t front = strlen(SENTINEL), back = strlen(SENTINEL_END);
	ssize_t got;
	char *out;

	if (!str_starts(s, SENTINEL) || !str_ends(s, SENTINEL_END) || s.len < front + back)
		return arena_strndup(a, s.data, s.len);
	out = arena_alloc(a, s.len + 1);
	if (!out)
		return NULL;
	got = decode_base64(s.data + front, s.len - front - back, out, s.len);
	if (got < 0 || memchr(out, '\0', (size_t)got))
		return NULL;
	out[got] = '\0';
	return out;
}

static long fail(struct check *c, long code, const char *text)
{
	c->text = text;
	return code;
}

static long mismatch(struct check *c, const char *header)
{
	const char *text =
		arena_printf(c->arena, "the header %s and the body do not agree", header);

	return fail(c, MCP_HEADER, text ? text : "a header and the body do not agree");
}

/* What Mcp-Name repeats, of this method; absent: nothing. */
static struct jv named(const struct rpc_message *m)
{
	static const struct {
		const char *method, *member;
	} rows[] = {
		{ "tools/call", "name" },     { "prompts/get", "name" },
		{ "resources/read", "uri" },  { "tasks/get", "taskId" },
		{ "tasks/update", "taskId" }, { "tasks/cancel", "taskId" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(rows[i].method, m->method) == 0)
			return jv_get(m->params, rows[i].member);
	return (struct jv){ NULL };
}

static long check_names(struct check *c)
{
	const char *name = jv_text(named(c->message)), *said;

	if (!c->head->method || strcmp(c->head->method, c->message->method) != 0)
		return mismatch(c, "Mcp-Method");
	if (!name)
		return 0;
	said = c->head->name ? mcp_head_decode(c->head->name, c->arena) : NULL;
	return said && strcmp(said, name) == 0 ? 0 : mismatch(c, "Mcp-Name");
}

/* ---- parameters that are headers, too ---- */

static bool says(struct jv value, const char *said)
{
	const char *text = jv_text(value);
	int64_t number, other;
	bool is_true;

	if (text)
		return strcmp(text, said) == 0;
	if (jv_bool(value, &is_true) == 0)
		return strcmp(said, is_true ? "true" : "false") == 0;
	return jv_i64(value, &number) == 0 && parse_i64(said, INT64_MIN, INT64_MAX, &other) == 0 &&
	       other == number;
}

static bool is_absent(struct jv v)
{
	return jv_kind(v) == JV_ABSENT || jv_kind(v) == JV_NULL;
}

static long check_param(struct check *c, const char *header, struct jv value)
{
	const char *name = arena_printf(c->arena, PARAM "%s", header);
	const char *raw = name && c->head->http ? http_header(c->head->http, name) : NULL;
	const char *said = raw ? mcp_head_decode(raw, c->arena) : NULL;

	if (!name)
		return fail(c, RPC_INTERNAL, "out of memory");
	if (is_absent(value))
		return raw ? mismatch(c, name) : 0;
	return said && says(value, said) ? 0 : mismatch(c, name);
}

static long check_properties(struct check *c, struct jv schema, struct jv arguments)
{
	long r = 0;

	JV_FOREACH (jv_get(schema, "properties"), it) {
		const char *header = jv_text(jv_get(it.value, "x-mcp-header"));
		char *key = arena_strndup(c->arena, it.key.data, it.key.len);
		struct jv value;

		if (!key)
			return fail(c, RPC_INTERNAL, "out of memory");
		value = jv_get(arguments, key);
		if (header)
			r = check_param(c, header, value);
		else if (jv_kind(jv_get(it.value, "properties")) == JV_OBJECT)
			r = check_properties(c, it.value, value);
		if (r)
			return r;
	}
	return 0;
}

static long check_params(struct check *c)
{
	const char *name = jv_text(jv_get(c->message->params, "name"));
	const struct tool *tool;
	struct jv_doc *doc = NULL;
	long r;

	if (strcmp(c->message->method, "tools/call") != 0 || !name)
		return 0;
	tool = tools_find(c->server->deps.tools, c->is_bound, name);
	if (!tool || !tool->in_json || !strstr(tool->in_json, "x-mcp-header"))
		return 0;
	if (jv_parse(tool->in_json, strlen(tool->in_json), SIZE_MAX, &doc, NULL) < 0)
		return fail(c, RPC_INTERNAL, "the tool's schema");
	r = check_properties(c, jv_root(doc), jv_get(c->message->params, "arguments"));
	(void)jv_free(doc);
	return r;
}

/* ---- _meta ---- */

static const char *unsupported(struct check *c, const char *version)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	jw_object_begin(&w);
	jw_key(&w, "supported");
	jw_array_begin(&w);
	jw_string(&w, MCP_MODERN_VERSION);
	jw_array_end(&w);
	jw_str_field(&w, "requested", version);
	jw_object_end(&w);
	return jw_end(&w) < 0 ? NULL : arena_strndup(c->arena, b.data, b.len);
}

static long check_meta(struct check *c, struct mcp_said *ret)
{
	struct jv meta = jv_get(c->message->params, "_meta");
	const char *version = jv_text(jv_get(meta, META "protocolVersion"));
	struct jv client = jv_get(meta, META "clientCapabilities");

	if (!version)
		return fail(c, RPC_PARAMS, "params._meta." META "protocolVersion: wanted");
	if (jv_kind(client) != JV_OBJECT)
		return fail(c, RPC_PARAMS,
			    "params._meta." META "clientCapabilities: want an object");
	if (!c->head->version || strcmp(c->head->version, version) != 0)
		return mismatch(c, "MCP-Protocol-Version");
	if (strcmp(version, MCP_MODERN_VERSION) != 0) {
		c->data = unsupported(c, version);
		return fail(c, MCP_VERSION, "this version of the protocol is not spoken here");
	}
	ret->client = mcp_client_of(client);
	ret->log_level = mcp_level_from(jv_text(jv_get(meta, META "logLevel")));
	return 0;
}

long mcp_head_check(struct mcp_server *s, const struct mcp_head *h, const struct rpc_message *m,
		    bool is_bound, struct arena *a, struct mcp_said *ret, const char **ret_text,
		    const char **ret_data)
{
	struct check c = { .server = s, .head = h, .message = m, .is_bound = is_bound, .arena = a };
	long r = check_meta(&c, ret);

	if (r == 0)
		r = check_names(&c);
	if (r == 0)
		r = check_params(&c);
	*ret_text = c.text ? c.text : "";
	*ret_data = c.data;
	return r;
}
