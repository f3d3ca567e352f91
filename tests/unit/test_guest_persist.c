/* A guest that outlives its clients: what goes on, what is told again, what ends. */
#include <dirent.h>
#include <errno.h>
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

#include "base/clock.h"
#include "base/fd.h"
#include "guest/kept.h"
#include "guest_rig.h"

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

/* What a client has recorded of one execution, whatever connections that took. */
struct record {
	struct buf stream[2];
	struct guest_exit exit;
	unsigned exits;
	uint64_t uncredited; /* of this connection */
	uint32_t pid;
};

static void record_done(struct record *r)
{
	buf_done(&r->stream[0]);
	buf_done(&r->stream[1]);
}

static struct guest_exec kept_script(const char *script, const char *tag)
{
	struct guest_exec e = rig_script(script);

	e.flags = EXEC_KEEP;
	e.tag = tag;
	e.envp[e.envc++] = "PATH=/usr/bin:/bin";
	return e;
}

/* Bytes go on where the record ends, or repeat what it has. */
static void record_output(struct record *r, struct rd *payload)
{
	struct buf *b = &r->stream[rd_u8(payload) - 1];
	uint64_t offset = rd_u64(payload), again;
	size_t n;
	const char *data = rd_rest(payload, &n);

	assert_true(n > 0 && n <= GUEST_CHUNK);
	assert_true(offset <= b->len);
	again = b->len - offset < n ? b->len - offset : n;
	assert_memory_equal(b->data + offset, data, again);
	assert_int_equal(buf_append(b, data + again, n - again), 0);
	r->uncredited += n;
	assert_true(r->uncredited <= GUEST_WINDOW);
}

/* One frame of the id; true when it was its end. */
static bool record_frame(struct guest_rig *rig, uint32_t id, struct record *r)
{
	struct wire_head head;
	struct rd payload;

	assert_true(rig_recv(rig, &head, &payload));
	assert_int_equal(head.id, id);
	switch (head.type) {
	case G_STARTED:
		r->pid = rd_u32(&payload);
		return false;
	case G_OUTPUT:
		record_output(r, &payload);
		return false;
	case G_TAKEN:
		return false;
	case G_EXIT:
		assert_int_equal(guest_get_exit(&payload, &r->exit), 0);
		r->exits++;
		return true;
	default:
		fail_msg("frame of type %u", head.type);
		return true;
	}
}

static void credit(struct guest_rig *rig, uint32_t id, struct record *r, uint64_t n)
{
	if (n > 0)
		rig_u64(rig, G_CREDIT, id, n);
	r->uncredited -= n;
}

static void record_all(struct guest_rig *rig, uint32_t id, struct record *r)
{
	while (!record_frame(rig, id, r))
		credit(rig, id, r, r->uncredited);
}

/* The record's connection is a new one, on which nothing but this execution is told. */
static void connect_to(struct guest_rig *rig, uint32_t id, struct record *r, struct guest_live *ret)
{
	struct guest_ready ready;

	rig_connect(rig, &ready);
	assert_int_equal(ready.live, 1);
	rig_expect_live(rig, ret);
	assert_int_equal(ret->id, id);
	r->uncredited = 0;
}

static void expect_nothing_lives(struct guest_rig *rig)
{
	struct guest_ready ready;

	rig_connect(rig, &ready);
	assert_int_equal(ready.live, 0);
	assert_true(rig_is_quiet(rig, 50));
}

static bool is_running(uint32_t pid)
{
	char path[64], text[512];
	char *state;

	(void)snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return false;
	state = strrchr(text, ')');
	return state && state[2] != 'Z' && state[2] != 'X';
}

static bool dies_soon(uint32_t pid)
{
	for (int i = 0; i < 500 && is_running(pid); i++)
		(void)usleep(10000);
	return !is_running(pid);
}

