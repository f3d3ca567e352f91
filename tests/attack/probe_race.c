/* What runs inside while the file API works from outside: swaps, growth, locks, maps. Each prints
 * "ready" first, so that the harness begins when it is under way. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

#define EXCHANGE 2u /* RENAME_EXCHANGE */

static void ready(void)
{
	puts("ready");
	fflush(stdout);
}

static long exchange(const char *a, const char *b)
{
	return syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, EXCHANGE);
}

/* swap TARGET MS: /workspace/race/d is a directory one moment, a link to TARGET the next. */
static int swap(int argc, char **argv)
{
	const char *target = text(argc, argv, 0, "/etc");
	uint64_t until = now_ms() + number(argc, argv, 1, 2000), n = 0;

	if (mkdir("/workspace/race", 0777) < 0 || chdir("/workspace/race") < 0 ||
	    mkdir("d", 0777) < 0 || symlink(target, "l") < 0)
		return not_here("/workspace/race: %s", strerror(errno));
	ready();
	for (; now_ms() < until; n++)
		for (int i = 0; i < 64; i++)
			(void)exchange("d", "l");
	return held("%llu swaps", (unsigned long long)n * 64);
}

/* swap-parent MS: the directory that holds the file moves out of /workspace and back. */
static int swap_parent(int argc, char **argv)
{
	uint64_t until = now_ms() + number(argc, argv, 0, 2000), n = 0;

	if (mkdir("/workspace/p", 0777) < 0 || mkdir("/workspace/p/q", 0777) < 0 ||
	    mkdir("/workspace/else", 0777) < 0)
		return not_here("/workspace/p: %s", strerror(errno));
	ready();
	for (; now_ms() < until; n++) {
		(void)rename("/workspace/p/q", "/workspace/else/q");
		(void)rename("/workspace/else/q", "/workspace/p/q");
		if (n % 16 == 0) {
			(void)rename("/workspace/p/q",
				     "/tmp/q"); /* another mount, where it is one */
			(void)rename("/tmp/q", "/workspace/p/q");
		}
	}
	return held("%llu moves", (unsigned long long)n);
}

/* grow PATH MS and shrink PATH MS: the size is another one each time one looks. */
static int grow(int argc, char **argv)
{
	const char *path = text(argc, argv, 0, "/workspace/grow");
	uint64_t until = now_ms() + number(argc, argv, 1, 1000);
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	static char block[4096];

	if (fd < 0)
		return not_here("%s: %s", path, strerror(errno));
	memset(block, 'g', sizeof(block));
	(void)write(fd, block, sizeof(block));
	ready();
	while (now_ms() < until)
		if (write(fd, block, sizeof(block)) < 0)
			(void)ftruncate(fd, 4096);
	return held("grew");
}

static int shrink(int argc, char **argv)
{
	const char *path = text(argc, argv, 0, "/workspace/shrink");
	uint64_t until = now_ms() + number(argc, argv, 1, 1000), n = 0;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	if (fd < 0)
		return not_here("%s: %s", path, strerror(errno));
	(void)ftruncate(fd, 4 << 20);
	ready();
	for (; now_ms() < until; n++)
		(void)ftruncate(fd, n % 2 ? 4 << 20 : (off_t)(n % 7) * 1000);
	return held("%llu sizes", (unsigned long long)n);
}

/* lock PATH MS: every lock and lease that can be had on a file the API wants. */
static int lock(int argc, char **argv)
{
	const char *path = text(argc, argv, 0, "/workspace/locked");
	struct flock range = { .l_type = F_WRLCK };
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666), lease;

	if (fd < 0)
		return not_here("%s: %s", path, strerror(errno));
	(void)signal(SIGIO, SIG_IGN);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fcntl(fd, F_SETLK, &range) < 0)
		return not_here("lock: %s", strerror(errno));
	lease = fcntl(fd, F_SETLEASE, F_WRLCK);
	ready();
	sleep_ms((unsigned)number(argc, argv, 1, 3000));
	return held("locks held, lease %s", lease == 0 ? "held" : "refused");
}

static sigjmp_buf fault;

static void on_fault(int signo)
{
	siglongjmp(fault, signo);
}

/* map PATH MS: looks at a mapped file while the API replaces or cuts it. */
static int map(int argc, char **argv)
{
	const char *path = text(argc, argv, 0, "/workspace/mapped");
	uint64_t until = now_ms() + number(argc, argv, 1, 1000);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	volatile char *p;

	if (fd < 0 || ftruncate(fd, 1 << 20) < 0)
		return not_here("%s: %s", path, strerror(errno));
	p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return not_here("mmap: %s", strerror(errno));
	(void)signal(SIGBUS, on_fault);
	if (sigsetjmp(fault, 1))
		return held("the map was cut: a fault in here, and only here");
	ready();
	while (now_ms() < until)
		for (size_t i = 0; i < 1 << 20; i += 4096)
			p[i] = (char)(p[i] + 1);
	return held("the map held");
}

/* remake PATH MS: the file is deleted and made again, as file, directory, fifo and link in turn. */
static int remake(int argc, char **argv)
{
	const char *path = text(argc, argv, 0, "/workspace/remade");
	uint64_t until = now_ms() + number(argc, argv, 1, 1000), n = 0;

	(void)spill(path, "x");
	ready();
	for (; now_ms() < until; n++) {
		(void)unlink(path);
		(void)mkfifo(path, 0666);
		(void)unlink(path);
		(void)symlink("/proc/1/mem", path);
		(void)unlink(path);
		(void)mkdir(path, 0777);
		(void)rmdir(path);
		(void)spill(path, "x");
	}
	return held("%llu rounds", (unsigned long long)n);
}

const struct probe probes_race[] = {
	{ "swap", swap },     { "swap-parent", swap_parent },
	{ "grow", grow },     { "shrink", shrink },
	{ "lock", lock },     { "map", map },
	{ "remake", remake }, { NULL, NULL },
};
