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
/* context_run.c. Blocks the signals that context_run_code() and the loop of lines handle. */
void context_block_signals(void);
int context_signal_fd(struct err *err); /* to read them from; the caller's, or -errno */
/* Runs code in it and shows what comes as it comes: output, values, an error on standard error.
 * SIGINT interrupts the run, whose state is kept; another signal that would end us does so, too.
 * *ret_signal (may be NULL) is the one that came, or 0. 0, negative with err filled, or an exit
 * code: CLI_FAILED when the run did not end well, CLI_SIGNAL and more when a signal came. */
int context_run_code(struct client *c, const struct context_args *a, const char *sandbox,
		     const char *context, const struct buf *code, int *ret_signal, struct err *err);
/* What is left of standard input, or of the file. */
int context_read_code(const char *file, struct buf *ret, struct err *err);
