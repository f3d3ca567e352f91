/* Who may reach a port: by path with a key, the port's token or because it is public; by host name
 * with the same, and with a cookie that the token was traded for. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "api/call.h"
#include "api/call_auth.h"
#include "api/handlers.h"
#include "api/open_calls.h"
#include "api/problem.h"
#include "api/proxy.h"
#include "api/routes.h"
#include "auth/api_key.h"
#include "auth/port_token.h"
#include "auth/users.h"
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

static bool has_token(struct api_call *c, const struct port_info *port)
{
	const char *token = http_header(c->http, PROXY_TOKEN_HEADER);

	return token && port_token_is(token, port->token_hash);
}

static void refuse(struct api_call *c)
{
	problem_status(c, 401,
		       "this port wants its token in " PROXY_TOKEN_HEADER ", or an API key");
}

struct waking { /* in the request's arena: it waits, also for a client that has left */
	struct api_call *call;
	struct proxy_target target;
	proxy_go_fn go;
};

static void awake(void *user, struct sandbox *sb, const struct err *err)
{
	struct waking *w = user;

	if (err)
		problem_reply(w->call, err);
	else
		w->go(w->call, sb, &w->target);
}

void proxy_wake(struct api_call *c, struct sandbox *sb, const struct port_info *port,
		const struct proxy_target *target, proxy_go_fn go)
{
	struct sandbox_info info;
	struct waking *w;

	sandbox_info(sb, &info);
	/* Nobody is let in on behalf of a user who is not. */
	if (c->who->owner[0] == '\0' && !users_is_good(c->api->deps.users, info.owner))
		return refuse(c);
	if (!open_calls_begin(c, info.owner))
		return;
	sandbox_touch(sb);
	if (!sandbox_wakes(sb) &&
	    (!port->wakes || (info.state != SANDBOX_PAUSED && info.state != SANDBOX_RESUMING)))
		return go(c, sb, target);
	w = arena_alloc(http_arena(c->http), sizeof(*w));
	if (!w)
		return problem_reply(c, &(struct err){ ENOMEM, "proxy" });
	*w = (struct waking){ c, *target, go };
	sandbox_wake(sb, awake, w);
}

void proxy_reply_unreached(struct api_call *c, unsigned port, const struct err *err)
{
	if (err->code == ECONNREFUSED)
		problem_status(c, 502, "port %u: nothing listens there", port);
	else if (err->code == ETIMEDOUT)
		problem_status(c, 504, "port %u: the connection was not accepted in time", port);
	else if (err->code == ECONNRESET)
		problem_status(c, 502, "port %u: the connection was closed at once", port);
	else
		problem_reply_box(c, err);
}

/* ---- by path ---- */

/* 0: it is none. */
static uint16_t param_port(struct api_call *c)
{
	uint32_t port = 0;

	(void)parse_u32(call_param(c, "port"), 1, UINT16_MAX, &port);
	return (uint16_t)port;
}

/* Behind "/api/v1/sandboxes/:id/ports/:port". */
static const char *rest_of(const char *path)
{
	for (int i = 0; i < 7 && path; i++)
		path = strchr(path + (i > 0), '/');
	return path;
}

/* Without the slash, a page's relative links would go to the wrong place. */
static void redirect(struct api_call *c)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	(void)buf_printf(&b, "%s/", http_path(c->http));
	if (http_query_string(c->http)[0])
		(void)buf_printf(&b, "?%s", http_query_string(c->http));
	(void)http_header_add(c->http, "Location", buf_str(&b));
	http_reply(c->http, 308, NULL, NULL, 0);
}

const struct port_info *proxy_find_port(struct api_call *c, struct sandbox **ret)
{
	bool has_key = c->who->owner[0] != '\0';
	const struct port_info *port;
	struct sandbox *sb;

	if (has_key)
		sb = call_sandbox(c);
	else
		sb = sandboxes_find(c->api->deps.sandboxes, call_param(c, "id"), NULL);
	if (!sb && has_key)
		return NULL; /* answered */
	port = sb ? port_find(sb, param_port(c)) : NULL;
	if (!has_key && (!port || !(port->is_public || has_token(c, port)))) {
		refuse(c);
		return NULL;
	}
	if (!port)
		problem_status(c, 404, "port %.16s is not exposed", call_param(c, "port"));
	*ret = sb;
	return port;
}

