/* From what a client sent to what is to be started. */
#pragma once

#include <stddef.h>

#include "sandbox/exec.h"

struct arena;
struct body_exec;
struct config;
struct jv_problem;

struct exec_plan {
	struct exec_request req; /* borrowed from the body and the arena */
	const char *stdin_text;  /* arena: given at once, then the end; NULL: none */
	size_t stdin_len;
};

/* -EINVAL with the problem, -ENOMEM. */
int exec_plan(const struct body_exec *body, const struct config *config, struct arena *a,
	      struct exec_plan *ret, struct jv_problem *problem);
