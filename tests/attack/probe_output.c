/* Output without end, without newline, without sense. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <pthread.h>

#include "probe.h"

/* flood FD MIB: writes that much, or until nobody takes it. FD 3 means both. */
static int flood(int argc, char **argv)
{
	int which = (int)number(argc, argv, 0, 1);
	uint64_t want = number(argc, argv, 1, 64) << 20;
	bool newline = strcmp(text(argc, argv, 2, "line"), "line") != 0;
	static char block[64 << 10];

	memset(block, 'A', sizeof(block));
	if (newline)
		for (size_t i = 99; i < sizeof(block); i += 100)
			block[i] = '\n';
	for (uint64_t n = 0; n < want;) {
		int fd = which == 3 ? 1 + (int)((n >> 16) & 1) : which;
		ssize_t w = write(fd, block, sizeof(block));

		if (w < 0)
			return 3;
		n += (uint64_t)w;
	}
	return 0;
}

/* A great many small writes. */
static int drip(int argc, char **argv)
{
	uint64_t n = number(argc, argv, 0, 100000);

	for (uint64_t i = 0; i < n; i++)
		if (write(1, "x\n", 2) != 2)
			return 3;
	return 0;
}

/* Bytes that mean something to whoever shows or parses them: frames, events, escapes, NULs. */
static int forge(int argc, char **argv)
{
	static const char bytes[] =
		"\x01\x00\x43\x00\x01\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00"
		"\nevent: exit\ndata: {\"code\":0}\n\n\r\nHTTP/1.1 200 OK\r\n\r\n"
		"\x1b]0;owned\x07\x1b[2J\xff\xfe\xed\xa0\x80\x00\x00held: no\n";

	(void)argc, (void)argv;
	for (int i = 0; i < 200; i++)
		if (write(1 + (i & 1), bytes, sizeof(bytes) - 1) < 0)
			return 3;
	return 7;
}

static void *spin(void *arg)
{
	for (volatile unsigned n = 0;;)
		n++;
	return arg;
}

/* burn THREADS MS */
static int burn(int argc, char **argv)
{
	uint64_t n = number(argc, argv, 0, 8);
	pthread_t t;

	for (uint64_t i = 0; i < n; i++)
		if (pthread_create(&t, NULL, spin, NULL) != 0)
			return not_here("no thread");
	sleep_ms((unsigned)number(argc, argv, 1, 3000));
	return held("burned with %llu threads", (unsigned long long)n);
}

/* burn-low THREADS MS: the same, with PID 1 and everything else of this user put last in line. */
static int burn_low(int argc, char **argv)
{
	(void)setpriority(PRIO_PROCESS, 1, 19);
	(void)setpriority(PRIO_PGRP, 1, 19);
	(void)setpriority(PRIO_USER, 0, 19);
	(void)setpriority(PRIO_USER, getuid(), 19);
	return burn(argc, argv);
}

const struct probe probes_output[] = {
	{ "flood", flood }, { "drip", drip },         { "forge", forge },
	{ "burn", burn },   { "burn-low", burn_low }, { NULL, NULL },
};
