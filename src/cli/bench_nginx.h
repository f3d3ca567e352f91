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

struct bench_nginx_options {
	const char *program;
	const char *dir;  /* of its files; made when it is not there */
	const char *page; /* what it answers to GET /healthz */
	int cpu;          /* the processor that it runs on; -1: any */
	uint16_t origin;  /* 0: it serves the page; else it passes requests on to this port */
};
int bench_nginx_start(struct bench_nginx *n, const struct bench_nginx_options *o, struct err *err);
void bench_nginx_stop(struct bench_nginx *n);
