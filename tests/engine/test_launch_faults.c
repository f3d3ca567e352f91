/* A launcher for which one call to the kernel after the other fails while it builds boxes for its
 * pool, where nobody listens to the reason (a NULL struct err). It may cost that box; the launcher
 * goes on and the next box is built. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "call_fault.h"
#include "provider/launcher.h"

#define PLAIN 1u /* template ids */
#define SUDO 2u
#define CALLS_MAX 3000u
#define POLLS_MAX 3000 /* of 5 ms: nothing but a fault of ours takes as long */

struct rig {
	struct launcher *launcher;
	struct call_fault *fault;
	struct err err;
};

static int start(void **state)
{
	static const struct template_spec plain = { .id = PLAIN, .preload = "" };
	static const struct template_spec sudo = { .id = SUDO,
						   .flags = TEMPLATE_WRITABLE_ROOT | TEMPLATE_SUDO,
						   .preload = "" };
	struct launcher_options options = { .program = getenv("HOLT_LAUNCH") };
	struct rig *r = calloc(1, sizeof(*r));

	if (!r)
		return -1;
	r->fault = call_fault_share();
	if (!r->fault || launcher_start(&options, &r->launcher, &r->err) < 0 ||
	    launcher_template_sync(r->launcher, &plain, -1, &r->err) < 0 ||
	    launcher_template_sync(r->launcher, &sudo, -1, &r->err) < 0) {
		print_error("start: %s\n", r->err.text);
		return -1;
	}
	*state = r;
	return 0;
}

static int stop(void **state)
{
	struct rig *r = *state;

	r->launcher = launcher_stop(r->launcher);
	free(r);
	return 0;
}

/* Says how many boxes are to wait; the pool forgets what failed before. */
static void want_boxes(struct rig *r, uint32_t id, uint32_t count)
{
	struct pool_spec pool = { id, count, count, 1, 0 };

	if (launcher_pool_sync(r->launcher, &pool, &r->err) < 0)
		fail_msg("call %u: the launcher is gone: %s", r->fault->fail_at, r->err.text);
}

static void wait_for_box(struct rig *r, uint32_t id)
{
	struct pool_state s = { 0 };

	for (int i = 0; i < POLLS_MAX; i++) {
		if (launcher_pool_state_sync(r->launcher, id, &s, &r->err) < 0)
			fail_msg("call %u: the launcher is gone: %s", r->fault->fail_at,
				 r->err.text);
		if (s.ready == 1 && s.building == 0)
			return;
		(void)poll(NULL, 0, 5);
	}
	fail_msg("call %u: %u boxes wait and %u are being built", r->fault->fail_at, s.ready,
		 s.building);
}

/* Takes the box that waits, for which no other is built. */
static void remove_box(struct rig *r, uint32_t id)
{
	struct launcher_box box;

	want_boxes(r, id, 0);
	if (launcher_claim_sync(r->launcher, &(struct launch_spec){ .template_id = id }, &box,
				&r->err) < 0 ||
	    launcher_destroy_sync(r->launcher, box.id, NULL, &r->err) < 0)
		fail_msg("remove a box: %s", r->err.text);
	assert_true(box.flags & BOX_WARM);
	(void)close(box.sock);
	(void)close(box.pidfd);
}

/* Builds a box with the first call failing, then one with the second, until one makes them all. */
static void fail_each_call(struct rig *r, uint32_t id, int code)
{
	unsigned n = 0;

	/* What is made once, for all boxes, is there before the first call fails. */
	want_boxes(r, id, 1);
	wait_for_box(r, id);
	remove_box(r, id);
	do {
		call_fault_arm(r->fault, ++n, code);
		want_boxes(r, id, 1);
		wait_for_box(r, id);
		call_fault_arm(r->fault, 0, 0);
		remove_box(r, id);
	} while (r->fault->hit && n < CALLS_MAX);
	assert_in_range(n, 10, CALLS_MAX - 1); /* else nothing was tried, or it never ends */
}

static void any_call_may_fail_while_a_plain_box_is_built(void **state)
{
	fail_each_call(*state, PLAIN, ENOMEM);
}

/* As kernels do that cannot map the ids of a tmpfs. */
static void any_call_may_be_refused_while_a_box_with_sudo_is_built(void **state)
{
	fail_each_call(*state, SUDO, EINVAL);
}

static void any_call_may_fail_while_a_box_with_sudo_is_built(void **state)
{
	fail_each_call(*state, SUDO, ENOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(any_call_may_fail_while_a_plain_box_is_built, start,
						stop),
		cmocka_unit_test_setup_teardown(
			any_call_may_be_refused_while_a_box_with_sudo_is_built, start, stop),
		cmocka_unit_test_setup_teardown(any_call_may_fail_while_a_box_with_sudo_is_built,
						start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
