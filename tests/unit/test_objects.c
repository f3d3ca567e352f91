#include "check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault.h"
#include "sandbox/objects.h"
#include "sandbox/quota.h"
#include "sandbox/registry.h"
#include "sandbox_rig.h"

/* A kind of the test's own: its text is "{bytes}", and all that changes is written down. */
struct thing {
	uint64_t bytes;
};

static char history[512];

static int parse_thing(const char *text, void **ret)
{
	struct thing *t;
	unsigned bytes;

	if (sscanf(text, "{%u}", &bytes) != 1)
		return -EINVAL;
	t = malloc(sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->bytes = bytes;
	*ret = t;
	return 0;
}

static void note(struct sandboxes *all, void *before, void *now)
{
	size_t at = strlen(history);
	const struct thing *a = before, *b = now;

	(void)all;
	(void)snprintf(history + at, sizeof(history) - at, "%d>%d ", a ? (int)a->bytes : -1,
		       b ? (int)b->bytes : -1);
}

static uint64_t bytes_of(const void *data)
{
	return ((const struct thing *)data)->bytes;
}

static const struct object_kind kind = {
	.name = "thing",
	.noun = "thing",
	.max = 5,
	.owner_max = 3,
	.parse = parse_thing,
	.free = free,
	.changed = note,
	.bytes = bytes_of,
};

struct object_told {
	int calls;
	struct object *o;
	struct err err;
};

static void on_object(void *user, struct object *o, const struct err *err)
{
	struct object_told *t = user;

	t->calls++;
	t->o = o;
	t->err = err ? *err : (struct err){ 0 };
	assert_true(!err || !o);
}

struct play {
	struct sandbox_rig rig;
	struct objects *t;
};

static void load(struct play *p)
{
	struct err err = { 0 };

	assert_int_equal(objects_create(p->rig.all, &kind, &p->t, &err), 0);
}

static void play_open(struct play *p, uint64_t disk)
{
	memset(p, 0, sizeof(*p));
	history[0] = '\0';
	rig_open(&p->rig);
	p->rig.all->settings.quota.v[QUOTA_DISK] = disk;
	load(p);
}

static void play_close(struct play *p)
{
	p->t = objects_free(p->t);
	rig_close(&p->rig);
}

static struct object_told add(struct play *p, const char *owner, const char *name, const char *text)
{
	struct object_put put = { .owner = owner, .name = name, .text = text };
	struct object_told told = { 0 };

	objects_add(p->t, &put, on_object, &told);
	rig_run(&p->rig);
	assert_int_equal(told.calls, 1);
	return told;
}

static size_t count(struct play *p, const char *owner)
{
	struct object_filter f = { .owner = owner };
	struct object *got[8];
	bool more;

	return objects_list(p->t, &f, got, 8, &more);
}

/* ---- */

static void nothing_is_seen_before_the_store_has_it(void **state)
{
	struct object_put put = { .owner = "ann", .name = "a", .text = "{1}" };
	struct object_told first = { 0 }, second = { 0 };
	struct play p;

	(void)state;
	play_open(&p, 0);
	p.rig.faults.is_held = true;
	objects_add(p.t, &put, on_object, &first);
	assert_int_equal(first.calls, 0);
	assert_null(objects_by_name(p.t, "ann", "a"));
	assert_int_equal(count(&p, NULL), 0);
	objects_add(p.t, &put, on_object, &second); /* but its name is taken */
	assert_int_equal(second.err.code, EEXIST);
	p.rig.faults.is_held = false;
	rig_run(&p.rig);
	assert_int_equal(first.calls, 1);
	assert_ptr_equal(objects_find(p.t, "a", "ann"), first.o);
	assert_null(objects_find(p.t, "a", "bob"));
	assert_null(objects_find(p.t, first.o->id, "bob"));
	assert_ptr_equal(objects_find(p.t, first.o->id, NULL), first.o);
	assert_string_equal(history, "-1>1 ");
	play_close(&p);
}

static void what_the_store_refuses_leaves_neither_name_nor_charge(void **state)
{
	static const int codes[] = { ENOSPC, EIO, EROFS };
	struct object_told told;
	struct play p;

	(void)state;
	play_open(&p, 100);
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		p.rig.faults.fail_in = 1;
		p.rig.faults.fail_with = codes[i];
		told = add(&p, "ann", "a", "{100}");
		assert_int_equal(told.err.code, codes[i]);
		assert_int_equal(count(&p, NULL), 0);
	}
	p.rig.faults.refuse_in = 1; /* at once, not later */
	assert_int_equal(add(&p, "ann", "a", "{100}").err.code, EAGAIN);
	assert_string_equal(history, "");
	assert_int_equal(add(&p, "ann", "a", "{100}").err.code, 0); /* all of the quota is there */
	play_close(&p);
}

