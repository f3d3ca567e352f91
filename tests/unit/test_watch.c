/* Watching files, directories and trees. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/parse.h"
#include "check.h"
#include "fileop_rig.h"

#define FILE_OP(...) (&(struct guest_file){ __VA_ARGS__ })
#define QUEUE_MOST 100000u /* a longer queue of the kernel's is not worth filling */

struct event {
	enum guest_event event;
	char path[4400];
};

static struct rig_op arm(const struct rig *g, const char *path, uint32_t flags)
{
	struct rig_op op = rig_start(g, FILE_OP(.op = FILE_WATCH, .path = path, .flags = flags));
	uint8_t frame[WIRE_FRAME_MAX];
	ssize_t n = fd_recv(op.sock, frame, sizeof(frame), NULL, NULL);
	struct wire_head head;
	struct rd payload;

	assert_true(n > 0);
	assert_int_equal(wire_open(frame, (size_t)n, &head, &payload), 0);
	assert_int_equal(head.type, G_DONE);
	assert_int_equal(rd_u64(&payload), 0);
	return op;
}

static void next(const struct rig_op *op, struct event *e)
{
	uint8_t frame[WIRE_FRAME_MAX];
	ssize_t n = fd_recv(op->sock, frame, sizeof(frame), NULL, NULL);
	struct wire_head head;
	struct rd payload;

	assert_true(n > 0);
	assert_int_equal(wire_open(frame, (size_t)n, &head, &payload), 0);
	assert_int_equal(head.type, G_EVENT);
	e->event = rd_u8(&payload);
	(void)snprintf(e->path, sizeof(e->path), "%s", rd_str(&payload));
	assert_int_equal(rd_end(&payload), 0);
}

static void expect(const struct rig_op *op, enum guest_event event, const char *path)
{
	struct event e;

	next(op, &e);
	assert_string_equal(e.path, path);
	assert_int_equal(e.event, event);
}

/* Passes over other events: which of them come, and how often, is the kernel's affair. */
static void await(const struct rig_op *op, enum guest_event event, const char *path)
{
	struct event e;

	do
		next(op, &e);
	while (e.event != event || strcmp(e.path, path) != 0);
}

/* Ends the watch; events on their way are dropped. */
static uint32_t end(struct rig_op *op)
{
	uint8_t frame[WIRE_FRAME_MAX];
	struct rig_answer a = { .is_done = true };
	struct wire_head head = { 0 };
	struct rd payload;
	ssize_t n;

	rig_send(op, G_CANCEL, "", 0);
	while ((n = fd_recv(op->sock, frame, sizeof(frame), NULL, NULL)) > 0) {
		assert_int_equal(wire_open(frame, (size_t)n, &head, &payload), 0);
		if (head.type == G_ERROR)
			a.error = rd_u32(&payload);
	}
	rig_finish(op, &a);
	return a.error;
}

static void every_kind_of_change_is_told(void **state)
{
	struct rig *g = *state;
	struct rig_op op;

	rig_mkdir(g, "d");
	op = arm(g, "/d", 0);
	rig_write(g, "d/f", "");
	expect(&op, EVENT_CREATE, "f");
	rig_write(g, "d/f", "text");
	await(&op, EVENT_WRITE, "f");
	assert_int_equal(fchmodat(g->root_fd, "d/f", 0600, 0), 0);
	await(&op, EVENT_CHMOD, "f");
	assert_int_equal(renameat(g->root_fd, "d/f", g->root_fd, "d/g"), 0);
	expect(&op, EVENT_RENAME, "f");
	expect(&op, EVENT_CREATE, "g");
	assert_int_equal(unlinkat(g->root_fd, "d/g", 0), 0);
	expect(&op, EVENT_REMOVE, "g");
	assert_int_equal(end(&op), ECANCELED);
}

