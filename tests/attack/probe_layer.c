/* The layers below: files that boxes share with each other and with the machine. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "probe.h"

#define SHARED_FILE "/usr/bin/env"

static uint64_t checksum(const char *path)
{
	static char bytes[1 << 20];
	ssize_t n = slurp(path, bytes, sizeof(bytes));
	uint64_t h = 1469598103934665603u;

	for (ssize_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)bytes[i]) * 1099511628211u;
	return n > 0 ? h : 0;
}

/* The page cache of a file that is only readable, through a pipe that once held its pages. */
static void splice_in(int fd)
{
	loff_t at = 1;
	int p[2];
	char junk[4096];

	if (pipe(p) < 0)
		return;
	for (int i = 0; i < 16; i++)
		(void)write(p[1], junk, sizeof(junk));
	for (int i = 0; i < 16; i++)
		(void)read(p[0], junk, sizeof(junk));
	if (splice(fd, &at, p[1], NULL, 1, 0) == 1)
		(void)write(p[1], "X", 1); /* must not land behind the spliced page */
	(void)close(p[0]);
	(void)close(p[1]);
}

/* The ways by a mapping: shared, shared and then made writable, private and dropped. */
static int write_by_map(int fd, const char *path)
{
	void *p;

	p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED || mprotect(p, 4096, PROT_READ | PROT_WRITE) == 0)
		return broken("%s can be mapped for writing", path);
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (p != MAP_FAILED) {
		memset(p, 'X', 16); /* a copy of ours */
		(void)madvise(p, 4096, MADV_DONTNEED);
	}
	return 0;
}

/* The ways by a call on a descriptor that is open for reading. Modes and sizes are the present
 * ones. */
static int write_by_call(int fd, const char *path)
{
	int own = memfd_create("x", 0);
	struct stat st;

	if (fstat(fd, &st) < 0)
		return not_here("%s: %s", path, strerror(errno));
	if (write(own, "XXXX", 4) == 4 &&
	    copy_file_range(own, &(off_t){ 0 }, fd, &(off_t){ 0 }, 4, 0) > 0)
		return broken("copy_file_range writes to %s", path);
	if (ioctl(fd, 0x40049409 /* FICLONE */, own) == 0)
		return broken("FICLONE replaces %s", path);
	if (fallocate(fd, 0, 0, 1) == 0 || ftruncate(fd, st.st_size) == 0 ||
	    fchmod(fd, st.st_mode & 07777) == 0 || futimens(fd, NULL) == 0)
		return broken("%s can be changed", path);
	return 0;
}

static int write_lower(int argc, char **argv)
{
	const char *path = text(argc, argv, 0, SHARED_FILE);
	uint64_t before = checksum(path);
	int fd = open(path, O_RDONLY | O_CLOEXEC), r;

	if (fd < 0 || !before)
		return not_here("%s: %s", path, strerror(errno));
	if (open(path, O_WRONLY | O_CLOEXEC) >= 0 || open(path, O_RDWR | O_CLOEXEC) >= 0)
		return broken("%s opens for writing", path);
	r = write_by_map(fd, path);
	if (r == 0)
		r = write_by_call(fd, path);
	if (r != 0)
		return r;
	splice_in(fd);
	if (checksum(path) != before)
		return broken("%s has other contents now", path);
	return held("%s is as it was", path);
}

/* Marks by which an overlay would take a file for gone, a directory for opaque, or a path for
 * moved. */
static int overlay_marks(int argc, char **argv)
{
	static const char *const names[] = { "trusted.overlay.opaque",   "trusted.overlay.redirect",
					     "trusted.overlay.metacopy", "trusted.overlay.origin",
					     "security.capability",      "security.ima",
					     "system.posix_acl_bogus" };
	static const char *const places[] = { "/tmp", "/workspace", "/usr", "/etc", "/" };

	(void)argc, (void)argv;
	for (size_t p = 0; p < COUNT(places); p++)
		for (size_t n = 0; n < COUNT(names); n++)
			if (setxattr(places[p], names[n], "y", 1, 0) == 0)
				return broken("%s takes %s", places[p], names[n]);
	/* user.* is harmless as long as our overlays do not read it: the harness looks from
	 * outside. */
	(void)setxattr("/workspace", "user.overlay.opaque", "y", 1, 0);
	return held("no overlay mark sticks: %s", strerror(errno));
}

