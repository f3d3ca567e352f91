/* Lists and answers of named objects (pools, snapshots, templates, volumes): one way for all. */
#pragma once

#include "sandbox/objects.h"

struct api_call;
struct jw;

typedef void (*object_write_fn)(struct jw *w, const struct object *o);

/* {"items":[...],"nextCursor":...} of those that the caller may see; ?limit=, ?cursor=. owner NULL:
 * everybody's. */
void object_reply_list(struct api_call *c, enum object_set set, const struct object_filter *filter,
		       object_write_fn write);
void object_reply(struct api_call *c, int status, const struct object *o, object_write_fn write);
/* By id or name; NULL after 404. Another owner's is 404 too. */
struct object *object_of_call(struct api_call *c, enum object_set set, const char *noun,
			      const char *id_or_name);
void object_removed(void *call, struct object *o, const struct err *err); /* 204 */