static void an_execution_goes_on_and_its_end_is_told_to_the_next_client(void **state)
{
	struct guest_exec e =
		kept_script("echo begun; read go; echo end; echo bad >&2; exit 3", "t1");
	struct guest_rig *rig = *state;
	struct record r = { 0 };
	struct guest_live live;

	e.flags |= EXEC_STDIN;
	rig_exec(rig, 7, &e);
	while (r.stream[0].len == 0)
		assert_false(record_frame(rig, 7, &r));
	rig_raw(rig, G_STDIN, 7, "go\n", 3);
	rig_hang_up(rig);
	(void)usleep(200000);
	connect_to(rig, 7, &r, &live);
	assert_string_equal(live.tag, "t1");
	assert_int_equal(live.pid, r.pid);
	assert_int_equal(live.flags, LIVE_ENDED);
	assert_int_equal(live.offset[0], 0);
	assert_int_equal(live.stdin_taken, 3);
	assert_true(live.age_ms >= 200 && live.age_ms < 60000);
	record_all(rig, 7, &r);
	assert_string_equal(buf_str(&r.stream[0]), "begun\nend\n");
	assert_string_equal(buf_str(&r.stream[1]), "bad\n");
	assert_int_equal(r.exit.code, 3);
	assert_int_equal(r.exit.flags, 0);
	assert_int_equal(r.exit.output_bytes, 14);
	record_done(&r);
}

static void an_end_is_told_until_it_is_acknowledged(void **state)
{
	struct guest_exec e = kept_script("echo out; exit 5", "");
	struct guest_rig *rig = *state;
	struct record r = { 0 };
	struct guest_live live;

	rig_exec(rig, 1, &e);
	record_all(rig, 1, &r);
	for (unsigned i = 2; i < 5; i++) {
		connect_to(rig, 1, &r, &live);
		assert_string_equal(live.tag, "");
		record_all(rig, 1, &r);
		assert_int_equal(r.exits, i);
		assert_int_equal(r.exit.code, 5);
		assert_true(rig_is_quiet(rig, 20));
	}
	assert_string_equal(buf_str(&r.stream[0]), "out\n");
	rig_raw(rig, G_ACK, 1, NULL, 0);
	rig_raw(rig, G_ACK, 1, NULL, 0); /* of what is not there: no harm */
	expect_nothing_lives(rig);
	rig_exec(rig, 1, &e); /* the id is free again */
	record_all(rig, 1, &r);
	rig_raw(rig, G_ACK, 1, NULL, 0);
	record_done(&r);
}

static void expect_refusal(struct guest_rig *rig)
{
	struct wire_head head;
	struct rd payload;

	do
		assert_true(rig_recv(rig, &head, &payload));
	while (head.id != 0);
	assert_int_equal(head.type, G_ERROR);
	assert_false(rig_recv(rig, &head, &payload));
}

static void the_id_of_what_is_kept_is_taken(void **state)
{
	struct guest_exec e = kept_script("exit 5", "");
	struct guest_rig *rig = *state;
	struct record r = { 0 };
	struct guest_live live;

	rig_exec(rig, 1, &e);
	record_all(rig, 1, &r);
	rig_exec(rig, 1, &e);
	expect_refusal(rig);
	connect_to(rig, 1, &r, &live); /* and it is still kept */
	record_all(rig, 1, &r);
	record_done(&r);
}

/* Lines on both streams in turn, told apart by their number. */
#define LINES 3000
#define LINES_SCRIPT \
	"i=0; while [ $i -lt 3000 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done; exit 9"

static void expect_lines(const struct buf *b, const char *name, const char *end)
{
	struct buf want = { 0 };

	for (int i = 0; i < LINES; i++)
		assert_int_equal(buf_printf(&want, "%s %d%s", name, i, end), 0);
	assert_int_equal(b->len, want.len);
	assert_memory_equal(b->data, want.data, want.len);
	buf_done(&want);
}

static unsigned next_random(unsigned *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return *seed >> 8;
}

/* Follows an execution through connections that end anywhere, credits anything that it may, and
 * leaves frames unread. */
