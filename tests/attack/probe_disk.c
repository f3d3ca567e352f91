/* Disk space, inodes, and trees that are hard to walk. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "probe.h"

#define MIB (1ull << 20)
#define BLOCK (64u << 10)

static const char *const writable[] = { "/tmp",       "/var/tmp", "/workspace",
					"/home/user", "/dev/shm", "/run/user/1000" };

/* Writes until it is refused or `most` is reached; bytes written. */
static uint64_t fill_file(const char *path, uint64_t most)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	uint64_t n = 0;
	ssize_t w;
	char *block;

	if (fd < 0)
		return 0;
	block = malloc(BLOCK);
	if (!block)
		return 0;
	memset(block, 'd', BLOCK);
	while (n < most && (w = write(fd, block, BLOCK)) > 0)
		n += (uint64_t)w;
	free(block);
	(void)close(fd);
	return n;
}

static uint64_t fill_many(const char *dir, uint64_t most)
{
	char path[256];
	uint64_t n = 0;

	for (unsigned i = 0; n < most; i++) {
		uint64_t got;

		(void)snprintf(path, sizeof(path), "%s/f%06u", dir, i);
		got = fill_file(path, BLOCK);
		if (got == 0)
			break;
		n += got;
	}
	return n;
}

static int bounded(const char *what, uint64_t got, uint64_t limit)
{
	unsigned long long g = got, l = limit;

	if (got > limit)
		return broken("%s: %llu, limit %llu", what, g, l);
	if (got == 0)
		return not_here("%s: not writable: %s", what, strerror(errno));
	return held("%s: stopped at %llu of %llu: %s", what, g, l, strerror(errno));
}

/* fill DIR one|many MIB */
static int fill(int argc, char **argv)
{
	const char *dir = text(argc, argv, 0, "/tmp");
	bool many = strcmp(text(argc, argv, 1, "one"), "many") == 0;
	uint64_t limit = number(argc, argv, 2, 16) * MIB;
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/fill", dir);
	return bounded(dir, many ? fill_many(dir, limit * 4) : fill_file(path, limit * 4), limit);
}

/* All writable places one after the other share one quota. */
static int fill_all(int argc, char **argv)
{
	uint64_t limit = number(argc, argv, 0, 16) * MIB, sum = 0;
	char path[256];

	for (size_t i = 0; i < COUNT(writable); i++) {
		(void)snprintf(path, sizeof(path), "%s/all", writable[i]);
		sum += fill_file(path, limit * 2);
	}
	return bounded("all places", sum, limit);
}

/* No place but the known ones takes a file. */
static int elsewhere(int argc, char **argv)
{
	static const char *const closed[] = {
		"/",        "/usr",      "/usr/bin",    "/usr/lib",   "/usr/local", "/etc",
		"/bin",     "/lib",      "/lib64",      "/sbin",      "/var",       "/var/log",
		"/var/lib", "/opt",      "/srv",        "/root",      "/home",      "/mnt",
		"/media",   "/boot",     "/sys",        "/proc",      "/dev",       "/dev/pts",
		"/run",     "/run/lock", "/dev/mqueue", "/proc/self", "/usr/share", "/etc/ssl",
	};
	char path[256];

	(void)argc, (void)argv;
	for (size_t i = 0; i < COUNT(closed); i++) {
		(void)snprintf(path, sizeof(path), "%s/holt-attack-canary", closed[i]);
		if (open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0) {
			(void)unlink(path);
			return broken("a file can be made in %s", closed[i]);
		}
	}
	return held("%zu directories take no file", COUNT(closed));
}

static int make_inode(const char *kind, const char *path)
{
	if (strcmp(kind, "dir") == 0)
		return mkdir(path, 0700);
	if (strcmp(kind, "link") == 0)
		return symlink("nowhere", path);
	if (strcmp(kind, "fifo") == 0)
		return mkfifo(path, 0600);
	return spill(path, "");
}

/* inodes file|dir|link|fifo LIMIT DIR */
static int inodes(int argc, char **argv)
{
	const char *kind = text(argc, argv, 0, "file"), *dir = text(argc, argv, 2, "/tmp");
	uint64_t limit = number(argc, argv, 1, 65536), n = 0;
	char path[256];

	while (n < limit * 2) {
		(void)snprintf(path, sizeof(path), "%s/i%llu", dir, (unsigned long long)n);
		if (make_inode(kind, path) < 0)
			break;
		n++;
	}
	return bounded(kind, n, limit);
}

