/* Boxes for what is in volumes: who gets one, who gives way, what is left. */
#include "check.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "sandbox/registry.h"
#include "sandbox/volume.h"
#include "sandbox/volume_box.h"
#include "sandbox_rig.h"

#define MIB (1ull << 20)

static void on_object(void *user, struct object *o, const struct err *err)
{
	assert_null(err);
	if (o && user)
		memcpy(user, o->id, ID_LEN + 1);
}

static void make_volume(struct sandbox_rig *rig, const char *owner, const char *name,
			char ret_id[ID_LEN + 1])
{
	volume_create(rig->all, owner, name, 60 * MIB, on_object, ret_id);
	rig_run(rig);
}

static void begin(struct sandbox_rig *rig, const char *id, struct told *t)
{
	*t = (struct told){ 0 };
	volume_open(rig->all, id, "bash", rig_told, t);
	assert_int_equal(t->calls, 0); /* never from inside the call */
}

static struct told open_volume(struct sandbox_rig *rig, const char *id)
{
	struct told t;

	begin(rig, id, &t);
	rig_run(rig);
	assert_int_equal(t.calls, 1);
	return t;
}

static void want(struct sandbox_rig *rig, const char *volume, struct told *t)
{
	struct volume_mounts mounts = { .n = 1 };
	struct sandbox_request req = rig_request("");

	(void)str_copy(mounts.items[0].name, sizeof(mounts.items[0].name), volume);
	(void)str_copy(mounts.items[0].path, sizeof(mounts.items[0].path), "/mnt/v");
	req.volumes = &mounts;
	*t = (struct told){ 0 };
	sandbox_create(rig->all, &req, rig_told, t);
}

static size_t count_live(const struct sandbox_rig *rig)
{
	size_t n = 0;

	LIST_FOREACH (&rig->all->sandboxes, sb, struct sandbox, node)
		n += state_is_live(sb->state);
	return n;
}

static void a_volume_that_nobody_has_gets_a_box_of_our_own(void **state)
{
	struct told a, b, later;
	struct sandbox_rig rig;
	char id[ID_LEN + 1];

	(void)state;
	rig_open(&rig);
	make_volume(&rig, "ann", "a", id);
	begin(&rig, id, &a);
	begin(&rig, id, &b); /* the first is on its way */
	rig_run(&rig);
	assert_int_equal(a.err.code, 0);
	assert_string_equal(a.id, b.id);
	later = open_volume(&rig, id);
	assert_string_equal(later.id, a.id);
	assert_true(later.sb->is_internal);
	assert_string_equal(later.sb->owner, "ann");
	assert_string_equal(volume_path(later.sb, id), VOLUME_BOX_PATH);
	assert_null(volume_holder(rig.all, id));
	rig_pass(&rig, VOLUME_BOX_IDLE_MS + 1);
	rig_run(&rig);
	rig_assert_nothing_left(&rig);
	rig_close(&rig);
}

static void a_box_gives_way_to_a_sandbox_which_is_then_asked(void **state)
{
	struct told box, sb, again;
	struct sandbox_rig rig;
	char id[ID_LEN + 1];

	(void)state;
	rig_open(&rig);
	make_volume(&rig, "ann", "a", id);
	box = open_volume(&rig, id);
	want(&rig, "a", &sb);
	begin(&rig, id, &again); /* the volume is the sandbox's from now on */
	rig_run(&rig);
	assert_int_equal(sb.err.code, 0);
	assert_int_equal(again.err.code, EBUSY);
	assert_non_null(strstr(again.err.text, sb.id));
	assert_null(sandboxes_find(rig.all, box.id, NULL));
	assert_int_equal(count_live(&rig), 1);
	again = open_volume(&rig, id);
	assert_string_equal(again.id, sb.id);
	assert_string_equal(volume_path(again.sb, id), "/mnt/v");
	sandbox_pause(again.sb, rig_told, &sb);
	rig_run(&rig);
	again = open_volume(&rig, id);
	assert_int_equal(again.err.code, EBUSY);
	rig_close(&rig);
}

