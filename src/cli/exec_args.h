/* What `exec` takes, and what of it a sandbox that is there already can still be told. */
#pragma once

#include "cli/box_args.h"
#include "cli/client.h"

struct exec_args {
	struct box_args box; /* first */
	struct client_args client;
	const char *cwd;
	bool interactive, background;
};

/* An execution in a sandbox, for POST .../executions. */
struct exec_ask {
	char *const *argv; /* NULL: a shell, with pty */
	int argc;
	const struct opt_list *env;
	const char *cwd, *user; /* NULL: the sandbox's */
	uint64_t timeout_ms;    /* 0: the daemon's */
	bool pty, background, stream;
};

int exec_ask_write(const struct exec_ask *ask, struct buf *b, struct err *err);
/* Starts it in the background; its id is put into dst. */
int exec_ask_start(struct client *c, const char *sandbox, const struct exec_ask *ask,
		   struct client_doc *ret, struct err *err);
/* The exit code; everything was said. */
int exec_in_sandbox(const struct exec_args *args, const char *sandbox, int argc, char **argv);
