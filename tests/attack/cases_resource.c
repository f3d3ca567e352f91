/* R: what a box can use up, but for memory and output. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include "attack.h"
#include "base/clock.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MIB (1ull << 20)
#define SMALL_DISK                     \
	{                              \
		.disk_bytes = 16 * MIB \
	}

/* The box answers while the bomb burns, and the bomb ends at its deadline. */
static void bomb_burns(struct world *w, const struct attack *a)
{
	struct op op;

	box_open(w, &w->box, TEMPLATE_PLAIN, &a->limits);
	box_upload(w, &w->box);
	box_start(w, &w->box, "fork-bomb 64 15000", &(struct attack){ .timeout_ms = 3000 }, &op);
	for (int i = 0; i < 4; i++) {
		assert_false(box_wait(&w->box, &op, 500));
		box_expect_answer(&w->box);
		box_expect_answer(&w->neighbour);
	}
	assert_true(box_wait(&w->box, &op, 15000));
	assert_int_equal(op.code, 0);
	assert_true(op.exit.flags & EXIT_TIMED_OUT);
	op_done(&op);
	box_expect_held(w, &w->box, "none-named bomb", 0);
	box_close(w, &w->box, NULL);
}

/* Destroying must not wait for the bomb to burn out. */
static void bomb_is_destroyed(struct world *w, const struct attack *a)
{
	uint64_t began;
	struct op op;

	box_open(w, &w->box, TEMPLATE_PLAIN, &a->limits);
	box_upload(w, &w->box);
	box_start(w, &w->box, "fork-bomb 64 30000", NULL, &op);
	assert_false(box_wait(&w->box, &op, 700));
	guest_forget(w->box.guest, op.id);
	op_done(&op);
	began = clock_now_ms();
	box_close(w, &w->box, NULL);
	assert_true(clock_now_ms() - began < 3000);
}

static uint64_t free_bytes(const char *path)
{
	struct statvfs v;

	return statvfs(path, &v) < 0 ? 0 : (uint64_t)v.f_bavail * v.f_frsize;
}

/* The box's quota is the most that any file system of the machine may lose; 64 MiB are for others.
 */
static void machine_keeps_its_space(struct world *w, const struct attack *a)
{
	static const char *const places[] = { "/", "/tmp", "/dev/shm", "/run", "/var/tmp" };
	uint64_t before[COUNT(places)];

	for (size_t i = 0; i < COUNT(places); i++)
		before[i] = free_bytes(places[i]);
	box_open(w, &w->box, TEMPLATE_PLAIN, &a->limits);
	box_upload(w, &w->box);
	box_expect_held(w, &w->box, "fill-all 16", 0);
	for (size_t i = 0; i < COUNT(places); i++)
		if (free_bytes(places[i]) + a->limits.disk_bytes + 64 * MIB < before[i])
			fail_msg("%s lost %llu bytes", places[i],
				 (unsigned long long)(before[i] - free_bytes(places[i])));
	box_close(w, &w->box, NULL);
}

/* Descriptors in flight are counted by user: the launcher must still be able to pass its own. */
static void launcher_still_passes_descriptors(struct world *w, const struct attack *a)
{
	struct limits most = a->limits;
	struct rlimit ours;
	struct op op;

	/* As many as a box can be given: where ids are shared, half of what its launcher may have.
	 */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &ours), 0);
	most.nofile = w->rootless && ours.rlim_max / 2 < LIMIT_NOFILE_MAX
			      ? (uint32_t)ours.rlim_max / 2
			      : LIMIT_NOFILE_MAX;
	box_open(w, &w->box, TEMPLATE_PLAIN, &most);
	box_upload(w, &w->box);
	box_start(w, &w->box, "fds-in-flight 5000", NULL, &op);
	box_wait_ready(&w->box, &op);
	box_open(w, &w->other, TEMPLATE_PLAIN, NULL);
	box_expect_answer(&w->other);
	box_close(w, &w->other, NULL);
	guest_forget(w->box.guest, op.id);
	op_done(&op);
	box_close(w, &w->box, NULL);
}

