/* F7, F8, F10: paths that a box chose, walked by the file API. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attack.h"
#include "base/clock.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *const planted[] = { "absolute", "self-root", "init-root", "dots",
				       "shadow",   "magic-fd3", "init-fd3" };

/* Through directories that are links to a root, then to the machine's file. */
static const char *const through[] = { "root", "magic-root", "magic-cwd/../.." };

static void plant(struct world *w)
{
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->box);
	box_expect_held(w, &w->box, "plant @canary", 0);
}

static void expect_no_secret(struct world *w, const char *path)
{
	struct op op;
	int r = api_read(&w->box, path, &op);

	assert_int_not_equal(r, -ETIMEDOUT);
	if (memmem(buf_str(&op.out), op.out.len, w->secret, strlen(w->secret)))
		fail_msg("reading %s gives the machine's canary", path);
	if (strstr(buf_str(&op.out), "root:$") || strstr(buf_str(&op.out), "root:*:"))
		fail_msg("reading %s gives a shadow file", path);
	op_done(&op);
}

static void reads_stay_inside(struct world *w, const struct attack *a)
{
	char path[600];

	(void)a;
	plant(w);
	for (size_t i = 0; i < COUNT(planted); i++) {
		(void)snprintf(path, sizeof(path), "/workspace/links/%s", planted[i]);
		expect_no_secret(w, path);
	}
	for (size_t i = 0; i < COUNT(through); i++) {
		(void)snprintf(path, sizeof(path), "/workspace/links/%s%s/canary", through[i],
			       w->dir);
		expect_no_secret(w, path);
	}
	(void)snprintf(path, sizeof(path), "/../../../../../../../../..%s/canary", w->dir);
	expect_no_secret(w, path);
	(void)snprintf(path, sizeof(path), "%s/canary", w->dir);
	expect_no_secret(w, path);
	box_expect_answer(&w->box);
	box_close(w, &w->box, NULL);
}

/* Writes, with and without parents, appended and not; world_check() looks at the canaries. */
static void writes_stay_inside(struct world *w, const struct attack *a)
{
	static const uint32_t flags[] = { 0, FILE_PARENTS, FILE_APPEND, FILE_EXCL };
	char path[600];

	(void)a;
	plant(w);
	for (size_t i = 0; i < COUNT(planted) + COUNT(through); i++)
		for (size_t k = 0; k < COUNT(flags); k++) {
			struct guest_file f = { .op = FILE_WRITE,
						.flags = flags[k],
						.mode = 0666,
						.user = "",
						.path = path,
						.target = "" };

			if (i < COUNT(planted))
				(void)snprintf(path, sizeof(path), "/workspace/links/%s",
					       planted[i]);
			else
				(void)snprintf(path, sizeof(path), "/workspace/links/%s%s/dir/new",
					       through[i - COUNT(planted)], w->dir);
			assert_int_not_equal(api_put(&w->box, &f, "owned", 5, NULL), -ETIMEDOUT);
		}
	box_close(w, &w->box, NULL);
}

/* Everything else that takes a path: removal, modes, directories, moves. */
static void changes_stay_inside(struct world *w, const struct attack *a)
{
	static const uint8_t ops[] = { FILE_CHMOD, FILE_MKDIR, FILE_RENAME,
				       FILE_STAT,  FILE_LIST,  FILE_TAR_GET };
	char path[600], target[600];

	(void)a;
	plant(w);
	(void)snprintf(target, sizeof(target), "/workspace/links/root%s/dir/moved", w->dir);
	for (size_t i = 0; i < COUNT(planted) + COUNT(through); i++)
		for (size_t k = 0; k < COUNT(ops); k++) {
			struct guest_file f = { .op = ops[k],
						.flags = FILE_PARENTS,
						.mode = 04777,
						.user = "",
						.path = path,
						.target = ops[k] == FILE_RENAME ? target : "" };

			if (i < COUNT(planted))
				(void)snprintf(path, sizeof(path), "/workspace/links/%s",
					       planted[i]);
			else
				(void)snprintf(path, sizeof(path), "/workspace/links/%s%s/dir",
					       through[i - COUNT(planted)], w->dir);
			if (ops[k] == FILE_TAR_GET && i >= COUNT(planted))
				continue;
			assert_int_not_equal(api_file(&w->box, &f, NULL), -ETIMEDOUT);
		}
	(void)snprintf(path, sizeof(path), "/workspace/links/root%s", w->dir);
	(void)api_file(&w->box,
		       &(struct guest_file){ .op = FILE_REMOVE,
					     .flags = FILE_RECURSIVE,
					     .user = "",
					     .path = path,
					     .target = "" },
		       NULL);
	box_close(w, &w->box, NULL);
}

/* Removing a tree full of links removes the links. */
static void removal_does_not_follow(struct world *w, const struct attack *a)
{
	struct op op;

	(void)a;
	plant(w);
	assert_int_equal(api_write(&w->box, "/workspace/keep/file", "kept", 4), -ENOENT);
	assert_int_equal(api_file(&w->box,
				  &(struct guest_file){ .op = FILE_MKDIR,
							.mode = 0755,
							.user = "",
							.path = "/workspace/keep",
							.target = "" },
				  NULL),
			 0);
	assert_int_equal(api_write(&w->box, "/workspace/keep/file", "kept", 4), 0);
	assert_int_equal(api_file(&w->box,
				  &(struct guest_file){ .op = FILE_REMOVE,
							.flags = FILE_RECURSIVE,
							.user = "",
							.path = "/workspace/links",
							.target = "" },
				  NULL),
			 0);
	assert_int_equal(api_read(&w->box, "/workspace/keep/file", &op), 0);
	assert_string_equal(buf_str(&op.out), "kept");
	op_done(&op);
	assert_int_equal(api_read(&w->box, "/etc/passwd", &op), 0);
	op_done(&op);
	box_close(w, &w->box, NULL);
}