void api_port_proxy(struct api_call *c)
{
	struct proxy_target t = { .query = http_query_string(c->http) };
	const struct port_info *port;
	struct sandbox *sb;

	port = proxy_find_port(c, &sb);
	if (!port)
		return;
	t.port = port->port;
	t.path = rest_of(http_path(c->http));
	if (!t.path)
		return redirect(c);
	proxy_start(c, sb, port, &t);
}

/* ---- by host name ---- */

/* "3000-<id>.<domain>" and maybe ":8443"; false for any other host. */
static bool parse_host(const char *host, const char *domain, uint16_t *ret_port,
		       char id[ID_LEN + 1])
{
	size_t digits = strspn(host, "0123456789"), name = digits + 1 + ID_LEN;
	size_t n = strlen(domain);
	char text[6];
	uint32_t port;

	if (digits == 0 || digits > 5 || host[0] == '0' || host[digits] != '-' ||
	    strlen(host) <= name || host[name] != '.' ||
	    strncasecmp(host + name + 1, domain, n) != 0 ||
	    (host[name + 1 + n] != '\0' && host[name + 1 + n] != ':'))
		return false;
	memcpy(text, host, digits);
	text[digits] = '\0';
	if (parse_u32(text, 1, UINT16_MAX, &port) < 0)
		return false;
	for (size_t i = 0; i < ID_LEN; i++) {
		char ch = host[digits + 1 + i];

		id[i] = ch >= 'A' && ch <= 'Z' ? (char)(ch | 0x20) : ch;
	}
	id[ID_LEN] = '\0';
	*ret_port = (uint16_t)port;
	return true;
}

static bool has_cookie(struct api_call *c, const struct port_info *port)
{
	const char *name, *value;
	char token[PORT_TOKEN_SIZE];

	for (unsigned i = 0; (value = http_header_at(c->http, i, &name)); i++) {
		struct str rest = str_of(value), one;

		if (strcasecmp(name, "cookie") != 0)
			continue;
		while (str_split(&rest, ';', &one)) {
			one = str_trim(one);
			if (one.len != strlen(PROXY_COOKIE) + PORT_TOKEN_SIZE ||
			    !str_starts(one, PROXY_COOKIE "="))
				continue;
			memcpy(token, one.data + strlen(PROXY_COOKIE) + 1, PORT_TOKEN_SIZE - 1);
			token[PORT_TOKEN_SIZE - 1] = '\0';
			if (port_token_is(token, port->token_hash))
				return true;
		}
	}
	return false;
}

/* The same address without the token, so that it is neither kept in a history nor told to others.
 */
static void put_target(struct buf *b, const struct http_request *r, const char *token)
{
	struct str rest = str_of(http_query_string(r)), one;
	char mark = '?';

	(void)buf_puts(b, http_path(r));
	while (str_split(&rest, '&', &one)) {
		if (str_starts(one, "token=") && one.len == strlen("token=") + strlen(token) &&
		    memcmp(one.data + strlen("token="), token, strlen(token)) == 0)
			continue;
		(void)buf_putc(b, mark);
		(void)buf_append(b, one.data, one.len);
		mark = '&';
	}
}

/* A browser that was given the token in an address gets it as a cookie. True: answered. */
static bool trade_token(struct api_call *c, const struct port_info *port)
{
	_cleanup_(buf_done) struct buf to = { 0 }, cookie = { 0 };
	const char *token = NULL;

	if (strcmp(http_method(c->http), "GET") != 0 || http_query(c->http, "token", &token) <= 0 ||
	    !port_token_is(token, port->token_hash))
		return false;
	/* "//host" would be an address of somebody else's. */
	if (http_path(c->http)[1] == '/')
		return false;
	put_target(&to, c->http, token);
	(void)buf_printf(&cookie, PROXY_COOKIE "=%s; Path=/; HttpOnly; SameSite=Lax%s", token,
			 http_is_tls(c->http) ? "; Secure" : "");
	(void)http_header_add(c->http, "Location", buf_str(&to));
	(void)http_header_add(c->http, "Set-Cookie", buf_str(&cookie));
	(void)http_header_add(c->http, "Cache-Control", "no-store");
	(void)http_header_add(c->http, "Referrer-Policy", "no-referrer");
	http_reply(c->http, 303, NULL, NULL, 0);
	return true;
}

