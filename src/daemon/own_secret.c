#include "daemon/own_secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "crypto/random.h"
#include "crypto/secret.h"

#define NAME "secret"
#define NAME_NEW "secret.new"

/* On disk before it is there: a token must not be given out that the next start does not know. */
static int make(int dir)
{
	unsigned char bytes[OWN_SECRET_LEN];
	_close_ int fd = -1;
	int r;

	(void)unlinkat(dir, NAME_NEW, 0);
	fd = openat(dir, NAME_NEW, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	random_bytes(bytes, sizeof(bytes));
	r = fd_write_all(fd, bytes, sizeof(bytes));
	explicit_bzero(bytes, sizeof(bytes));
	if (r == 0 && (fsync(fd) < 0 || renameat(dir, NAME_NEW, dir, NAME) < 0 || fsync(dir) < 0))
		r = -errno;
	return r;
}

int own_secret_open(int data_fd, struct secret **ret, struct err *err)
{
	unsigned char bytes[OWN_SECRET_LEN + 1];
	_close_ int fd = -1;
	ssize_t n;
	int r = 0;

	if (faccessat(data_fd, NAME, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		r = make(data_fd);
	if (r < 0)
		return err_sys(err, r, "make '" NAME "'");
	fd = openat(data_fd, NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));
	if (n < 0)
		return err_sys(err, errno, "read '" NAME "'");
	if (n != OWN_SECRET_LEN)
		return err_set(err, EBADMSG,
			       "'" NAME "' is damaged: without it, a new one is made, and tokens "
			       "of sandboxes that are there end");
	*ret = secret_create(bytes, (size_t)n);
	explicit_bzero(bytes, sizeof(bytes));
	return *ret ? 0 : err_sys(err, ENOMEM, NAME);
}
