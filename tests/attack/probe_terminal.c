/* The terminal one was started on, and the ways to type into it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include "probe.h"

/* On standard input, which is a terminal of the box in this attack. */
static int inject(int argc, char **argv)
{
	char key = '\n', selection = 2;
	const struct call calls[] = {
		{ "TIOCSTI", SYS_ioctl, { 0, 0x5412, P(&key) } },
		{ "TIOCSTI with high bits", SYS_ioctl, { 0, 0x5412 | (1l << 32), P(&key) } },
		{ "TIOCLINUX", SYS_ioctl, { 0, 0x541c, P(&selection) } },
		{ "TIOCCONS", SYS_ioctl, { 0, 0x541d, 0 } },
		{ "TIOCSETD", SYS_ioctl, { 0, 0x5423, P("\xff\xff\xff\x7f") } },
	};

	(void)argc, (void)argv;
	if (!isatty(0))
		return not_here("standard input is no terminal");
	return refuse_calls(calls, COUNT(calls));
}

/* Without a terminal: /dev/tty leads to none, and none can be taken. */
static int take_terminal(int argc, char **argv)
{
	static const char *const consoles[] = { "/dev/console", "/dev/tty0", "/dev/tty1",
						"/dev/ttyS0",   "/dev/hvc0", "/dev/vcs",
						"/dev/pts/0",   "/dev/pts/1" };

	(void)argc, (void)argv;
	(void)setsid();
	if (open("/dev/tty", O_RDWR | O_CLOEXEC) >= 0)
		return broken("/dev/tty leads to a terminal");
	if (ioctl(0, TIOCSCTTY, 1) == 0 || ioctl(1, TIOCSCTTY, 1) == 0)
		return broken("a terminal can be taken");
	return refuse_open(consoles, COUNT(consoles), O_RDWR | O_NOCTTY);
}

/* Pseudo-terminals are the box's own: the first one has number 0 and there are no others. */
static int own_terminals(int argc, char **argv)
{
	int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC), n = -1, unlock = 0;
	struct stat st;
	char path[64];

	(void)argc, (void)argv;
	if (fd < 0)
		return not_here("/dev/ptmx: %s", strerror(errno));
	if (ioctl(fd, TIOCGPTN, &n) < 0 || ioctl(fd, TIOCSPTLCK, &unlock) < 0)
		return not_here("ptmx: %s", strerror(errno));
	(void)snprintf(path, sizeof(path), "/dev/pts/%d", n);
	if (stat(path, &st) < 0)
		return broken("%s is not in this box: %s", path, strerror(errno));
	for (int i = 0; i < 256; i++) {
		(void)snprintf(path, sizeof(path), "/dev/pts/%d", i);
		if (i != n && stat(path, &st) == 0)
			return broken("%s is there too", path);
	}
	return held("terminal %d is the only one", n);
}

const struct probe probes_terminal[] = {
	{ "inject", inject },
	{ "take-terminal", take_terminal },
	{ "own-terminals", own_terminals },
	{ NULL, NULL },
};
