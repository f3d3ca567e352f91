/* The file operations and trees, files and clients that no honest program makes. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/tar.h"
#include "check.h"
#include "fileop_rig.h"
#include "guest/fileop.h"

#define FILE_OP(...) (&(struct guest_file){ __VA_ARGS__ })
#define DEEP_LEVELS 100000u

/* --- depth and size --------------------------------------------------------------------------- */

/* A root on tmpfs, where 100,000 directories are cheap and files may be 8 EiB long. */
static bool move_to_memory(struct rig *g)
{
	char dir[] = "/dev/shm/holt-test-XXXXXX";

	if (!mkdtemp(dir))
		return false;
	(void)close(g->root_fd);
	g->root_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(g->root_fd >= 0);
	(void)snprintf(g->root, sizeof(g->root), "%s", dir);
	return true;
}

static void leave_memory(struct rig *g)
{
	assert_int_equal(rig_count(g, "."), 0);
	assert_int_equal(rmdir(g->root), 0);
}

static void make_deep(const struct rig *g, unsigned levels)
{
	int at = dup(g->root_fd);

	for (unsigned i = 0; i < levels; i++) {
		int next;

		assert_int_equal(mkdirat(at, "d", 0755), 0);
		next = openat(at, "d", O_PATH | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		(void)close(at);
		at = next;
	}
	(void)close(at);
}

static void a_tree_of_100000_levels_can_be_listed_packed_and_removed(void **state)
{
	struct rig *g = *state;
	_free_ struct rig_answer *a = calloc(1, sizeof(*a));

	assert_non_null(a);
	if (!move_to_memory(g))
		skip();
	make_deep(g, DEEP_LEVELS);
	rig_run(g, FILE_OP(.op = FILE_LIST, .path = "/", .depth = UINT32_MAX), NULL, 0, a);
	assert_int_equal(a->error, 0);
	assert_int_equal(a->done, DEEP_LEVELS); /* counted, also those whose names fit no frame */
	assert_true(a->entry_count > 30000 && a->entry_count < DEEP_LEVELS);
	assert_true(a->longest_path < WIRE_PAYLOAD_MAX);
	rig_run(g, FILE_OP(.op = FILE_TAR_GET, .path = "/"), NULL, 0, a);
	assert_int_equal(a->error, 0);
	assert_int_equal(a->entry_count, 1); /* where the archive stops */
	rig_answer_done(a);
	rig_run(g, FILE_OP(.op = FILE_REMOVE, .path = "d", .flags = FILE_RECURSIVE), NULL, 0, a);
	assert_int_equal(a->error, 0);
	assert_true(a->done >= DEEP_LEVELS);
	leave_memory(g);
}

static void a_wide_and_deep_tree_is_walked_completely(void **state)
{
	struct rig *g = *state;
	_free_ struct rig_answer *a = calloc(1, sizeof(*a));
	char path[1024] = "";
	unsigned made = 0;

	assert_non_null(a);
	/* Siblings at every level, more levels than directories are kept open: the way back up must
	 * find its place. */
	for (unsigned i = 0; i < 150; i++) {
		size_t n = strlen(path);

		for (unsigned k = 0; k < 5; k++) {
			(void)snprintf(path + n, sizeof(path) - n, "%s%u", n ? "/s" : "s", k);
			rig_mkdir(g, path);
			made++;
		}
		(void)snprintf(path + n, sizeof(path) - n, "%sd", n ? "/" : "");
		rig_mkdir(g, path);
		made++;
	}
	rig_run(g, FILE_OP(.op = FILE_LIST, .path = "/", .depth = UINT32_MAX), NULL, 0, a);
	assert_int_equal(a->error, 0);
	assert_int_equal(a->done, made);
	assert_int_equal(a->entry_count, made);
	assert_int_equal(rig_do(g, FILE_OP(.op = FILE_REMOVE, .path = "d", .flags = FILE_RECURSIVE),
				NULL, 0),
			 0);
	assert_int_equal(rig_count(g, "."), 5);
}

/* Takes `want` bytes of data, crediting each frame or none; then cancels. What comes after that. */
static size_t take_then_cancel(struct rig_op *op, size_t want, bool credit, struct rig_answer *a)
{
	uint8_t frame[WIRE_FRAME_MAX];
	struct wire_head head;
	struct rd payload;
	size_t got = 0;

	while (got < want) {
		ssize_t n = fd_recv(op->sock, frame, sizeof(frame), NULL, NULL);

		assert_true(n > 0);
		assert_int_equal(wire_open(frame, (size_t)n, &head, &payload), 0);
		if (head.type != G_DATA)
			continue;
		got += head.len;
		if (credit)
			rig_credit(op, head.len);
	}
	rig_send(op, G_CANCEL, "", 0);
	rig_finish(op, a);
	assert_int_equal(a->error, ECANCELED);
	return got + a->data.len;
}

static void without_credit_no_more_than_the_window_is_sent(void **state)
{
	struct rig *g = *state;
	struct rig_answer a = { 0 };
	struct rig_op op;

	rig_write(g, "f", "");
	_close_ int fd = openat(g->root_fd, "f", O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, 1 << 30), 0);
	op = rig_start(g, FILE_OP(.op = FILE_READ, .path = "f"));
	assert_int_equal(take_then_cancel(&op, GUEST_WINDOW, false, &a), GUEST_WINDOW);
	rig_answer_done(&a);
}

