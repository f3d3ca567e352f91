/* Sandboxes of users' templates over the fake provider: what starts, when it is ready, what waits.
 */
#include "check.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "sandbox/pool.h"
#include "sandbox/registry.h"
#include "sandbox/slot.h"
#include "sandbox/snapshot.h"
#include "sandbox/template_alias.h"
#include "sandbox/template_own.h"
#include "sandbox_rig.h"

struct kept {
	int calls;
	char id[ID_LEN + 1], name[OBJECT_NAME_MAX + 1];
	struct err err;
};

static void on_kept(void *user, struct object *o, const struct err *err)
{
	struct kept *k = user;

	k->calls++;
	k->err = err ? *err : (struct err){ 0 };
	if (o) {
		(void)str_copy(k->id, sizeof(k->id), o->id);
		(void)str_copy(k->name, sizeof(k->name), o->name);
	}
}

static struct kept make_template(struct sandbox_rig *rig, const struct makeup *m,
				 const char *snapshot)
{
	struct template_wish wish = { .owner = "ann",
				      .name = "web",
				      .from = snapshot[0] ? "" : "bash",
				      .snapshot = snapshot,
				      .said.make = *m };
	struct kept k = { 0 };

	template_create(rig->all, &wish, on_kept, &k);
	rig_run(rig);
	assert_int_equal(k.calls, 1);
	assert_int_equal(k.err.code, 0);
	return k;
}

/* The create is under way, and its box was sent the start command: its id there. */
static uint32_t begin(struct sandbox_rig *rig, struct told *t, struct fake_box **ret)
{
	struct sandbox_request req = rig_request("one");
	struct rd payload;
	uint32_t id;

	req.template = "web";
	sandbox_create(rig->all, &req, rig_told, t);
	rig_run(rig);
	assert_int_equal(t->calls, 0);
	*ret = &rig->fake.boxes[0];
	id = rig_expect(rig, *ret, G_EXEC, &payload);
	return id;
}

static void start(struct sandbox_rig *rig, struct fake_box *box, uint32_t id)
{
	rig_say_started(box, id, 7);
	rig_run(rig);
}

static void nobody_has_the_sandbox_before_it_is_ready(void **state)
{
	struct sandbox_rig *rig = *state;
	struct makeup m = { .start = { .command = "serve", .ready_command = "check" } };
	struct told t = { 0 };
	struct fake_box *box;
	struct rd payload;
	uint32_t id, check;

	(void)make_template(rig, &m, "");
	id = begin(rig, &t, &box);
	start(rig, box, id);
	check = rig_expect(rig, box, G_EXEC, &payload);
	start(rig, box, check);
	assert_int_equal(t.calls, 0);
	assert_int_equal(rig_row_state(rig, box->tag, NULL), -ENOENT);
	rig_say_exit(box, check, 0, 0);
	rig_run(rig);
	assert_int_equal(t.calls, 1);
	assert_int_equal(t.err.code, 0);
	assert_int_equal(rig_row_state(rig, t.id, NULL), SANDBOX_RUNNING);
	assert_string_equal(t.sb->template, "web:1");
	assert_string_equal(t.sb->kit.runtime, "bash");
}

static void a_start_that_fails_leaves_nothing(void **state)
{
	struct sandbox_rig *rig = *state;
	struct makeup m = { .start = { .command = "serve", .ready_command = "check" } };
	struct told t = { 0 };
	struct fake_box *box;
	uint32_t id;

	(void)make_template(rig, &m, "");
	id = begin(rig, &t, &box);
	rig_say_started(box, id, 7);
	rig_say_output(box, id, 1, 0, "no\ndb", 5);
	rig_say_exit(box, id, 3, 0);
	rig_run(rig);
	assert_int_equal(t.calls, 1);
	assert_int_equal(t.err.code, ECANCELED);
	assert_non_null(strstr(t.err.text, "exit code 3: no db"));
	rig_assert_nothing_left(rig);
}

