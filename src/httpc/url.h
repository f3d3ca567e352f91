/* Addresses of servers, and the parts of a request's target. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct err;

#define URL_MAX 2048u

/* Where a server is: "http://127.0.0.1:8765", "https://holt.example/prefix", "unix:/run/holt.sock".
 */
struct url {
	char base[URL_MAX]; /* without a slash at its end; of a Unix socket: http://localhost */
	char host[256];   /* as a Host header has it: with the port unless it is the scheme's own */
	char prefix[512]; /* path before every target; "" */
	char socket[108]; /* path of the Unix socket; "" */
	bool tls;
	bool loopback; /* never leaves this machine */
};

/* http, https and unix only; no user, password, query or fragment. -EINVAL says what is wrong. */
int url_parse(const char *text, struct url *ret, struct err *err);

/* Appends text as one part of a path, or as a query's name or value: all but unreserved characters
 * become %XX. */
int url_escape(struct buf *b, const char *text);
/* The same for a whole path: slashes stay. */
int url_escape_path(struct buf *b, const char *path);
/* "?name=value", or "&name=value" when b has a query already. */
int url_add_query(struct buf *b, const char *name, const char *value);
