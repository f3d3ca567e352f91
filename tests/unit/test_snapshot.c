/* Snapshots, forks, stop and start over the fake provider: which layers there are, and whose. */
#include "check.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "sandbox/registry.h"
#include "sandbox/snapshot.h"
#include "sandbox_rig.h"

struct kept { /* what an object_cb was given */
	int calls;
	char id[ID_LEN + 1];
	struct err err;
};

static void on_kept(void *user, struct object *o, const struct err *err)
{
	struct kept *k = user;

	k->calls++;
	if (err)
		k->err = *err;
	if (o)
		assert_int_equal(str_copy(k->id, sizeof(k->id), o->id), 0);
}

static struct kept snapshot(struct sandbox_rig *rig, struct sandbox *sb, const char *name)
{
	struct kept k = { 0 };

	snapshot_create(sb, name, on_kept, &k);
	rig_run(rig);
	assert_int_equal(k.calls, 1);
	return k;
}

static struct kept forget(struct sandbox_rig *rig, const char *id)
{
	struct kept k = { 0 };

	objects_remove(rig->all->objects[OBJECTS_SNAPSHOT], id, on_kept, &k);
	rig_run(rig);
	return k;
}

static size_t count_layers(const struct sandbox_rig *rig)
{
	size_t n = 0;

	for (size_t i = 0; i < FAKE_LAYERS_MAX; i++)
		n += rig->fake.layers[i].id[0] != '\0';
	return n;
}

static struct told from_snapshot(struct sandbox_rig *rig, const char *name, const char *snapshot)
{
	struct sandbox_request req = rig_request(name);
	struct told t = { 0 };

	req.snapshot = snapshot;
	sandbox_create(rig->all, &req, rig_told, &t);
	rig_run(rig);
	assert_int_equal(t.calls, 1);
	return t;
}

static struct told end(struct sandbox_rig *rig, struct sandbox *sb)
{
	struct told t = { 0 };

	sandbox_delete(sb, "deleted", rig_told, &t);
	rig_run(rig);
	assert_int_equal(t.calls, 1);
	return t;
}

static struct told ask(struct sandbox_rig *rig, struct sandbox *sb,
		       void (*what)(struct sandbox *sb, sandbox_cb cb, void *user))
{
	struct told t = { 0 };

	what(sb, rig_told, &t);
	rig_run(rig);
	assert_int_equal(t.calls, 1);
	return t;
}

static void a_layer_stays_as_long_as_anybody_names_it(void **state)
{
	struct sandbox_rig rig;
	struct sandbox *sb;
	struct kept k;
	struct told t;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "a");
	k = snapshot(&rig, sb, "one");
	assert_int_equal(k.err.code, 0);
	assert_int_equal(count_layers(&rig), 1);
	t = from_snapshot(&rig, "b", "one");
	assert_int_equal(t.err.code, 0);
	assert_int_equal(rig_box(&rig, t.id)->n_layers, 1);
	assert_int_equal(forget(&rig, k.id).err.code, 0);
	assert_int_equal(count_layers(&rig), 1); /* b has it */
	assert_int_equal(from_snapshot(&rig, "c", "one").err.code, EINVAL);
	(void)end(&rig, sandboxes_find(rig.all, "b", "ann"));
	assert_int_equal(count_layers(&rig), 0);
	rig_close(&rig);
}

static void snapshots_and_their_layers_are_there_after_a_restart(void **state)
{
	struct sandbox_rig rig;
	struct kept k;

	(void)state;
	rig_open(&rig);
	k = snapshot(&rig, rig_create(&rig, "a"), "one");
	rig_death(&rig);
	rig_birth(&rig);
	rig_ready(&rig);
	rig_run(&rig);
	assert_int_equal(count_layers(&rig), 1);
	assert_int_equal(from_snapshot(&rig, "b", "one").err.code, 0);
	assert_int_equal(from_snapshot(&rig, "c", k.id).err.code, 0);
	rig_close(&rig);
}

static void a_layer_that_nobody_names_is_dropped_at_a_start(void **state)
{
	struct sandbox_rig rig;
	struct kept unused = { 0 };

	(void)state;
	rig_open(&rig);
	snapshot_create(rig_create(&rig, "a"), "x", on_kept, &unused);
	rig.faults = (struct store_faults){ .fail_in = 1, .fail_with = EIO, .is_held = true };
	while (count_layers(&rig) == 0) /* it is made, and the store does not know */
		assert_true(fake_step(&rig.fake));
	rig_death(&rig);
	rig.faults = (struct store_faults){ 0 };
	rig_birth(&rig);
	rig_ready(&rig);
	rig_run(&rig);
	assert_int_equal(count_layers(&rig), 0);
	rig_close(&rig);
}

