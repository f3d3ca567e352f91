/* An execution that a call waits for: its end is the call's. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct exec_request;
struct sandbox;
struct sandbox_pair;
struct tool_call;

/* Ends the call, whatever happens. */
void running_start(struct tool_call *t, struct sandbox *sb, struct exec_request *req);
/* The same; over() comes once, when it does not run any more or could not be started, before the
 * call ends. */
void running_start_over(struct tool_call *t, struct sandbox *sb, struct exec_request *req,
			void (*over)(void *arg), void *arg);

struct cell_wish { /* code in a context, which is made when there is none of that name */
	const char *language, *code, *context_id;
	uint64_t timeout_ms;
	const struct sandbox_pair *env; /* of this code alone */
	size_t n_env;
};
/* Ends the call, whatever happens. What the wish points to lives as long as the call. */
void cell_start(struct tool_call *t, struct sandbox *sb, const struct cell_wish *wish);
