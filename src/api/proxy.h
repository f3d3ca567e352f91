/* The door to a port inside a sandbox, as HTTP: a request is read, written anew to a connection
 * that was made inside the box, and so is its answer. No byte of a head passes through as it came,
 * so neither side can make the other see a message that is none.
 *
 * By path (/api/v1/sandboxes/:id/ports/:port/...) a page shares its origin with the API: cookies go
 * neither way, credentials of the API stay here, and browsers are told to keep the page apart. By
 * host name ({port}-{id}.{domain}) each port is an origin of its own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/id.h"

struct api;
struct api_call;
struct buf;
struct config;
struct err;
struct http1_head;
struct http_request;
struct port_info;
struct sandbox;
struct trace_context;

#define PROXY_TOKEN_HEADER "X-Holt-Port-Token"
#define PROXY_COOKIE "holt_port"

struct proxy_target {
	const char *path; /* raw; borrowed from the request */
	const char *query;
	uint16_t port;
	bool is_host;     /* by host name */
	const char *host; /* what the server is told of it instead; NULL: what the client says */
	/* What the box's server is told instead of what the client says; NULL: no tracing */
	const struct trace_context *trace;
	const char *tracestate;
};

struct proxies;
struct proxies *proxies_create(struct api *api); /* NULL without memory */
struct proxies *proxies_free(struct proxies *all);

/* proxy_door.c: whether the request's Host names a port; then it is answered, now or later. */
bool proxy_handle_host(struct api_call *c);
/* Which port of which sandbox the request's Host names; false: none. */
bool proxy_host_names(struct api_call *c, uint16_t *ret_port, char id[ID_LEN + 1]);
/* What such names end with for this client: the domain, with the port by which it reaches us;
 * "localhost" for a client of this machine where no domain is set. NULL: there are none. Arena. */
const char *proxy_domain(struct api_call *c);
/* The port that the path names, for who may reach it, and its sandbox; NULL: answered. */
const struct port_info *proxy_find_port(struct api_call *c, struct sandbox **ret);
/* Goes on at once, or when the paused sandbox is awake, where the port may do that. */
typedef void (*proxy_go_fn)(struct api_call *c, struct sandbox *sb,
			    const struct proxy_target *target);
void proxy_wake(struct api_call *c, struct sandbox *sb, const struct port_info *port,
		const struct proxy_target *target, proxy_go_fn go);
/* No connection was made: 502, 504, or what else is wrong with the sandbox. */
void proxy_reply_unreached(struct api_call *c, unsigned port, const struct err *err);
/* proxy.c: passes the request on. */
void proxy_start(struct api_call *c, struct sandbox *sb, const struct port_info *port,
		 const struct proxy_target *target);

/* proxy_head.c. A WebSocket's request: its key, else NULL. */
const char *proxy_websocket_key(const struct http_request *r);
/* The head as it is sent into the box. -ENOMEM, -E2BIG. */
int proxy_write_request(const struct http_request *r, const struct config *config,
			const struct proxy_target *t, bool is_websocket, struct buf *b);
/* The answer's headers, added to the request. -EPROTO: one that cannot be. */
int proxy_add_answer(struct http_request *r, const struct proxy_target *t,
		     const struct http1_head *head);
/* 0, or -EPROTO: the 101 does not agree to the WebSocket that was asked for. Its headers are added.
 */
int proxy_add_switch(struct http_request *r, const char *key, const struct http1_head *head);
