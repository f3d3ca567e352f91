/* What benchmarks do at a daemon of their own. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/bench_fetch.h"
#include "cli/own_daemon.h"

struct err;

struct bench_sandbox {
	char id[24];
	bool is_warm; /* it came from the pool */
};

/* The one setting that a daemon of ours takes from our environment. */
#define BENCH_SETTING "HOLT_AUDIT"
int bench_daemon_start(struct own_daemon *d, struct err *err);

/* The body for a sandbox of so many cores, or of all that the machine has; 0: as is usual. more:
 * further resources, each with a comma before it. */
#define BENCH_BOX 96
void bench_box(char dst[BENCH_BOX], uint32_t cores, const char *more);
/* body: of the request that makes it. */
int bench_sandbox_create(struct own_daemon *d, const char *body, struct bench_sandbox *ret,
			 struct err *err);
int bench_sandbox_delete(struct own_daemon *d, const char *id, struct err *err);
/* "/api/v1/sandboxes/<id>/<rest>" */
#define BENCH_TARGET 128
void bench_target(char dst[BENCH_TARGET], const char *id, const char *rest);
/* Until the pool of a template is as full as it wants to be. */
int bench_pool_wait(struct own_daemon *d, const char *name, struct err *err);

/* bench_proc.c: what a process takes of the machine. */
int bench_rss(pid_t pid, uint64_t *ret_bytes);  /* of main memory */
int bench_cpu_ns(pid_t pid, uint64_t *ret_ns);  /* of all its threads that live */
int bench_pin(pid_t pid, int cpu);              /* all its threads */
int bench_cpus(int *ret_first, int *ret_other); /* that we may use; the same where there is one */
/* The first child of parent; name: of those that are called so. */
int bench_child(pid_t parent, const char *name, pid_t *ret);
void bench_nap_ms(long ms);