static void more_credit_than_was_due_does_not_widen_the_window(void **state)
{
	struct rig *g = *state;
	struct rig_answer a = { 0 };
	struct rig_op op;

	rig_write(g, "f", "");
	_close_ int fd = openat(g->root_fd, "f", O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, 1 << 30), 0);
	op = rig_start(g, FILE_OP(.op = FILE_READ, .path = "f"));
	rig_credit(&op, UINT64_MAX);
	assert_true(take_then_cancel(&op, GUEST_WINDOW, false, &a) <= 2 * GUEST_WINDOW);
	rig_answer_done(&a);
}

static void a_file_of_8_eib_is_read_as_far_as_one_likes(void **state)
{
	struct rig *g = *state;
	struct rig_answer a = { 0 };
	struct rig_op op;

	if (!move_to_memory(g))
		skip();
	rig_write(g, "f", "");
	_close_ int fd = openat(g->root_fd, "f", O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, INT64_MAX), 0);
	op = rig_start(g, FILE_OP(.op = FILE_READ, .path = "f"));
	assert_true(take_then_cancel(&op, 8 * GUEST_WINDOW, true, &a) <= 9 * GUEST_WINDOW);
	rig_answer_done(&a);
	rig_run(g, FILE_OP(.op = FILE_READ, .path = "f", .offset = INT64_MAX - 10), NULL, 0, &a);
	assert_int_equal(a.done, 10);
	rig_answer_done(&a);
	op = rig_start(g, FILE_OP(.op = FILE_TAR_GET, .path = "f"));
	memset(&a, 0, sizeof(a));
	assert_true(take_then_cancel(&op, 8 * GUEST_WINDOW, true, &a) <= 9 * GUEST_WINDOW);
	rig_answer_done(&a);
	assert_int_equal(unlinkat(g->root_fd, "f", 0), 0);
	leave_memory(g);
}

static void check_resized(const struct rig *g, off_t size, uint64_t want)
{
	struct rig_answer a = { 0 };
	struct rig_op op;
	char byte;

	rig_write(g, "f", "");
	_close_ int fd = openat(g->root_fd, "f", O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, 3 * GUEST_WINDOW), 0);
	op = rig_start(g, FILE_OP(.op = FILE_READ, .path = "f"));
	assert_int_equal(recv(op.sock, &byte, 1, MSG_PEEK), 1); /* its entry is there */
	assert_int_equal(ftruncate(fd, size), 0);
	rig_finish(&op, &a);
	assert_int_equal(a.error, 0);
	assert_int_equal(a.entries[0].e.size, 3 * GUEST_WINDOW);
	assert_int_equal(a.done, a.data.len);
	assert_true(a.done <= want);
	rig_answer_done(&a);
}

static void a_file_that_changes_while_it_is_read_is_told_honestly(void **state)
{
	struct rig *g = *state;

	/* At most a window was sent and a piece more read before it shrank; one that grows ends
	 * where it ended before. */
	check_resized(g, 0, GUEST_WINDOW + GUEST_CHUNK);
	check_resized(g, 100 * GUEST_WINDOW, 3 * GUEST_WINDOW);
}

/* --- mounts, maps, locks ---------------------------------------------------------------------- */

static void a_file_moves_between_file_systems_a_directory_does_not(void **state)
{
	struct rig *g = *state, whole = *g;
	char dir[] = "/dev/shm/holt-test-XXXXXX", from[128], to[128];
	_close_ int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat a, b;
	struct rig_answer answer;

	if (!mkdtemp(dir))
		skip();
	assert_int_equal(stat(dir, &a), 0);
	assert_int_equal(fstat(g->root_fd, &b), 0);
	whole.root_fd = fd;
	rig_write(g, "f", "moved");
	assert_int_equal(fchmodat(g->root_fd, "f", 0640, 0), 0);
	rig_mkdir(g, "d");
	(void)snprintf(from, sizeof(from), "%s/f", g->root);
	(void)snprintf(to, sizeof(to), "%s/f", dir);
	if (a.st_dev == b.st_dev) {
		assert_int_equal(rmdir(dir), 0);
		skip();
	}
	assert_int_equal(
		rig_do(&whole, FILE_OP(.op = FILE_RENAME, .path = from, .target = to), NULL, 0), 0);
	assert_false(rig_exists(g, "f"));
	assert_int_equal(stat(to, &a), 0);
	assert_int_equal(a.st_mode & 07777, 0640);
	assert_int_equal(a.st_size, 5);
	assert_int_equal(unlink(to), 0);
	(void)snprintf(from, sizeof(from), "%s/d", g->root);
	rig_run(&whole, FILE_OP(.op = FILE_RENAME, .path = from, .target = to), NULL, 0, &answer);
	assert_int_equal(answer.error, EXDEV);
	assert_non_null(strstr(answer.text, "another file system"));
	assert_int_equal(rmdir(dir), 0); /* nothing was left behind there */
}

