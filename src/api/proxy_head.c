/* Heads, both ways: what is passed on, what stays here, what is added. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/credential.h"
#include "api/proxy.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "net/http.h"
#include "net/http1.h"
#include "net/percent.h"
#include "net/ws.h"
#include "telemetry/traceparent.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Of one connection, not of the message (RFC 9110, 7.6.1); and what says how long a message is,
 * which each side learns from us alone. */
static const char *const hop_by_hop[] = {
	"connection",
	"content-length",
	"keep-alive",
	"proxy-authenticate",
	"proxy-authorization",
	"proxy-connection",
	"te",
	"trailer",
	"transfer-encoding",
	"upgrade",
	"http2-settings",
};

/* What we say ourselves, and what is for us. */
static const char *const not_for_the_box[] = {
	"host",
	"expect",
	"forwarded",
	"x-forwarded-for",
	"x-forwarded-host",
	"x-forwarded-proto",
	"x-forwarded-port",
	"x-forwarded-prefix",
	"x-real-ip",
	"x-request-id",
	"x-holt-port-token",
	"e2b-sandbox-id",
	"e2b-sandbox-port",
	"e2b-traffic-access-token",
	"x-access-token",
};

/* Of a trace: who is part of it says them anew. */
static const char *const of_the_trace[] = {
	"traceparent",
	"tracestate",
};

/* What we say ourselves; what makes a browser report to somebody, or remember something beyond this
 * origin (cookies are cleared for the whole domain); and what proxies before us would follow. */
static const char *const not_for_the_client[] = {
	"date",
	"x-request-id",
	"x-client-request-id",
	"alt-svc",
	"nel",
	"report-to",
	"reporting-endpoints",
	"expect-ct",
	"public-key-pins",
	"public-key-pins-report-only",
	"clear-site-data",
	"x-accel-redirect",
	"x-accel-buffering",
	"x-accel-charset",
	"x-accel-expires",
	"x-accel-limit-rate",
	"x-sendfile",
	"x-lighttpd-send-file",
	"x-reproxy-url",
	"x-reproxy-file",
};

/* What would reach beyond the path that the box has of this origin. */
static const char *const not_by_path[] = {
	"set-cookie",
	"service-worker-allowed",
	"strict-transport-security",
	"www-authenticate",
	"accept-ch",
	"critical-ch",
};

/* To many programs '_' in a name is '-': what reads "X_Forwarded_For" takes it for ours. */
static bool is_same_name(const char *name, const char *lower)
{
	while (*name && (*name == '_' ? '-' : tolower((unsigned char)*name)) == *lower) {
		name++;
		lower++;
	}
	return *name == '\0' && *lower == '\0';
}

static bool is_among(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((name[0] | 0x20) == list[i][0] && is_same_name(name, list[i]))
			return true;
	return false;
}

static bool has_token(const char *list, const char *token)
{
	struct str rest = str_of(list), one;

	while (str_split(&rest, ',', &one)) {
		one = str_trim(one);
		if (one.len == strlen(token) && strncasecmp(one.data, token, one.len) == 0)
			return true;
	}
	return false;
}

/* A Connection header names further headers that are of the connection. */
static bool is_naming(const char *field, const char *value, const char *name)
{
	return strcasecmp(field, "connection") == 0 && has_token(value, name);
}

/* ---- into the box ---- */

/* A request's head on its way into the box. */
struct head {
	struct buf *b;
	const struct http_request *r;
	const struct proxy_target *t;
	const struct config *config;
};

static void put_field(struct buf *b, const char *name, const char *value)
{
	(void)buf_puts(b, name);
	(void)buf_append(b, ": ", 2);
	(void)buf_puts(b, value);
	(void)buf_append(b, "\r\n", 2);
}

/* Whether "name=value" of a cookie or a query has a credential of ours; without memory it counts
 * as one. */
static bool is_secret(const struct config *config, struct str pair, bool is_query)
{
	const char *mark = pair.len ? memchr(pair.data, '=', pair.len) : NULL;
	struct str value =
		mark ? (struct str){ mark + 1, pair.len - (size_t)(mark + 1 - pair.data) } : pair;
	_free_ char *text = malloc(value.len + 1);

	if (!text)
		return true;
	/* What is not well-formed is looked at as it is. */
	if (!is_query || percent_decode(value, true, text) < 0) {
		memcpy(text, value.data, value.len);
		text[value.len] = '\0';
	}
	return credential_is_in(config, text);
}

