/* R16 to R18, F16 to F18: files, users and locks that are not what the API expects. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attack.h"
#include "base/clock.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MIB (1ull << 20)

static void open_with(struct world *w, const char *probe)
{
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->box);
	if (probe)
		box_expect_held(w, &w->box, probe, 0);
}

/* A download of eight exbibytes is cancelled in the middle; a part of it is had at once. */
static void sparse_files_are_bounded(struct world *w, const struct attack *a)
{
	struct guest_file part = { .op = FILE_READ,
				   .offset = 1ull << 40,
				   .length = MIB,
				   .user = "",
				   .path = "/workspace/sparse",
				   .target = "" };
	static const uint8_t whole[] = { FILE_READ, FILE_TAR_GET };
	struct op op;

	(void)a;
	open_with(w, "sparse /workspace/sparse");
	assert_int_equal(api_file(&w->box, &part, &op), 0);
	assert_int_equal(op.bytes, MIB);
	op_done(&op);
	for (size_t i = 0; i < COUNT(whole); i++) {
		struct guest_file f = {
			.op = whole[i], .user = "", .path = "/workspace/sparse", .target = ""
		};
		uint64_t until = clock_now_ms() + 2000;

		op = (struct op){ 0 };
		assert_int_equal(guest_file(w->box.guest, &f, &(struct guest_callbacks){ 0 }, NULL,
					    &op.id, NULL),
				 0);
		while (clock_now_ms() < until)
			box_expect_answer(&w->box);
		assert_int_equal(guest_cancel(w->box.guest, op.id), 0);
		box_expect_answer(&w->box);
		assert_true(machine_rss(w->box.l.pid) < 32 * MIB);
	}
	box_expect_held(w, &w->box, "ids", 0);
	box_close(w, &w->box, NULL);
}

/* What is no file answers at once, with an error or with nothing. */
static void odd_files_do_not_hang(struct world *w, const struct attack *a)
{
	static const char *const names[] = { "fifo", "socket", "tty", "stdin", "loop" };
	static const uint8_t ops[] = { FILE_READ, FILE_STAT, FILE_LIST, FILE_TAR_GET, FILE_CHMOD };
	char path[64];

	(void)a;
	open_with(w, "odd-files");
	for (size_t i = 0; i < COUNT(names); i++) {
		(void)snprintf(path, sizeof(path), "/workspace/%s", names[i]);
		for (size_t k = 0; k < COUNT(ops); k++) {
			struct guest_file f = {
				.op = ops[k], .mode = 0600, .user = "", .path = path, .target = ""
			};
			int r = api_file(&w->box, &f, NULL);

			if (r == -ETIMEDOUT)
				fail_msg("operation %u on %s hangs", ops[k], names[i]);
			if (ops[k] == FILE_READ)
				assert_true(r < 0);
		}
		if (api_write(&w->box, path, "x", 1) == -ETIMEDOUT)
			fail_msg("writing to %s hangs", names[i]);
	}
	box_close(w, &w->box, NULL);
}

/* /dev/zero has no end: the read must be refused or bounded, not endless. */
static void endless_devices_are_refused(struct world *w, const struct attack *a)
{
	struct guest_file f = {
		.op = FILE_READ, .length = MIB, .user = "", .path = "/workspace/zero", .target = ""
	};

	(void)a;
	open_with(w, "odd-files");
	assert_int_not_equal(api_file(&w->box, &f, NULL), -ETIMEDOUT);
	box_expect_answer(&w->box);
	box_close(w, &w->box, NULL);
}

/* The file is another one each time the API looks: an answer or an error, never a hang. */
static void changing_files_end(struct world *w, const struct attack *a)
{
	static const struct {
		const char *probe, *path;
	} changes[] = { { "grow /workspace/grow 3000", "/workspace/grow" },
			{ "shrink /workspace/shrink 3000", "/workspace/shrink" } };
	static const uint8_t ops[] = { FILE_READ, FILE_TAR_GET };

	(void)a;
	open_with(w, NULL);
	for (size_t i = 0; i < COUNT(changes); i++) {
		struct op op;

		box_start(w, &w->box, changes[i].probe, NULL, &op);
		box_wait_ready(&w->box, &op);
		for (int k = 0; k < 20; k++) {
			struct guest_file f = {
				.op = ops[k % 2], .user = "", .path = changes[i].path, .target = ""
			};
			struct op answer;
			int r = api_file(&w->box, &f, &answer);

			assert_int_not_equal(r, -ETIMEDOUT);
			if (r == 0 && f.op == FILE_TAR_GET) /* blocks of 512, whatever happened */
				assert_int_equal(answer.bytes % 512, 0);
			op_done(&answer);
		}
		assert_true(box_wait(&w->box, &op, 20000));
		op_done(&op);
	}
	box_expect_answer(&w->box);
	box_close(w, &w->box, NULL);
}