/* A header of the program's own is none of ours; one that is a key of ours counts. */
static const char *our_key(const char *value)
{
	const char *text = value;

	if (text && strncasecmp(text, "bearer ", 7) == 0)
		text += 7;
	return text && (strncmp(text, "holt_", 5) == 0 || strncmp(text, "e2b_", 4) == 0) ? value
											 : NULL;
}

static bool has_key(struct api_call *c, const struct sandbox *sb)
{
	const char *bearer = our_key(http_header(c->http, "Authorization"));
	const char *key = our_key(http_header(c->http, "X-API-Key"));
	struct principal who;
	struct sandbox_info info;

	if ((!bearer && !key) || auth_check(c->api->deps.keys, bearer, key, &who, NULL) < 0)
		return false;
	sandbox_info(sb, &info);
	return principal_may_enter(&who, info.owner, info.id) && call_admit(c, &who, NULL) == 0 &&
	       principal_check(c->who, SCOPE_PORT, NULL) == 0;
}

static void handle_host(struct api_call *c, uint16_t number, const char *id)
{
	struct proxy_target t = { .path = http_path(c->http),
				  .query = http_query_string(c->http),
				  .port = number,
				  .is_host = true };
	struct sandbox *sb = sandboxes_find(c->api->deps.sandboxes, id, NULL);
	const struct port_info *port = sb ? port_find(sb, number) : NULL;

	/* What is not exposed looks like what is not allowed. */
	if (!port)
		return refuse(c);
	if (trade_token(c, port))
		return;
	if (!port->is_public && !has_token(c, port) && !has_cookie(c, port) && !has_key(c, sb))
		return refuse(c);
	if (t.path[0] != '/')
		return problem_status(c, 400, "the request target is not a path");
	proxy_start(c, sb, port, &t);
}

/* Not in the table: what is asked for is the program's own. */
static const struct api_route by_host = {
	.route = { "*", "port", SCOPE_NONE, ROUTE_PUBLIC },
	.summary = "A port by its host name",
};

/* Names below it mean this machine without any name server, to browsers and most clients. */
#define LOCAL "localhost"

bool proxy_host_names(struct api_call *c, uint16_t *ret_port, char id[ID_LEN + 1])
{
	const char *domain = c->api->deps.config->domain;
	const char *host = http_header(c->http, "host");

	if (!host)
		return false;
	return (domain && domain[0] && parse_host(host, domain, ret_port, id)) ||
	       parse_host(host, LOCAL, ret_port, id);
}

/* "localhost", "x.localhost", "127.0.0.1", "[::1]". */
static bool is_local(struct str host)
{
	size_t n = strlen(LOCAL);

	if (host.len >= n && strncasecmp(host.data + host.len - n, LOCAL, n) == 0)
		return host.len == n || host.data[host.len - n - 1] == '.';
	return str_is(host, "[::1]") || (host.len > 4 && strncmp(host.data, "127.", 4) == 0);
}

const char *proxy_domain(struct api_call *c)
{
	const char *domain = c->api->deps.config->domain, *base = call_base(c);
	const char *host = base ? strstr(base, "://") : NULL;
	struct str name, number;

	if (!host)
		return NULL;
	host += 3;
	name = (struct str){ host, strcspn(host, "/") };
	number = (struct str){ name.data + name.len, 0 };
	while (number.data > host && number.data[-1] >= '0' && number.data[-1] <= '9')
		number.data--, number.len++;
	if (number.len > 0 && number.data > host && number.data[-1] == ':') {
		number = (struct str){ number.data - 1, number.len + 1 };
		name.len -= number.len;
	} else {
		number.len = 0;
	}
	if (!domain || !domain[0])
		domain = is_local(name) ? LOCAL : NULL;
	return domain ? arena_printf(http_arena(c->http), "%s%.*s", domain, (int)number.len,
				     number.data)
		      : NULL;
}

bool proxy_handle_host(struct api_call *c)
{
	char id[ID_LEN + 1];
	uint16_t port;

	if (!proxy_host_names(c, &port, id))
		return false;
	c->route = &by_host;
	handle_host(c, port, id);
	return true;
}
