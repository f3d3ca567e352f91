/* What the commands about contexts share. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "cli/client.h"

struct context_args {
	struct client_args client;
	const char *language, *name, *cwd, *file;
	struct opt_list env;
	uint64_t timeout_ms;
};

/* Makes a context; its id is appended to *ret_id. With --json the answer is printed. */
int context_make(struct client *c, const struct context_args *a, const char *sandbox,
		 struct buf *ret_id, struct err *err);
/* Runs code in it and shows what came: output, values, an error on standard error. 0, negative with
 * err filled, or CLI_FAILED when the run did not end well. */
int context_run_code(struct client *c, const struct context_args *a, const char *sandbox,
		     const char *context, const struct buf *code, struct err *err);
/* What is left of standard input, or of the file. */
int context_read_code(const char *file, struct buf *ret, struct err *err);