static int hardlinks(int argc, char **argv)
{
	uint64_t limit = number(argc, argv, 0, 65536), n = 0;
	char path[256];

	if (spill("/tmp/one", "x") < 0)
		return not_here("/tmp/one: %s", strerror(errno));
	while (n < limit * 2) {
		(void)snprintf(path, sizeof(path), "/tmp/h%llu", (unsigned long long)n);
		if (link("/tmp/one", path) < 0)
			break;
		n++;
	}
	return bounded("hard links", n, limit);
}

/* deep LEVELS: a tree whose path is far longer than any buffer. Made from the bottom, by putting
 * what is there into a new directory: going down instead takes time in proportion to the depth at
 * each step. */
static int deep(int argc, char **argv)
{
	uint64_t want = number(argc, argv, 0, 100000), n = 1;

	if (chdir("/workspace") < 0 || mkdir("deep", 0755) < 0 ||
	    spill("deep/bottom", "here\n") < 0)
		return not_here("/workspace/deep: %s", strerror(errno));
	while (n < want && mkdir("above", 0755) == 0 && rename("deep", "above/d") == 0 &&
	       rename("above", "deep") == 0)
		n++;
	if (n < want)
		return not_here("%llu levels: %s", (unsigned long long)n, strerror(errno));
	return held("%llu levels stand", (unsigned long long)n);
}

/* Names that break naive lists: newline, bytes that are no UTF-8, the longest there is. */
static int odd_names(int argc, char **argv)
{
	char longest[256];
	const char *names[] = {
		"new\nline", "\xff\xfe\x80", "\x1b[2Jclear", "-rf",          " ",
		"a\tb",      "...",          "\"quoted\"",   "per%cent%s%n", longest
	};

	(void)argc, (void)argv;
	memset(longest, 'L', 255);
	longest[255] = '\0';
	if (mkdir("/workspace/odd", 0755) < 0 || chdir("/workspace/odd") < 0)
		return not_here("/workspace/odd: %s", strerror(errno));
	for (size_t i = 0; i < COUNT(names); i++)
		if (spill(names[i], names[i]) < 0)
			return not_here("name %zu: %s", i, strerror(errno));
	return held("%zu odd names", COUNT(names));
}

/* The largest file that the file system lets one claim, with nothing in it. */
static int sparse(int argc, char **argv)
{
	const char *path = text(argc, argv, 0, "/workspace/sparse");
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	off_t size = (off_t)INT64_MAX;

	if (fd < 0)
		return not_here("%s: %s", path, strerror(errno));
	while (size > 4096 && ftruncate(fd, size) < 0)
		size /= 2;
	if (pwrite(fd, "end", 3, size - 3) != 3)
		(void)pwrite(fd, "start", 5, 0);
	return held("%s claims %lld bytes", path, (long long)size);
}

static int make_socket(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	return fd < 0 ? -1 : bind(fd, (struct sockaddr *)&a, sizeof(a));
}

/* What is no file, where the API expects one. */
static int odd_files(int argc, char **argv)
{
	(void)argc, (void)argv;
	if (mkfifo("/workspace/fifo", 0666) < 0 || make_socket("/workspace/socket") < 0 ||
	    symlink("/dev/zero", "/workspace/zero") < 0 ||
	    symlink("/dev/tty", "/workspace/tty") < 0 ||
	    symlink("/proc/self/fd/0", "/workspace/stdin") < 0 ||
	    symlink("loop", "/workspace/loop") < 0)
		return not_here("%s", strerror(errno));
	return held("fifo, socket, links to devices and to itself");
}

const struct probe probes_disk[] = {
	{ "fill", fill },           { "fill-all", fill_all },
	{ "elsewhere", elsewhere }, { "inodes", inodes },
	{ "hardlinks", hardlinks }, { "deep", deep },
	{ "odd-names", odd_names }, { "sparse", sparse },
	{ "odd-files", odd_files }, { NULL, NULL },
};