static void a_change_that_fails_leaves_what_was(void **state)
{
	struct object_told told = { 0 }, other = { 0 };
	char id[ID_LEN + 1];
	struct play p;

	(void)state;
	play_open(&p, 0);
	(void)snprintf(id, sizeof(id), "%s", add(&p, "ann", "a", "{1}").o->id);
	p.rig.faults.fail_in = 1;
	p.rig.faults.fail_with = ENOSPC;
	objects_change(p.t, id, 7, "{2}", on_object, &told);
	objects_change(p.t, id, 8, "{3}", on_object, &other); /* one after the other */
	rig_run(&p.rig);
	assert_int_equal(told.err.code, ENOSPC);
	assert_int_equal(other.err.code, EBUSY);
	assert_string_equal(objects_find(p.t, id, NULL)->text, "{1}");
	assert_int_equal(objects_find(p.t, id, NULL)->state, 0);
	objects_change(p.t, id, 7, "nonsense", on_object, &told);
	assert_int_equal(told.err.code, EINVAL);
	objects_change(p.t, id, 7, "{2}", on_object, &told);
	rig_run(&p.rig);
	assert_int_equal(told.err.code, 0);
	assert_string_equal(told.o->text, "{2}");
	assert_int_equal(told.o->state, 7);
	assert_string_equal(history, "-1>1 1>2 ");
	play_close(&p);
}

static void a_removal_that_fails_keeps_it_and_can_be_tried_again(void **state)
{
	struct object_told told = { 0 };
	char id[ID_LEN + 1];
	struct play p;

	(void)state;
	play_open(&p, 0);
	(void)snprintf(id, sizeof(id), "%s", add(&p, "ann", "a", "{1}").o->id);
	p.rig.faults.fail_in = 1;
	p.rig.faults.fail_with = EIO;
	objects_remove(p.t, id, on_object, &told);
	rig_run(&p.rig);
	assert_int_equal(told.err.code, EIO);
	assert_non_null(objects_find(p.t, "a", "ann"));
	objects_remove(p.t, id, on_object, &told);
	rig_run(&p.rig);
	assert_int_equal(told.err.code, 0);
	assert_null(objects_find(p.t, "a", "ann"));
	objects_remove(p.t, id, on_object, &told);
	assert_int_equal(told.err.code, ENOENT);
	assert_string_equal(history, "-1>1 1>-1 ");
	play_close(&p);
}

