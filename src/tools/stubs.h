/* Functions for tools: a tree of small files, made of what servers say about their tools, with
 * which programs in a sandbox call them. Sans-I/O: tools in, a tar archive out. What servers say is
 * foreign: see stub_text.h. */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "json/jv.h"

#define STUBS_BYTES_MAX (4u << 20) /* of the archive; what does not fit is left off */
#define STUBS_TOOLS_MAX 2048u
#define STUBS_PARAMETERS_MAX 64u /* of one tool; further ones go by **more */

struct stub_tool { /* borrowed for the call */
	const char *server, *name;
	const char *about;       /* "": nothing is said */
	struct jv input, output; /* schemas; may be absent */
};

struct stubs; /* opaque */

struct stubs *stubs_create(void); /* NULL without memory */
struct stubs *stubs_free(struct stubs *s);
CLEANUP_FUNC(struct stubs *, stubs_free)
/* Tools of one server come one behind the other. 0, or it is left off: -E2BIG, -EINVAL (no
 * server), -ENOMEM. */
int stubs_add(struct stubs *s, const struct stub_tool *tool);
/* The archive: borrowed, NULL without memory. */
const struct buf *stubs_end(struct stubs *s);
size_t stubs_left_off(const struct stubs *s);