/* A box whose root may be written: changes it as badly as it can. */
static int deface(int argc, char **argv)
{
	static const char *const victims[] = { "/usr/bin/env", "/etc/passwd", "/usr/bin/cat" };
	int done = 0;

	(void)argc, (void)argv;
	if (!in_a_box())
		return not_here("this does not look like a box");
	done += spill("/usr/holt-defaced", "defaced\n") == 0;
	done += spill("/etc/holt-defaced", "defaced\n") == 0;
	done += spill("/holt-defaced", "defaced\n") == 0;
	for (size_t i = 0; i < COUNT(victims); i++) {
		(void)chmod(victims[i], 0777);
		done += spill(victims[i], "defaced\n") == 0;
		done += rename(victims[i], "/usr/bin/defaced-too") == 0;
	}
	done += unlink("/usr/bin/true") == 0;
	(void)setxattr("/usr/bin", "trusted.overlay.opaque", "y", 1, 0);
	return held("%d changes went through", done);
}

/* What the next box of the same template must not see. */
static int not_defaced(int argc, char **argv)
{
	static const char *const traces[] = { "/usr/holt-defaced", "/etc/holt-defaced",
					      "/holt-defaced", "/usr/bin/defaced-too" };
	static const char *const whole[] = { "/usr/bin/env", "/usr/bin/true", "/usr/bin/cat",
					     "/etc/passwd" };
	char head[16];

	(void)argc, (void)argv;
	for (size_t i = 0; i < COUNT(traces); i++)
		if (access(traces[i], F_OK) == 0)
			return broken("%s of another box is here", traces[i]);
	for (size_t i = 0; i < COUNT(whole); i++)
		if (slurp(whole[i], head, sizeof(head)) <= 0 || strncmp(head, "defaced", 7) == 0)
			return broken("%s was changed by another box", whole[i]);
	return held("the root is as the template has it");
}

/* watch DIR MS: what others do with shared files would show up here. */
static int watch(int argc, char **argv)
{
	const char *dir = text(argc, argv, 0, "/usr/bin");
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	char events[4096] __attribute__((aligned(8)));
	const struct inotify_event *e = (const void *)events;

	if (fd < 0 || inotify_add_watch(fd, dir, IN_ALL_EVENTS) < 0) {
		puts("ready");
		return held("no watch on %s: %s", dir, strerror(errno));
	}
	while (read(fd, events, sizeof(events)) > 0)
		; /* our own start */
	puts("ready");
	fflush(stdout);
	sleep_ms((unsigned)number(argc, argv, 1, 1000));
	if (read(fd, events, sizeof(events)) > 0)
		return broken("saw somebody use %s/%s", dir, e->len ? e->name : "?");
	return held("nothing to see in %s", dir);
}

/* flock-hold PATH MS and flock-try PATH: a lock as a message to another box. */
static int flock_hold(int argc, char **argv)
{
	int fd = open(text(argc, argv, 0, SHARED_FILE), O_RDONLY | O_CLOEXEC);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return held("no lock: %s", strerror(errno));
	puts("ready");
	fflush(stdout);
	sleep_ms((unsigned)number(argc, argv, 1, 1000));
	return held("held the lock");
}

static int flock_try(int argc, char **argv)
{
	int fd = open(text(argc, argv, 0, SHARED_FILE), O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return not_here("open: %s", strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return broken("another box's lock is seen here");
	return held("no lock of another box");
}

/* cached PATH: whether a file's pages are in memory tells what others read. */
static int cached(int argc, char **argv)
{
	const char *path = text(argc, argv, 0, SHARED_FILE);
	uint64_t range[2] = { 0, 0 }, stat_[5] = { 0 };
	unsigned char core[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *p;

	if (fd < 0 || fstat(fd, &st) < 0)
		return not_here("%s: %s", path, strerror(errno));
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED || st.st_size > (off_t)(4096 * sizeof(core)))
		return not_here("%s: cannot be mapped", path);
	if (syscall(SYS_cachestat, fd, range, stat_, 0) == 0)
		return broken("cachestat tells: %llu pages", (unsigned long long)stat_[0]);
	if (mincore(p, (size_t)st.st_size, core) == 0)
		for (off_t i = 0; i < st.st_size / 4096; i++)
			if (!(core[i] & 1))
				return broken("mincore tells: page %lld is not in memory",
					      (long long)i);
	return held("mincore and cachestat tell nothing");
}

const struct probe probes_layer[] = {
	{ "write-lower", write_lower },
	{ "overlay-marks", overlay_marks },
	{ "deface", deface },
	{ "not-defaced", not_defaced },
	{ "watch", watch },
	{ "flock-hold", flock_hold },
	{ "flock-try", flock_try },
	{ "cached", cached },
	{ NULL, NULL },
};