/* All but ours. */
static void put_cookies(const struct head *h, const char *value)
{
	struct str rest = str_of(value), one;
	struct buf *b = h->b;
	bool is_first = true;

	while (str_split(&rest, ';', &one)) {
		one = str_trim(one);
		if (one.len == 0 || str_starts(one, PROXY_COOKIE "=") ||
		    is_secret(h->config, one, false))
			continue;
		(void)buf_puts(b, is_first ? "Cookie: " : "; ");
		(void)buf_append(b, one.data, one.len);
		is_first = false;
	}
	if (!is_first)
		(void)buf_append(b, "\r\n", 2);
}

static bool has_secret(const struct head *h)
{
	struct str rest = str_of(h->t->query), one;

	while (str_split(&rest, '&', &one))
		if (is_secret(h->config, one, true))
			return true;
	return false;
}

/* To the byte as it came, or all but ours. */
static void put_query(const struct head *h)
{
	struct str rest = str_of(h->t->query), one;
	char mark = '?';

	if (h->t->query[0] != '\0' && !has_secret(h)) {
		(void)buf_putc(h->b, '?');
		(void)buf_puts(h->b, h->t->query);
		return;
	}
	while (str_split(&rest, '&', &one)) {
		if (is_secret(h->config, one, true))
			continue;
		(void)buf_putc(h->b, mark);
		(void)buf_append(h->b, one.data, one.len);
		mark = '&';
	}
}

/* True when it is dealt with here. A program's own credentials reach it, by its own host name. */
static bool is_credential(const struct head *h, const char *name, const char *value)
{
	bool is_cookie = strcasecmp(name, "cookie") == 0;

	if (!h->t->is_host && (is_cookie || strcasecmp(name, "authorization") == 0 ||
			       strcasecmp(name, "x-api-key") == 0))
		return true; /* all of them are the API's */
	if (is_cookie)
		put_cookies(h, value);
	return is_cookie || credential_is_in(h->config, value);
}

static bool is_named_in_request(const struct http_request *r, const char *name)
{
	const char *field, *value;

	for (unsigned i = 0; (value = http_header_at(r, i, &field)); i++)
		if (is_naming(field, value, name))
			return true;
	return false;
}

static void put_fields(const struct head *h)
{
	const struct http_request *r = h->r;
	const struct proxy_target *t = h->t;
	const char *name, *value;

	for (unsigned i = 0; (value = http_header_at(r, i, &name)); i++)
		if (!is_among(name, hop_by_hop, ARRAY_LEN(hop_by_hop)) &&
		    !is_among(name, not_for_the_box, ARRAY_LEN(not_for_the_box)) &&
		    !(t->trace && is_among(name, of_the_trace, ARRAY_LEN(of_the_trace))) &&
		    !is_named_in_request(r, name) && !is_credential(h, name, value))
			put_field(h->b, name, value);
}

static void put_trace(struct buf *b, const struct proxy_target *t)
{
	char text[TRACEPARENT_SIZE];

	if (!t->trace)
		return;
	traceparent_format(t->trace, text);
	put_field(b, "traceparent", text);
	if (t->tracestate[0])
		put_field(b, "tracestate", t->tracestate);
}

static void put_ours(struct buf *b, const struct http_request *r, const struct proxy_target *t)
{
	const char *host = http_header(r, "host");

	if (t->is_host)
		put_field(b, "Host", t->host ? t->host : host);
	else
		(void)buf_printf(b, "Host: localhost:%u\r\n", t->port);
	if (strcmp(http_peer(r), "unix") != 0)
		put_field(b, "X-Forwarded-For", http_peer(r));
	put_field(b, "X-Forwarded-Proto", http_is_tls(r) ? "https" : "http");
	put_field(b, "X-Forwarded-Host", host);
	if (!t->is_host)
		(void)buf_printf(b, "X-Forwarded-Prefix: %.*s\r\n", (int)(t->path - http_path(r)),
				 http_path(r));
	put_field(b, "X-Request-Id", http_request_id(r));
	put_trace(b, t);
}

static void put_length(struct buf *b, const struct http_request *r)
{
	static const char *const with_body[] = { "post", "put", "patch" };
	int64_t n = http_body_length(r);

	if (n < 0)
		put_field(b, "Transfer-Encoding", "chunked");
	else if (n > 0 || is_among(http_method(r), with_body, ARRAY_LEN(with_body)))
		(void)buf_printf(b, "Content-Length: %lld\r\n", (long long)n);
}

