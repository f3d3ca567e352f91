/* The control channel: finding it, opening it, speaking on it. */
#include <dirent.h>
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

/* A frame as the guest would send it: version 1, G_EXIT, id 1. */
static const unsigned char frame[] = { 1, 0, 67, 0, 1, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0 };

/* Writes a frame to whatever descriptor there might be, ours or inherited. */
static int speak(int argc, char **argv)
{
	(void)argc, (void)argv;
	for (int fd = 3; fd < 1024; fd++) {
		char path[64];
		int copy;

		if (write(fd, frame, sizeof(frame)) >= 0 || send(fd, frame, sizeof(frame), 0) >= 0)
			return broken("descriptor %d takes a frame", fd);
		(void)snprintf(path, sizeof(path), "/proc/1/fd/%d", fd);
		copy = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
		if (copy >= 0)
			return broken("%s opens", path);
	}
	return held("no descriptor takes a frame");
}

static bool connects(const struct sockaddr_un *a, socklen_t len)
{
	static const int types[] = { SOCK_SEQPACKET, SOCK_STREAM, SOCK_DGRAM };

	for (size_t i = 0; i < COUNT(types); i++) {
		int fd = socket(AF_UNIX, types[i] | SOCK_CLOEXEC, 0);
		bool yes = fd >= 0 && connect(fd, (const struct sockaddr *)a, len) == 0;

		if (fd >= 0)
			(void)close(fd);
		if (yes)
			return true;
	}
	return false;
}

/* Every socket that the kernel names in here. */
static int find(int argc, char **argv)
{
	static char list[256 << 10];
	int n = 0;

	(void)argc, (void)argv;
	if (slurp("/proc/net/unix", list, sizeof(list)) <= 0)
		return held("no list of sockets");
	for (char *line = strchr(list, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
		struct sockaddr_un a = { .sun_family = AF_UNIX };
		char name[109];

		if (sscanf(line + 1, "%*s %*s %*s %*s %*s %*s %*s %108s", name) != 1)
			continue;
		n++;
		memcpy(a.sun_path, name, strlen(name));
		if (name[0] == '@')
			a.sun_path[0] = '\0';
		if (connects(&a, sizeof(a)))
			return broken("socket %s answers", name);
	}
	return held("%d named sockets, none answers", n);
}

static int walk(const char *dir, int depth)
{
	DIR *d = depth > 6 ? NULL : opendir(dir);
	int found = 0;

	for (struct dirent *e = d ? readdir(d) : NULL; e && !found; e = readdir(d)) {
		struct sockaddr_un a = { .sun_family = AF_UNIX };
		char path[1024];
		struct stat st;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (lstat(path, &st) < 0)
			continue;
		if (S_ISDIR(st.st_mode))
			found = walk(path, depth + 1);
		if (strlen(path) < sizeof(a.sun_path))
			memcpy(a.sun_path, path, strlen(path) + 1);
		if (S_ISSOCK(st.st_mode) && connects(&a, sizeof(a)))
			found = broken("%s answers", path);
	}
	if (d)
		(void)closedir(d);
	return found;
}

/* Every socket that has a name in the file system. */
static int find_files(int argc, char **argv)
{
	static const char *const tops[] = { "/run",       "/tmp",  "/var", "/dev",
					    "/workspace", "/home", "/etc" };

	(void)argc, (void)argv;
	for (size_t i = 0; i < COUNT(tops); i++)
		if (walk(tops[i], 0))
			return PROBE_BROKEN;
	return held("no socket in the file system answers");
}

const struct probe probes_control[] = {
	{ "speak", speak },
	{ "find-socket", find },
	{ "find-socket-files", find_files },
	{ NULL, NULL },
};
