/* The command of an interactive sudo has a terminal of its own, so that it has job control; what is
 * typed at the caller's is carried there, and back. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/pty.h"
#include "guest/sudo.h"

bool sudo_tty_is_wanted(void)
{
	/* In the background we would be stopped at the first look at the terminal. */
	return isatty(0) && isatty(1) && tcgetpgrp(0) == getpgrp();
}

void sudo_tty_resize(const struct sudo_tty *t)
{
	struct winsize size;

	if (t->master >= 0 && ioctl(0, TIOCGWINSZ, &size) == 0)
		(void)pty_resize(t->master, size.ws_row, size.ws_col);
}

void sudo_tty_begin(struct sudo_tty *t, int master)
{
	struct termios raw;

	t->master = master;
	if (master < 0 || tcgetattr(0, &t->before) < 0)
		return;
	(void)tcsetattr(master, TCSANOW, &t->before); /* as the caller has it: echo, keys */
	sudo_tty_resize(t);
	raw = t->before;
	cfmakeraw(&raw);
	t->is_raw = tcsetattr(0, TCSADRAIN, &raw) == 0;
}

/* false: there is nothing more to come. */
static bool pump_out(struct sudo_tty *t)
{
	char bytes[4096];
	ssize_t n = read(t->master, bytes, sizeof(bytes));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0) {
		t->master = fd_close(t->master);
		return false;
	}
	return fd_write_all(1, bytes, (size_t)n) == 0;
}

static void pump_in(struct sudo_tty *t)
{
	ssize_t n;

	if (t->at == t->held) {
		n = read(0, t->input, sizeof(t->input));
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		t->is_deaf = n <= 0;
		t->held = n > 0 ? (size_t)n : 0;
		t->at = 0;
	}
	n = write(t->master, t->input + t->at, t->held - t->at);
	t->at += n > 0 ? (size_t)n : 0;
}

struct sudo_ready sudo_tty_wait(struct sudo_tty *t, int conn, int signals)
{
	bool has_input = t->at < t->held;
	struct pollfd p[] = {
		{ .fd = conn, .events = POLLIN },
		{ .fd = signals, .events = POLLIN },
		{ .fd = t->master, .events = (short)(POLLIN | (has_input ? POLLOUT : 0)) },
		{ .fd = t->master < 0 || has_input || t->is_deaf ? -1 : 0, .events = POLLIN },
	};

	if (poll(p, 4, -1) < 0)
		return (struct sudo_ready){ 0 };
	if (p[2].revents & ~POLLOUT)
		(void)pump_out(t);
	if (t->master >= 0 && ((p[2].revents & POLLOUT) || p[3].revents))
		pump_in(t);
	return (struct sudo_ready){ p[0].revents != 0, p[1].revents != 0 };
}

void sudo_tty_end(struct sudo_tty *t)
{
	struct pollfd p = { .fd = t->master, .events = POLLIN };

	/* What the command has said; others that hold its terminal are not waited for. */
	while (t->master >= 0 && poll(&p, 1, 0) > 0 && pump_out(t))
		;
	t->master = fd_close(t->master);
	if (t->is_raw)
		(void)tcsetattr(0, TCSADRAIN, &t->before);
	t->is_raw = false;
}