static void a_box_that_dies_on_the_way_is_told(void **state)
{
	struct sandbox_rig *rig = *state;
	struct makeup m = { .start = { .command = "serve", .ready_command = "check" } };
	struct told t = { 0 };
	struct fake_box *box;
	uint32_t id;

	(void)make_template(rig, &m, "");
	id = begin(rig, &t, &box);
	start(rig, box, id);
	fake_kill(&rig->fake, box->id, 9);
	rig_run(rig);
	assert_int_equal(t.calls, 1);
	assert_int_equal(t.err.code, EREMOTEIO);
	rig_assert_nothing_left(rig);
}

static void who_is_not_wanted_any_more_need_not_become_ready(void **state)
{
	struct sandbox_rig *rig = *state;
	struct makeup m = { .start = { .command = "serve", .ready_command = "check" } };
	struct told t = { 0 }, gone = { 0 };
	struct fake_box *box;
	uint32_t id;

	(void)make_template(rig, &m, "");
	id = begin(rig, &t, &box);
	start(rig, box, id);
	sandbox_delete(sandboxes_find(rig->all, "one", "ann"), "deleted", rig_told, &gone);
	rig_run(rig);
	assert_int_equal(t.calls, 1);
	assert_int_equal(t.err.code, ECANCELED);
	assert_int_equal(gone.calls, 1);
	assert_int_equal(gone.err.code, 0);
	rig_assert_nothing_left(rig);
}

static void a_daemon_that_ends_on_the_way_leaves_a_box_of_nobody(void **state)
{
	struct sandbox_rig *rig = *state;
	struct makeup m = { .start = { .command = "serve", .ready_command = "check" } };
	struct told t = { 0 };
	struct fake_box *box;
	uint32_t id;

	(void)make_template(rig, &m, "");
	id = begin(rig, &t, &box);
	start(rig, box, id);
	rig_death(rig);
	assert_int_equal(t.calls, 0);
	rig_birth(rig);
	rig_ready(rig);
	rig_run(rig);
	rig_assert_nothing_left(rig);
}

static void a_job_of_the_service_starts_nothing(void **state)
{
	struct sandbox_rig *rig = *state;
	struct makeup m = { .start = { .command = "serve", .ready_command = "check" } };
	struct sandbox_request req = rig_request("one");
	struct told t = { 0 };

	(void)make_template(rig, &m, "");
	req.template = "web";
	req.is_internal = true;
	sandbox_create(rig->all, &req, rig_told, &t);
	rig_run(rig);
	assert_int_equal(t.calls, 1);
	assert_int_equal(t.err.code, 0);
	rig_expect_nothing(rig, &rig->fake.boxes[0]);
}

/* ---- pools ---- */

static uint32_t defined_with(const struct sandbox_rig *rig, const char *layer)
{
	for (uint32_t i = 1; i <= TEMPLATE_MAX; i++)
		if (rig->fake.templates[i].defined && rig->fake.templates[i].n_layers == 1 &&
		    strcmp(rig->fake.templates[i].layers[0], layer) == 0)
			return i;
	return 0;
}

static struct kept snapshot(struct sandbox_rig *rig, struct sandbox *sb)
{
	struct kept k = { 0 };

	snapshot_create(sb, "", on_kept, &k);
	rig_run(rig);
	assert_int_equal(k.err.code, 0);
	return k;
}

static void layer_of(struct sandbox_rig *rig, const char *name, char dst[ID_LEN + 1])
{
	const struct template_own *t = template_own_find(rig->all, "ann", name)->data;

	memcpy(dst, t->layers.ids[0], ID_LEN + 1);
}