static void a_snapshot_that_fails_leaves_nothing(void **state)
{
	struct sandbox_rig rig;
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "a");
	rig.fake.fail_in = 1;
	rig.fake.fail_with = EOPNOTSUPP;
	assert_int_equal(snapshot(&rig, sb, "one").err.code, EOPNOTSUPP);
	rig.faults.fail_in = 1;
	rig.faults.fail_with = ENOSPC;
	assert_int_equal(snapshot(&rig, sb, "one").err.code, ENOSPC);
	assert_int_equal(count_layers(&rig), 0);
	assert_int_equal(rig_state(sb), SANDBOX_RUNNING);
	assert_int_equal(snapshot(&rig, sb, "one").err.code, 0);
	assert_int_equal(snapshot(&rig, sb, "one").err.code, EEXIST);
	assert_int_equal(snapshot(&rig, sb, "No").err.code, EINVAL);
	assert_int_equal(count_layers(&rig), 1);
	rig_close(&rig);
}

static struct kept replace(struct sandbox_rig *rig, struct sandbox *sb, const char *name)
{
	struct kept k = { 0 };

	snapshot_replace(sb, name, on_kept, &k);
	rig_run(rig);
	assert_int_equal(k.calls, 1);
	return k;
}

static void a_snapshot_takes_anothers_place_or_leaves_it_as_it_was(void **state)
{
	struct sandbox_rig rig;
	struct kept first, second;
	struct sandbox *sb;
	char layer[ID_LEN + 1];
	struct object *o;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "a");
	first = replace(&rig, sb, "one"); /* there is none: it is made */
	assert_int_equal(first.err.code, 0);
	o = objects_find(rig.all->objects[OBJECTS_SNAPSHOT], first.id, "ann");
	memcpy(layer, ((struct snapshot *)o->data)->layers.ids[0], sizeof(layer));
	rig.faults.fail_in = 1;
	rig.faults.fail_with = ENOSPC;
	assert_int_equal(replace(&rig, sb, "one").err.code, ENOSPC);
	o = objects_find(rig.all->objects[OBJECTS_SNAPSHOT], first.id, "ann");
	assert_string_equal(((struct snapshot *)o->data)->layers.ids[0], layer);
	assert_int_equal(count_layers(&rig), 1);
	second = replace(&rig, sb, "one");
	assert_int_equal(second.err.code, 0);
	assert_string_equal(second.id, first.id);
	assert_int_equal(count_layers(&rig), 1); /* the other's is nobody's any more */
	assert_int_equal(replace(&rig, sb, "").err.code, 0);
	assert_int_equal(replace(&rig, sb, "").err.code,
			 0); /* without a name nothing is replaced */
	assert_int_equal(count_layers(&rig), 3);
	rig_close(&rig);
}

struct forked {
	int calls;
	size_t n;
	struct err err;
};

static void on_forked(void *user, struct sandbox *const *made, size_t n, const struct err *err)
{
	struct forked *f = user;

	(void)made;
	f->calls++;
	f->n = n;
	if (err)
		f->err = *err;
}

static struct forked fork_it(struct sandbox_rig *rig, struct sandbox *sb, uint32_t count,
			     const char *name)
{
	struct fork_request req = { .count = count, .name = name, .owner = "ann", .key_id = "" };
	struct forked f = { 0 };

	sandbox_fork(sb, &req, on_forked, &f);
	rig_run(rig);
	assert_int_equal(f.calls, 1);
	return f;
}

static void forks_share_one_layer_and_the_last_one_takes_it_along(void **state)
{
	struct sandbox_rig rig;
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "a");
	assert_int_equal(fork_it(&rig, sb, 3, "kid").n, 3);
	assert_int_equal(rig.fake.live, 4);
	assert_int_equal(count_layers(&rig), 1);
	for (const char *name = "123"; *name; name++) {
		char kid[] = { 'k', 'i', 'd', '-', *name, '\0' };

		assert_int_equal(count_layers(&rig), 1);
		(void)end(&rig, sandboxes_find(rig.all, kid, "ann"));
	}
	assert_int_equal(count_layers(&rig), 0);
	rig_close(&rig);
}

static void when_one_fork_fails_none_is_left(void **state)
{
	struct sandbox_rig rig;
	struct sandbox *sb;

	(void)state;
	for (unsigned nth = 1; nth <= 4; nth++) { /* the snapshot, or one of the claims */
		rig_open(&rig);
		sb = rig_create(&rig, "a");
		rig.fake.fail_in = nth;
		rig.fake.fail_with = ENOMEM;
		assert_int_equal(fork_it(&rig, sb, 3, "").err.code, ENOMEM);
		assert_int_equal(rig.fake.live, 1);
		assert_int_equal(count_layers(&rig), 0);
		assert_int_equal(rig_state(sb), SANDBOX_RUNNING);
		rig_close(&rig);
	}
}

