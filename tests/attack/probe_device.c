/* Device nodes: those that are there, and those one would like to make. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "probe.h"

/* What /dev may hold, and nothing else. */
static const char *const known[] = { "null", "zero",  "full",   "random", "urandom",
				     "tty",  "ptmx",  "pts",    "shm",    "mqueue",
				     "fd",   "stdin", "stdout", "stderr" };

static bool is_known(const char *name)
{
	for (size_t i = 0; i < COUNT(known); i++)
		if (strcmp(known[i], name) == 0)
			return true;
	return false;
}

static int list(int argc, char **argv)
{
	DIR *d = opendir("/dev");
	int n = 0;

	(void)argc, (void)argv;
	if (!d)
		return not_here("/dev: %s", strerror(errno));
	for (struct dirent *e = readdir(d); e; e = readdir(d)) {
		if (e->d_name[0] == '.')
			continue;
		if (!is_known(e->d_name))
			return broken("/dev/%s is there", e->d_name);
		n++;
	}
	(void)closedir(d);
	return held("%d entries in /dev, all harmless", n);
}

static int machine(int argc, char **argv)
{
	static const char *const devices[] = {
		"/dev/mem",          "/dev/kmem",
		"/dev/port",         "/dev/kmsg",
		"/dev/kvm",          "/dev/fuse",
		"/dev/net/tun",      "/dev/vda",
		"/dev/vda1",         "/dev/sda",
		"/dev/nvme0n1",      "/dev/loop0",
		"/dev/loop-control", "/dev/mapper/control",
		"/dev/userfaultfd",  "/dev/vsock",
		"/dev/vhost-net",    "/dev/uinput",
		"/dev/input/event0", "/dev/rtc0",
		"/dev/watchdog",     "/dev/cpu/0/msr",
		"/dev/dri/card0",    "/dev/snd/timer",
		"/dev/ptp0",         "/dev/hwrng",
		"/dev/autofs",       "/dev/btrfs-control",
		"/dev/uhid",
	};

	(void)argc, (void)argv;
	return refuse_open(devices, COUNT(devices), O_RDONLY);
}

/* A node that can be made but not opened is no device either. */
static int make(int argc, char **argv)
{
	static const struct {
		const char *name;
		mode_t kind;
		unsigned major, minor;
	} nodes[] = {
		{ "null", S_IFCHR, 1, 3 },    { "mem", S_IFCHR, 1, 1 },
		{ "kmsg", S_IFCHR, 1, 11 },   { "disk", S_IFBLK, 254, 0 },
		{ "disk8", S_IFBLK, 8, 0 },   { "tun", S_IFCHR, 10, 200 },
		{ "fuse", S_IFCHR, 10, 229 }, { "kvm", S_IFCHR, 10, 232 },
	};
	static const char *const dirs[] = { "/tmp", "/workspace", "/dev/shm", "/dev",
					    "/home/user" };
	char path[64];

	(void)argc, (void)argv;
	for (size_t d = 0; d < COUNT(dirs); d++)
		for (size_t i = 0; i < COUNT(nodes); i++) {
			dev_t dev = makedev(nodes[i].major, nodes[i].minor);

			(void)snprintf(path, sizeof(path), "%s/%s-node", dirs[d], nodes[i].name);
			if (mknod(path, nodes[i].kind | 0666, dev) < 0)
				continue;
			if (open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) >= 0)
				return broken("made and opened %s", path);
		}
	return held("no device can be made and opened: %s", strerror(errno));
}

/* A whiteout is a device 0:0, the one kind that needs no capability; it must lead nowhere. */
static int whiteout(int argc, char **argv)
{
	int fd;

	(void)argc, (void)argv;
	if (mknod("/tmp/whiteout", S_IFCHR, makedev(0, 0)) < 0)
		return held("whiteout: %s", strerror(errno));
	fd = open("/tmp/whiteout", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	return fd >= 0 ? broken("a whiteout opens")
		       : held("a whiteout is nothing: %s", strerror(errno));
}

const struct probe probes_device[] = {
	{ "dev-list", list }, { "dev-machine", machine },
	{ "dev-make", make }, { "dev-whiteout", whiteout },
	{ NULL, NULL },
};