static unsigned follow(struct guest_rig *rig, uint32_t id, struct record *r, unsigned seed)
{
	unsigned connections = 1, left = next_random(&seed) % 400;
	struct guest_live live;

	for (;;) {
		if (left-- == 0) {
			connect_to(rig, id, r, &live);
			assert_true(live.offset[0] <= r->stream[0].len);
			assert_true(live.offset[1] <= r->stream[1].len);
			left = next_random(&seed) % (next_random(&seed) % 4 ? 60 : 1500);
			connections++;
		}
		if (record_frame(rig, id, r))
			return connections;
		if (next_random(&seed) % 8 == 0 || r->uncredited == GUEST_WINDOW)
			credit(rig, id, r, next_random(&seed) % (r->uncredited + 1));
	}
}

static void replay(struct guest_rig *rig, bool is_terminal)
{
	struct guest_exec e = kept_script(LINES_SCRIPT, "lines");
	unsigned connections = 0;

	e.flags |= is_terminal ? EXEC_PTY : 0;
	for (unsigned seed = 1; seed <= 12; seed++) {
		struct record r = { 0 };

		rig_exec(rig, seed, &e);
		connections += follow(rig, seed, &r, seed);
		assert_int_equal(r.exit.code, 9);
		assert_int_equal(r.exits, 1);
		assert_int_equal(r.exit.flags, 0);
		assert_int_equal(r.exit.output_bytes, r.stream[0].len + r.stream[1].len);
		if (!is_terminal) {
			expect_lines(&r.stream[0], "out", "\n");
			expect_lines(&r.stream[1], "err", "\n");
		}
		rig_raw(rig, G_ACK, seed, NULL, 0);
		record_done(&r);
	}
	assert_true(connections > 50); /* or nothing was tested */
}

static void a_replay_loses_and_doubles_no_byte_of_two_streams(void **state)
{
	replay(*state, false);
}

static void a_replay_loses_and_doubles_no_byte_of_a_terminal(void **state)
{
	struct guest_exec e = kept_script("stty raw; i=0; while [ $i -lt 3000 ]; do echo out $i; "
					  "i=$((i+1)); done; exit 9",
					  "terminal");
	struct guest_rig *rig = *state;
	struct record r = { 0 };

	replay(rig, true);
	e.flags |= EXEC_PTY;
	rig_exec(rig, 99, &e);
	assert_true(follow(rig, 99, &r, 99) > 1);
	expect_lines(&r.stream[0], "out", "\n");
	rig_raw(rig, G_ACK, 99, NULL, 0);
	record_done(&r);
}

static void output_stops_at_the_window_while_nobody_is_connected(void **state)
{
	struct guest_exec e = kept_script("head -c 1000000 /dev/zero; echo done >&2", "");
	struct guest_rig *rig = *state;
	struct record r = { 0 };
	struct guest_live live;

	rig_exec(rig, 1, &e);
	assert_false(record_frame(rig, 1, &r)); /* G_STARTED */
	rig_hang_up(rig);
	(void)usleep(300000);
	connect_to(rig, 1, &r, &live);
	assert_int_equal(live.flags, 0);
	while (r.uncredited < GUEST_WINDOW)
		assert_false(record_frame(rig, 1, &r));
	assert_true(rig_is_quiet(rig, 100));
	assert_int_equal(r.stream[1].len, 0);
	credit(rig, 1, &r, r.uncredited);
	record_all(rig, 1, &r);
	assert_int_equal(r.stream[0].len, 1000000);
	assert_string_equal(buf_str(&r.stream[1]), "done\n");
	record_done(&r);
}

static void credit_for_the_connection_before_is_refused(void **state)
{
	struct guest_exec e = kept_script("echo out; sleep 1000", "");
	struct guest_rig *rig = *state;
	struct record r = { 0 };
	struct guest_live live;

	rig_exec(rig, 1, &e);
	while (r.stream[0].len == 0)
		assert_false(record_frame(rig, 1, &r));
	connect_to(rig, 1, &r, &live);
	rig_u64(rig, G_CREDIT, 1, 5);
	expect_refusal(rig);
	connect_to(rig, 1, &r, &live);
	assert_false(record_frame(rig, 1, &r));
	assert_string_equal(buf_str(&r.stream[0]), "out\n");
	record_done(&r);
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
	assert_true(is_running(r.pid));
	rig_connect(rig, &ready);
	assert_int_equal(ready.live, 0);
	assert_true(dies_soon(r.pid));
	rig_result_done(&r);
	rig_shell(rig, 3, "echo fine", &r); /* the id is free, and nothing of the other is told */
	assert_string_equal(buf_str(&r.out), "fine\n");
	assert_true(rig_is_quiet(rig, 50));
	rig_result_done(&r);
}

