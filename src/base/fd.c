#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define SLURP_STEP ((size_t)16 << 10)

int fd_close(int fd)
{
	int saved = errno;

	/* No retry on EINTR: Linux has closed it, and the number may be another's by now. */
	if (fd >= 0)
		(void)close(fd);
	errno = saved;
	return -1;
}

/* The least of them that is not below `from`; INT_MAX: none is. */
static int next_kept(int from, const int *keep, size_t n)
{
	int least = INT_MAX;

	for (size_t i = 0; i < n; i++)
		if (keep[i] >= from && keep[i] < least)
			least = keep[i];
	return least;
}

void fd_close_others(int from, const int *keep, size_t n)
{
	for (;;) {
		int kept = next_kept(from, keep, n);

		if (kept > from)
			(void)syscall(SYS_close_range, (unsigned)from, (unsigned)kept - 1, 0);
		if (kept == INT_MAX)
			return;
		from = kept + 1;
	}
}

int fd_nonblock(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return -errno;
	flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
	return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
}

int fd_cloexec(int fd, bool on)
{
	return fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0) < 0 ? -errno : 0;
}

ssize_t fd_read_all(int fd, void *data, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = read(fd, (char *)data + done, n - done);

		if (r == 0)
			break;
		if (r > 0)
			done += (size_t)r;
		else if (errno != EINTR)
			return -errno;
	}
	return (ssize_t)done;
}

int fd_write_all(int fd, const void *data, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = write(fd, (const char *)data + done, n - done);

		if (r >= 0)
			done += (size_t)r;
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

/* At the ceiling only the end of the file is still welcome: one byte more is one too many. */
static int expect_end(int fd, struct buf *b)
{
	char byte;
	ssize_t r = fd_read_all(fd, &byte, 1);

	if (r > 0)
		return buf_append(b, &byte, 1);
	return (int)r;
}

int fd_slurp(int fd, struct buf *b)
{
	for (;;) {
		size_t max = b->max ? b->max : BUF_MAX;
		size_t room = b->len < max ? max - b->len : 0;
		size_t step = room < SLURP_STEP ? room : SLURP_STEP;
		ssize_t r;

		if (step == 0)
			return expect_end(fd, b);
		r = buf_reserve(b, step);
		if (r < 0)
			return (int)r;
		r = fd_read_all(fd, b->data + b->len, step);
		if (r < 0)
			return (int)r;
		b->len += (size_t)r;
		b->data[b->len] = '\0';
		if ((size_t)r < step)
			return 0;
	}
}

int fd_read_file_at(int dirfd, const char *path, char *dst, size_t size)
{
	_close_ int fd = -1;
	ssize_t r;

	if (size == 0)
		return -E2BIG;
	dst[0] = '\0';
	fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	r = fd_read_all(fd, dst, size);
	if (r < 0 || (size_t)r == size) {
		dst[0] = '\0';
		return r < 0 ? (int)r : -E2BIG;
	}
	dst[r] = '\0';
	return (int)r;
}

int fd_write_file_at(int dirfd, const char *path, const char *text)
{
	_close_ int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	size_t n = strlen(text);
	ssize_t r;

	if (fd < 0)
		return -errno;
	do
		r = write(fd, text, n);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	return (size_t)r == n ? 0 : -EIO; /* the kernel takes such a file's text whole */
}

/* Room for the descriptors of one message, aligned as the kernel wants it. */
union control {
	struct cmsghdr head;
	char space[CMSG_SPACE(sizeof(int) * FD_PASS_MAX)];
};

ssize_t fd_send(int sock, const void *data, size_t n, const int *fds, size_t nfds)
{
	union control control = { 0 };
	struct iovec iov = { (void *)(uintptr_t)data, n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t r;

	if (nfds > FD_PASS_MAX)
		return -EINVAL;
	if (nfds > 0) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		memcpy(CMSG_DATA(&control.head), fds, sizeof(int) * nfds);
	}
	do
		r = sendmsg(sock, &msg, MSG_NOSIGNAL);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

/* Hands out the descriptors that came, up to capacity; closes the others. Returns how many. */
static size_t collect(struct msghdr *msg, int *fds, size_t capacity)
{
	size_t count = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (count < capacity)
				fds[count++] = fd;
			else
				(void)fd_close(fd);
		}
	}
	return count;
}

ssize_t fd_recv(int sock, void *data, size_t n, int *fds, size_t *nfds)
{
	union control control = { 0 };
	struct iovec iov = { data, n };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	size_t capacity = nfds ? *nfds : 0, count;
	ssize_t r;

	if (nfds)
		*nfds = 0;
	do
		r = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	count = collect(&msg, fds, capacity);
	if (msg.msg_flags & MSG_TRUNC) {
		while (count > 0)
			(void)fd_close(fds[--count]);
		return -EMSGSIZE;
	}
	if (nfds)
		*nfds = count;
	return r;
}