/* Mapped by a process while the API replaces it: at worst that process faults. */
static void maps_are_their_owners_business(struct world *w, const struct attack *a)
{
	struct op op;

	(void)a;
	open_with(w, NULL);
	box_start(w, &w->box, "map /workspace/mapped 2000", NULL, &op);
	box_wait_ready(&w->box, &op);
	for (int i = 0; i < 50 && !op.ended; i++)
		assert_int_equal(api_write(&w->box, "/workspace/mapped", "short", 5), 0);
	assert_true(box_wait(&w->box, &op, 20000));
	op_expect_held("map", &op, 0);
	op_done(&op);
	box_expect_answer(&w->box);
	box_close(w, &w->box, NULL);
}

/* Locks and leases of a process in the box do not stop the API. */
static void locks_do_not_hold_the_api(struct world *w, const struct attack *a)
{
	uint64_t began;
	struct op op, answer;

	(void)a;
	open_with(w, NULL);
	box_start(w, &w->box, "lock /workspace/locked 4000", NULL, &op);
	box_wait_ready(&w->box, &op);
	began = clock_now_ms();
	assert_int_not_equal(api_read(&w->box, "/workspace/locked", &answer), -ETIMEDOUT);
	op_done(&answer);
	assert_int_equal(api_write(&w->box, "/workspace/locked", "new", 3), 0);
	assert_int_equal(api_read(&w->box, "/workspace/locked", &answer), 0);
	assert_string_equal(buf_str(&answer.out), "new");
	op_done(&answer);
	assert_true(clock_now_ms() - began < 3000);
	guest_forget(w->box.guest, op.id);
	op_done(&op);
	box_close(w, &w->box, NULL);
}

/* Names and numbers for the `user` option: refused, or an id of the box without any capability. */
static void odd_users_gain_nothing(struct world *w, const struct attack *a)
{
	static const char *const refused[] = {
		"4294967295",           "4294967296", "-1", "user\nroot", "no-such-user",
		"99999999999999999999", "root:x",     " ",  "0x0",        "user ",
		"/etc/passwd"
	};
	static const char *const allowed[] = { "0", "root", "65534", "nobody", "1000", "user", "" };

	(void)a;
	open_with(w, NULL);
	for (size_t i = 0; i < COUNT(refused) + COUNT(allowed); i++) {
		bool refuse = i < COUNT(refused);
		struct guest_exec e = { .argc = 2,
					.timeout_ms = 5000,
					.user = refuse ? refused[i] : allowed[i - COUNT(refused)],
					.cwd = "/",
					.code = "",
					.argv = { ATTACK_PROBE, "nothing-held" } };
		struct op op;

		box_start_argv(&w->box, &e, &op);
		assert_true(box_wait(&w->box, &op, 10000));
		if (refuse && op.code == 0)
			fail_msg("user '%s' was taken", e.user);
		if (op.code == 0)
			op_expect_held(e.user, &op, 0);
		op_done(&op);
	}
	box_close(w, &w->box, NULL);
}

/* An id that the box does not own cannot be taken: the kernel has no such id in it. */
static void foreign_numbers_are_refused(struct world *w, const struct attack *a)
{
	static const char *const ids[] = { "5000", "65533", "100000", "1879048192", "2147483647" };

	(void)a;
	open_with(w, NULL);
	for (size_t i = 0; i < COUNT(ids); i++) {
		struct guest_exec e = { .argc = 2,
					.timeout_ms = 5000,
					.user = ids[i],
					.cwd = "/",
					.code = "",
					.argv = { ATTACK_PROBE, "ids" } };
		struct op op;

		box_start_argv(&w->box, &e, &op);
		assert_true(box_wait(&w->box, &op, 10000));
		assert_int_not_equal(op.code, 0);
		op_done(&op);
	}
	box_expect_answer(&w->box);
	box_close(w, &w->box, NULL);
}

