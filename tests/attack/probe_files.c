/* Files that lead out: descriptors, the working directory, the program's own file, links. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

static int own_exe(int argc, char **argv)
{
	int fd = open("/proc/self/exe", O_WRONLY | O_CLOEXEC);

	(void)argc, (void)argv;
	if (fd >= 0)
		return broken("/proc/self/exe opens for writing while it runs");
	for (int i = 0; i < 2000; i++) {
		fd = open(i % 2 ? "/proc/1/exe" : "/proc/1/map_files/400000-401000",
			  O_RDWR | O_CLOEXEC);
		if (fd >= 0)
			return broken("the program of PID 1 opens for writing");
	}
	return held("no running program can be written: %s", strerror(errno));
}

/* Started by the API as /proc/self/exe, which is PID 1's program there: a sealed one. */
static int write_self(int argc, char **argv)
{
	const char *path = text(argc, argv, 0, "/proc/self/exe");
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return held("%s: %s", path, strerror(errno));
	if (ftruncate(fd, 0) == 0 || write(fd, "", 0) >= 0)
		return broken("%s can be written", path);
	if (mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED)
		return broken("%s can be mapped for writing", path);
	return held("%s: %s", path, strerror(errno));
}

static bool is_plain_stream(const char *target)
{
	return strncmp(target, "pipe:[", 6) == 0 || strcmp(target, "/dev/null") == 0 ||
	       strncmp(target, "/dev/pts/", 9) == 0;
}

/* Descriptors 0, 1 and 2 and no other; none is a directory that one could walk out of. */
static int descriptors(int argc, char **argv)
{
	char path[64], target[256];

	(void)argc, (void)argv;
	for (int fd = 0; fd < 20000; fd++) {
		ssize_t n;

		if (fcntl(fd, F_GETFD) < 0)
			continue;
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof(target) - 1);
		target[n < 0 ? 0 : n] = '\0';
		if (fd > 2 || !is_plain_stream(target))
			return broken("descriptor %d is %s", fd, target);
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/..", fd);
		if (open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) >= 0)
			return broken("%s opens", path);
	}
	return held("three descriptors, none leads out");
}

/* Wherever we were started: going up must end at the root that we see. */
static int inside_root(int argc, char **argv)
{
	struct stat top, root;
	char cwd[4096];

	(void)argc, (void)argv;
	if (syscall(SYS_getcwd, cwd, sizeof(cwd)) < 0 || cwd[0] != '/')
		return broken("the working directory is outside: %s", strerror(errno));
	for (int i = 0; i < 256; i++)
		(void)chdir("..");
	if (stat(".", &top) < 0 || stat("/", &root) < 0)
		return broken("stat: %s", strerror(errno));
	if (top.st_dev != root.st_dev || top.st_ino != root.st_ino)
		return broken("from %s one walks above the root", cwd);
	return held("%s is below the root", cwd);
}

/* paths-absent PATH...: files of the machine, by every way to say a path. */
static int absent(int argc, char **argv)
{
	static const char *const ways[] = {
		"%s",
		"/proc/self/root%s",
		"/proc/self/cwd/../../../..%s",
		"/proc/1/root%s",
		"/proc/thread-self/root%s",
		"/../../../..%s",
		"/proc/self/task/1/root%s",
		"/tmp/../../..%s",
	};
	char path[4096];

	for (int i = 0; i < argc; i++)
		for (size_t w = 0; w < COUNT(ways); w++) {
			struct stat st;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			(void)snprintf(path, sizeof(path), ways[w], argv[i]);
#pragma GCC diagnostic pop
			if (lstat(path, &st) == 0)
				return broken("%s is there", path);
		}
	return held("%d files of the machine are not there", argc);
}

/* plant TARGET: links to a path of the machine, for the file API to step on. */
static int plant(int argc, char **argv)
{
	const char *target = text(argc, argv, 0, "/etc/shadow");
	char path[4096];

	if (mkdir("/workspace/links", 0777) < 0 || chdir("/workspace/links") < 0)
		return not_here("/workspace/links: %s", strerror(errno));
	(void)symlink(target, "absolute");
	(void)snprintf(path, sizeof(path), "/proc/self/root%s", target);
	(void)symlink(path, "self-root");
	(void)snprintf(path, sizeof(path), "/proc/1/root%s", target);
	(void)symlink(path, "init-root");
	(void)snprintf(path, sizeof(path), "../../../../../../../..%s", target);
	(void)symlink(path, "dots");
	(void)symlink("/", "root");
	(void)symlink("/proc/self/root", "magic-root");
	(void)symlink("/proc/self/cwd", "magic-cwd");
	(void)symlink("/proc/self/fd/3", "magic-fd3");
	(void)symlink("/proc/1/fd/3", "init-fd3");
	(void)symlink("/etc/shadow", "shadow");
	return held("links to %s", target);
}

static int hard_links(int argc, char **argv)
{
	static const char *const targets[] = { "/usr/bin/env",  "/etc/passwd",
					       "/etc/hostname", "/proc/self/status",
					       "/dev/null",     "/proc/1/status",
					       "/bin/sh" };
	static const char *const places[] = { "/tmp/hard", "/workspace/hard", "/dev/shm/hard",
					      "/usr/bin/hard", "/dev/hard" };

	(void)argc, (void)argv;
	for (size_t t = 0; t < COUNT(targets); t++)
		for (size_t p = 0; p < COUNT(places); p++) {
			int fd = open(targets[t], O_PATH | O_CLOEXEC);

			if (link(targets[t], places[p]) == 0)
				return broken("%s linked to %s", targets[t], places[p]);
			if (fd >= 0 && linkat(fd, "", AT_FDCWD, places[p], AT_EMPTY_PATH) == 0)
				return broken("%s linked to %s by descriptor", targets[t],
					      places[p]);
			if (fd >= 0)
				(void)close(fd);
		}
	return held("no file of the system can be linked: %s", strerror(errno));
}

/* Descriptors of /proc and O_PATH as handles past the checks. */
static int magic(int argc, char **argv)
{
	int fd = open("/usr/bin/env", O_PATH | O_CLOEXEC);
	char path[64];

	(void)argc, (void)argv;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (open(path, O_RDWR | O_CLOEXEC) >= 0 || chmod(path, 0777) == 0 || truncate(path, 0) == 0)
		return broken("a read-only file can be changed through %s", path);
	fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && openat(fd, "../holt-above", O_RDONLY | O_CLOEXEC) >= 0)
		return broken("above the root there is something");
	return held("O_PATH opens nothing more: %s", strerror(errno));
}

const struct probe probes_files[] = {
	{ "own-exe", own_exe },
	{ "write-self", write_self },
	{ "descriptors", descriptors },
	{ "inside-root", inside_root },
	{ "paths-absent", absent },
	{ "plant", plant },
	{ "hard-links", hard_links },
	{ "magic", magic },
	{ NULL, NULL },
};
