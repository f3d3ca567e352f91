/* From the bytes of a request's body to what its handler wants: taken, parsed, decoded and given
 * back in one place for all protocols. What a handler does to the request, its end included, does
 * not matter to what was parsed: nothing of that is in the request's memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/routes.h"
#include "base/str.h"

struct api_call;
struct err;
struct jv_doc;

struct body_plan {  /* copied */
	size_t max; /* bytes; above it the client gets 413 */
	/* What it is decoded into, at c->body; size 0: the document is wanted as it is. */
	struct route_body table;
	bool takes_unknown; /* fields that are not in the table are passed over */
	/* Finds the document in what came; false after an answer. NULL: all of it. */
	bool (*unwrap)(struct api_call *c, struct str *data);
	/* *doc is NULL when there was no body and none is needed. TAKE(*doc) keeps it; else it is
	 * freed when this returns. */
	void (*got)(struct api_call *c, const void *user, struct jv_doc **doc);
	/* field: what is wrong of it; "": the whole. NULL: as problem.h answers. */
	void (*refuse)(struct api_call *c, const struct err *err, const char *field);
	const void *user; /* borrowed, outlives the call */
};
void body_take(struct api_call *c, const struct body_plan *plan);
