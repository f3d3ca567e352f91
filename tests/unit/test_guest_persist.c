/* A guest that outlives its clients: who is served, and what ends with a connection. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "record_rig.h"

static int start(void **state)
{
	static struct guest_rig rig;

	rig_start(&rig);
	rig_persist(&rig);
	*state = &rig;
	return 0;
}

static int stop(void **state)
{
	rig_end(*state);
	return 0;
}

static void what_is_not_kept_ends_with_its_connection(void **state)
{
	struct guest_exec e = rig_script("trap '' TERM HUP; echo on; sleep 1000");
	struct guest_rig *rig = *state;
	struct guest_ready ready;
	struct rig_result r = { 0 };
	struct wire_head head;
	struct rd payload;

	e.grace_ms = 60000;
	rig_exec(rig, 3, &e);
	while (r.out.len == 0) {
		assert_true(rig_recv(rig, &head, &payload));
		assert_false(rig_take(rig, 3, &head, &payload, false, &r));
	}
	assert_true(rig_is_running(r.pid));
	rig_connect(rig, &ready);
	assert_int_equal(ready.live, 0);
	assert_true(rig_dies_soon(r.pid));
	rig_result_done(&r);
	rig_shell(rig, 3, "echo fine", &r); /* the id is free, and nothing of the other is told */
	assert_string_equal(buf_str(&r.out), "fine\n");
	assert_true(rig_is_quiet(rig, 50));
	rig_result_done(&r);
}

static void a_newer_client_replaces_an_older_one(void **state)
{
	struct guest_rig *rig = *state, second = *rig;
	struct guest_ready ready;
	struct rig_result r = { 0 };
	struct wire_head head;
	struct rd payload;

	second.sock = -1;
	rig_connect(&second, &ready);
	assert_false(rig_recv(rig, &head, &payload));
	rig_shell(&second, 1, "echo here", &r);
	assert_string_equal(buf_str(&r.out), "here\n");
	rig_result_done(&r);
	rig_hang_up(&second);
}

/* It cannot hear the acknowledgement before the connection is lost, and a frame that the client has
 * not read resets the socket. */
static void acknowledge_and_go(struct guest_rig *rig, uint32_t id, bool is_replaced)
{
	struct guest_exec e = record_script("exit 0", "");
	struct record r = { 0 };
	int next = -1;

	rig_exec(rig, id, &e);
	record_all(rig, id, &r);
	rig_raw(rig, G_PING, 1, NULL, 0);
	assert_false(rig_is_quiet(rig, 10000));
	(void)usleep(20000); /* it waits again: what comes first will be seen first */
	assert_int_equal(kill(rig->pid, SIGSTOP), 0);
	if (is_replaced)
		next = rig_dial(rig);
	rig_raw(rig, G_ACK, id, NULL, 0);
	rig_hang_up(rig);
	assert_int_equal(kill(rig->pid, SIGCONT), 0);
	rig->sock = is_replaced ? next : rig_dial(rig);
	rig_expect_nothing(rig);
	record_done(&r);
}

static void the_last_words_of_an_older_client_count(void **state)
{
	acknowledge_and_go(*state, 1, false);
	acknowledge_and_go(*state, 2, true);
}

static void who_breaks_the_rules_loses_the_connection_and_not_the_box(void **state)
{
	static const struct wire_head heads[] = {
		{ WIRE_VERSION, G_PING, 1, 7 },   { WIRE_VERSION + 1, G_PING, 1, 0 },
		{ WIRE_VERSION, G_READY, 1, 0 },  { WIRE_VERSION, 0xffff, 1, 0 },
		{ WIRE_VERSION, G_EXEC, 1, 0 },   { WIRE_VERSION, G_PERSIST, 0, 0 },
		{ WIRE_VERSION, G_CREDIT, 1, 0 }, { WIRE_VERSION, G_LIVE, 1, 0 },
	};
	struct guest_exec e = record_script("sleep 1000", "lives");
	struct guest_rig *rig = *state;
	struct record r = { 0 };
	struct guest_live live;

	rig_exec(rig, 1, &e);
	assert_false(record_frame(rig, 1, &r));
	assert_int_equal(send(rig->sock, "x", 1, 0), 1);
	rig_expect_refusal(rig);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		record_connect(rig, 1, &r, &live);
		assert_int_equal(send(rig->sock, &heads[i], sizeof(heads[i]), 0), sizeof(heads[i]));
		rig_expect_refusal(rig);
	}
	record_connect(rig, 1, &r, &live);
	assert_int_equal(live.pid, r.pid);
	assert_true(rig_is_running(r.pid));
}