static void one_owner_and_all_together_have_limits(void **state)
{
	struct object_told told = { 0 };
	struct play p;

	(void)state;
	play_open(&p, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(add(&p, "ann", "", "{1}").err.code, 0); /* none has a name */
	told = add(&p, "ann", "", "{1}");
	assert_int_equal(told.err.code, EDQUOT);
	assert_string_equal(told.err.text, "this owner has 3 things already, the limit");
	assert_int_equal(add(&p, "bob", "x", "{1}").err.code, 0);
	assert_int_equal(add(&p, "bob", "y", "{1}").err.code, 0);
	told = add(&p, "cleo", "z", "{1}");
	assert_int_equal(told.err.code, EDQUOT);
	assert_string_equal(told.err.text, "there are 5 things already, the limit");
	objects_remove(p.t, objects_find(p.t, "x", "bob")->id, on_object, &told);
	rig_run(&p.rig);
	assert_int_equal(add(&p, "cleo", "z", "{1}").err.code, 0);
	play_close(&p);
}

static void what_is_kept_counts_on_its_owner_s_disk_alone(void **state)
{
	struct object_told told = { 0 };
	struct play p;

	(void)state;
	play_open(&p, 100);
	assert_int_equal(add(&p, "ann", "a", "{60}").err.code, 0);
	assert_int_equal(add(&p, "ann", "b", "{41}").err.code, QUOTA_ERRNO);
	assert_int_equal(add(&p, "bob", "b", "{100}").err.code, 0);
	assert_int_equal(add(&p, "ann", "b", "{40}").err.code, 0);
	objects_remove(p.t, objects_find(p.t, "a", "ann")->id, on_object, &told);
	rig_run(&p.rig);
	assert_int_equal(add(&p, "ann", "c", "{60}").err.code, 0);
	assert_int_equal(add(&p, "ann", "d", "{1}").err.code, QUOTA_ERRNO);
	play_close(&p);
}

static void names_and_texts_that_do_not_fit_are_refused(void **state)
{
	char name[OBJECT_NAME_MAX + 2], owner[OBJECT_OWNER_MAX + 2];
	struct play p;

	(void)state;
	play_open(&p, 0);
	memset(name, 'n', sizeof(name));
	name[OBJECT_NAME_MAX + 1] = '\0';
	memset(owner, 'o', sizeof(owner));
	owner[OBJECT_OWNER_MAX + 1] = '\0';
	assert_int_not_equal(add(&p, "ann", name, "{1}").err.code, 0);
	assert_int_not_equal(add(&p, owner, "a", "{1}").err.code, 0);
	assert_int_equal(add(&p, "ann", "a", "what").err.code, EINVAL);
	assert_int_equal(count(&p, NULL), 0);
	assert_int_equal(add(&p, owner + 1, name + 1, "{1}").err.code, 0); /* the longest that do */
	assert_non_null(objects_by_name(p.t, owner + 1, name + 1));
	play_close(&p);
}

static void another_life_finds_them_and_leaves_out_what_is_damaged(void **state)
{
	struct object_row bad = { .kind = "thing",
				  .id = "bbbbbbbbbbbbbbbbbbbb",
				  .owner = "ann",
				  .name = "bad",
				  .text = "{}",
				  .created_ms = 1 };
	struct object_filter f = { .owner = "ann" };
	struct object *got[4];
	struct play p;
	bool more;

	(void)state;
	play_open(&p, 100);
	assert_int_equal(add(&p, "ann", "a", "{60}").err.code, 0);
	p.rig.wall_ms += 5;
	assert_int_equal(add(&p, "ann", "b", "{30}").err.code, 0);
	assert_int_equal(store_put_object(&p.rig.store, &bad, NULL, NULL), 0);
	rig_run(&p.rig);
	p.t = objects_free(p.t);
	rig_death(&p.rig);
	rig_birth(&p.rig);
	p.rig.all->settings.quota.v[QUOTA_DISK] = 100;
	history[0] = '\0';
	load(&p);
	rig_ready(&p.rig);
	rig_run(&p.rig);
	assert_string_equal(history, "-1>60 -1>30 ");
	assert_null(objects_by_name(p.t, "ann", "bad"));
	assert_int_equal(objects_list(p.t, &f, got, 1, &more), 1);
	assert_true(more);
	assert_string_equal(got[0]->name, "b"); /* the newest */
	f.before_ms = got[0]->created_ms;
	f.before_id = got[0]->id;
	assert_int_equal(objects_list(p.t, &f, got, 4, &more), 1);
	assert_false(more);
	assert_string_equal(got[0]->name, "a");
	assert_int_equal(add(&p, "ann", "c", "{11}").err.code, QUOTA_ERRNO); /* still charged */
	assert_int_equal(add(&p, "ann", "c", "{10}").err.code, 0);
	play_close(&p);
}

static void without_memory_nothing_is_added_and_nothing_is_charged(void **state)
{
	struct object_put put = { .owner = "ann", .name = "a", .text = "{100}" };
	struct object_told told;
	struct play p;

	(void)state;
	play_open(&p, 100);
	for (size_t n = 1;; n++) {
		bool is_failed;

		told = (struct object_told){ 0 };
		fault_arm(n);
		objects_add(p.t, &put, on_object, &told);
		is_failed = fault_disarm();
		rig_run(&p.rig);
		assert_int_equal(told.calls, 1);
		if (told.err.code == 0)
			break;
		assert_true(is_failed);
		assert_int_equal(count(&p, NULL), 0);
	}
	assert_int_equal(count(&p, NULL), 1);
	play_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_seen_before_the_store_has_it),
		cmocka_unit_test(what_the_store_refuses_leaves_neither_name_nor_charge),
		cmocka_unit_test(a_change_that_fails_leaves_what_was),
		cmocka_unit_test(a_removal_that_fails_keeps_it_and_can_be_tried_again),
		cmocka_unit_test(one_owner_and_all_together_have_limits),
		cmocka_unit_test(what_is_kept_counts_on_its_owner_s_disk_alone),
		cmocka_unit_test(names_and_texts_that_do_not_fit_are_refused),
		cmocka_unit_test(another_life_finds_them_and_leaves_out_what_is_damaged),
		cmocka_unit_test(without_memory_nothing_is_added_and_nothing_is_charged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
