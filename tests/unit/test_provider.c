#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "check.h"
#include "provider/fake.h"
#include "provider/guest_client.h"

static struct launcher_box claim(struct provider p)
{
	struct launch_spec spec = { .template_id = 1 };
	struct launcher_box box;

	assert_int_equal(p.ops->claim(p.self, &spec, &box, NULL), 0);
	return box;
}

static void a_claimed_box_has_every_limit_filled_in(void **state)
{
	struct fake f = { 0 };
	struct provider p = provider_fake(&f);
	struct launcher_box box = claim(p);

	(void)state;
	assert_int_equal(box.limits.memory_bytes, LIMIT_MEMORY_DEFAULT);
	assert_int_equal(box.limits.pids, LIMIT_PIDS_DEFAULT);
	assert_true(id_is_valid(box.id));
	assert_int_equal(f.live, 1);
	launcher_box_done(&box);
	fake_done(&f);
	assert_int_equal(f.live, 0);
}

static void a_limit_out_of_bounds_is_refused(void **state)
{
	struct fake f = { 0 };
	struct provider p = provider_fake(&f);
	struct launch_spec spec = { .template_id = 1, .limits = { .pids = LIMIT_PIDS_MAX + 1 } };
	struct launcher_box box;

	(void)state;
	assert_true(p.ops->claim(p.self, &spec, &box, NULL) < 0);
	assert_int_equal(f.live, 0);
}

static void a_destroyed_box_is_gone_and_its_socket_hangs_up(void **state)
{
	struct fake f = { .usage = { .cpu_us = 12 } };
	struct provider p = provider_fake(&f);
	struct launcher_box box = claim(p);
	struct box_usage usage = { 0 };
	struct guest_client *g;

	(void)state;
	assert_int_equal(guest_create(TAKE_FD(box.sock), &g, NULL), 0);
	assert_int_equal(p.ops->destroy(p.self, box.id, &usage, NULL), 0);
	assert_int_equal(usage.cpu_us, 12);
	assert_int_equal(guest_dispatch(g), -EPIPE);
	assert_int_equal(p.ops->destroy(p.self, box.id, NULL, NULL), -ENOENT);
	assert_int_equal(p.ops->usage(p.self, box.id, &usage, NULL), -ENOENT);
	guest_free(g);
}

static void freeze_and_limits_reach_the_right_box(void **state)
{
	struct fake f = { 0 };
	struct provider p = provider_fake(&f);
	struct launcher_box a = claim(p), b = claim(p);
	struct limits more = { .memory_bytes = 512u << 20 };

	(void)state;
	assert_int_equal(p.ops->freeze(p.self, b.id, true, NULL), 0);
	assert_int_equal(p.ops->limits(p.self, b.id, &more, NULL), 0);
	assert_false(fake_find(&f, a.id)->frozen);
	assert_true(fake_find(&f, b.id)->frozen);
	assert_int_equal(fake_find(&f, b.id)->limits.memory_bytes, 512u << 20);
	assert_int_equal(fake_find(&f, b.id)->limits.pids, LIMIT_PIDS_DEFAULT);
	launcher_box_done(&a);
	launcher_box_done(&b);
	fake_done(&f);
}

static void the_armed_call_fails_and_no_other(void **state)
{
	struct fake f = { 0 };
	struct provider p = provider_fake(&f);
	struct launcher_box box = claim(p);
	struct err err = { 0 };

	(void)state;
	f.fail_in = 2;
	f.fail_with = EDQUOT;
	assert_int_equal(p.ops->freeze(p.self, box.id, true, NULL), 0);
	assert_int_equal(p.ops->destroy(p.self, box.id, NULL, &err), -EDQUOT);
	assert_string_equal(err.text, "destroy refused");
	assert_int_equal(f.live, 1);
	assert_int_equal(p.ops->destroy(p.self, box.id, NULL, NULL), 0);
	assert_int_equal(f.live, 0);
	launcher_box_done(&box);
}

static void the_table_has_an_end(void **state)
{
	struct fake f = { 0 };
	struct provider p = provider_fake(&f);
	struct launch_spec spec = { .template_id = 1 };
	struct launcher_box box;

	(void)state;
	for (int i = 0; i < FAKE_BOXES_MAX; i++) {
		box = claim(p);
		launcher_box_done(&box);
	}
	assert_int_equal(p.ops->claim(p.self, &spec, &box, NULL), -EAGAIN);
	fake_done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_claimed_box_has_every_limit_filled_in),
		cmocka_unit_test(a_limit_out_of_bounds_is_refused),
		cmocka_unit_test(a_destroyed_box_is_gone_and_its_socket_hangs_up),
		cmocka_unit_test(freeze_and_limits_reach_the_right_box),
		cmocka_unit_test(the_armed_call_fails_and_no_other),
		cmocka_unit_test(the_table_has_an_end),
	};

	return cmocka_run_group_tests_name("provider", tests, NULL, NULL);
}