static void an_execution_that_is_acknowledged_early_is_not_kept(void **state)
{
	struct guest_exec e = kept_script("sleep 1000", "");
	struct guest_rig *rig = *state;
	struct record r = { 0 };

	rig_exec(rig, 1, &e);
	assert_false(record_frame(rig, 1, &r));
	rig_raw(rig, G_ACK, 1, NULL, 0);
	expect_nothing_lives(rig);
	assert_true(dies_soon(r.pid));
	rig_exec(rig, 1, &e);
	rig_raw(rig, G_ACK, 1, NULL, 0);
	rig_raw(rig, G_CANCEL, 1, NULL, 0);
	record_all(rig, 1, &r); /* its end is told once all the same */
	assert_int_equal(r.exits, 1);
	expect_nothing_lives(rig);
	record_done(&r);
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

static void the_last_words_of_an_older_client_count(void **state)
{
	struct guest_exec e = kept_script("exit 0", "");
	struct guest_rig *rig = *state;
	struct record r = { 0 };

	for (uint32_t i = 1; i <= 20; i++) {
		rig_exec(rig, i, &e);
		record_all(rig, i, &r);
		rig_raw(rig, G_PING, 1, NULL,
			0); /* its answer is not read, which resets the socket */
		rig_raw(rig, G_ACK, i, NULL, 0);
		expect_nothing_lives(rig);
	}
	record_done(&r);
}

static void who_breaks_the_rules_loses_the_connection_and_not_the_box(void **state)
{
	static const struct wire_head heads[] = {
		{ WIRE_VERSION, G_PING, 1, 7 },   { WIRE_VERSION + 1, G_PING, 1, 0 },
		{ WIRE_VERSION, G_READY, 1, 0 },  { WIRE_VERSION, 0xffff, 1, 0 },
		{ WIRE_VERSION, G_EXEC, 1, 0 },   { WIRE_VERSION, G_PERSIST, 0, 0 },
		{ WIRE_VERSION, G_CREDIT, 1, 0 }, { WIRE_VERSION, G_LIVE, 1, 0 },
	};
	struct guest_exec e = kept_script("sleep 1000", "lives");
	struct guest_rig *rig = *state;
	struct record r = { 0 };
	struct guest_live live;

	rig_exec(rig, 1, &e);
	assert_false(record_frame(rig, 1, &r));
	assert_int_equal(send(rig->sock, "x", 1, 0), 1);
	expect_refusal(rig);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		connect_to(rig, 1, &r, &live);
		assert_int_equal(send(rig->sock, &heads[i], sizeof(heads[i]), 0), sizeof(heads[i]));
		expect_refusal(rig);
	}
	connect_to(rig, 1, &r, &live);
	assert_int_equal(live.pid, r.pid);
	assert_true(is_running(r.pid));
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
	struct guest_exec e = kept_script("read go; echo went", "");
	struct guest_rig *rig = *state;
	struct record r = { 0 };
	struct guest_live live;
	unsigned sockets, fds;

	e.flags |= EXEC_STDIN;
	rig_exec(rig, 1, &e);
	connect_to(rig, 1, &r, &live);
	fds = count_fds(rig->pid, &sockets);
	for (int i = 0; i < 1000; i++)
		(void)close(rig_dial(rig));
	connect_to(rig, 1, &r, &live);
	assert_int_equal(count_fds(rig->pid, &sockets), fds);
	rig_raw(rig, G_STDIN, 1, "go\n", 3);
	record_all(rig, 1, &r);
	assert_string_equal(buf_str(&r.stream[0]), "went\n");
	record_done(&r);
}

