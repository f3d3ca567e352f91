/* What exec and run-code share: an execution in a box of its own, and its report. */
#pragma once

#include "cli/box_args.h"

struct session;

struct run_request {
	const struct box_args *box;
	struct guest_exec *exec; /* kind, argv and code are filled in; the rest comes from box */
	/* A program too long for a request is written into the box first; NULL: none. */
	const char *file_path;
	const void *file_data;
	size_t file_len;
	bool no_input; /* our standard input is not the program's */
};

/* The exit code; everything was said or printed. */
int run_in_box(const struct run_request *req);
