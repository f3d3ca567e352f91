#include "guest/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "guest/user.h"

#define ROWS_DEFAULT 24
#define COLS_DEFAULT 80
#define EOF_DEFAULT 4 /* Ctrl-D */

#ifndef TIOCGPTPEER /* musl of some years does not know it */
#define TIOCGPTPEER _IO('T', 0x41)
#endif

/* devpts gives the node to the opener's file-system user; chown would take a capability more. */
static int open_master(const struct user *user)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int fd, saved;

	(void)setfsgid(user->gid);
	(void)setfsuid(user->uid);
	fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	saved = errno;
	(void)setfsuid(uid);
	(void)setfsgid(gid);
	(void)prctl(PR_SET_DUMPABLE, 0); /* a change of user has set it anew */
	errno = saved;
	return fd;
}

int pty_resize(int master, uint16_t rows, uint16_t cols)
{
	struct winsize size = { .ws_row = rows ? rows : ROWS_DEFAULT,
				.ws_col = cols ? cols : COLS_DEFAULT };

	return ioctl(master, TIOCSWINSZ, &size) < 0 ? -errno : 0;
}

int pty_open(const struct user *user, uint16_t rows, uint16_t cols, int *ret_master, int *ret_slave,
	     struct err *err)
{
	_close_ int master = open_master(user);
	int unlock = 0, slave;

	if (master < 0)
		return err_sys(err, errno, "open '/dev/ptmx'");
	if (ioctl(master, TIOCSPTLCK, &unlock) < 0)
		return err_sys(err, errno, "unlock a terminal");
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return err_sys(err, errno, "open a terminal's other side");
	(void)pty_resize(master, rows, cols);
	*ret_master = TAKE_FD(master);
	*ret_slave = slave;
	return 0;
}

char pty_eof_char(int master)
{
	struct termios t;

	if (tcgetattr(master, &t) < 0 || t.c_cc[VEOF] == _POSIX_VDISABLE)
		return EOF_DEFAULT;
	return (char)t.c_cc[VEOF];
}