static void the_listening_socket_is_open_nowhere_else(void **state)
{
	struct guest_file f = { .op = FILE_WATCH, .path = "/tmp", .target = "" };
	struct guest_rig *rig = *state;
	char path[64], text[64], user[16];
	struct rig_result r = { 0 };
	struct wire_head head;
	unsigned sockets;
	struct rd payload;

	rig_shell(rig, 1, "ls /proc/self/fd | wc -l", &r);
	assert_string_equal(buf_str(&r.out), "4\n"); /* 0, 1, 2 and the directory */
	rig_result_done(&r);
	(void)snprintf(user, sizeof(user), "%u", getuid());
	f.user = user;
	rig_file(rig, 2, &f);
	assert_true(rig_recv(rig, &head, &payload)); /* armed, so it is in its own process */
	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", rig->pid, rig->pid);
	assert_true(fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) > 0);
	(void)count_fds((pid_t)strtoul(text, NULL, 10), &sockets);
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

static bool is_without_children(pid_t pid)
{
	char path[64], text[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	return fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) == 0;
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
	for (int i = 0; i < 500 && !is_without_children(rig->pid); i++)
		(void)usleep(10000);
	assert_true(is_without_children(rig->pid));
	assert_int_equal(count_files(dir), 1); /* and that is the whole one */
	assert_true(rig_is_quiet(rig, 50));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	rig_result_done(&r);
}

static void standard_input_goes_on_behind_what_the_guest_has(void **state)
{
	struct guest_exec e = kept_script("read first; sleep 0.4; exec cat", "");
	static char much[GUEST_CHUNK];
	struct guest_rig *rig = *state;
	struct record r = { 0 };
	struct guest_live live;

	memset(much, 'a', sizeof(much));
	much[0] = '\n';
	e.flags |= EXEC_STDIN;
	rig_exec(rig, 1, &e);
	for (int i = 0; i < 4; i++)
		rig_raw(rig, G_STDIN, 1, much, sizeof(much));
	connect_to(rig, 1, &r, &live);
	assert_int_equal(live.flags, LIVE_STDIN);
	assert_int_equal(live.stdin_taken + live.stdin_kept, 4 * sizeof(much));
	assert_true(live.stdin_kept > 0);
	rig_raw(rig, G_STDIN, 1, "end", 3);
	rig_raw(rig, G_STDIN, 1, NULL, 0);
	record_all(rig, 1, &r);
	assert_int_equal(r.stream[0].len, 4 * sizeof(much) - 1 + 3);
	assert_memory_equal(r.stream[0].data + r.stream[0].len - 3, "end", 3);
	record_done(&r);
}

static void a_deadline_holds_while_nobody_is_connected(void **state)
{
	struct guest_exec e = kept_script("sleep 1000", "");
	struct guest_rig *rig = *state;
	struct record r = { 0 };
	struct guest_live live;

	e.timeout_ms = 100;
	e.grace_ms = 0;
	rig_exec(rig, 1, &e);
	assert_false(record_frame(rig, 1, &r));
	rig_hang_up(rig);
	assert_true(dies_soon(r.pid));
	(void)usleep(50000);
	connect_to(rig, 1, &r, &live);
	assert_int_equal(live.flags, LIVE_ENDED);
	record_all(rig, 1, &r);
	assert_int_equal(r.exit.flags, EXIT_TIMED_OUT | EXIT_SIGNALED);
}

static void a_terminal_lives_on_and_can_be_resized(void **state)
{
	struct guest_exec e = kept_script("read x; stty size", "");
	struct guest_rig *rig = *state;
	struct record r = { 0 };
	struct guest_live live;
	uint8_t frame[64];
	struct wr w;
	long n;

	e.flags |= EXEC_PTY | EXEC_STDIN;
	rig_exec(rig, 1, &e);
	connect_to(rig, 1, &r, &live);
	assert_int_equal(live.flags, LIVE_PTY | LIVE_STDIN);
	wire_begin(&w, frame, sizeof(frame), G_RESIZE, 1);
	wr_u16(&w, 11);
	wr_u16(&w, 222);
	n = wire_finish(&w);
	assert_int_equal(send(rig->sock, frame, (size_t)n, 0), n);
	rig_raw(rig, G_STDIN, 1, "\n", 1);
	record_all(rig, 1, &r);
	assert_non_null(strstr(buf_str(&r.stream[0]), "11 222"));
	record_done(&r);
}

