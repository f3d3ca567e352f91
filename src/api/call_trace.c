#include "api/call_trace.h"

#include <strings.h>

#include "api/call.h"
#include "api/routes.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/str.h"
#include "net/http.h"
#include "telemetry/trace.h"

/* One traceparent, and it is well-formed. */
static bool take_parent(struct api_call *c)
{
	const char *name, *value, *parent = NULL;

	for (unsigned i = 0; (value = http_header_at(c->http, i, &name)); i++) {
		if (strcasecmp(name, "traceparent") != 0)
			continue;
		if (parent)
			return false;
		parent = value;
	}
	return parent && traceparent_parse(str_of(parent), &c->trace.parent) == 0;
}

static void take_state(struct api_call *c)
{
	struct tracestate s = { 0 };
	const char *name, *value, *text;

	for (unsigned i = 0; (value = http_header_at(c->http, i, &name)); i++)
		if (strcasecmp(name, "tracestate") == 0)
			tracestate_add(&s, str_of(value));
	text = tracestate_text(&s);
	if (text[0] != '\0')
		text = arena_strndup(http_arena(c->http), text, s.len);
	c->trace.state = text && text[0] != '\0' ? text : "";
}

void call_trace_header(struct api_call *c)
{
	char text[TRACEPARENT_SIZE];

	if (!call_trace(c))
		return;
	traceparent_format(&c->trace.self, text);
	(void)http_header_add(c->http, "traceparent", text);
}

void call_trace_begin(struct api_call *c)
{
	struct tracer *t = c->api->deps.tracer;

	if (!t)
		return;
	c->trace.start_ns = clock_now_ns();
	c->trace.state = "";
	if (take_parent(c)) {
		c->trace.is_callers = true;
		take_state(c);
	} else {
		trace_begin(t, &c->trace.parent);
	}
	trace_below(t, &c->trace.parent, &c->trace.self);
	call_trace_header(c);
}

const struct trace_context *call_trace(const struct api_call *c)
{
	return c->api->deps.tracer ? &c->trace.self : NULL;
}

void call_trace_asked(struct api_call *c)
{
	if (call_trace(c) && c->trace.auth_ns == 0)
		c->trace.auth_ns = clock_now_ns();
}

void call_trace_known(struct api_call *c)
{
	struct span *s;

	if (!call_trace(c))
		return;
	c->trace.is_known = true;
	s = span_begin(c->api->deps.tracer, &c->trace.self, SPAN_INTERNAL, "auth");
	span_set_start(s, c->trace.auth_ns);
	span_end(s);
}

void call_trace_end(const struct api_call *c, int status)
{
	const struct route *route = c->route ? &c->route->route : NULL;
	const char *method = http_method(c->http);
	char name[160];
	struct span *s;

	if (!call_trace(c) || (c->trace.is_callers && !c->trace.is_known))
		return;
	(void)str_format(name, sizeof(name), "%s %s", method, route ? route->pattern : "-");
	s = span_begin(c->api->deps.tracer, &c->trace.parent, SPAN_SERVER, route ? name : method);
	span_set_context(s, &c->trace.self);
	span_set_start(s, c->trace.start_ns);
	span_str(s, "http.request.method", method);
	span_str(s, "http.route", route ? route->pattern : NULL);
	span_int(s, "http.response.status_code", status);
	span_str(s, "holt.tool", c->tool[0] ? c->tool : NULL);
	span_str(s, "holt.request.id", http_request_id(c->http));
	if (status >= 500)
		span_fail(s, NULL);
	span_end(s);
}

const char *call_trace_id(const struct api_call *c, char dst[TRACE_ID_SIZE])
{
	dst[0] = '\0';
	if (call_trace(c))
		encode_hex(c->trace.self.trace_id, sizeof(c->trace.self.trace_id), dst);
	return dst;
}
