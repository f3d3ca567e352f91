/* nginx as a reference: one worker that serves one small file, in a daemon's directory. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct err;

struct bench_nginx {
	pid_t master; /* 0: there is none */
	pid_t worker;
	uint16_t port;
};

/* page: what it answers to GET /healthz. Runs on that processor only. */
int bench_nginx_start(struct bench_nginx *n, const char *program, const char *dir, const char *page,
		      int cpu, struct err *err);
void bench_nginx_stop(struct bench_nginx *n);