static void a_stopped_sandbox_has_no_box_and_its_time_stands_still(void **state)
{
	struct sandbox_rig rig;
	struct sandbox_info info;
	struct sandbox *sb;
	uint64_t left;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "a");
	assert_int_equal(ask(&rig, sb, sandbox_suspend).state, SANDBOX_SUSPENDED);
	assert_int_equal(rig.fake.live, 0);
	assert_int_equal(count_layers(&rig), 1);
	sandbox_info(sb, &info);
	left = info.remaining_ms;
	assert_true(left > 0);
	rig_pass(&rig, 10 * left);
	assert_int_equal(rig_state(sb), SANDBOX_SUSPENDED);
	assert_int_equal(ask(&rig, sb, sandbox_start).state, SANDBOX_RUNNING);
	assert_int_equal(rig_box(&rig, sb->id)->n_layers, 1);
	sandbox_info(sb, &info);
	assert_int_equal(info.expires_ms, rig.wall_ms + (int64_t)left);
	assert_int_equal(ask(&rig, sb, sandbox_suspend).state, SANDBOX_SUSPENDED);
	assert_int_equal(count_layers(&rig), 2);
	assert_int_equal(end(&rig, sb).err.code, 0);
	assert_int_equal(count_layers(&rig), 0);
	rig_close(&rig);
}

static void a_death_at_any_step_of_a_stop_loses_nothing(void **state)
{
	struct sandbox_rig rig;
	char id[ID_LEN + 1];

	(void)state;
	for (unsigned steps = 0; steps < 6; steps++) {
		struct told t = { 0 };
		struct sandbox *sb;

		rig_open(&rig);
		sb = rig_create(&rig, "a");
		memcpy(id, sb->id, sizeof(id));
		sandbox_suspend(sb, rig_told, &t);
		for (unsigned i = 0; i < steps; i++) {
			(void)fake_step(&rig.fake);
			rig_turn(&rig);
		}
		rig_death(&rig);
		rig_birth(&rig);
		rig_ready(&rig);
		rig_run(&rig);
		sb = sandboxes_find(rig.all, id, "ann");
		assert_non_null(sb);
		/* Either its box is there, or its layer; never neither, and nothing else. */
		if (rig_state(sb) == SANDBOX_SUSPENDED) {
			assert_int_equal(rig.fake.live, 0);
			assert_int_equal(count_layers(&rig), 1);
			assert_int_equal(ask(&rig, sb, sandbox_start).state, SANDBOX_RUNNING);
		} else {
			assert_int_equal(rig.fake.live, 1);
			assert_int_equal(count_layers(&rig), 0);
		}
		rig_close(&rig);
	}
}

static void what_cannot_be_stopped_goes_on(void **state)
{
	struct sandbox_rig rig;
	struct sandbox *sb;

	(void)state;
	for (unsigned nth = 1; nth <= 2; nth++) { /* to freeze it, to take the layer */
		rig_open(&rig);
		sb = rig_create(&rig, "a");
		rig.fake.fail_in = nth;
		rig.fake.fail_with = EOPNOTSUPP;
		assert_int_equal(ask(&rig, sb, sandbox_suspend).err.code, EOPNOTSUPP);
		assert_int_equal(rig_state(sb), SANDBOX_RUNNING);
		assert_false(rig_box(&rig, sb->id)->frozen);
		assert_int_equal(count_layers(&rig), 0);
		rig_close(&rig);
	}
}

static void what_cannot_be_started_stays_stopped(void **state)
{
	struct sandbox_rig rig;
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "a");
	(void)ask(&rig, sb, sandbox_suspend);
	rig.fake.fail_in = 1;
	rig.fake.fail_with = ENOMEM;
	assert_int_equal(ask(&rig, sb, sandbox_start).err.code, ENOMEM);
	assert_int_equal(rig_state(sb), SANDBOX_SUSPENDED);
	rig.faults.fail_in = 1;
	rig.faults.fail_with = EIO;
	assert_int_equal(ask(&rig, sb, sandbox_start).err.code, EIO);
	assert_int_equal(rig_state(sb), SANDBOX_SUSPENDED);
	assert_int_equal(rig.fake.live, 0);
	assert_int_equal(ask(&rig, sb, sandbox_start).state, SANDBOX_RUNNING);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_layer_stays_as_long_as_anybody_names_it),
		cmocka_unit_test(snapshots_and_their_layers_are_there_after_a_restart),
		cmocka_unit_test(a_layer_that_nobody_names_is_dropped_at_a_start),
		cmocka_unit_test(a_snapshot_that_fails_leaves_nothing),
		cmocka_unit_test(a_snapshot_takes_anothers_place_or_leaves_it_as_it_was),
		cmocka_unit_test(forks_share_one_layer_and_the_last_one_takes_it_along),
		cmocka_unit_test(when_one_fork_fails_none_is_left),
		cmocka_unit_test(a_stopped_sandbox_has_no_box_and_its_time_stands_still),
		cmocka_unit_test(a_death_at_any_step_of_a_stop_loses_nothing),
		cmocka_unit_test(what_cannot_be_stopped_goes_on),
		cmocka_unit_test(what_cannot_be_started_stays_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
