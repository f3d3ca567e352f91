/* Arguments of a tool that go into headers as well: its schema says which (x-mcp-header), and
 * whoever stands between reads them there. Sans-I/O. */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "json/jv.h"

struct arena;
struct buf;
struct mcpc_mirror; /* opaque: of one tool */

#define MCPC_MIRROR_MAX 32u         /* headers of one tool */
#define MCPC_MIRROR_NAME_MAX 64u    /* bytes of what the schema calls one */
#define MCPC_MIRROR_VALUE_MAX 8192u /* bytes of one value */

/* What a tool, as tools/list has it, wants. *ret NULL: nothing. -EINVAL: what it says about headers
 * is wrong, and it is not to be used; -ENOMEM. */
int mcpc_mirror_read(struct jv tool, struct mcpc_mirror **ret);
struct mcpc_mirror *mcpc_mirror_free(struct mcpc_mirror *m); /* takes NULL, returns NULL */
CLEANUP_FUNC(struct mcpc_mirror *, mcpc_mirror_free)
/* "Mcp-Param-Name: value" of each that is there, in the arena; ended by NULL. As libcurl takes
 * them: one without a value is "Mcp-Param-Name;". -E2BIG, -ENOMEM. */
int mcpc_mirror_write(const struct mcpc_mirror *m, struct jv arguments, struct arena *a,
		      const char *const **ret);
/* Appends a value as a header has it: what is no plain text there becomes =?base64?...?=. */
int mcpc_mirror_value(struct buf *b, struct str value);
