/* The code interpreter's calls (port tag 49999), over contexts: what the two files of it share. */
#pragma once

#include "sandbox/context.h"

struct api_call;
struct err;
struct route_body;
struct sandbox;

/* Which interpreter code runs in: a context by its id, or the default one of a language, which is
 * made when it is first wanted. */
struct code_wish {
	const char *context_id; /* NULL: the language's default one */
	enum context_language language;
};

/* One that has failed is started anew. ctx is borrowed for the call; NULL: it has been answered. */
typedef void (*code_ready_fn)(struct api_call *c, struct context *ctx, void *user);
void code_context(struct api_call *c, struct sandbox *sb, const struct code_wish *wish,
		  code_ready_fn ready, void *user);
/* NULL or "": Python. False after 400: there is no such language here. */
bool code_language(struct api_call *c, const char *name, enum context_language *ret);
/* Errors of contexts, as text. */
void code_problem(struct api_call *c, const struct err *err);

extern const struct route_body e2b_body_execute, e2b_body_context;