/* The API's own way to say too much: refused with an error, and the box goes on. */
static void huge_requests_fail_cleanly(struct world *w, const struct attack *a)
{
	struct guest_exec *e = calloc(1, sizeof(*e));
	char *big = malloc((1 << 20) + 1);
	struct op op;
	uint32_t id;

	(void)a;
	assert_non_null(e);
	assert_non_null(big);
	memset(big, 'e', 1 << 20);
	memcpy(big, "BIG=", 4);
	big[1 << 20] = '\0';
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->box);
	*e = (struct guest_exec){ .user = "", .cwd = "", .code = "", .argc = 2, .envc = 1 };
	e->argv[0] = ATTACK_PROBE;
	e->argv[1] = "ids";
	e->envp[0] = big;
	assert_true(guest_exec(w->box.guest, e, NULL, NULL, &id, NULL) < 0);
	big[60000] = '\0';
	box_start_argv(&w->box, e, &op);
	assert_true(box_wait(&w->box, &op, 10000));
	op_expect_held("a 60 kB variable", &op, 0);
	op_done(&op);
	e->argv[0] = ""; /* no program at all */
	box_start_argv(&w->box, e, &op);
	assert_true(box_wait(&w->box, &op, 10000));
	assert_int_not_equal(op.code, 0);
	op_done(&op);
	box_expect_answer(&w->box);
	box_close(w, &w->box, NULL);
	free(big);
	free(e);
}

static int remove_tree(struct box *b, const char *path)
{
	return api_file(b,
			&(struct guest_file){ .op = FILE_REMOVE,
					      .flags = FILE_RECURSIVE,
					      .user = "",
					      .path = path,
					      .target = "" },
			NULL);
}

static int list_tree(struct box *b, const char *path, uint32_t depth, struct op *op)
{
	return api_file(
		b,
		&(struct guest_file){
			.op = FILE_LIST, .depth = depth, .user = "", .path = path, .target = "" },
		op);
}

static void deep_trees_can_be_removed(struct world *w, const struct attack *a)
{
	struct guest_file all = { .op = FILE_LIST,
				  .depth = 1000000,
				  .user = "",
				  .path = "/workspace/deep",
				  .target = "" };
	struct op op;
	uint32_t id;

	box_open(w, &w->box, TEMPLATE_PLAIN, &a->limits);
	box_upload(w, &w->box);
	box_expect_held(w, &w->box, "deep 100000", 0);
	assert_int_equal(list_tree(&w->box, "/workspace/deep", 64, &op), 0);
	assert_int_equal(op.count, 64);
	op_done(&op);
	/* All of it is more than anybody wants to wait for: the way out is to cancel. */
	assert_int_equal(guest_file(w->box.guest, &all, NULL, NULL, &id, NULL), 0);
	for (int i = 0; i < 10; i++)
		box_expect_answer(&w->box);
	assert_int_equal(guest_cancel(w->box.guest, id), 0);
	box_expect_answer(&w->box);
	assert_int_equal(remove_tree(&w->box, "/workspace/deep"), 0);
	assert_int_equal(list_tree(&w->box, "/workspace", 1, &op), 0);
	assert_null(strstr(buf_str(&op.names), "deep"));
	op_done(&op);
	box_close(w, &w->box, NULL);
}

static void odd_names_are_listed_and_removed(struct world *w, const struct attack *a)
{
	static const char *const names[] = { "new\nline", "\xff\xfe\x80", "\x1b[2Jclear", "-rf",
					     "a\tb",      "...",          "per%cent%s%n" };
	struct op op;

	(void)a;
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->box);
	box_expect_held(w, &w->box, "odd-names", 0);
	assert_int_equal(list_tree(&w->box, "/workspace/odd", 1, &op), 0);
	assert_int_equal(op.count, 10);
	for (size_t i = 0; i < COUNT(names); i++)
		if (!strstr(buf_str(&op.names), names[i]))
			fail_msg("name %zu is not in the list", i);
	op_done(&op);
	for (size_t i = 0; i < COUNT(names); i++) {
		char path[300];

		(void)snprintf(path, sizeof(path), "/workspace/odd/%s", names[i]);
		assert_int_equal(api_read(&w->box, path, &op), 0);
		assert_string_equal(buf_str(&op.out), names[i]);
		op_done(&op);
	}
	assert_int_equal(remove_tree(&w->box, "/workspace/odd"), 0);
	box_close(w, &w->box, NULL);
}

