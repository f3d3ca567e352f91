/* MCP over HTTP to others' servers: Streamable HTTP of both eras. A message is a POST; what comes
 * back is one message or a stream of them. In the legacy era a stream that breaks off is taken up
 * again where it was (Last-Event-ID), the session is ended at the end, and what the server says by
 * itself comes on a stream of its own (GET). Servers of 2024-11-05, which know another way, are
 * spoken to in that. Redirects are refused. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "mcpc/mcpc.h"

struct courier;

struct mcpc_auth; /* begins with .ops: whoever gets tokens (oauth.h) */

struct mcpc_auth_ops {
	/* The token to send now; NULL: none (yet). Borrowed for the call. *ret_number: which one it
	 * is. */
	const char *(*token)(struct mcpc_auth *a, uint64_t *ret_number);
	/* The server wants another one than that number: status 401 or 403, and its
	 * WWW-Authenticate (NULL: none). done() comes once, later: without err the request is sent
	 * again, with the token of then. -errno: there is no way, the refusal stands. One request
	 * is refused twice at most. */
	int (*refused)(struct mcpc_auth *a, uint64_t number, int status, const char *challenge,
		       void (*done)(void *user, const struct err *err), void *user);
	/* done() of this user does not come any more. */
	void (*forget)(struct mcpc_auth *a, void *user);
};

struct mcpc_auth {
	const struct mcpc_auth_ops *ops;
};

#define MCPC_HEADERS_MAX 32u /* of the configuration */

struct mcpc_http_options {          /* copied, but for what is borrowed */
	struct loop *loop;          /* borrowed */
	struct courier *courier;    /* borrowed */
	const char *url;            /* of the endpoint: http or https */
	const char *server;         /* instead: where it is, as url_parse() takes it; url is the
				       target then ("/mcp"); NULL */
	const char *ca_file;        /* NULL: the system's */
	const char *const *headers; /* "Name: value", ended by NULL; or NULL */
	struct mcpc_auth *auth;     /* borrowed; NULL: none */
	bool public_only;           /* see httpc/guard.h */
	bool is_old; /* HTTP+SSE of 2024-11-05; it is tried in any case when all else is refused */
};

int mcpc_http_create(const struct mcpc_http_options *o, struct mcpc_transport **ret,
		     struct err *err);
