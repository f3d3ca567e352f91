/* Getting to know each other, in both eras; and listening. */
#include <string.h>

#include "base/arena.h"
#include "mcp/handlers.h"
#include "mcp/server_impl.h"

#define EXTENSION "io.modelcontextprotocol/"
#define INSTRUCTIONS                                                                            \
	"Holt gives you a computer of your own: an isolated Linux sandbox. exec runs shell "    \
	"commands, run_code runs Python, JavaScript or bash, and files live below /workspace. " \
	"Without sandbox_id you work in a sandbox of your own, which is made when you first "   \
	"need it and kept. There is no network unless it was given one."

void mcp_server_info(struct jw *w)
{
	jw_object_begin(w);
	jw_str_field(w, "name", "holt");
	jw_str_field(w, "title", "Holt");
	jw_str_field(w, "version", HOLT_VERSION);
	jw_object_end(w);
}

/* ---- what a client can do ---- */

static const struct {
	unsigned bit;
	const char *name, *extension;
} clients[] = {
	{ TOOL_INPUT_FORM, "elicitation", NULL },
	{ TOOL_INPUT_SAMPLING, "sampling", NULL },
	{ TOOL_INPUT_ROOTS, "roots", NULL },
	{ MCP_CLIENT_TASKS, NULL, EXTENSION "tasks" },
};

unsigned mcp_client_of(struct jv capabilities)
{
	struct jv elicitation = jv_get(capabilities, "elicitation");
	unsigned all = 0;

	for (size_t i = 0; i < sizeof(clients) / sizeof(clients[0]); i++) {
		struct jv of = clients[i].name ? capabilities : jv_get(capabilities, "extensions");
		const char *name = clients[i].name ? clients[i].name : clients[i].extension;

		if (jv_kind(jv_get(of, name)) == JV_OBJECT)
			all |= clients[i].bit;
	}
	if (jv_kind(jv_get(elicitation, "url")) == JV_OBJECT) {
		all |= TOOL_INPUT_URL;
		if (jv_kind(jv_get(elicitation, "form")) != JV_OBJECT)
			all &= ~(unsigned)TOOL_INPUT_FORM;
	}
	return all;
}

void mcp_client_names(struct jw *w, unsigned missing)
{
	jw_object_begin(w);
	for (size_t i = 0; i < sizeof(clients) / sizeof(clients[0]); i++) {
		if (!(missing & clients[i].bit))
			continue;
		if (clients[i].extension) {
			jw_key(w, "extensions");
			jw_object_begin(w);
		}
		jw_key(w, clients[i].extension ? clients[i].extension : clients[i].name);
		jw_object_begin(w);
		jw_object_end(w);
		if (clients[i].extension)
			jw_object_end(w);
	}
	jw_object_end(w);
}

/* ---- what we can do ---- */

static void offer(struct jw *w, const char *name, const char *flag, const char *other)
{
	jw_key(w, name);
	jw_object_begin(w);
	if (flag)
		jw_bool_field(w, flag, true);
	if (other)
		jw_bool_field(w, other, true);
	jw_object_end(w);
}

void mcp_capabilities(struct mcp_server *s, enum mcp_era era, const char *version, struct jw *w)
{
	jw_object_begin(w);
	offer(w, "tools", "listChanged", NULL);
	offer(w, "resources", "listChanged", "subscribe");
	offer(w, "prompts", "listChanged", NULL);
	if (strcmp(version, "2024-11-05") != 0)
		offer(w, "completions", NULL, NULL);
	offer(w, "logging", NULL, NULL);
	jw_key(w, "extensions");
	jw_object_begin(w);
	if (era == MCP_MODERN)
		offer(w, EXTENSION "tasks", NULL, NULL);
	if (s->deps.skills) /* clients of the legacy era look for it, too */
		offer(w, EXTENSION "skills", "directoryRead", NULL);
	jw_object_end(w);
	jw_object_end(w);
}

/* ---- the legacy era ---- */

void mcp_initialize(struct mcp_request *q)
{
	struct jw *w;

	/* The session was made by the door, which knows the version that was agreed on. */
	w = mcp_result_begin(q);
	jw_str_field(w, "protocolVersion", q->session->version);
	jw_key(w, "capabilities");
	mcp_capabilities(q->server, MCP_LEGACY, q->session->version, w);
	jw_key(w, "serverInfo");
	mcp_server_info(w);
	jw_str_field(w, "instructions", INSTRUCTIONS);
	mcp_result_end(q);
}

void mcp_set_level(struct mcp_request *q)
{
	int level = mcp_level_from(jv_text(jv_get(q->params, "level")));

	if (level < 0)
		return mcp_fail(q, RPC_PARAMS,
				"level: want debug, info, notice, warning, error, "
				"critical, alert or emergency");
	q->session->log_level = level;
	mcp_result_empty(q);
}

/* ---- the modern era ---- */

void mcp_discover(struct mcp_request *q)
{
	struct jw *w = mcp_result_begin(q);

	jw_key(w, "supportedVersions");
	jw_array_begin(w);
	jw_string(w, MCP_MODERN_VERSION);
	jw_array_end(w);
	jw_key(w, "capabilities");
	mcp_capabilities(q->server, MCP_MODERN, MCP_MODERN_VERSION, w);
	jw_str_field(w, "instructions", INSTRUCTIONS);
	mcp_result_end(q);
}

/* What it asked for, but of addresses only those that it will hear of. */
static void write_lists(struct jw *w, const struct mcp_request *q, struct jv filter)
{
	if (q->n_uris > 0) {
		jw_key(w, "resourceSubscriptions");
		jw_array_begin(w);
		for (size_t i = 0; i < q->n_uris; i++)
			jw_string(w, q->uris[i]);
		jw_array_end(w);
	}
	JV_FOREACH (filter, it) {
		if (jv_kind(it.value) != JV_ARRAY || jv_len(it.value) == 0 ||
		    str_is(it.key, "resourceSubscriptions"))
			continue;
		jw_key_n(w, it.key.data, it.key.len);
		jw_value(w, it.value);
	}
}

/* Goes on until the client leaves, or we do. */
static void listen_begun(struct mcp_request *q)
{
	struct jv filter = jv_get(q->params, "notifications");
	struct jw *w;

	q->is_listening = true;
	q->wants = mcp_wants_of(filter);
	w = mcp_notice_begin(q, "notifications/subscriptions/acknowledged");
	jw_key(w, "notifications");
	jw_object_begin(w);
	mcp_wants_write(w, q->wants);
	write_lists(w, q, filter);
	jw_object_end(w);
	mcp_notice_end(q);
}

void mcp_listen(struct mcp_request *q)
{
	struct jv filter = jv_get(q->params, "notifications");

	if (jv_kind(filter) != JV_OBJECT)
		return mcp_fail(q, RPC_PARAMS, "notifications: want an object");
	if (!q->stream->takes_sse)
		return mcp_fail(q, RPC_PARAMS, "the client does not take a stream of events");
	JV_FOREACH (filter, it)
		if (jv_len(it.value) > MCP_SUBSCRIPTIONS_MAX)
			return mcp_fail(q, RPC_PARAMS, "too many subscriptions: %u at the most",
					MCP_SUBSCRIPTIONS_MAX);
	mcp_watch_listed(q, listen_begun);
}