static void a_file_that_is_mapped_survives_being_written(void **state)
{
	struct rig *g = *state;
	_close_ int fd = -1;
	volatile char *map;

	rig_write(g, "f", "mapped");
	fd = openat(g->root_fd, "f", O_RDWR | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, 65536), 0);
	map = mmap(NULL, 65536, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(map != MAP_FAILED);
	assert_int_equal(rig_do(g, FILE_OP(.op = FILE_WRITE, .path = "f"), "x", 1), 0);
	assert_int_equal(map[65535], 0); /* a truncated file would be a SIGBUS */
	assert_int_equal(map[0], 'm');
	assert_int_equal(munmap((void *)(uintptr_t)map, 65536), 0);
}

static void locks_and_leases_do_not_hold_us_up(void **state)
{
	struct rig *g = *state;
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct rig_answer a;
	_close_ int fd = -1;

	rig_write(g, "f", "text");
	fd = openat(g->root_fd, "f", O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(fcntl(fd, F_SETLK, &lock), 0);
	assert_int_equal(rig_do(g, FILE_OP(.op = FILE_READ, .path = "f"), NULL, 0), 0);
	assert_int_equal(rig_do(g, FILE_OP(.op = FILE_WRITE, .path = "f"), "new", 3), 0);
	rig_write(g, "leased", "text");
	_close_ int leased = openat(g->root_fd, "leased", O_RDWR | O_CLOEXEC);
	assert_true(signal(SIGIO, SIG_IGN) != SIG_ERR);
	if (fcntl(leased, F_SETLEASE, F_WRLCK) < 0)
		skip();
	rig_run(g, FILE_OP(.op = FILE_READ, .path = "leased"), NULL, 0, &a);
	assert_int_equal(a.error, EAGAIN);
	assert_non_null(strstr(a.text, "lease"));
	assert_int_equal(rig_do(g, FILE_OP(.op = FILE_TAR_GET, .path = "/"), NULL, 0), 0);
	assert_int_equal(rig_do(g, FILE_OP(.op = FILE_REMOVE, .path = "leased"), NULL, 0), 0);
}

/* --- frames ----------------------------------------------------------------------------------- */

static void frames_that_make_no_sense_end_the_operation(void **state)
{
	struct rig *g = *state;
	struct rig_answer a = { 0 };
	struct rig_op op;

	rig_write(g, "f", "old");
	op = rig_start(g, FILE_OP(.op = FILE_WRITE, .path = "f"));
	rig_send(&op, G_CREDIT, "short", 5);
	rig_finish(&op, &a);
	assert_int_equal(a.error, EPROTO);
	assert_int_equal(rig_count(g, "."), 1);
	op = rig_start(g, FILE_OP(.op = FILE_WRITE, .path = "f"));
	rig_send(&op, G_PING, "", 0);
	memset(&a, 0, sizeof(a));
	rig_finish(&op, &a);
	assert_int_equal(a.error, EPROTO);
	assert_int_equal(rig_do(g, FILE_OP(.op = 99, .path = "f"), NULL, 0), EINVAL);
	assert_int_equal(rig_do(g, FILE_OP(.op = FILE_STAT, .path = ""), NULL, 0), ENOENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_tree_of_100000_levels_can_be_listed_packed_and_removed),
		TEST(a_wide_and_deep_tree_is_walked_completely),
		TEST(without_credit_no_more_than_the_window_is_sent),
		TEST(more_credit_than_was_due_does_not_widen_the_window),
		TEST(a_file_of_8_eib_is_read_as_far_as_one_likes),
		TEST(a_file_that_changes_while_it_is_read_is_told_honestly),
		TEST(a_file_moves_between_file_systems_a_directory_does_not),
		TEST(a_file_that_is_mapped_survives_being_written),
		TEST(locks_and_leases_do_not_hold_us_up),
		TEST(frames_that_make_no_sense_end_the_operation),
	};

	return cmocka_run_group_tests(tests, rig_drop_root, NULL);
}
