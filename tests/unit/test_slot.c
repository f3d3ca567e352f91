#include "check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sandbox/registry.h"
#include "sandbox/slot.h"
#include "sandbox_rig.h"

#define LAYER "layeraaaaaaaaaaaaaa1"

/* Each number is a recipe of its own. */
static struct recipe recipe(unsigned n)
{
	struct recipe r = { .root = ROOT_HOST };

	(void)snprintf(r.preload, sizeof(r.preload), "module%u", n);
	return r;
}

static uint32_t hold(struct sandbox_rig *rig, unsigned n)
{
	struct recipe r = recipe(n);
	struct err err = { 0 };
	uint32_t id = 0;

	if (slot_hold(rig->all, &r, &id, &err) < 0)
		fail_msg("%s", err.text);
	rig_run(rig);
	return id;
}

static void one_recipe_has_one_number_and_keeps_it_while_nobody_else_wants_it(void **state)
{
	struct sandbox_rig rig;
	uint32_t a, b;

	(void)state;
	rig_open(&rig);
	a = hold(&rig, 1);
	b = hold(&rig, 2);
	assert_int_not_equal(a, b);
	assert_int_equal(hold(&rig, 1), a);
	assert_true(rig.fake.templates[a].defined && rig.fake.templates[b].defined);
	slot_drop(rig.all, a);
	slot_drop(rig.all, a);
	slot_drop(rig.all, a); /* one time too many changes nothing */
	assert_int_equal(hold(&rig, 3), b + 1);
	assert_int_equal(hold(&rig, 1), a);
	rig_close(&rig);
}

static void when_all_are_held_another_is_refused_and_the_first_let_go_is_given_away(void **state)
{
	struct recipe more = recipe(9999);
	uint32_t first = 0, second = 0, id = 0;
	struct sandbox_rig rig;
	struct err err = { 0 };
	unsigned n = 0;

	(void)state;
	rig_open(&rig);
	for (;; n++) {
		struct recipe r = recipe(n);

		if (slot_hold(rig.all, &r, &id, &err) < 0)
			break;
		rig_run(&rig);
		if (n == 0)
			first = id;
		if (n == 1)
			second = id;
	}
	assert_int_equal(err.code, EDQUOT);
	assert_true(n > 200 && n < TEMPLATE_MAX);
	slot_drop(rig.all, second);
	rig_pass(&rig, 1000);
	slot_drop(rig.all, first);
	assert_int_equal(slot_hold(rig.all, &more, &id, &err), 0);
	assert_int_equal(id, second);
	assert_int_equal(hold(&rig, 0), first); /* that one was not touched */
	rig_close(&rig);
}

static void another_launcher_is_told_of_what_is_held_and_of_nothing_else(void **state)
{
	struct pool_spec pool = { .min = 3, .max = 5 };
	struct sandbox_rig rig;
	uint32_t kept, left;

	(void)state;
	rig_open(&rig);
	kept = hold(&rig, 1);
	left = hold(&rig, 2);
	slot_set_pool(rig.all, kept, &pool);
	rig_run(&rig);
	assert_int_equal(rig.fake.templates[kept].pool.min, 3);
	slot_drop(rig.all, left);
	fake_go_away(&rig.fake);
	sandboxes_provider_lost(rig.all);
	memset(rig.fake.templates, 0, sizeof(rig.fake.templates));
	rig_ready(&rig);
	rig_run(&rig);
	assert_true(rig.fake.templates[kept].defined);
	assert_int_equal(rig.fake.templates[kept].pool.min, 3);
	assert_false(rig.fake.templates[left].defined);
	slot_set_pool(rig.all, kept, NULL);
	rig_run(&rig);
	assert_int_equal(rig.fake.templates[kept].pool.min, 0);
	rig_close(&rig);
}

static void what_the_launcher_does_not_take_is_known_until_one_takes_it(void **state)
{
	struct recipe r = recipe(1);
	struct sandbox_rig rig;
	struct err err = { 0 };
	uint32_t id = 0;

	(void)state;
	rig_open(&rig);
	rig.fake.fail_in = 1;
	rig.fake.fail_with = EINVAL;
	assert_int_equal(slot_hold(rig.all, &r, &id, &err), 0);
	rig_run(&rig);
	assert_int_equal(slot_error(rig.all, id, &err), -EINVAL);
	assert_int_equal(err.code, EINVAL);
	slots_tell(rig.all); /* as to a new one */
	rig_run(&rig);
	assert_int_equal(slot_error(rig.all, id, &err), 0);
	assert_int_equal(slot_error(rig.all, TEMPLATE_MAX + 1, &err), 0);
	rig_close(&rig);
}

static void a_layer_goes_with_what_waits_on_it_but_not_from_under_its_holders(void **state)
{
	struct recipe r = recipe(1);
	struct sandbox_rig rig;
	struct err err = { 0 };
	uint32_t id = 0;

	(void)state;
	rig_open(&rig);
	(void)snprintf(rig.fake.layers[0].id, sizeof(rig.fake.layers[0].id), LAYER);
	assert_int_equal(layers_push(&r.layers, LAYER), 0);
	assert_int_equal(slot_hold(rig.all, &r, &id, &err), 0);
	rig_run(&rig);
	slots_forget_layer(rig.all, LAYER);
	rig_run(&rig);
	assert_true(rig.fake.templates[id].defined);
	slot_drop(rig.all, id);
	slots_forget_layer(rig.all, LAYER);
	rig_run(&rig);
	assert_false(rig.fake.templates[id].defined);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_recipe_has_one_number_and_keeps_it_while_nobody_else_wants_it),
		cmocka_unit_test(
			when_all_are_held_another_is_refused_and_the_first_let_go_is_given_away),
		cmocka_unit_test(another_launcher_is_told_of_what_is_held_and_of_nothing_else),
		cmocka_unit_test(what_the_launcher_does_not_take_is_known_until_one_takes_it),
		cmocka_unit_test(a_layer_goes_with_what_waits_on_it_but_not_from_under_its_holders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