static void only_a_recursive_watch_looks_deeper(void **state)
{
	struct rig *g = *state;
	struct rig_op op;

	rig_mkdir(g, "d");
	rig_mkdir(g, "d/e");
	op = arm(g, "/d", 0);
	rig_write(g, "d/e/f", "");
	rig_write(g, "d/mark", "");
	expect(&op, EVENT_CREATE, "mark");
	assert_int_equal(end(&op), ECANCELED);
	op = arm(g, "/d", FILE_RECURSIVE);
	rig_write(g, "d/e/g", "");
	expect(&op, EVENT_CREATE, "e/g");
	assert_int_equal(end(&op), ECANCELED);
}

static void new_directories_are_watched_too(void **state)
{
	struct rig *g = *state;
	struct rig_op op = arm(g, "/", FILE_RECURSIVE);
	const char *const make[] = { "mkdir", "-p", "a/b/c/d/e", NULL };

	assert_int_equal(rig_command(g, make), 0);
	rig_write(g, "a/b/c/d/e/f", ""); /* seen by the watch, or found when it is added */
	await(&op, EVENT_CREATE, "a");
	await(&op, EVENT_CREATE, "a/b/c/d/e/f");
	rig_write(g, "a/b/g", "");
	await(&op, EVENT_CREATE, "a/b/g");
	assert_int_equal(end(&op), ECANCELED);
}

static void a_moved_directory_is_told_under_its_new_name(void **state)
{
	struct rig *g = *state;
	struct rig_op op;

	rig_mkdir(g, "d");
	rig_mkdir(g, "d/sub");
	op = arm(g, "/", FILE_RECURSIVE);
	assert_int_equal(renameat(g->root_fd, "d", g->root_fd, "e"), 0);
	expect(&op, EVENT_RENAME, "d");
	expect(&op, EVENT_CREATE, "e");
	rig_write(g, "e/f", "");
	expect(&op, EVENT_CREATE, "e/f");
	rig_mkdir(g, "e/sub/new"); /* sub may be added only now: then it is not told, but watched */
	rig_mkdir(g, "d");
	await(&op, EVENT_CREATE, "d");
	rig_write(g, "e/sub/g", "");
	await(&op, EVENT_CREATE, "e/sub/g");
	assert_int_equal(end(&op), ECANCELED);
}

static void a_watched_directory_that_goes_ends_the_watch(void **state)
{
	struct rig *g = *state;
	struct rig_answer a = { .is_done = true };
	struct rig_op op;

	rig_mkdir(g, "d");
	op = arm(g, "/d", FILE_RECURSIVE);
	assert_int_equal(unlinkat(g->root_fd, "d", AT_REMOVEDIR), 0);
	expect(&op, EVENT_REMOVE, "");
	rig_finish(&op, &a);
	assert_int_equal(a.error, ENOENT);
	assert_string_equal(a.text, "'/d' is gone");
}

static void one_file_can_be_watched(void **state)
{
	struct rig *g = *state;
	struct rig_op op;

	rig_write(g, "f", "");
	rig_symlink(g, "f", "link");
	op = arm(g, "link", 0);
	rig_write(g, "f", "text");
	await(&op, EVENT_WRITE, "");
	assert_int_equal(end(&op), ECANCELED);
	assert_int_equal(rig_do(g, FILE_OP(.op = FILE_WATCH, .path = "none"), NULL, 0), ENOENT);
}