static void a_box_that_is_being_made_gives_way_too(void **state)
{
	struct told box, sb;
	struct sandbox_rig rig;
	char id[ID_LEN + 1];

	(void)state;
	rig_open(&rig);
	make_volume(&rig, "ann", "a", id);
	begin(&rig, id, &box);
	want(&rig, "a", &sb);
	rig_run(&rig);
	assert_int_equal(box.calls, 1);
	assert_int_equal(sb.calls, 1);
	assert_int_equal(sb.err.code, 0);
	assert_int_equal(count_live(&rig), 1);
	rig_close(&rig);
}

static void an_owner_has_so_many_boxes_and_the_idle_one_goes(void **state)
{
	char ids[VOLUME_BOXES_OWNER_MAX + 1][ID_LEN + 1];
	struct told first = { 0 }, t;
	struct sandbox_rig rig;
	char name[8];

	(void)state;
	rig_open(&rig);
	for (unsigned i = 0; i <= VOLUME_BOXES_OWNER_MAX; i++) {
		(void)str_format(name, sizeof(name), "v%u", i);
		make_volume(&rig, "ann", name, ids[i]);
		rig_pass(&rig, 10);
		t = open_volume(&rig, ids[i]);
		assert_int_equal(t.err.code, 0);
		if (i == 0)
			first = t;
	}
	assert_int_equal(count_live(&rig), VOLUME_BOXES_OWNER_MAX);
	assert_null(sandboxes_find(rig.all, first.id, NULL));
	LIST_FOREACH (&rig.all->sandboxes, sb, struct sandbox, node)
		sb->n_file_ops++; /* all of them are at work */
	t = open_volume(&rig, ids[0]);
	assert_int_equal(t.err.code, EDQUOT);
	make_volume(&rig, "bob", "his", ids[0]);
	t = open_volume(&rig, ids[0]);
	assert_int_equal(t.err.code, 0);
	LIST_FOREACH (&rig.all->sandboxes, sb, struct sandbox, node)
		sb->n_file_ops = 0;
	rig_close(&rig);
}

static void a_volume_is_deleted_with_its_box(void **state)
{
	struct sandbox_rig rig;
	char id[ID_LEN + 1];
	struct told t;

	(void)state;
	rig_open(&rig);
	make_volume(&rig, "ann", "a", id);
	(void)open_volume(&rig, id);
	volume_delete(rig.all, id, on_object, NULL);
	rig_run(&rig);
	rig_assert_nothing_left(&rig);
	t = open_volume(&rig, id);
	assert_int_equal(t.err.code, ENOENT);
	t = open_volume(&rig, "longer than any id of ours could ever be");
	assert_int_equal(t.err.code, EINVAL);
	rig_close(&rig);
}

static void nothing_is_left_after_a_crash(void **state)
{
	struct told t, half;
	struct sandbox_rig rig;
	char id[ID_LEN + 1];

	(void)state;
	rig_open(&rig);
	make_volume(&rig, "ann", "a", id);
	(void)open_volume(&rig, id);
	want(&rig, "a", &half); /* and somebody waits for its end */
	rig_death(&rig);
	rig_birth(&rig);
	rig_ready(&rig);
	rig_run(&rig);
	rig_assert_nothing_left(&rig);
	t = open_volume(&rig, id);
	assert_int_equal(t.err.code, 0);
	rig_close(&rig);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_volume_that_nobody_has_gets_a_box_of_our_own),
		cmocka_unit_test(a_box_gives_way_to_a_sandbox_which_is_then_asked),
		cmocka_unit_test(a_box_that_is_being_made_gives_way_too),
		cmocka_unit_test(an_owner_has_so_many_boxes_and_the_idle_one_goes),
		cmocka_unit_test(a_volume_is_deleted_with_its_box),
		cmocka_unit_test(nothing_is_left_after_a_crash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
