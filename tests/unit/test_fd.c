#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "check.h"
#include "fault.h"

static int memory_file(const void *data, size_t n)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, data, n), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static size_t open_count(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += is_open(fd);
	return n;
}

static void closing_gives_minus_one_and_keeps_errno(void **state)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), copy = fd;

	(void)state;
	errno = ENOTTY;
	fd = fd_close(fd);
	assert_int_equal(fd, -1);
	assert_false(is_open(copy));
	errno = ENOTTY;
	assert_int_equal(fd_close(-1), -1);
	assert_int_equal(fd_close(copy), -1); /* EBADF inside */
	assert_int_equal(errno, ENOTTY);
}

/* In a process of its own: the runner's are closed as well. */
static void all_others_are_closed(void **state)
{
	int status = 1;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		int first = fcntl(0, F_DUPFD_CLOEXEC, 100), second = fcntl(0, F_DUPFD_CLOEXEC, 101);
		int third = fcntl(0, F_DUPFD_CLOEXEC, 200), fourth = fcntl(0, F_DUPFD_CLOEXEC, 300);
		const int keep[] = { third, -1, second };

		fd_close_others(50, keep, 3);
		_exit(is_open(first) || !is_open(second) || !is_open(third) || is_open(fourth) ||
		      !is_open(0));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void flags_go_on_and_off(void **state)
{
	_close_ int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(fd_nonblock(fd, true), 0);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_int_equal(fd_nonblock(fd, false), 0);
	assert_false(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_int_equal(fd_cloexec(fd, false), 0);
	assert_false(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(fd_cloexec(fd, true), 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(fd_nonblock(-1, true), -EBADF);
	assert_int_equal(fd_cloexec(-1, true), -EBADF);
}

static void reads_are_whole_or_end_at_the_end(void **state)
{
	_close_ int fd = memory_file("0123456789", 10);
	char data[16] = "";

	(void)state;
	assert_int_equal(fd_read_all(fd, data, 4), 4);
	assert_memory_equal(data, "0123", 4);
	assert_int_equal(fd_read_all(fd, data, 16), 6);
	assert_int_equal(fd_read_all(fd, data, 16), 0);
	assert_int_equal(fd_read_all(-1, data, 1), -EBADF);
	assert_int_equal(fd_write_all(-1, data, 1), -EBADF);
	assert_int_equal(fd_write_all(-1, data, 0), 0);
}

static void a_short_pipe_is_read_to_its_end(void **state)
{
	char data[8] = "";
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(fd_read_all(ends[0], data, 8), -EAGAIN);
	assert_int_equal(fd_write_all(ends[1], "abc", 3), 0);
	ends[1] = fd_close(ends[1]);
	assert_int_equal(fd_read_all(ends[0], data, 8), 3);
	assert_string_equal(data, "abc");
	fd_close(ends[0]);
}

static void slurping_stops_at_the_ceiling_and_not_before(void **state)
{
	static char big[100000];
	struct buf b;

	(void)state;
	memset(big, 'x', sizeof(big));
	for (int over = 0; over < 2; over++) {
		_close_ int fd = memory_file(big, sizeof(big));

		buf_init(&b, sizeof(big) - (size_t)over);
		assert_int_equal(fd_slurp(fd, &b), over ? -E2BIG : 0);
		assert_int_equal(b.failed, over);
		assert_int_equal(b.len, sizeof(big) - (size_t)over);
		assert_int_equal(strlen(buf_str(&b)), b.len);
		buf_done(&b);
	}
}

static void slurping_appends(void **state)
{
	_close_ int fd = memory_file("tail", 4), empty = memory_file("", 0);
	_cleanup_(buf_done) struct buf b = { 0 };

	(void)state;
	assert_int_equal(buf_puts(&b, "head "), 0);
	assert_int_equal(fd_slurp(fd, &b), 0);
	assert_int_equal(fd_slurp(empty, &b), 0);
	assert_string_equal(buf_str(&b), "head tail");
	assert_int_equal(fd_slurp(-1, &b), -EBADF);
	assert_string_equal(buf_str(&b), "head tail");
}

static int slurp_big(void *arg)
{
	static char big[100000];
	_close_ int fd = memory_file(big, sizeof(big));
	_cleanup_(buf_done) struct buf b = { 0 };

	(void)arg;
	return fd_slurp(fd, &b);
}

static void slurping_without_memory_is_an_error(void **state)
{
	(void)state;
	assert_true(fault_each(slurp_big, NULL) > 1);
}

static void small_files_are_read_and_written_in_one_step(void **state)
{
	char dir[] = "/tmp/test_fd.XXXXXX", text[8] = "zzz";
	_close_ int at = -1;

	(void)state;
	assert_non_null(mkdtemp(dir));
	at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(fd_write_file_at(at, "max", "1"), -ENOENT); /* never creates */
	assert_int_equal(fd_read_file_at(at, "max", text, sizeof(text)), -ENOENT);
	assert_string_equal(text, "");
	fd_close(openat(at, "max", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(fd_read_file_at(at, "max", text, sizeof(text)), 0);
	assert_int_equal(fd_write_file_at(at, "max", "1234567"), 0);
	assert_int_equal(fd_read_file_at(at, "max", text, sizeof(text)), 7);
	assert_string_equal(text, "1234567");
	assert_int_equal(fd_read_file_at(at, "max", text, 7), -E2BIG);
	assert_string_equal(text, "");
	assert_int_equal(fd_read_file_at(at, "max", text, 0), -E2BIG);
	assert_int_equal(fd_read_file_at(at, ".", text, sizeof(text)), -EISDIR);
	assert_int_equal(fd_write_file_at(at, ".", "1"), -EISDIR);
	assert_int_equal(unlinkat(at, "max", 0), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void the_kernel_s_refusal_comes_through(void **state)
{
	(void)state;
	assert_int_equal(fd_write_file_at(AT_FDCWD, "/dev/full", "x"), -ENOSPC);
	assert_int_equal(fd_write_file_at(AT_FDCWD, "/proc/self/oom_score_adj", "x"), -EINVAL);
}

static void a_message_travels_with_its_descriptors(void **state)
{
	int pair[2], out[FD_PASS_MAX], in[FD_PASS_MAX];
	size_t before = open_count(), n = FD_PASS_MAX;
	char data[16];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	for (size_t i = 0; i < FD_PASS_MAX; i++)
		out[i] = memory_file(&"abcdefghijklmnopqrstuvwxyz012345"[i], 1);
	assert_int_equal(fd_send(pair[0], "hello", 5, out, FD_PASS_MAX), 5);
	assert_int_equal(fd_recv(pair[1], data, sizeof(data), in, &n), 5);
	assert_memory_equal(data, "hello", 5);
	assert_int_equal(n, FD_PASS_MAX);
	for (size_t i = 0; i < n; i++) {
		assert_true(fcntl(in[i], F_GETFD) & FD_CLOEXEC);
		assert_int_equal(pread(in[i], data, 1, 0), 1);
		assert_int_equal(data[0], "abcdefghijklmnopqrstuvwxyz012345"[i]);
		fd_close(in[i]);
		fd_close(out[i]);
	}
	fd_close(pair[0]);
	fd_close(pair[1]);
	assert_int_equal(open_count(), before);
}

static void descriptors_beyond_the_capacity_are_closed(void **state)
{
	int pair[2], out[3], in[1];
	size_t n, before;
	char data[16];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	for (size_t i = 0; i < 3; i++)
		out[i] = memory_file("", 0);
	before = open_count();
	assert_int_equal(fd_send(pair[0], "a", 1, out, 3), 1);
	n = 1;
	assert_int_equal(fd_recv(pair[1], data, sizeof(data), in, &n), 1);
	assert_int_equal(n, 1);
	fd_close(in[0]);
	assert_int_equal(open_count(), before);
	assert_int_equal(fd_send(pair[0], "b", 1, out, 3), 1);
	assert_int_equal(fd_recv(pair[1], data, sizeof(data), NULL, NULL), 1);
	assert_int_equal(open_count(), before);
	for (size_t i = 0; i < 3; i++)
		fd_close(out[i]);
	fd_close(pair[0]);
	fd_close(pair[1]);
}

static void a_message_too_long_is_lost_with_its_descriptors(void **state)
{
	int pair[2], out[1], in[1];
	size_t n = 1, before;
	char data[4];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	out[0] = memory_file("", 0);
	before = open_count();
	assert_int_equal(fd_send(pair[0], "12345", 5, out, 1), 5);
	assert_int_equal(fd_send(pair[0], "next", 4, NULL, 0), 4);
	assert_int_equal(fd_recv(pair[1], data, sizeof(data), in, &n), -EMSGSIZE);
	assert_int_equal(n, 0);
	assert_int_equal(open_count(), before);
	n = 1;
	assert_int_equal(fd_recv(pair[1], data, sizeof(data), in, &n), 4);
	assert_int_equal(n, 0);
	assert_memory_equal(data, "next", 4);
	fd_close(out[0]);
	fd_close(pair[0]);
	fd_close(pair[1]);
}

static void a_peer_that_is_gone_is_told_from_a_full_one(void **state)
{
	int pair[2], r;
	char data[4];

	(void)state;
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	assert_int_equal(fd_recv(pair[1], data, sizeof(data), NULL, NULL), -EAGAIN);
	do
		r = (int)fd_send(pair[0], "full", 4, NULL, 0);
	while (r == 4);
	assert_int_equal(r, -EAGAIN);
	fd_close(pair[0]);
	fd_close(pair[1]);

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	fd_close(pair[0]);
	assert_int_equal(fd_recv(pair[1], data, sizeof(data), NULL, NULL), 0);
	assert_int_equal(fd_send(pair[1], "x", 1, NULL, 0), -EPIPE);
	fd_close(pair[1]);
}

static void a_stream_whose_reader_is_gone_raises_no_signal(void **state)
{
	int pair[2];

	(void)state;
	(void)signal(SIGPIPE, SIG_DFL); /* whatever the caller of the test had chosen */
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	fd_close(pair[1]);
	assert_int_equal(fd_send(pair[0], "x", 1, NULL, 0), -EPIPE);
	fd_close(pair[0]);
}

static void too_many_descriptors_are_refused_before_sending(void **state)
{
	int pair[2], out[FD_PASS_MAX + 1] = { 0 };
	char data[4];

	(void)state;
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	assert_int_equal(fd_send(pair[0], "x", 1, out, FD_PASS_MAX + 1), -EINVAL);
	assert_int_equal(fd_recv(pair[1], data, sizeof(data), NULL, NULL), -EAGAIN);
	fd_close(pair[0]);
	fd_close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closing_gives_minus_one_and_keeps_errno),
		cmocka_unit_test(all_others_are_closed),
		cmocka_unit_test(flags_go_on_and_off),
		cmocka_unit_test(reads_are_whole_or_end_at_the_end),
		cmocka_unit_test(a_short_pipe_is_read_to_its_end),
		cmocka_unit_test(slurping_stops_at_the_ceiling_and_not_before),
		cmocka_unit_test(slurping_appends),
		cmocka_unit_test(slurping_without_memory_is_an_error),
		cmocka_unit_test(small_files_are_read_and_written_in_one_step),
		cmocka_unit_test(the_kernel_s_refusal_comes_through),
		cmocka_unit_test(a_message_travels_with_its_descriptors),
		cmocka_unit_test(descriptors_beyond_the_capacity_are_closed),
		cmocka_unit_test(a_message_too_long_is_lost_with_its_descriptors),
		cmocka_unit_test(a_peer_that_is_gone_is_told_from_a_full_one),
		cmocka_unit_test(a_stream_whose_reader_is_gone_raises_no_signal),
		cmocka_unit_test(too_many_descriptors_are_refused_before_sending),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