static void a_cancelled_execution_with_a_full_window_ends_for_the_next_client(void **state)
{
	struct guest_exec e = kept_script("exec head -c 1000000 /dev/zero", "");
	struct guest_rig *rig = *state;
	struct record r = { 0 };
	struct guest_live live;

	e.grace_ms = 0;
	rig_exec(rig, 1, &e);
	while (r.uncredited < GUEST_WINDOW)
		assert_false(record_frame(rig, 1, &r));
	rig_raw(rig, G_CANCEL, 1, NULL, 0);
	connect_to(rig, 1, &r, &live);
	while (!record_frame(rig, 1, &r))
		;
	assert_true(r.exit.flags & EXIT_CANCELLED);
	assert_true(r.exit.flags & EXIT_TRUNCATED);
	assert_int_equal(r.stream[0].len, GUEST_WINDOW);
	record_done(&r);
}

/* Runs it to its end without crediting anything. */
static void run_uncredited(struct guest_rig *rig, uint32_t id, const char *script)
{
	struct guest_exec e = kept_script(script, "");
	struct record r = { 0 };

	rig_exec(rig, id, &e);
	while (!record_frame(rig, id, &r))
		;
	assert_int_equal(r.exit.flags, 0);
	record_done(&r);
}

static void more_output_than_is_kept_costs_the_oldest_theirs_and_no_end(void **state)
{
	const uint32_t n = GUEST_KEPT_BYTES / GUEST_WINDOW + 3;
	struct guest_rig *rig = *state;
	struct guest_ready ready;
	struct guest_live live;

	for (uint32_t i = 1; i <= n; i++)
		run_uncredited(rig, i, "head -c 131072 /dev/zero; exit 0");
	rig_u64(rig, G_CREDIT, 1, 131072); /* was sent: no broken rule */
	rig_connect(rig, &ready);
	assert_int_equal(ready.live, n);
	for (uint32_t i = 1; i <= n; i++) {
		rig_expect_live(rig, &live);
		assert_int_equal(live.id, i);
		assert_int_equal(live.offset[0], i <= 3 ? GUEST_WINDOW : 0);
	}
	for (uint32_t i = 1; i <= n; i++) {
		struct record r = { 0 };

		r.stream[0].len = 0;
		while (!record_frame(rig, i, &r))
			;
		assert_int_equal(r.stream[0].len, i <= 3 ? 0 : GUEST_WINDOW);
		assert_int_equal(r.exit.flags, i <= 3 ? EXIT_TRUNCATED : 0);
		assert_int_equal(r.exit.output_bytes, GUEST_WINDOW);
		record_done(&r);
		rig_raw(rig, G_ACK, i, NULL, 0);
	}
}

static void too_many_unacknowledged_ends_are_refused(void **state)
{
	struct guest_exec e = kept_script("exit 0", "");
	struct guest_rig *rig = *state;
	struct rig_result r = { 0 };
	struct guest_ready ready;

	for (uint32_t i = 1; i <= GUEST_KEPT_MAX; i++)
		run_uncredited(rig, i, "exit 0");
	rig_run(rig, 1000, &e, &r);
	assert_false(r.is_exit);
	assert_int_equal(r.code, E2BIG);
	rig_result_done(&r);
	rig_shell(rig, 1001, "exit 4", &r); /* what is not kept needs no place */
	assert_int_equal(r.exit.code, 4);
	rig_result_done(&r);
	rig_raw(rig, G_ACK, 17, NULL, 0);
	run_uncredited(rig, 1002, "exit 0");
	rig_connect(rig, &ready);
	assert_int_equal(ready.live, GUEST_KEPT_MAX);
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
	expect_refusal(&rig);
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
	struct guest_exec e = kept_script("sleep 1000", "");
	struct record r = { 0 };
	struct guest_rig rig;

	(void)state;
	rig_start(&rig);
	rig_exec(&rig, 1, &e);
	assert_false(record_frame(&rig, 1, &r));
	rig_stop(&rig, 0);
	assert_true(dies_soon(r.pid));
}

