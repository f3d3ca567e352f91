/* Two servers, asked by wrk in turn: each on one processor, asked from another. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "cli/bench.h"

/* One server, a number a round. */
struct race_side {
	uint16_t port;
	pid_t pid;
	char path[160];        /* "/healthz" */
	const char *header;    /* "Name: value"; NULL: none */
	struct samples rates;  /* requests a second */
	struct samples cpu_ns; /* of a request */
};

struct race {
	char wrk[256];
	char nginx[256];
	int server_cpu, client_cpu;
	struct race_side ours, theirs;
	struct samples ratios; /* of the rates, in millionths */
};

/* 1, or 0 when a program that is needed is absent: the row then says so. */
int race_init(struct race *race, struct bench_row *row, struct err *err);
void race_done(struct race *race);
int race_run(struct bench *b, struct race *race, struct err *err);
/* The row, and one more for the processor time of a request. */
void race_fill(struct bench *b, struct race *race, struct bench_row *row, const char *what,
	       double demand);
