/* Any other port of a sandbox: what listens there answers. Nothing needs to be exposed first, as
 * clients of this protocol expect it; a sandbox, or the operator for all of them, can want the
 * traffic token of whoever comes. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "api/call.h"
#include "api/problem.h"
#include "api/proxy.h"
#include "api/routes.h"
#include "auth/box_token.h"
#include "auth/scope.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "config/config.h"
#include "e2b/handlers.h"
#include "e2b/note.h"
#include "e2b/refuse.h"
#include "e2b/target.h"
#include "net/http.h"
#include "sandbox/ports.h"
#include "sandbox/sandbox.h"
#include "json/jw.h"

#define HOST_MAX (NOTE_HOST_MAX + 5) /* with a port in the mark's place */

/* What a sandbox says of its ports. */
struct policy {
	bool is_public;
	char host[HOST_MAX + 1]; /* what servers are told instead of the request's; "": nothing */
};

/* "localhost:${PORT}" of port 3000 is "localhost:3000". What does not fit is not said. */
static void set_host(struct policy *p, const char *mask, uint16_t port)
{
	static const char mark[] = "${PORT}";
	const char *at = strstr(mask, mark);
	int r;

	if (at)
		r = str_format(p->host, sizeof(p->host), "%.*s%u%s", (int)(at - mask), mask, port,
			       at + strlen(mark));
	else
		r = str_copy(p->host, sizeof(p->host), mask);
	if (r < 0 || p->host[strcspn(p->host, "\r\n")] != '\0')
		p->host[0] = '\0';
}

static void read_policy(const struct api_call *c, const struct sandbox_info *info,
			struct policy *ret)
{
	struct note_traffic said;

	note_traffic(info->note, &said);
	*ret = (struct policy){ 0 };
	/* One that was not made by this protocol has the ports that its owner exposes. */
	ret->is_public =
		said.is_public && info->note[0] != '\0' && c->api->deps.config->e2b_public_ports;
	if (said.mask_host[0])
		set_host(ret, said.mask_host, c->claim.port);
}

/* ---- what goes wrong ---- */

/* Somebody looks at it in a browser. */
static bool is_page(const struct api_call *c)
{
	const char *mode = http_header(c->http, "Sec-Fetch-Mode");

	if (strcmp(http_method(c->http), "GET") != 0)
		return false;
	return mode ? strcmp(mode, "navigate") == 0 : call_accepts(c, "text/html");
}

static void reply_page(struct api_call *c, int status, const char *message)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	/* NOTE: the message is one of ours, without anything of the request in it. */
	if (buf_printf(&b,
		       "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">"
		       "<title>%d</title></head><body><h1>%s</h1><p>Port %u</p></body></html>\n",
		       status, message, c->claim.port) < 0)
		return http_reply_error(c->http, status, "bad_gateway", "out of memory");
	http_reply(c->http, status, "text/html; charset=utf-8", b.data, b.len);
}

static void reply(struct api_call *c, int status, const char *message, bool with_port)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	if (is_page(c))
		return reply_page(c, status, message);
	jw_object_begin(&w);
	jw_str_field(&w, "sandboxId", c->claim.box_id);
	jw_str_field(&w, "message", message);
	if (with_port)
		jw_uint_field(&w, "port", c->claim.port);
	jw_int_field(&w, "code", status);
	jw_object_end(&w);
	if (jw_end(&w) < 0)
		return http_reply_error(c->http, status, "bad_gateway", "out of memory");
	http_reply(c->http, status, "application/json", b.data, b.len);
}

static void reply_gone(struct api_call *c)
{
	reply(c, 502, "The sandbox was not found", false);
}

void e2b_refuse_port(struct api_call *c, int status, const char *code, const char *message,
		     const char *field)
{
	(void)code;
	(void)message;
	(void)field;
	if (status == 504)
		reply(c, 504, "The sandbox is running but the port did not answer in time", true);
	else if (status == 502)
		reply(c, 502, "The sandbox is running but port is not open", true);
	else if (status == 429 || status == 503)
		reply(c, status, "The sandbox has too many connections", true);
	else if (status < 500 && status != 404 && status != 409)
		reply(c, status, "The request cannot be passed on", true);
	else
		reply_gone(c); /* it has ended, or stands still */
}

/* ---- passing on ---- */

static bool may_pass(struct api_call *c, const struct policy *p)
{
	const char *token = http_header(c->http, E2B_HEADER_TRAFFIC);

	if (p->is_public)
		return true;
	if (token && box_token_is(c->api->deps.secret, BOX_TOKEN_TRAFFIC, c->claim.box_id, token))
		return true;
	if (token)
		reply(c, 403, "The traffic access token is not this sandbox's", false);
	else
		reply(c, 403, "This sandbox wants its token in " E2B_HEADER_TRAFFIC, false);
	return false;
}

/* Not in a table: what is asked for is the program's own. */
static const struct api_route any = {
	.route = { "*", "port", SCOPE_NONE, ROUTE_PUBLIC },
	.summary = "A port of a sandbox",
};

void e2b_port(struct api_call *c)
{
	struct proxy_target t = { .path = http_path(c->http),
				  .query = http_query_string(c->http),
				  .port = c->claim.port,
				  .is_host = true };
	struct sandbox *sb = sandboxes_find(c->api->deps.sandboxes, c->claim.box_id, NULL);
	struct sandbox_info info;
	struct policy *policy = arena_alloc(http_arena(c->http), sizeof(*policy));

	c->route = &any;
	if (!policy)
		return problem_reply(c, &(struct err){ ENOMEM, "port" });
	if (!sb || strcmp(sandbox_id(sb), c->claim.box_id) != 0)
		return reply_gone(c);
	sandbox_info(sb, &info);
	read_policy(c, &info, policy);
	if (!may_pass(c, policy))
		return;
	if (info.state != SANDBOX_RUNNING && !sandbox_wakes(sb))
		return reply_gone(c);
	if (t.port == 0 || t.path[0] != '/')
		return problem_status(c, 400, "want a port from 1 to 65535, and a path");
	if (policy->host[0])
		t.host = policy->host;
	proxy_start(c, sb, &(struct port_info){ .port = t.port }, &t);
}