static void as_pid_1_a_box_outlives_its_client(void **state)
{
	struct guest_exec e = kept_script("echo on; read go; exit 8", "boxed");
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
	connect_to(&rig, 1, &r, &live);
	rig_raw(&rig, G_STDIN, 1, "go\n", 3);
	record_all(&rig, 1, &r);
	assert_int_equal(r.exit.code, 8);
	assert_string_equal(buf_str(&r.stream[0]), "on\n");
	record_done(&r);
	rig_end(&rig);
}

/* Out of memory may refuse the execution or cut its output, and both are told; never the end. */
static void a_failed_allocation_loses_no_end(void **state)
{
	(void)state;
	for (size_t n = 1; n <= 12; n++) {
		struct guest_exec e = kept_script("echo fine", "");
		struct rig_result r = { 0 };
		struct guest_ready ready;
		struct guest_live live;
		struct guest_rig rig;

		rig_start_faulty(&rig, n);
		rig_persist(&rig);
		rig_run(&rig, 1, &e, &r);
		rig_connect(&rig, &ready);
		assert_int_equal(ready.live, r.is_exit ? 1 : 0);
		if (r.is_exit) {
			struct record again = { 0 };

			rig_expect_live(&rig, &live);
			again.stream[0].len = 0;
			assert_int_equal(live.offset[0], r.out.len); /* was credited */
			assert_int_equal(buf_append(&again.stream[0], r.out.data, r.out.len), 0);
			record_all(&rig, 1, &again);
			assert_int_equal(again.exit.flags & ~(uint32_t)EXIT_TRUNCATED, 0);
			record_done(&again);
		} else {
			assert_int_equal(r.code, ENOMEM);
		}
		rig_result_done(&r);
		rig_end(&rig);
	}
}

int main(void)
{
#define WITH_GUEST(test) cmocka_unit_test_setup_teardown(test, start, stop)
	const struct CMUnitTest tests[] = {
		WITH_GUEST(an_execution_goes_on_and_its_end_is_told_to_the_next_client),
		WITH_GUEST(an_end_is_told_until_it_is_acknowledged),
		WITH_GUEST(the_id_of_what_is_kept_is_taken),
		WITH_GUEST(a_replay_loses_and_doubles_no_byte_of_two_streams),
		WITH_GUEST(a_replay_loses_and_doubles_no_byte_of_a_terminal),
		WITH_GUEST(output_stops_at_the_window_while_nobody_is_connected),
		WITH_GUEST(credit_for_the_connection_before_is_refused),
		WITH_GUEST(what_is_not_kept_ends_with_its_connection),
		WITH_GUEST(an_execution_that_is_acknowledged_early_is_not_kept),
		WITH_GUEST(a_newer_client_replaces_an_older_one),
		WITH_GUEST(the_last_words_of_an_older_client_count),
		WITH_GUEST(who_breaks_the_rules_loses_the_connection_and_not_the_box),
		WITH_GUEST(a_thousand_connections_leave_nothing_behind),
		WITH_GUEST(the_listening_socket_is_open_nowhere_else),
		WITH_GUEST(file_operations_end_with_their_connection_and_leave_no_file),
		WITH_GUEST(standard_input_goes_on_behind_what_the_guest_has),
		WITH_GUEST(a_deadline_holds_while_nobody_is_connected),
		WITH_GUEST(a_terminal_lives_on_and_can_be_resized),
		WITH_GUEST(a_cancelled_execution_with_a_full_window_ends_for_the_next_client),
		WITH_GUEST(more_output_than_is_kept_costs_the_oldest_theirs_and_no_end),
		WITH_GUEST(too_many_unacknowledged_ends_are_refused),
		cmocka_unit_test(only_a_listening_socket_of_the_right_kind_makes_a_box_persistent),
		cmocka_unit_test(without_persistence_what_is_kept_ends_with_the_box),
		cmocka_unit_test(as_pid_1_a_box_outlives_its_client),
		cmocka_unit_test(a_failed_allocation_loses_no_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
