/* A request as text: what the caller wants, and what the era wants of every request. */
#include <string.h>

#include "base/str.h"
#include "mcpc/client_impl.h"
#include "json/jw.h"

static void write_meta(struct jw *w, const struct mcpc_call *call)
{
	const struct mcpc *c = call->c;

	if (!call->is_modern && !call->progress && !call->traceparent)
		return;
	jw_key(w, "_meta");
	jw_object_begin(w);
	if (call->is_modern) {
		jw_str_field(w, MCPC_META "protocolVersion",
			     c->protocol[0] ? c->protocol : MCPC_MODERN);
		jw_key(w, MCPC_META "clientInfo");
		jw_object_begin(w);
		jw_str_field(w, "name", c->name);
		jw_str_field(w, "version", c->version);
		jw_object_end(w);
		jw_raw_field(w, MCPC_META "clientCapabilities", c->offers, strlen(c->offers));
	}
	if (call->progress)
		jw_raw_field(w, "progressToken", call->id, strlen(call->id));
	if (call->traceparent)
		jw_str_field(w, "traceparent", call->traceparent);
	jw_object_end(w);
}

/* Of another round: what was asked for, and what it was asked with. */
static void write_answers(struct jw *w, const struct mcpc_call *call)
{
	if (call->answers.len > 0)
		jw_raw_field(w, "inputResponses", call->answers.data, call->answers.len);
	if (call->request_state)
		jw_raw_field(w, "requestState", call->request_state, strlen(call->request_state));
}

int mcpc_message_write(const struct mcpc_call *call, struct jv params, struct buf *ret)
{
	struct jw w = jw_begin(ret);

	rpc_request_begin(&w, call->id, call->method);
	jw_object_begin(&w);
	JV_FOREACH (params, it)
		if (!str_is(it.key, "_meta")) {
			jw_key_n(&w, it.key.data, it.key.len);
			jw_value(&w, it.value);
		}
	write_answers(&w, call);
	write_meta(&w, call);
	jw_object_end(&w);
	rpc_end(&w);
	return jw_end(&w);
}

const char *mcpc_name_of(const char *method, struct jv params)
{
	if (strcmp(method, "tools/call") == 0 || strcmp(method, "prompts/get") == 0)
		return jv_text(jv_get(params, "name"));
	if (strcmp(method, "resources/read") == 0)
		return jv_text(jv_get(params, "uri"));
	if (str_starts(str_of(method), "tasks/"))
		return jv_text(jv_get(params, "taskId"));
	return NULL;
}