static void a_link_out_of_the_root_is_not_watched(void **state)
{
	struct rig *g = *state;
	char beside[128];
	struct rig_op op;

	rig_mkdir(g, "d");
	rig_symlink(g, g->base, "d/out");
	op = arm(g, "/d", FILE_RECURSIVE);
	(void)snprintf(beside, sizeof(beside), "%s/beside", g->base);
	_close_ int fd = open(beside, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	rig_write(g, "d/mark", "");
	expect(&op, EVENT_CREATE, "mark");
	assert_int_equal(end(&op), ECANCELED);
	assert_int_equal(rig_do(g, FILE_OP(.op = FILE_WATCH, .path = "d/out"), NULL, 0), ENOENT);
}

static uint64_t queue_length(void)
{
	char text[32];
	uint64_t n = UINT64_MAX;
	int len = fd_read_file_at(AT_FDCWD, "/proc/sys/fs/inotify/max_queued_events", text,
				  sizeof(text));

	if (len > 0 && text[len - 1] == '\n')
		text[len - 1] = '\0';
	(void)parse_u64(text, 1, UINT64_MAX, &n);
	return n;
}

/* Nobody reads the answers: the operation waits, the kernel's queue fills, and that is told. */
static void more_than_can_be_queued_is_an_overflow(void **state)
{
	struct rig *g = *state;
	uint64_t n = queue_length();
	struct rig_op op;

	if (n > QUEUE_MOST)
		skip();
	rig_mkdir(g, "d");
	op = arm(g, "/d", 0);
	for (uint64_t i = 0; i < n; i++) {
		rig_write(g, "d/f", ""); /* two events each: the same one twice would count once */
		assert_int_equal(unlinkat(g->root_fd, "d/f", 0), 0);
	}
	await(&op, EVENT_OVERFLOW, "");
	assert_int_equal(end(&op), ECANCELED);
}

static void a_cancel_reaches_a_watch_that_nobody_listens_to(void **state)
{
	struct rig *g = *state;
	struct rig_op op;

	rig_mkdir(g, "d");
	op = arm(g, "/d", 0);
	for (unsigned i = 0; i < 3000; i++) {
		rig_write(g, "d/f", "");
		assert_int_equal(unlinkat(g->root_fd, "d/f", 0), 0);
	}
	assert_int_equal(end(&op), ECANCELED);
}

static void a_file_that_replaces_another_is_told_by_its_own_name(void **state)
{
	struct rig *g = *state;
	struct rig_op op;

	rig_mkdir(g, "d");
	op = arm(g, "/d", 0);
	assert_int_equal(rig_do(g, FILE_OP(.op = FILE_WRITE, .path = "/d/a"), "text", 4), 0);
	expect(&op, EVENT_CREATE, "a");
	expect(&op, EVENT_CHMOD, "a");
	expect(&op, EVENT_WRITE, "a");
	assert_int_equal(end(&op), ECANCELED);
}

static void next_entry(const struct rig_op *op, const char *path)
{
	uint8_t frame[WIRE_FRAME_MAX];
	ssize_t n = fd_recv(op->sock, frame, sizeof(frame), NULL, NULL);
	struct guest_entry e;
	struct wire_head head;
	struct rd payload;

	assert_true(n > 0);
	assert_int_equal(wire_open(frame, (size_t)n, &head, &payload), 0);
	assert_int_equal(head.type, G_ENTRY);
	assert_int_equal(guest_get_entry(&payload, &e), 0);
	assert_string_equal(e.path, path);
}

static void an_event_comes_behind_what_it_is_about(void **state)
{
	struct rig *g = *state;
	struct rig_op op;

	rig_mkdir(g, "d");
	op = arm(g, "/d", FILE_DETAILS | FILE_RECURSIVE);
	rig_mkdir(g, "d/sub");
	next_entry(&op, "/d/sub");
	expect(&op, EVENT_CREATE, "sub");
	assert_int_equal(unlinkat(g->root_fd, "d/sub", AT_REMOVEDIR), 0);
	expect(&op, EVENT_REMOVE, "sub"); /* of which nothing is left to tell */
	assert_int_equal(end(&op), ECANCELED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(every_kind_of_change_is_told),
		TEST(only_a_recursive_watch_looks_deeper),
		TEST(new_directories_are_watched_too),
		TEST(a_moved_directory_is_told_under_its_new_name),
		TEST(a_watched_directory_that_goes_ends_the_watch),
		TEST(one_file_can_be_watched),
		TEST(a_link_out_of_the_root_is_not_watched),
		TEST(a_file_that_replaces_another_is_told_by_its_own_name),
		TEST(an_event_comes_behind_what_it_is_about),
		TEST(more_than_can_be_queued_is_an_overflow),
		TEST(a_cancel_reaches_a_watch_that_nobody_listens_to),
	};

	return cmocka_run_group_tests(tests, rig_drop_root, NULL);
}
