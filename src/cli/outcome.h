/* How a run in a box ended, and what a person and a shell are told about it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "provider/launcher.h"
#include "spec/guest.h"

struct outcome {
	bool ended;   /* exit is valid */
	bool started; /* the program ran */
	bool warm;    /* in an interpreter that was waiting */
	struct guest_exit exit;
	int fail_code;       /* positive errno when the box could not run it or went away */
	char fail_text[240]; /* and why */
	int signal;          /* that told us to stop; 0: none */
	bool output_closed;  /* nobody reads our standard output any more */
	struct box_usage usage;
};

struct run_facts {
	const struct launcher_box *box;
	const struct outcome *outcome;
	const struct buf *out, *err;
	const char *level, *net;
	uint32_t timeout_ms;
	unsigned not_enforced; /* enum cgroup_controller bits */
};

/* The exit code. `reason` gets a line for stderr, or stays empty when the code says it all. */
int outcome_exit_code(const struct run_facts *f, struct buf *reason);
/* Appends the JSON object of --json, with its newline. */
int outcome_json(const struct run_facts *f, struct buf *ret);
/* "256 MiB", "1.5 GiB", "700 B": for people. */
void outcome_size(uint64_t bytes, char dst[32]);
