/* One box and another, and what the next one finds. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attack.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* F14: the same socket path in two boxes. */
static void socket_paths_are_private(struct world *w, const struct attack *a)
{
	struct op op;

	(void)a;
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->box);
	box_start(w, &w->box, "socket-over /tmp/shared.sock 2000", NULL, &op);
	box_wait_ready(&w->box, &op);
	box_expect_held(w, &w->neighbour, "socket-call /tmp/shared.sock", 0);
	assert_true(box_wait(&w->box, &op, 10000));
	op_expect_held("socket-over", &op, 0);
	op_done(&op);
	box_close(w, &w->box, NULL);
}

/* A lock on a file that both boxes see is no message. */
static void locks_are_private(struct world *w, const struct attack *a)
{
	struct op op;

	(void)a;
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->box);
	box_start(w, &w->box, "flock-hold /usr/bin/env 2000", NULL, &op);
	box_wait_ready(&w->box, &op);
	box_expect_held(w, &w->neighbour, "flock-try /usr/bin/env", 0);
	box_expect_held(w, &w->neighbour, "flock-try /etc/passwd", 0);
	assert_true(box_wait(&w->box, &op, 10000));
	op_done(&op);
	box_close(w, &w->box, NULL);
}

/* A watch in one box does not see what another one runs. */
static void watches_are_private(struct world *w, const struct attack *a)
{
	struct guest_exec e = { .argc = 2,
				.timeout_ms = 5000,
				.user = "",
				.cwd = "",
				.code = "",
				.argv = { "/usr/bin/env", "true" } };
	struct op op, other;

	(void)a;
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->box);
	box_start(w, &w->box, "watch /usr/bin 1500", NULL, &op);
	box_wait_ready(&w->box, &op);
	for (int i = 0; i < 3; i++) {
		box_start_argv(&w->neighbour, &e, &other);
		assert_true(box_wait(&w->neighbour, &other, 10000));
		op_done(&other);
	}
	assert_true(box_wait(&w->box, &op, 10000));
	op_expect_held("watch", &op, 0);
	op_done(&op);
	box_close(w, &w->box, NULL);
}

/* Two boxes with a writable root: the second sees the template, not the first. */
static void writable_roots_are_private(struct world *w, const struct attack *a)
{
	(void)a;
	box_open(w, &w->other, TEMPLATE_WRITABLE, NULL);
	box_upload(w, &w->other);
	box_open(w, &w->box, TEMPLATE_WRITABLE, NULL);
	box_upload(w, &w->box);
	box_expect_held(w, &w->box, "deface", 0);
	box_expect_held(w, &w->box, "deface", AS_ROOT);
	box_expect_held(w, &w->other, "not-defaced", 0); /* alive at the same time */
	box_close(w, &w->box, NULL);
	box_open(w, &w->box, TEMPLATE_WRITABLE, NULL); /* and born afterwards */
	box_upload(w, &w->box);
	box_expect_held(w, &w->box, "not-defaced", 0);
	box_close(w, &w->box, NULL);
	box_close(w, &w->other, NULL);
	assert_int_not_equal(access("/usr/holt-defaced", F_OK), 0);
	assert_int_not_equal(access("/etc/holt-defaced", F_OK), 0);
	assert_int_equal(access("/usr/bin/true", X_OK), 0);
}

/* Read-only roots: nothing to deface, with or without the box's root. */
static void roots_cannot_be_defaced(struct world *w, const struct attack *a)
{
	(void)a;
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->box);
	box_expect_held(w, &w->box, "deface", 0);
	box_expect_held(w, &w->box, "deface", AS_ROOT);
	box_expect_held(w, &w->box, "not-defaced", 0);
	box_close(w, &w->box, NULL);
	assert_int_equal(access("/usr/bin/true", X_OK), 0);
}