int proxy_write_request(const struct http_request *r, const struct config *config,
			const struct proxy_target *t, bool is_websocket, struct buf *b)
{
	const struct head h = { b, r, t, config };

	(void)buf_puts(b, http_method(r));
	(void)buf_putc(b, ' ');
	(void)buf_puts(b, t->path[0] ? t->path : "/");
	put_query(&h);
	(void)buf_puts(b, " HTTP/1.1\r\n");
	put_ours(b, r, t);
	put_length(b, r);
	if (is_websocket)
		(void)buf_puts(b, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
	put_fields(&h);
	return buf_append(b, "\r\n", 2);
}

const char *proxy_websocket_key(const struct http_request *r)
{
	const char *upgrade = http_header(r, "upgrade"), *connection = http_header(r, "connection");

	if (!upgrade || !connection || strcmp(http_method(r), "GET") != 0 ||
	    http_body_length(r) != 0 || !has_token(upgrade, "websocket") ||
	    !has_token(connection, "upgrade"))
		return NULL;
	return http_header(r, "sec-websocket-key");
}

/* ---- out of the box ---- */

/* A cookie for other hosts, or one that looks like ours, stays here. */
static bool is_bad_cookie(const char *value)
{
	struct str rest = str_of(value), one, name;
	bool is_first = true;

	while (str_split(&rest, ';', &one)) {
		struct str part = one;

		if (!str_split(&part, '=', &name))
			continue;
		name = str_trim(name);
		if (is_first && str_is(name, PROXY_COOKIE))
			return true;
		if (!is_first && name.len == 6 && strncasecmp(name.data, "domain", 6) == 0)
			return true;
		is_first = false;
	}
	return false;
}

/* "/login" of the box is not that of this origin. */
static int add_location(struct http_request *r, const struct proxy_target *t, const char *value)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	if (t->is_host || value[0] != '/' || value[1] == '/')
		return http_header_add(r, "Location", value);
	(void)buf_append(&b, http_path(r), (size_t)(t->path - http_path(r)));
	if (buf_puts(&b, value) < 0)
		return -ENOMEM;
	return http_header_add(r, "Location", buf_str(&b));
}

static int add_field(struct http_request *r, const struct proxy_target *t,
		     const struct http1_field *f)
{
	if (!t->is_host && is_among(f->name, not_by_path, ARRAY_LEN(not_by_path)))
		return 0;
	if (strcasecmp(f->name, "set-cookie") == 0 && is_bad_cookie(f->value))
		return 0;
	if (strcasecmp(f->name, "location") == 0)
		return add_location(r, t, f->value);
	return http_header_add(r, f->name, f->value);
}

static bool is_named_in_answer(const struct http1_head *head, const char *name)
{
	for (unsigned i = 0; i < head->count; i++)
		if (is_naming(head->fields[i].name, head->fields[i].value, name))
			return true;
	return false;
}

int proxy_add_answer(struct http_request *r, const struct proxy_target *t,
		     const struct http1_head *head)
{
	static const char apart[] = "sandbox allow-downloads allow-forms allow-modals allow-popups "
				    "allow-scripts";
	int e = 0;

	for (unsigned i = 0; i < head->count && e == 0; i++) {
		const struct http1_field *f = &head->fields[i];

		if (!is_among(f->name, hop_by_hop, ARRAY_LEN(hop_by_hop)) &&
		    !is_among(f->name, not_for_the_client, ARRAY_LEN(not_for_the_client)) &&
		    !(t->trace && is_among(f->name, of_the_trace, ARRAY_LEN(of_the_trace))) &&
		    !is_named_in_answer(head, f->name))
			e = add_field(r, t, f);
	}
	if (e == 0 && !t->is_host)
		e = http_header_add(r, "Content-Security-Policy", apart);
	return e < 0 ? -EPROTO : 0;
}

int proxy_add_switch(struct http_request *r, const char *key, const struct http1_head *head)
{
	const char *upgrade = http1_header(head, "upgrade");
	const char *accept = http1_header(head, "sec-websocket-accept");
	char want[WS_ACCEPT_SIZE];
	int e = 0;

	if (!upgrade || strcasecmp(upgrade, "websocket") != 0 || !accept ||
	    ws_accept_of(key, want) < 0 || strcmp(accept, want) != 0)
		return -EPROTO;
	(void)http_header_add(r, "Upgrade", "websocket");
	(void)http_header_add(r, "Connection", "Upgrade");
	for (unsigned i = 0; i < head->count && e == 0; i++)
		if (strncasecmp(head->fields[i].name, "sec-websocket-", 14) == 0)
			e = http_header_add(r, head->fields[i].name, head->fields[i].value);
	return e < 0 ? -EPROTO : 0;
}
