#include "check.h"

#include <errno.h>
#include <string.h>

#include "sandbox/pool.h"
#include "sandbox/registry.h"
#include "sandbox/template.h"
#include "sandbox_rig.h"

struct pool_told {
	int calls;
	struct object *o;
	struct err err;
};

static void on_pool(void *user, struct object *o, const struct err *err)
{
	struct pool_told *t = user;

	t->calls++;
	t->o = o;
	t->err = err ? *err : (struct err){ 0 };
}

static struct pool_told create(struct sandbox_rig *rig, const char *name, const char *runtime,
			       uint32_t min)
{
	struct pool_wish wish = pool_defaults;
	struct pool_told t = { 0 };

	wish.name = name;
	wish.runtime = runtime;
	wish.min = min;
	wish.max = 5;
	pool_create(rig->all, &wish, on_pool, &t);
	rig_run(rig);
	assert_int_equal(t.calls, 1);
	return t;
}

/* A launcher that knows the built-in templates and nothing else: whoever starts one tells it of
 * them. */
static void renew(struct sandbox_rig *rig)
{
	const struct template_row *rows;
	size_t n;

	memset(rig->fake.templates, 0, sizeof(rig->fake.templates));
	rows = template_rows(&n);
	for (size_t i = 0; i < n; i++)
		rig->fake.templates[rows[i].id].defined = true;
}

/* Whether the launcher was told to keep so many, of anything. */
static bool keeps(const struct sandbox_rig *rig, uint32_t n)
{
	for (size_t i = 1; i <= TEMPLATE_MAX; i++)
		if (rig->fake.templates[i].pool.min == n)
			return true;
	return false;
}

static void the_launcher_hears_of_a_pool_when_the_store_has_it(void **state)
{
	struct sandbox_rig rig;

	(void)state;
	rig_open(&rig);
	renew(&rig);
	rig.faults.fail_in = 1;
	rig.faults.fail_with = ENOSPC;
	assert_int_equal(create(&rig, "web", "node", 3).err.code, ENOSPC);
	assert_null(pool_find(rig.all, "web"));
	assert_false(keeps(&rig, 3));
	assert_int_equal(create(&rig, "web", "node", 3).err.code, 0);
	assert_non_null(pool_find(rig.all, "web"));
	assert_true(keeps(&rig, 3));
	rig_close(&rig);
}

static void a_template_has_one_pool_and_a_name_is_there_once(void **state)
{
	struct sandbox_rig rig;

	(void)state;
	rig_open(&rig);
	renew(&rig);
	assert_int_equal(create(&rig, "web", "node", 1).err.code, 0);
	assert_int_equal(create(&rig, "web", "python", 1).err.code, EEXIST);
	assert_int_equal(create(&rig, "other", "node", 1).err.code, EEXIST);
	assert_int_equal(create(&rig, "none", "cobol", 1).err.code, EINVAL);
	assert_int_equal(create(&rig, "large", "python", 9).err.code, EINVAL); /* above its max */
	assert_int_equal(create(&rig, "other", "python", 1).err.code, 0);
	rig_close(&rig);
}

static void a_change_or_a_removal_that_the_store_refuses_leaves_the_pool(void **state)
{
	struct pool_patch patch = pool_patch_defaults;
	struct pool_told t = { 0 };
	struct sandbox_rig rig;
	char id[ID_LEN + 1];

	(void)state;
	rig_open(&rig);
	renew(&rig);
	memcpy(id, create(&rig, "web", "node", 2).o->id, sizeof(id));
	patch.min = 4;
	rig.faults.fail_in = 1;
	rig.faults.fail_with = EIO;
	pool_change(rig.all, id, &patch, on_pool, &t);
	rig_run(&rig);
	assert_int_equal(t.err.code, EIO);
	assert_true(keeps(&rig, 2));
	rig.faults.fail_in = 1;
	pool_delete(rig.all, id, on_pool, &t);
	rig_run(&rig);
	assert_int_equal(t.err.code, EIO);
	assert_true(keeps(&rig, 2));
	pool_change(rig.all, id, &patch, on_pool, &t);
	rig_run(&rig);
	assert_int_equal(t.err.code, 0);
	assert_true(keeps(&rig, 4));
	pool_delete(rig.all, id, on_pool, &t);
	rig_run(&rig);
	assert_int_equal(t.err.code, 0);
	assert_false(keeps(&rig, 4));
	rig_close(&rig);
}

static void another_life_and_another_launcher_know_it(void **state)
{
	struct sandbox_rig rig;

	(void)state;
	rig_open(&rig);
	renew(&rig);
	assert_int_equal(create(&rig, "web", "node", 3).err.code, 0);
	rig_death(&rig);
	renew(&rig);
	rig_birth(&rig);
	rig_ready(&rig);
	rig_run(&rig);
	assert_non_null(pool_find(rig.all, "web"));
	assert_true(keeps(&rig, 3));
	fake_go_away(&rig.fake);
	sandboxes_provider_lost(rig.all);
	renew(&rig);
	rig_ready(&rig);
	rig_run(&rig);
	assert_true(keeps(&rig, 3));
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_launcher_hears_of_a_pool_when_the_store_has_it),
		cmocka_unit_test(a_template_has_one_pool_and_a_name_is_there_once),
		cmocka_unit_test(a_change_or_a_removal_that_the_store_refuses_leaves_the_pool),
		cmocka_unit_test(another_life_and_another_launcher_know_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