/* A file operation has the rights of its user, not those of PID 1. */
static void operations_have_their_users_rights(struct world *w, const struct attack *a)
{
	static const char *const forbidden[] = { "/etc/passwd",
						 "/usr/bin/env",
						 "/proc/sys/kernel/hostname",
						 "/root/x",
						 "/new",
						 "/proc/1/oom_score_adj",
						 "/dev/null/x",
						 "/proc/self/uid_map" };
	struct op op;

	(void)a;
	open_with(w, NULL);
	for (size_t i = 0; i < COUNT(forbidden); i++)
		if (api_write(&w->box, forbidden[i], "owned", 5) >= 0)
			fail_msg("the API wrote %s", forbidden[i]);
	assert_true(api_read(&w->box, "/proc/1/environ", &op) < 0 || op.bytes == 0);
	op_done(&op);
	assert_true(api_read(&w->box, "/proc/1/mem", &op) < 0);
	op_done(&op);
	box_close(w, &w->box, NULL);
}

/* Paths that are malformed, too long or empty. */
static void odd_paths_fail_cleanly(struct world *w, const struct attack *a)
{
	static char longest[20000], deep[20000];
	const char *paths[] = { "",         "/",         "//",           ".",     "..",
				"relative", "/tmp/",     "/tmp//x/../y", longest, deep,
				"\xff\xfe", "/tmp/a\nb", "/\x01",        "~",     "*" };
	static const uint8_t ops[] = { FILE_STAT,   FILE_READ,  FILE_MKDIR,
				       FILE_REMOVE, FILE_CHMOD, FILE_RENAME };

	(void)a;
	memset(longest, 'a', sizeof(longest) - 1);
	for (size_t i = 0; i + 1 < sizeof(deep); i++)
		deep[i] = i % 2 ? 'd' : '/';
	open_with(w, NULL);
	for (size_t i = 0; i < COUNT(paths); i++)
		for (size_t k = 0; k < COUNT(ops); k++) {
			struct guest_file f = { .op = ops[k],
						.mode = 0700,
						.user = "",
						.path = paths[i],
						.target = ops[k] == FILE_RENAME ? paths[i] : "" };

			assert_int_not_equal(api_file(&w->box, &f, NULL), -ETIMEDOUT);
		}
	box_expect_answer(&w->box);
	box_expect_held(w, &w->box, "ids", MAY_BE_ABSENT);
	box_close(w, &w->box, NULL);
}

static const struct attack rows[] = {
	{ "R16 a sparse file of eight exbibytes is read in parts and cancelled",
	  NULL,
	  0,
	  0,
	  { 0 },
	  sparse_files_are_bounded },
	{ "R17 fifos, sockets and loops in place of a file do not hang the API",
	  NULL,
	  0,
	  0,
	  { 0 },
	  odd_files_do_not_hang },
	{ "R17 a device without end in place of a file is bounded",
	  NULL,
	  0,
	  0,
	  { 0 },
	  endless_devices_are_refused },
	{ "R18 files that grow and shrink meanwhile come to an end",
	  NULL,
	  0,
	  0,
	  { .cpu_milli = 2000 },
	  changing_files_end },
	{ "F16 odd users are refused or powerless", NULL, 0, 0, { 0 }, odd_users_gain_nothing },
	{ "F16 numbers that the box does not own are refused",
	  NULL,
	  0,
	  0,
	  { 0 },
	  foreign_numbers_are_refused },
	{ "F16 file operations have their user's rights only",
	  NULL,
	  0,
	  0,
	  { 0 },
	  operations_have_their_users_rights },
	{ "F16 odd paths fail cleanly", NULL, 0, 0, { 0 }, odd_paths_fail_cleanly },
	{ "F17 a mapped file can be replaced", NULL, 0, 0, { 0 }, maps_are_their_owners_business },
	{ "F18 locks and leases do not hold up the API",
	  NULL,
	  0,
	  0,
	  { 0 },
	  locks_do_not_hold_the_api },
};

const struct attack_table attacks_api = { rows, COUNT(rows) };
