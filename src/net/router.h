/* From method and path to a row of the caller's table. The table is compiled once; a look-up walks
 * the path's segments once and allocates only the parameters' values. */
#pragma once

#include <stddef.h>

struct arena;
struct err;
struct router; /* opaque */

/* What every row begins with; the caller's rows add their handler and whatever else they like:
 *   struct api_route { struct route route; void (*handle)(struct api_call *); };
 *   { { "GET", "/api/v1/sandboxes/:id", SCOPE_READ, 0 }, api_sandbox_get }, */
struct route {
	const char *method;
	const char *pattern; /* ":name" is one non-empty segment, "*name" (last) all that is left,
				which may be nothing */
	unsigned scope;      /* scope and flags are the caller's; not looked at */
	unsigned flags;
};

#define ROUTER_PARAMS_MAX 8
struct router_match {
	const struct route *route; /* the row; NULL unless found */
	const char *allow;         /* "GET, HEAD, POST": filled in for -ENOTSUP, arena */
	unsigned count;
	struct {
		const char *name;  /* borrowed from the pattern */
		const char *value; /* percent-decoded, arena */
	} params[ROUTER_PARAMS_MAX];
};

/* rows: the first row's struct route; stride: the size of one row. The table is borrowed. -EINVAL
 * for a bad pattern, -EEXIST for two rows that say the same. */
int router_create(const struct route *rows, size_t count, size_t stride, struct router **ret,
		  struct err *err);
struct router *router_free(struct router *t);

/* path: raw, beginning with '/'. A fixed segment beats a ":name", that beats a "*name". HEAD finds
 * GET's row unless it has its own. Nothing is normalised: "//" and the segments "." and ".." match
 * only inside a "*name", and arrive there as they are.
 * 0; -ENOENT (404); -ENOTSUP (405, m->allow); -EINVAL (400: bad escape or %00); -ENOMEM. */
int router_find(const struct router *t, const char *method, const char *path, struct arena *a,
		struct router_match *m);
const char *router_param(const struct router_match *m, const char *name); /* NULL when absent */