/* C4: ids of boxes that are not there, malformed or another's, say nothing but "no". */
static void foreign_ids_are_refused(struct world *w, const struct attack *a)
{
	static const char *const ids[] = { "",
					   "a",
					   "aaaaaaaaaaaaaaaaaaaa",
					   "../../etc/passwd",
					   "aaaaaaaaaaaaaaaaaaa\n",
					   "AAAAAAAAAAAAAAAAAAAA",
					   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
					   "%s%s%s%n" };
	struct box_usage usage;

	(void)a;
	for (size_t i = 0; i < COUNT(ids); i++) {
		assert_true(launcher_destroy_sync(w->launcher, ids[i], NULL, NULL) < 0);
		assert_true(launcher_usage_sync(w->launcher, ids[i], &usage, NULL) < 0);
		assert_true(launcher_freeze_sync(w->launcher, ids[i], true, NULL) < 0);
		assert_true(launcher_limits_sync(w->launcher, ids[i], &(struct limits){ 0 }, NULL) <
			    0);
	}
}

/* C4: a captured daemon asks the launcher for more than the machine has, by every request that
 * carries limits; a box that lives keeps those it has. */
static void no_box_is_larger_than_the_machine(struct world *w, const struct attack *a)
{
	static const struct limits rows[] = { { .memory_bytes = LIMIT_MEMORY_MAX },
					      { .cpu_milli = LIMIT_CPU_MAX } };

	(void)a;
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct launch_spec spec = { .template_id = TEMPLATE_PLAIN, .limits = rows[i] };
		struct template_spec t = { .id = TEMPLATE_MAX, .preload = "", .limits = rows[i] };
		struct launcher_box box = { .sock = -1, .pidfd = -1 };

		assert_int_equal(launcher_claim_sync(w->launcher, &spec, &box, NULL), -ERANGE);
		assert_int_equal(launcher_template_sync(w->launcher, &t, -1, NULL), -ERANGE);
		assert_int_equal(launcher_limits_sync(w->launcher, w->box.l.id, &rows[i], NULL),
				 -ERANGE);
	}
	box_expect_answer(&w->box);
	box_close(w, &w->box, NULL);
}

/* A box that was destroyed does not answer any more, under its id or to its client. */
static void destroyed_boxes_stay_dead(struct world *w, const struct attack *a)
{
	struct launcher_box gone;
	struct box_usage usage;
	struct op op;

	(void)a;
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->box);
	gone = w->box.l;
	assert_int_equal(launcher_destroy_sync(w->launcher, gone.id, NULL, NULL), 0);
	box_open(w, &w->other, TEMPLATE_PLAIN, NULL); /* may take its place in every table */
	assert_true(guest_ping_sync(w->box.guest, 1000) < 0);
	assert_true(api_read(&w->box, "/etc/passwd", &op) < 0);
	op_done(&op);
	assert_true(launcher_usage_sync(w->launcher, gone.id, &usage, NULL) < 0);
	assert_true(launcher_destroy_sync(w->launcher, gone.id, NULL, NULL) < 0);
	w->box.guest = guest_free(w->box.guest);
	(void)close(w->box.l.pidfd);
	box_expect_answer(&w->other);
	box_close(w, &w->other, NULL);
}

static const struct attack rows[] = {
	{ "X1 nothing of a living neighbour is seen in a box", "residue-look", 0, 0, { 0 }, NULL },
	{ "X2 processes of another box are unknown", "signal-outside @pids", 0, 0, { 0 }, NULL },
	{ "X3 locks on shared files do not cross", NULL, 0, 0, { 0 }, locks_are_private },
	{ "X4 watches on shared directories do not cross", NULL, 0, 0, { 0 }, watches_are_private },
	{ "F14 a socket path in one box is not that of another",
	  NULL,
	  0,
	  0,
	  { 0 },
	  socket_paths_are_private },
	{ "F15 a writable root is a box's own", NULL, 0, 0, { 0 }, writable_roots_are_private },
	{ "F15 a read-only root cannot be defaced", NULL, 0, 0, { 0 }, roots_cannot_be_defaced },
	{ "C4 ids of others are refused", NULL, 0, 0, { 0 }, foreign_ids_are_refused },
	{ "C4 no box is larger than the machine",
	  NULL,
	  0,
	  0,
	  { 0 },
	  no_box_is_larger_than_the_machine },
	{ "C4 a destroyed box stays dead", NULL, 0, 0, { 0 }, destroyed_boxes_stay_dead },
};

const struct attack_table attacks_cross = { rows, COUNT(rows) };