/* What is open in a process, and how many of these are sockets. */
static unsigned count_fds(pid_t pid, unsigned *ret_sockets)
{
	char path[64], link[64];
	struct dirent *d;
	unsigned n = 0;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	assert_non_null(dir);
	*ret_sockets = 0;
	while ((d = readdir(dir))) {
		ssize_t len = readlinkat(dirfd(dir), d->d_name, link, sizeof(link) - 1);

		n += len > 0 ? 1 : 0;
		*ret_sockets += len > 7 && strncmp(link, "socket:", 7) == 0 ? 1 : 0;
	}
	(void)closedir(dir);
	return n;
}

static void a_thousand_connections_leave_nothing_behind(void **state)
{
	struct guest_exec e = record_script("read go; echo went", "");
	struct guest_rig *rig = *state;
	struct record r = { 0 };
	struct guest_live live;
	unsigned sockets, fds;

	e.flags |= EXEC_STDIN;
	rig_exec(rig, 1, &e);
	record_connect(rig, 1, &r, &live);
	fds = count_fds(rig->pid, &sockets);
	for (int i = 0; i < 1000; i++)
		(void)close(rig_dial(rig));
	record_connect(rig, 1, &r, &live);
	assert_int_equal(count_fds(rig->pid, &sockets), fds);
	rig_raw(rig, G_STDIN, 1, "go\n", 3);
	record_all(rig, 1, &r);
	assert_string_equal(buf_str(&r.stream[0]), "went\n");
	record_done(&r);
}

/* 0: none. */
static pid_t first_child(pid_t of)
{
	char path[64], text[64];
	pid_t pid = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", of, of);
	assert_true(fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) >= 0);
	for (const char *p = text; *p >= '0' && *p <= '9'; p++)
		pid = pid * 10 + (*p - '0');
	return pid;
}

static void the_listening_socket_is_open_nowhere_else(void **state)
{
	struct guest_file f = { .op = FILE_WATCH, .path = "/tmp", .target = "" };
	struct guest_rig *rig = *state;
	struct rig_result r = { 0 };
	struct wire_head head;
	unsigned sockets;
	char user[16];
	struct rd payload;

	rig_shell(rig, 1, "ls /proc/self/fd | wc -l", &r);
	assert_string_equal(buf_str(&r.out), "4\n"); /* 0, 1, 2 and the directory */
	rig_result_done(&r);
	(void)snprintf(user, sizeof(user), "%u", getuid());
	f.user = user;
	rig_file(rig, 2, &f);
	assert_true(rig_recv(rig, &head, &payload)); /* armed, so it is in its own process */
	assert_true(first_child(rig->pid) > 0);
	(void)count_fds(first_child(rig->pid), &sockets);
	assert_int_equal(sockets, 1);
}

static unsigned count_files(const char *path)
{
	struct dirent *d;
	unsigned n = 0;
	DIR *dir = opendir(path);

	assert_non_null(dir);
	while ((d = readdir(dir)))
		n++;
	(void)closedir(dir);
	return n - 2;
}

static void file_operations_end_with_their_connection_and_leave_no_file(void **state)
{
	static const char half[GUEST_CHUNK] = "half";
	char dir[] = "/tmp/guest-test-XXXXXX", path[64], user[16];
	struct guest_file f = { .op = FILE_WRITE, .mode = 0644, .target = "" };
	struct guest_file watch = { .op = FILE_WATCH, .target = "" };
	struct guest_rig *rig = *state;
	struct guest_ready ready;
	struct rig_result r = { 0 };

	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/file", dir);
	(void)snprintf(user, sizeof(user), "%u", getuid());
	f.user = watch.user = user;
	f.path = path;
	watch.path = dir;
	rig_file(rig, 1, &f);
	rig_file(rig, 2, &watch);
	rig_raw(rig, G_DATA, 1, half, sizeof(half));
	for (int i = 0; i < 500 && count_files(dir) == 0; i++)
		(void)usleep(10000);
	assert_int_equal(count_files(dir), 1); /* the temporary one */
	rig_connect(rig, &ready);
	rig_file(rig, 1, &f); /* the ids are free at once */
	rig_raw(rig, G_DATA, 1, "whole", 5);
	rig_raw(rig, G_DATA, 1, NULL, 0);
	rig_collect(rig, 1, true, &r);
	assert_int_equal(r.done, 5);
	assert_int_equal(r.code, 0);
	for (int i = 0; i < 500 && first_child(rig->pid) > 0; i++)
		(void)usleep(10000);
	assert_int_equal(first_child(rig->pid), 0);
	assert_int_equal(count_files(dir), 1); /* and that is the whole one */
	assert_true(rig_is_quiet(rig, 50));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	rig_result_done(&r);
}

