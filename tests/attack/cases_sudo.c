/* S1 to S5: boxes whose user may become root, and what that root may. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "attack.h"
#include "base/err.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define TEMPLATE_ID 7u

static void open_box(struct world *w, const struct limits *limits)
{
	struct template_spec t = { .id = TEMPLATE_ID,
				   .root = ROOT_HOST,
				   .flags = TEMPLATE_WRITABLE_ROOT | TEMPLATE_SUDO,
				   .preload = "" };
	struct err err = { 0 };

	if (launcher_template_sync(w->launcher, &t, -1, &err) < 0)
		fail_msg("template: %s", err.text);
	box_open(w, &w->box, t.id, limits);
	box_upload(w, &w->box);
}

static void close_box(struct world *w)
{
	box_expect_answer(&w->box);
	box_close(w, &w->box, NULL);
}

/* What nobody in a box may, whoever he is. */
static const char *const closed[] = {
	"mounts",       "by-unshare", "by-clone",     "join",        "trace 1",  "memory-of 1",
	"steal-fd",     "keys",       "modules",      "handles",     "machine",  "netlink",
	"families",     "transports", "netfilter",    "loosen",      "sysctls",  "all-sysctls",
	"cgroups",      "sys-tree",   "kernel-files", "dev-machine", "dev-make", "overlay-marks",
	"init-secrets", "speak",      "own-exe",      "interfaces",
};

static void root_is_the_boxes_alone(struct world *w, const struct attack *a)
{
	(void)a;
	open_box(w, NULL);
	for (size_t i = 0; i < COUNT(closed); i++)
		box_expect_held(w, &w->box, closed[i], AS_ROOT | MAY_BE_ABSENT);
	close_box(w);
}

static void so_is_root_by_sudo(struct world *w, const struct attack *a)
{
	char line[80];

	(void)a;
	open_box(w, NULL);
	for (size_t i = 0; i < COUNT(closed); i++) {
		(void)snprintf(line, sizeof(line), "via-sudo %s", closed[i]);
		box_expect_held(w, &w->box, line, MAY_BE_ABSENT);
	}
	close_box(w);
}

static void one_probe(struct world *w, const struct attack *a)
{
	open_box(w, NULL);
	box_expect_held(w, &w->box, a->probe, 0);
	close_box(w);
}

static void a_flood_leaves_the_rest_alone(struct world *w, const struct attack *a)
{
	struct op op;

	open_box(w, NULL);
	box_start(w, &w->box, "sudo-flood", a, &op);
	box_wait_ready(&w->box, &op);
	for (int i = 0; i < 5; i++)
		box_expect_answer(&w->box);
	assert_true(box_wait(&w->box, &op, ATTACK_TIMEOUT_MS));
	op_expect_held("sudo-flood", &op, 0);
	op_done(&op);
	close_box(w);
}

static void expect_timeout(struct world *w, const char *line, uint32_t timeout_ms)
{
	struct op op;

	box_start(w, &w->box, line, &(struct attack){ .timeout_ms = timeout_ms }, &op);
	assert_true(box_wait(&w->box, &op, timeout_ms + 60000));
	if (!(op.exit.flags & EXIT_TIMED_OUT))
		fail_msg("%s: it ended before its deadline: %s", line, buf_str(&op.out));
	op_done(&op);
}

static void a_deadline_reaches_what_root_has_started(struct world *w, const struct attack *a)
{
	(void)a;
	open_box(w, NULL);
	expect_timeout(w, "sudo-survivors", 5000);
	box_expect_held(w, &w->box, "none-named survivor", AS_ROOT);
	close_box(w);
}

static void a_bomb_of_roots_burns_in_its_box(struct world *w, const struct attack *a)
{
	open_box(w, &a->limits);
	expect_timeout(w, "via-sudo fork-bomb 64 15000", 3000);
	box_expect_held(w, &w->box, "none-named bomb", AS_ROOT);
	close_box(w);
}

static void who_is_killed_leaves_no_command(struct world *w, const struct attack *a)
{
	(void)a;
	open_box(w, NULL);
	box_expect_held(w, &w->box, "sudo-orphans", 0);
	box_expect_held(w, &w->box, "sudo-none-left survivor", AS_ROOT);
	close_box(w);
}

static const struct attack rows[] = {
	{ .name = "S1 the root of a box with sudo has no power beyond it",
	  .run = root_is_the_boxes_alone },
	{ .name = "S1 nor has who became root by sudo", .run = so_is_root_by_sudo },
	{ .name = "S2 other boxes have nobody who makes one root", .probe = "sudo-none" },
	{ .name = "S2 other boxes have nobody who makes one root, not for their root",
	  .probe = "sudo-none",
	  .flags = AS_ROOT },
	{ .name = "S3 messages that are none end their own connection",
	  .probe = "sudo-garbage",
	  .run = one_probe },
	{ .name = "S3 descriptors of any kind hold nobody up",
	  .probe = "sudo-descriptors",
	  .run = one_probe },
	{ .name = "S3 nor do they of those who are not heard",
	  .probe = "via-nobody sudo-descriptors",
	  .run = one_probe },
	{ .name = "S3 a flood of connections leaves the box answering",
	  .run = a_flood_leaves_the_rest_alone },
	{ .name = "S4 a deadline reaches what root has started",
	  .run = a_deadline_reaches_what_root_has_started },
	{ .name = "S4 who is killed with sudo on his lips leaves no command behind",
	  .run = who_is_killed_leaves_no_command },
	{ .name = "S5 a fork bomb of root's burns in its box and ends at its deadline",
	  .flags = NEEDS_PIDS,
	  .limits = { .pids = 64 },
	  .run = a_bomb_of_roots_burns_in_its_box },
};
const struct attack_table attacks_sudo = { rows, COUNT(rows) };
