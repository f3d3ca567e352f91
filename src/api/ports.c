/* Ports of a sandbox: which are exposed, and which listen. */
#include <errno.h>
#include <string.h>

#include "api/bodies.h"
#include "api/call.h"
#include "api/file_job.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "api/proxy.h"
#include "auth/port_token.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/str.h"
#include "config/config.h"
#include "net/http.h"
#include "sandbox/files.h"
#include "sandbox/ports.h"
#include "sandbox/sandbox.h"
#include "json/jw.h"

#define LISTING_MAX (1u << 20) /* bytes about ports that listen */

struct port_call { /* in the request's arena */
	struct api_call *call;
	char sandbox_id[ID_LEN + 1];
	char token[PORT_TOKEN_SIZE];
};

_Static_assert(PORT_HASH_LEN == HASH_LEN, "a token's hash is kept whole");

/* The address that a browser can use: the one by host name where there is a domain. */
static void write_url(struct jw *w, struct api_call *c, const char *id, uint16_t port)
{
	const struct config *config = c->api->deps.config;
	const char *base = call_base(c);
	const char *domain = config->domain && config->domain[0] ? proxy_domain(c) : NULL;
	_cleanup_(buf_done) struct buf url = { 0 };

	if (domain)
		(void)buf_printf(&url, "%s://%u-%s.%s/", http_is_tls(c->http) ? "https" : "http",
				 port, id, domain);
	else
		(void)buf_printf(&url, "%s/api/v1/sandboxes/%s/ports/%u/", base ? base : "", id,
				 port);
	jw_str_field(w, "url", buf_str(&url));
}

static void write_port(struct jw *w, struct api_call *c, const char *id, const struct port_info *p,
		       const char *token)
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

/* ---- both lists ---- */

struct listing {             /* in the request's arena */
	struct file_job job; /* first */
	struct buf text;     /* owned: those that listen as JSON, as they come */
	struct jw w;         /* writes into it */
	uint64_t told;
};

static void listing_done(struct listing *l)
{
	file_job_end(&l->job);
	buf_done(&l->text);
}

static void listing_gone(void *user, struct http_request *r)
{
	(void)r;
	listing_done(user);
}

/* total: of those that listen; has_asked: the sandbox could tell. */
static void reply_listing(struct listing *l, bool has_asked, uint64_t total)
{
	const struct port_info *ports[PORT_EXPOSED_MAX];
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct api_call *c = l->job.call;
	struct sandbox *sb = call_find_sandbox(c);
	size_t n = sb ? port_list(sb, ports, PORT_EXPOSED_MAX) : 0;
	struct sandbox_info info = { 0 };

	if (sb)
		sandbox_info(sb, &info);
	jw_object_begin(&w);
	jw_key(&w, "items");
	jw_array_begin(&w);
	for (size_t i = 0; i < n && i < PORT_EXPOSED_MAX; i++)
		write_port(&w, c, info.id, ports[i], NULL);
	jw_array_end(&w);
	jw_array_end(&l->w);
	if (has_asked && !l->w.failed)
		jw_raw_field(&w, "listening", buf_str(&l->text), l->text.len);
	else
		jw_null_field(&w, "listening");
	jw_bool_field(&w, "truncated", has_asked && total > l->told);
	jw_object_end(&w);
	listing_done(l);
	call_reply(c, 200, &w);
}

static void listener_found(void *user, const struct guest_found *f)
{
	struct listing *l = user;
	struct sandbox *sb = call_find_sandbox(l->job.call);

	if (f->kind != FOUND_PORT || f->number == 0 || f->number > UINT16_MAX ||
	    l->told >= GUEST_PORTS_MAX)
		return; /* a box that lies */
	l->told++;
	jw_object_begin(&l->w);
	jw_uint_field(&l->w, "port", f->number);
	jw_str_field(&l->w, "address", f->path);
	if (f->column > 0)
		jw_uint_field(&l->w, "pid", f->column);
	else
		jw_null_field(&l->w, "pid");
	jw_str_field(&l->w, "command", f->text[0] ? f->text : NULL);
	jw_bool_field(&l->w, "exposed", sb && port_find(sb, (uint16_t)f->number));
	jw_object_end(&l->w);
}

static void listeners_done(void *user, uint64_t count)
{
	struct listing *l = user;

	l->job.op = NULL;
	reply_listing(l, true, count);
}

static void listeners_failed(void *user, const struct err *err)
{
	struct listing *l = user;

	(void)err; /* what is exposed is known all the same */
	l->job.op = NULL;
	reply_listing(l, false, 0);
}

void api_port_list(struct api_call *c)
{
	static const struct file_ops ops = { .found = listener_found,
					     .done = listeners_done,
					     .failed = listeners_failed };
	struct guest_file f = { .op = FILE_PORTS, .user = "", .path = "/", .target = "" };
	struct listing *l = arena_alloc(http_arena(c->http), sizeof(*l));
	struct err err = { 0 };

	if (!call_sandbox(c))
		return;
	if (!l)
		return problem_reply(c, &(struct err){ ENOMEM, "ports" });
	l->job.call = c;
	buf_init(&l->text, LISTING_MAX);
	l->w = jw_begin(&l->text);
	jw_array_begin(&l->w);
	if (file_job_try(&l->job, &f, &ops, l, &err) < 0)
		return reply_listing(l, false, 0);
	http_on_gone(c->http, listing_gone, l);
}