static void a_pool_follows_the_version_that_its_name_stands_for(void **state)
{
	struct sandbox_rig *rig = *state;
	struct sandbox *sb = rig_create(rig, "src");
	struct makeup none = { 0 };
	struct pool_wish wish = pool_defaults;
	char first[ID_LEN + 1], second[ID_LEN + 1];
	struct kept k = { 0 }, taken;
	uint32_t slot;

	(void)make_template(rig, &none, snapshot(rig, sb).id);
	layer_of(rig, "web:1", first);
	wish.name = "mine";
	wish.runtime = "web";
	wish.owner = "ann";
	wish.min = wish.max = 2;
	pool_create(rig->all, &wish, on_kept, &k);
	rig_run(rig);
	assert_int_equal(k.err.code, 0);
	slot = defined_with(rig, first);
	assert_true(slot > 0);
	assert_int_equal(rig->fake.templates[slot].pool.min, 2);
	taken = snapshot(rig, sb);
	(void)make_template(rig, &none, taken.id);
	layer_of(rig, "web:2", second);
	slot = defined_with(rig, second);
	assert_true(slot > 0);
	assert_int_equal(rig->fake.templates[slot].pool.min, 2);
	template_delete(rig->all, template_own_find(rig->all, "ann", "web:1")->id, on_kept, &k);
	rig_run(rig);
	assert_int_equal(k.err.code, 0);
	template_delete(rig->all, template_own_find(rig->all, "ann", "web:2")->id, on_kept, &k);
	rig_run(rig);
	assert_int_equal(rig->fake.templates[slot].pool.max, 0); /* nothing waits unasked */
	objects_remove(rig->all->objects[OBJECTS_SNAPSHOT], taken.id, on_kept, &k);
	rig_run(rig);
	assert_int_equal(defined_with(rig, second), 0); /* and nothing keeps its layer in use */
	assert_null(fake_find_layer(&rig->fake, second));
}

static void an_alias_keeps_its_version(void **state)
{
	struct sandbox_rig *rig = *state;
	struct makeup none = { 0 };
	struct kept one = make_template(rig, &none, ""), k = { 0 };

	assert_string_equal(one.name, "web:1");
	assert_string_equal(make_template(rig, &none, "").name, "web:2");
	alias_put(rig->all, "ann", "web", "prod", 1, on_kept, &k);
	template_delete(rig->all, one.id, on_kept, &k); /* while it is being written, too */
	assert_int_equal(k.err.code, EBUSY);
	rig_run(rig);
	assert_ptr_equal(template_own_find(rig->all, "ann", "web:prod"),
			 template_own_find(rig->all, "ann", "web:1"));
	template_delete(rig->all, one.id, on_kept, &k);
	assert_int_equal(k.err.code, EBUSY);
	alias_put(rig->all, "ann", "web", "prod", 2, on_kept, &k);
	rig_run(rig);
	template_delete(rig->all, one.id, on_kept, &k);
	alias_put(rig->all, "ann", "web", "old", 1, on_kept, &k); /* it is on its way out */
	assert_int_equal(k.err.code, EBUSY);
	rig_run(rig);
	assert_null(template_own_find(rig->all, "ann", "web:1"));
	rig_death(rig);
	rig_birth(rig);
	assert_non_null(template_own_find(rig->all, "ann", "web:prod"));
	assert_null(template_own_find(rig->all, "bob", "web:prod"));
	rig_ready(rig);
	rig_run(rig);
}

static int open_rig(void **state)
{
	static struct sandbox_rig rig;

	rig_open(&rig);
	*state = &rig;
	return 0;
}

static int close_rig(void **state)
{
	rig_close(*state);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_rig, close_rig)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nobody_has_the_sandbox_before_it_is_ready),
		TEST(a_start_that_fails_leaves_nothing),
		TEST(a_box_that_dies_on_the_way_is_told),
		TEST(who_is_not_wanted_any_more_need_not_become_ready),
		TEST(a_daemon_that_ends_on_the_way_leaves_a_box_of_nobody),
		TEST(a_job_of_the_service_starts_nothing),
		TEST(a_pool_follows_the_version_that_its_name_stands_for),
		TEST(an_alias_keeps_its_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
