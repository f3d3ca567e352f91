/* File descriptors: whole reads and writes, small files, passing over Unix sockets. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct buf;

int fd_close(int fd); /* -1 is fine; returns -1, so `fd = fd_close(fd)` */
/* Closes every descriptor from `from` on but these; -1 among them is none. */
void fd_close_others(int from, const int *keep, size_t n);
int fd_nonblock(int fd, bool on);
int fd_cloexec(int fd, bool on);

/* Loop over EINTR and short counts. read: bytes read (short only at end of file) or -errno. */
ssize_t fd_read_all(int fd, void *data, size_t n);
int fd_write_all(int fd, const void *data, size_t n);
/* Reads to the end into b (whose ceiling holds); 0 or -errno. */
int fd_slurp(int fd, struct buf *b);

/* Small kernel files (procfs, cgroupfs): one open, one read or write, one close. */
int fd_read_file_at(int dirfd, const char *path, char *dst, size_t size); /* NUL-terminated; length
									     or -errno; -E2BIG */
int fd_write_file_at(int dirfd, const char *path, const char *text);

#define FD_PASS_MAX 32
/* One message over a SOCK_SEQPACKET or SOCK_STREAM socket, with nfds descriptors (0..FD_PASS_MAX).
 * MSG_NOSIGNAL; EINTR is retried. Returns bytes sent or -errno (-EAGAIN on a full non-blocking
 * one). */
ssize_t fd_send(int sock, const void *data, size_t n, const int *fds, size_t nfds);
/* Receives one message. *nfds is capacity in, count out; descriptors come close-on-exec and are the
 * caller's; any beyond capacity are closed. -EMSGSIZE when the message was longer than n (it is
 * lost). 0 means the peer is gone. */
ssize_t fd_recv(int sock, void *data, size_t n, int *fds, size_t *nfds);