static const struct attack rows[] = {
	{ "R1 a box cannot have more processes than its limit",
	  "fork-all 64",
	  NEEDS_PIDS,
	  0,
	  { 0 },
	  NULL },
	{ "R1 a box cannot have more threads than its limit",
	  "threads 64",
	  NEEDS_PIDS,
	  0,
	  { 0 },
	  NULL },
	{ "R1 a chain of vforks ends at the limit", "vfork-chain 64", NEEDS_PIDS, 0, { 0 }, NULL },
	{ "R1 a fork bomb burns in its box and ends at its deadline",
	  NULL,
	  NEEDS_PIDS,
	  0,
	  { .cpu_milli = 500 },
	  bomb_burns },
	{ "R1 a box with a burning fork bomb is destroyed at once",
	  NULL,
	  NEEDS_PIDS,
	  0,
	  { 0 },
	  bomb_is_destroyed },
	{ "R3 one file in /tmp stops at the quota", "fill /tmp one 16", 0, 0, SMALL_DISK, NULL },
	{ "R3 many files in /tmp stop at the quota", "fill /tmp many 16", 0, 0, SMALL_DISK, NULL },
	{ "R3 one file in /workspace stops at the quota", "fill /workspace one 16", 0, 0,
	  SMALL_DISK, NULL },
	{ "R3 many files in /workspace stop at the quota", "fill /workspace many 16", 0, 0,
	  SMALL_DISK, NULL },
	{ "R3 one file in the home directory stops at the quota", "fill /home/user one 16", 0, 0,
	  SMALL_DISK, NULL },
	{ "R3 one file in /dev/shm stops at the quota", "fill /dev/shm one 16", 0, 0, SMALL_DISK,
	  NULL },
	{ "R3 many files in /var/tmp stop at the quota", "fill /var/tmp many 16", 0, 0, SMALL_DISK,
	  NULL },
	{ "R3 all writable places share one quota, and the machine keeps its space", NULL, 0, 0,
	  SMALL_DISK, machine_keeps_its_space },
	{ "R3 no other place can be written", "elsewhere", 0, 0, { 0 }, NULL },
	{ "R3 no other place can be written by the box's root",
	  "elsewhere",
	  AS_ROOT,
	  0,
	  { 0 },
	  NULL },
	{ "R4 files stop at the inode limit",
	  "inodes file 500 /tmp",
	  0,
	  0,
	  { .inodes = 500 },
	  NULL },
	{ "R4 directories stop at the inode limit",
	  "inodes dir 500 /workspace",
	  0,
	  0,
	  { .inodes = 500 },
	  NULL },
	{ "R4 links and fifos stop at the inode limit",
	  "inodes fifo 500 /dev/shm",
	  0,
	  0,
	  { .inodes = 500 },
	  NULL },
	{ "R4 hard links stop at the inode limit", "hardlinks 500", 0, 0, { .inodes = 500 }, NULL },
	{ "R5 descriptors stop at the limit", "bulk fds 1024", 0, 0, { 0 }, NULL },
	{ "R5 descriptors in flight over sockets are bounded", "fds-in-flight", 0, 0, { 0 }, NULL },
	{ "R5 descriptors in flight do not keep the launcher from passing its own",
	  NULL,
	  0,
	  0,
	  { 0 },
	  launcher_still_passes_descriptors },
	{ "R6 zombies count against the limit", "zombies 64", NEEDS_PIDS, 0, { 0 }, NULL },
	{ "R6 thousands of orphans are reaped",
	  "orphans 3000",
	  0,
	  60000,
	  { .cpu_milli = 2000 },
	  NULL },
	{ "R14 arguments and variables that are too large are refused inside",
	  "huge-exec",
	  0,
	  0,
	  { 0 },
	  NULL },
	{ "R14 requests that are too large are refused by the API",
	  NULL,
	  0,
	  0,
	  { 0 },
	  huge_requests_fail_cleanly },
	{ "R15 a tree of 100,000 levels is listed and removed",
	  NULL,
	  0,
	  0,
	  { .inodes = 150000,
	    .memory_bytes = 1024 * MIB,
	    .disk_bytes = 600 * MIB,
	    .cpu_milli = 2000 },
	  deep_trees_can_be_removed },
	{ "R15 names with newlines, escapes and no UTF-8 are listed, read and removed",
	  NULL,
	  0,
	  0,
	  { 0 },
	  odd_names_are_listed_and_removed },
	{ "R19 no hard limit can be raised", "raise-rlimits", 0, 0, { 0 }, NULL },
	{ "R19 no hard limit can be raised by the box's root",
	  "raise-rlimits",
	  AS_ROOT,
	  0,
	  { 0 },
	  NULL },
	{ "R19 the limits that matter are set", "finite-rlimits", 0, 0, { 0 }, NULL },
	{ "R19 the limits of PID 1 are out of reach", "others-rlimits", 0, 0, { 0 }, NULL },
	{ "R20 priority, affinity and realtime are refused", "schedule", 0, 0, { 0 }, NULL },
	{ "R20 priority, affinity and realtime are refused to the box's root",
	  "schedule",
	  AS_ROOT,
	  0,
	  { 0 },
	  NULL },
};

const struct attack_table attacks_resource = { rows, COUNT(rows) };
