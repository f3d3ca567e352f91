/* Many sandboxes of one daemon. */
#pragma once

#include "cli/bench.h"
#include "cli/bench_daemon.h"

struct fleet {
	struct own_daemon d;
	struct bench_sandbox *boxes; /* owned; they live */
	size_t len;
};

/* bench_streams.c: executions in as many sandboxes at once, each streaming its own bytes. */
int fleet_streams(struct bench *b, struct fleet *f, size_t n, struct err *err);
