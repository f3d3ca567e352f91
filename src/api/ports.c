/* Ports of a sandbox: which are exposed. */
#include <errno.h>
#include <string.h>

#include "api/bodies.h"
#include "api/call.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "auth/port_token.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/str.h"
#include "config/config.h"
#include "net/http.h"
#include "sandbox/ports.h"
#include "sandbox/sandbox.h"
#include "json/jw.h"

struct port_call { /* in the request's arena */
	struct api_call *call;
	char sandbox_id[ID_LEN + 1];
	char token[PORT_TOKEN_SIZE];
};

_Static_assert(PORT_HASH_LEN == HASH_LEN, "a token's hash is kept whole");

/* The address that a browser can use: the one by host name where there is a domain. */
static void write_url(struct jw *w, const struct api_call *c, const char *id, uint16_t port)
{
	const struct config *config = c->api->deps.config;
	const char *host = http_header(c->http, "host"), *scheme;
	const char *number = host ? strrchr(host, ':') : NULL;
	_cleanup_(buf_done) struct buf url = { 0 };

	scheme = http_is_tls(c->http) ? "https" : "http";
	if (number && number[1 + strspn(number + 1, "0123456789")] != '\0')
		number = NULL; /* the end of an address of IPv6 */
	if (config->domain && config->domain[0])
		(void)buf_printf(&url, "%s://%u-%s.%s%s/", scheme, port, id, config->domain,
				 number ? number : "");
	else
		(void)buf_printf(&url, "%s://%s/api/v1/sandboxes/%s/ports/%u/", scheme,
				 host ? host : "localhost", id, port);
	jw_str_field(w, "url", buf_str(&url));
}

static void write_port(struct jw *w, const struct api_call *c, const char *id,
		       const struct port_info *p, const char *token)
{
	jw_object_begin(w);
	jw_uint_field(w, "port", p->port);
	jw_bool_field(w, "public", p->is_public);
	jw_bool_field(w, "wake", p->wakes);
	write_url(w, c, id, p->port);
	jw_iso_field(w, "createdAt", p->created_ms);
	if (token)
		jw_str_field(w, "token", token);
	jw_object_end(w);
}

static struct port_call *port_call_create(struct api_call *c, struct sandbox *sb)
{
	struct port_call *p = arena_alloc(http_arena(c->http), sizeof(*p));
	struct sandbox_info info;

	if (!p) {
		problem_reply(c, &(struct err){ ENOMEM, "port" });
		return NULL;
	}
	sandbox_info(sb, &info);
	p->call = c;
	(void)str_copy(p->sandbox_id, sizeof(p->sandbox_id), info.id);
	return p;
}

static void exposed(void *user, const struct port_info *port, const struct err *err)
{
	struct port_call *p = user;
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	if (err)
		return problem_reply(p->call, err);
	write_port(&w, p->call, p->sandbox_id, port, p->token);
	call_reply(p->call, 201, &w);
}

void api_port_expose(struct api_call *c)
{
	const struct body_port *body = c->body;
	struct port_info info = { .port = (uint16_t)body->port,
				  .is_public = body->is_public,
				  .wakes = body->wake };
	struct sandbox *sb = call_sandbox(c);
	struct port_call *p = sb ? port_call_create(c, sb) : NULL;

	if (!p)
		return;
	if (port_token_make(p->token, info.token_hash) < 0)
		return problem_reply(c, &(struct err){ ENOMEM, "token" });
	port_expose(sb, &info, exposed, p);
}

static bool param_port(struct api_call *c, uint16_t *ret)
{
	uint32_t port;

	if (parse_u32(call_param(c, "port"), 1, UINT16_MAX, &port) < 0) {
		problem_status(c, 404, "port '%.16s' is not exposed", call_param(c, "port"));
		return false;
	}
	*ret = (uint16_t)port;
	return true;
}

static void closed(void *user, const struct port_info *port, const struct err *err)
{
	struct port_call *p = user;

	(void)port;
	if (err)
		return problem_reply(p->call, err);
	call_reply_empty(p->call);
}

void api_port_close(struct api_call *c)
{
	struct port_call *p;
	struct sandbox *sb;
	uint16_t port;

	sb = call_sandbox(c);
	if (!sb || !param_port(c, &port))
		return;
	p = port_call_create(c, sb);
	if (p)
		port_close(sb, port, closed, p);
}

void api_port_get(struct api_call *c)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct sandbox *sb = call_sandbox(c);
	const struct port_info *info;
	struct sandbox_info sandbox;
	uint16_t port;

	if (!sb || !param_port(c, &port))
		return;
	info = port_find(sb, port);
	if (!info)
		return problem_status(c, 404, "port %u is not exposed", port);
	sandbox_info(sb, &sandbox);
	write_port(&w, c, sandbox.id, info, NULL);
	call_reply(c, 200, &w);
}

void api_port_list(struct api_call *c)
{
	const struct port_info *ports[PORT_EXPOSED_MAX];
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct sandbox *sb = call_sandbox(c);
	struct sandbox_info info;
	size_t n;

	if (!sb)
		return;
	sandbox_info(sb, &info);
	n = port_list(sb, ports, PORT_EXPOSED_MAX);
	jw_object_begin(&w);
	jw_key(&w, "items");
	jw_array_begin(&w);
	for (size_t i = 0; i < n && i < PORT_EXPOSED_MAX; i++)
		write_port(&w, c, info.id, ports[i], NULL);
	jw_array_end(&w);
	jw_object_end(&w);
	call_reply(c, 200, &w);
}