/* The API works on a path whose parts change under it; world_check() sees what leaves the box. */
static void race(struct world *w, const char *probe, const char *path)
{
	uint64_t until;
	unsigned n = 0;
	struct op op;

	box_open(w, &w->box, TEMPLATE_PLAIN, &(struct limits){ .cpu_milli = 2000 });
	box_upload(w, &w->box);
	box_start(w, &w->box, probe, NULL, &op);
	box_wait_ready(&w->box, &op);
	until = clock_now_ms() + 3000;
	for (; clock_now_ms() < until; n++) {
		struct op answer;

		assert_int_not_equal(api_write(&w->box, path, "owned", 5), -ETIMEDOUT);
		assert_int_not_equal(api_read(&w->box, path, &answer), -ETIMEDOUT);
		if (memmem(buf_str(&answer.out), answer.out.len, w->secret, strlen(w->secret)))
			fail_msg("the machine's canary came through %s", path);
		op_done(&answer);
	}
	assert_true(n > 50);
	assert_true(box_wait(&w->box, &op, 20000));
	op_expect_held(probe, &op, 0);
	op_done(&op);
	box_expect_answer(&w->box);
	box_close(w, &w->box, NULL);
}

static void swapped_for_the_machine(struct world *w, const struct attack *a)
{
	(void)a;
	race(w, "swap @dir 4000", "/workspace/race/d/canary");
}

static void swapped_for_proc(struct world *w, const struct attack *a)
{
	char path[600];

	(void)a;
	(void)snprintf(path, sizeof(path), "/workspace/race/d%s/canary", w->dir);
	race(w, "swap /proc/self/root 4000", path);
}

static void swapped_for_etc(struct world *w, const struct attack *a)
{
	struct op op;

	(void)a;
	race(w, "swap /etc 4000", "/workspace/race/d/passwd");
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	assert_int_equal(api_read(&w->box, "/etc/passwd", &op), 0);
	assert_null(strstr(buf_str(&op.out), "owned"));
	op_done(&op);
	box_close(w, &w->box, NULL);
}

static void parents_move_away(struct world *w, const struct attack *a)
{
	(void)a;
	race(w, "swap-parent 4000", "/workspace/p/q/../../../../canary");
}

static void files_change_their_kind(struct world *w, const struct attack *a)
{
	(void)a;
	race(w, "remake /workspace/remade 4000", "/workspace/remade");
}

/* F10: moves across mounts, onto read-only places, and while the source moves. */
static void moves_lose_nothing(struct world *w, const struct attack *a)
{
	static const char *const targets[] = { "/dev/shm/to", "/tmp/to",  "/home/user/to",
					       "/usr/bin/to", "/proc/to", "/etc/to",
					       "/dev/to",     "/" };
	struct op op;

	(void)a;
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	for (size_t i = 0; i < COUNT(targets); i++) {
		struct guest_file f = { .op = FILE_RENAME,
					.user = "",
					.path = "/workspace/from",
					.target = targets[i] };
		int r, source, target;

		assert_int_equal(api_write(&w->box, "/workspace/from", "whole", 5), 0);
		r = api_file(&w->box, &f, NULL);
		assert_int_not_equal(r, -ETIMEDOUT);
		source = api_read(&w->box, "/workspace/from", &op);
		op_done(&op);
		target = api_read(&w->box, targets[i], &op);
		assert_true(source == 0 || (target == 0 && strcmp(buf_str(&op.out), "whole") == 0));
		op_done(&op);
		if (i >= 3)
			assert_true(r < 0);
	}
	box_close(w, &w->box, NULL);
}

static const struct attack rows[] = {
	{ "F7 reads through links resolve in the box", NULL, 0, 0, { 0 }, reads_stay_inside },
	{ "F7 writes through links resolve in the box", NULL, 0, 0, { 0 }, writes_stay_inside },
	{ "F7 every other operation through links resolves in the box",
	  NULL,
	  0,
	  0,
	  { 0 },
	  changes_stay_inside },
	{ "F7 removing a tree does not follow its links",
	  NULL,
	  0,
	  0,
	  { 0 },
	  removal_does_not_follow },
	{ "F8 a directory swapped for a link to the machine never leads out",
	  NULL,
	  0,
	  0,
	  { 0 },
	  swapped_for_the_machine },
	{ "F8 a directory swapped for /proc/self/root never leads out",
	  NULL,
	  0,
	  0,
	  { 0 },
	  swapped_for_proc },
	{ "F8 a directory swapped for /etc never makes it writable",
	  NULL,
	  0,
	  0,
	  { 0 },
	  swapped_for_etc },
	{ "F8 a parent that moves away takes no path along", NULL, 0, 0, { 0 }, parents_move_away },
	{ "F8 a file that changes its kind under the API is no trap",
	  NULL,
	  0,
	  0,
	  { 0 },
	  files_change_their_kind },
	{ "F10 moves across mounts lose nothing", NULL, 0, 0, { 0 }, moves_lose_nothing },
};

const struct attack_table attacks_file = { rows, COUNT(rows) };