static int pass_fd(struct guest_rig *rig, uint32_t id, int fd)
{
	uint8_t frame[64];
	long n = guest_put_raw(frame, sizeof(frame), G_PERSIST, id, NULL, 0);

	return fd_send(rig->sock, frame, (size_t)n, &fd, 1) == n ? 0 : -1;
}

static void expect_no_persistence(int fd, uint32_t id)
{
	struct guest_rig rig;

	rig_start(&rig);
	assert_int_equal(pass_fd(&rig, id, fd), 0);
	rig_expect_refusal(&rig);
	rig_stop(&rig, 1);
}

static void only_a_listening_socket_of_the_right_kind_makes_a_box_persistent(void **state)
{
	int packet = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int stream = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	const sa_family_t unnamed = AF_UNIX;

	(void)state;
	assert_int_equal(bind(listening, (const struct sockaddr *)&unnamed, sizeof(unnamed)), 0);
	assert_int_equal(bind(stream, (const struct sockaddr *)&unnamed, sizeof(unnamed)), 0);
	assert_int_equal(listen(listening, 1), 0);
	assert_int_equal(listen(stream, 1), 0);
	expect_no_persistence(packet, 0);
	expect_no_persistence(stream, 0);
	expect_no_persistence(file, 0);
	expect_no_persistence(listening, 1);
	(void)close(packet);
	(void)close(listening);
	(void)close(stream);
	(void)close(file);
}

static void without_persistence_what_is_kept_ends_with_the_box(void **state)
{
	struct guest_exec e = record_script("sleep 1000", "");
	struct record r = { 0 };
	struct guest_rig rig;

	(void)state;
	rig_start(&rig);
	rig_exec(&rig, 1, &e);
	assert_false(record_frame(&rig, 1, &r));
	rig_stop(&rig, 0);
	assert_true(rig_dies_soon(r.pid));
}

static void as_pid_1_a_box_outlives_its_client(void **state)
{
	struct guest_exec e = record_script("echo on; read go; exit 8", "boxed");
	struct record r = { 0 };
	struct guest_live live;
	struct guest_rig rig;

	(void)state;
	if (!rig_start_boxed(&rig))
		skip();
	rig_persist(&rig);
	e.user = "0";
	e.flags |= EXEC_STDIN;
	rig_exec(&rig, 1, &e);
	while (r.stream[0].len == 0)
		assert_false(record_frame(&rig, 1, &r));
	record_connect(&rig, 1, &r, &live);
	rig_raw(&rig, G_STDIN, 1, "go\n", 3);
	record_all(&rig, 1, &r);
	assert_int_equal(r.exit.code, 8);
	assert_string_equal(buf_str(&r.stream[0]), "on\n");
	record_done(&r);
	rig_end(&rig);
}

int main(void)
{
#define WITH_GUEST(test) cmocka_unit_test_setup_teardown(test, start, stop)
	const struct CMUnitTest tests[] = {
		WITH_GUEST(what_is_not_kept_ends_with_its_connection),
		WITH_GUEST(a_newer_client_replaces_an_older_one),
		WITH_GUEST(the_last_words_of_an_older_client_count),
		WITH_GUEST(who_breaks_the_rules_loses_the_connection_and_not_the_box),
		WITH_GUEST(a_thousand_connections_leave_nothing_behind),
		WITH_GUEST(the_listening_socket_is_open_nowhere_else),
		WITH_GUEST(file_operations_end_with_their_connection_and_leave_no_file),
		cmocka_unit_test(only_a_listening_socket_of_the_right_kind_makes_a_box_persistent),
		cmocka_unit_test(without_persistence_what_is_kept_ends_with_the_box),
		cmocka_unit_test(as_pid_1_a_box_outlives_its_client),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
