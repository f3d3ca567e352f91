/* The table of routes: what there is, who may, which body, who answers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "net/router.h"

struct api_call;
struct jv_field;
struct route_query;

#define ROUTES_BOX "/api/v1/sandboxes/:id" /* what begins so is about one sandbox */

enum route_flag {
	ROUTE_PUBLIC = 1 << 0, /* no key needed; without it a route needs one, whatever its scope */
	ROUTE_SOCKET = 1 << 1, /* becomes a WebSocket; the key may be in ?token= */
	ROUTE_METRICS = 1 << 2, /* public when the configuration says so */
	ROUTE_PORT = 1 << 3,    /* without a key the handler looks for the port's own token */
	ROUTE_OWN = 1 << 4,     /* of keys: the caller's own, also for an admin */
	ROUTE_SIGNED = 1 << 5,  /* of files: a signed address is as good as a key */
};

/* A JSON body: the dispatcher reads it into api_call.body before the handler is called. */
struct route_body {
	const char *name; /* of its schema */
	const struct jv_field *fields;
	size_t count;
	size_t size;          /* of the struct */
	const void *defaults; /* one such struct, for what is absent; NULL: zeroed */
	bool is_optional;     /* no body is as good as {} */
};

/* The class of a route whose rate is limited (auth/buckets.h). */
enum route_rate {
	ROUTE_RATE_BY_METHOD, /* GET reads, all others write */
	ROUTE_RATE_READ,
	ROUTE_RATE_WRITE,
	ROUTE_RATE_EXEC,
	ROUTE_RATE_CREATE,
};

struct api_route {
	struct route route;
	void (*handle)(struct api_call *c);
	const struct route_body *body; /* NULL: none, or the handler takes it as bytes */
	const char *summary;
	const char *answer; /* schema of a good answer (schemas.c); NULL: none, or no JSON */
	/* What the rest says is for the OpenAPI document; query is held by the dispatcher. */
	const struct route_query *query; /* NULL: takes none */
	const char *about;               /* a sentence or two more; NULL: none */
	const char *media;               /* of a good answer beside JSON, or of bytes; NULL: none */
	const char *takes;               /* media type of a body that is bytes; NULL: none */
	short good[3]; /* statuses of good answers; none: 200 with an answer or media, else 204 */
	short bad[4];  /* statuses of errors that this route has beyond those of its kind */
	unsigned char rate; /* enum route_rate */
};

struct api_route_table { /* of a door */
	const struct api_route *rows;
	size_t count;
};

const struct api_route *routes_table(size_t *ret_count);
