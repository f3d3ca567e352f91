/* Builds over the fake provider: the test is the guest of each step's box. */
#include "check.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "sandbox/build.h"
#include "sandbox/build_cache.h"
#include "sandbox/registry.h"
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

#define STEP(type_, ...)                                                                    \
	{                                                                                   \
		.type = (type_), .args = {                                                  \
			(const char *const[]){ __VA_ARGS__ },                               \
			sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *) \
		}                                                                           \
	}

static const struct build_step two[] = {
	STEP(BUILD_ENV, "A", "1"),
	STEP(BUILD_RUN, "first"),
	STEP(BUILD_RUN, "second"),
};

static void ask(struct sandbox_rig *rig, const struct build_step *steps, size_t n, struct kept *k)
{
	struct build_wish w = { .owner = "ann",
				.name = "own",
				.from = "bash",
				.snapshot = "",
				.steps = steps,
				.n_steps = n };

	*k = (struct kept){ 0 };
	build_create(rig->all, &w, on_kept, k);
}

static struct kept begin(struct sandbox_rig *rig, const struct build_step *steps, size_t n)
{
	struct kept k;

	ask(rig, steps, n, &k);
	rig_run(rig);
	assert_int_equal(k.calls, 1);
	return k;
}

static const struct build *look(struct sandbox_rig *rig, const char *id)
{
	static const struct build none = { .status = -1 };
	const struct object *o = objects_find(rig->all->objects[OBJECTS_BUILD], id, "ann");

	return o ? o->data : &none;
}

static struct fake_box *find_box(struct sandbox_rig *rig)
{
	for (size_t i = 0; i < FAKE_BOXES_MAX; i++)
		if (rig->fake.boxes[i].id[0] != '\0')
			return &rig->fake.boxes[i];
	return NULL;
}

/* The command of the step under way ends with that code. */
static void play(struct sandbox_rig *rig, uint32_t code)
{
	struct fake_box *box = find_box(rig);
	uint32_t id;

	assert_non_null(box);
	id = rig_expect(rig, box, G_EXEC, NULL);
	rig_say_started(box, id, 7);
	rig_run(rig);
	rig_say_output(box, id, 1, 0, "said\n", 5);
	rig_say_exit(box, id, code, 0);
	rig_run(rig);
}

static size_t count_layers(const struct sandbox_rig *rig)
{
	size_t n = 0;

	for (size_t i = 0; i < FAKE_LAYERS_MAX; i++)
		n += rig->fake.layers[i].id[0] != '\0';
	return n;
}

static size_t count_objects(struct sandbox_rig *rig, enum object_set set)
{
	struct object *found[16];
	bool more;

	return objects_list(rig->all->objects[set], &(struct object_filter){ 0 }, found, 16, &more);
}

static void clear(struct sandbox_rig *rig)
{
	struct kept k = { 0 };
	struct object *o;

	build_cache_clear(rig->all, "ann", on_kept, &k);
	while ((o = template_own_find(rig->all, "ann", "own"))) {
		objects_remove(rig->all->objects[OBJECTS_TEMPLATE], o->id, on_kept, &k);
		rig_run(rig);
	}
	rig_run(rig);
	assert_int_equal(k.err.code, 0);
}

static void each_step_has_a_box_of_its_own_and_a_layer(void **state)
{
	struct sandbox_rig rig;
	struct kept k;
	const struct template_own *t;

	(void)state;
	rig_open(&rig);
	k = begin(&rig, two, 3);
	assert_int_equal(look(&rig, k.id)->status, BUILD_BUILDING);
	assert_int_equal(rig.fake.live, 1);
	play(&rig, 0);
	assert_int_equal(look(&rig, k.id)->at, 2);
	assert_int_equal(rig.fake.live, 1);
	assert_int_equal(count_layers(&rig), 1);
	play(&rig, 0);
	assert_int_equal(look(&rig, k.id)->status, BUILD_READY);
	assert_string_equal(look(&rig, k.id)->template, "own:1");
	t = template_own_find(rig.all, "ann", "own")->data;
	assert_int_equal(t->layers.n, 2);
	assert_string_equal(t->env.items[0].name, "A");
	rig_assert_nothing_left(&rig);
	clear(&rig);
	assert_int_equal(count_layers(&rig), 0);
	rig_close(&rig);
}

static void what_was_done_before_needs_no_box(void **state)
{
	struct sandbox_rig rig;
	struct build_step forced[3];
	struct kept k;

	(void)state;
	rig_open(&rig);
	(void)begin(&rig, two, 3);
	play(&rig, 0);
	play(&rig, 0);
	k = begin(&rig, two, 3);
	assert_int_equal(look(&rig, k.id)->status, BUILD_READY);
	assert_true(look(&rig, k.id)->steps[1].is_cached && look(&rig, k.id)->steps[2].is_cached);
	assert_string_equal(look(&rig, k.id)->template, "own:2");
	assert_int_equal(count_layers(&rig), 2);
	memcpy(forced, two, sizeof(forced));
	forced[2].force = true;
	k = begin(&rig, forced, 3);
	assert_int_equal(look(&rig, k.id)->at, 2);
	play(&rig, 0);
	assert_int_equal(look(&rig, k.id)->status, BUILD_READY);
	assert_int_equal(count_objects(&rig, OBJECTS_BUILD_LAYER),
			 2); /* the old one was replaced */
	clear(&rig);
	assert_int_equal(count_layers(&rig), 0);
	rig_close(&rig);
}

static void a_step_that_fails_ends_the_build_and_its_box(void **state)
{
	struct sandbox_rig rig;
	const struct build *b;
	struct kept k;

	(void)state;
	rig_open(&rig);
	k = begin(&rig, two, 3);
	play(&rig, 3);
	b = look(&rig, k.id);
	assert_int_equal(b->status, BUILD_FAILED);
	assert_string_equal(b->reason, "it ended with exit code 3");
	assert_int_equal(b->steps[1].state, BUILD_STEP_FAILED);
	assert_int_equal(b->steps[2].state, BUILD_STEP_WAITING);
	assert_non_null(b->steps[1].output);
	assert_null(template_own_find(rig.all, "ann", "own"));
	rig_assert_nothing_left(&rig);
	assert_int_equal(count_layers(&rig), 0);
	rig_close(&rig);
}

static void a_full_disk_leaves_nothing(void **state)
{
	struct sandbox_rig rig;
	struct fake_box *box;
	struct kept k;
	uint32_t id;

	(void)state;
	rig_open(&rig);
	k = begin(&rig, two, 3);
	box = find_box(&rig);
	id = rig_expect(&rig, box, G_EXEC, NULL);
	rig_say_started(box, id, 7);
	rig_run(&rig);
	rig.fake.fail_in = 1; /* the layer */
	rig.fake.fail_with = ENOSPC;
	rig_say_exit(box, id, 0, 0);
	rig_run(&rig);
	assert_int_equal(look(&rig, k.id)->status, BUILD_FAILED);
	assert_non_null(strstr(look(&rig, k.id)->reason, "no space left"));
	rig_assert_nothing_left(&rig);
	assert_int_equal(count_layers(&rig), 0);
	assert_int_equal(count_objects(&rig, OBJECTS_BUILD_LAYER), 0);
	rig_close(&rig);
}

static void a_box_that_cannot_be_had_fails_the_build(void **state)
{
	struct sandbox_rig rig;
	struct kept k;

	(void)state;
	rig_open(&rig);
	ask(&rig, two, 3, &k);
	store_dispatch(&rig.store);
	rig.fake.fail_in = 1;
	rig.fake.fail_with = ENOMEM;
	rig_run(&rig);
	assert_int_equal(k.calls, 1);
	rig_run(&rig);
	if (look(&rig, k.id)->status == BUILD_BUILDING) /* another call was the one that failed */
		play(&rig, 1);
	assert_int_equal(look(&rig, k.id)->status, BUILD_FAILED);
	rig_tick(&rig, 3); /* an end that failed is tried again */
	rig_assert_nothing_left(&rig);
	rig_close(&rig);
}

/* Commands that were asked for begin, in every box. */
static void start_all(struct sandbox_rig *rig)
{
	for (size_t i = 0; i < FAKE_BOXES_MAX; i++) {
		struct fake_box *box = &rig->fake.boxes[i];
		struct wire_head head;
		struct rd payload;

		while (box->id[0] != '\0' && rig_recv(rig, box, &head, &payload))
			if (head.type == G_EXEC)
				rig_say_started(box, head.id, 7);
	}
	rig_run(rig);
}

static void cancel(struct sandbox_rig *rig, const char *id)
{
	struct kept k = { 0 };

	build_delete(rig->all, id, on_kept, &k);
	rig_run(rig);
	assert_int_equal(k.calls, 1);
	assert_int_equal(k.err.code, 0);
}

static void builds_wait_for_each_other_and_can_be_canceled(void **state)
{
	struct sandbox_rig rig;
	struct kept k[4];

	(void)state;
	rig_open(&rig);
	for (size_t i = 0; i < 4; i++)
		k[i] = begin(&rig, two, 3);
	assert_int_equal(rig.fake.live, 2);
	assert_int_equal(look(&rig, k[2].id)->status, BUILD_WAITING);
	cancel(&rig, k[2].id);
	assert_int_equal(look(&rig, k[2].id)->status, BUILD_CANCELED);
	start_all(&rig);
	cancel(&rig, k[0].id);
	assert_int_equal(look(&rig, k[0].id)->status, BUILD_CANCELED);
	assert_int_equal(look(&rig, k[3].id)->status, BUILD_BUILDING); /* there was room */
	cancel(&rig, k[3].id); /* before its command has begun */
	assert_int_equal(look(&rig, k[3].id)->status, BUILD_BUILDING);
	start_all(&rig);
	assert_int_equal(look(&rig, k[3].id)->status, BUILD_CANCELED);
	cancel(&rig, k[1].id);
	assert_int_equal(look(&rig, k[1].id)->status, BUILD_CANCELED);
	rig_assert_nothing_left(&rig);
	assert_int_equal(count_layers(&rig), 0);
	cancel(&rig, k[0].id); /* it is over: now it is forgotten */
	assert_int_equal(look(&rig, k[0].id)->status, -1);
	rig_close(&rig);
}

/* One thing after the other: an answer of the provider, one of the store, a turn of the loop. */
static void go_on(struct sandbox_rig *rig, unsigned steps)
{
	for (unsigned i = 0; i < steps; i++) {
		if (i % 3 == 0)
			(void)fake_step(&rig->fake);
		else if (i % 3 == 1)
			store_dispatch(&rig->store);
		else
			rig_turn(rig);
	}
}

static void a_death_at_any_step_leaves_nothing_half_made(void **state)
{
	struct sandbox_rig rig;

	(void)state;
	for (unsigned steps = 0; steps < 60; steps++) {
		struct fake_box *box;
		struct object *found[4];
		struct kept k;
		bool more;

		rig_open(&rig);
		ask(&rig, two + 1, 1, &k);
		go_on(&rig, steps < 20 ? steps : 20);
		box = find_box(&rig);
		if (steps >= 20 && box) {
			uint32_t id;

			rig_run(&rig);
			id = rig_expect(&rig, box, G_EXEC, NULL);
			rig_say_started(box, id, 7);
			rig_say_exit(box, id, 0, 0);
			go_on(&rig, steps - 20);
		}
		rig_death(&rig);
		rig_birth(&rig);
		rig_ready(&rig);
		rig_run(&rig);
		rig_tick(&rig, 2);
		/* Layers are there that something names, and no others. */
		rig_assert_nothing_left(&rig);
		assert_int_equal(count_layers(&rig), count_objects(&rig, OBJECTS_BUILD_LAYER) > 0);
		if (objects_list(rig.all->objects[OBJECTS_BUILD], &(struct object_filter){ 0 },
				 found, 4, &more) > 0) {
			const struct build *b = found[0]->data;

			assert_true(b->status == BUILD_FAILED || b->status == BUILD_READY);
			assert_true(b->status == BUILD_READY || strstr(b->reason, "interrupted"));
		}
		clear(&rig);
		assert_int_equal(count_layers(&rig), 0);
		rig_close(&rig);
	}
}

static void what_is_no_step_is_refused(void **state)
{
	const struct build_step bad[] = {
		STEP(BUILD_RUN, ""),           STEP(BUILD_ENV, "A"),
		STEP(BUILD_ENV, "1", "x"),     STEP(BUILD_WORKDIR, "/a/../b"),
		STEP(BUILD_USER, "a b"),       STEP(BUILD_COPY, "a", "/b"),
		STEP(BUILD_PIP, "numpy"),      STEP(BUILD_WORKDIR, "/a", "/b"),
		STEP(BUILD_USER, "root", "x"),
	};
	struct sandbox_rig rig;

	(void)state;
	rig_open(&rig);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct kept k = begin(&rig, &bad[i], 1);

		assert_true(k.err.code == EINVAL || k.err.code == EOPNOTSUPP);
		assert_int_equal(strncmp(k.err.text, "steps[0]: ", 10), 0);
	}
	assert_int_equal(count_objects(&rig, OBJECTS_BUILD), 0);
	rig_close(&rig);
}

/* ---- reserved ones ---- */

static const struct jv_strings tags = { (const char *const[]){ "prod", "v1" }, 2 };

static struct kept reserve(struct sandbox_rig *rig, const char *name, struct jv_strings with)
{
	struct build_reservation r = {
		.owner = "ann", .name = name, .tags = with, .limits = { .cpu_milli = 2000 }
	};
	struct kept k = { 0 };

	build_reserve(rig->all, &r, on_kept, &k);
	rig_run(rig);
	assert_int_equal(k.calls, 1);
	return k;
}

static struct kept begin_reserved(struct sandbox_rig *rig, const char *id, const char *owner)
{
	struct build_wish w = { .id = id,
				.owner = owner,
				.name = "own",
				.from = "bash",
				.snapshot = "",
				.tags = tags,
				.steps = two,
				.n_steps = 3 };
	struct kept k = { 0 };

	build_create(rig->all, &w, on_kept, &k);
	rig_run(rig);
	assert_int_equal(k.calls, 1);
	return k;
}

static void one_that_is_reserved_does_nothing_until_it_is_told_what(void **state)
{
	struct sandbox_rig rig;
	const struct object *o;
	struct kept k, again;

	(void)state;
	rig_open(&rig);
	k = reserve(&rig, "own", tags);
	assert_int_equal(look(&rig, k.id)->status, BUILD_WAITING);
	assert_true(look(&rig, k.id)->is_reserved);
	assert_int_equal(look(&rig, k.id)->limits.cpu_milli, 2000);
	assert_int_equal(rig.fake.live, 0);
	assert_int_equal(begin_reserved(&rig, "nobodyknowsthisone00", "ann").err.code, ENOENT);
	assert_int_equal(begin_reserved(&rig, k.id, "bob").err.code, ENOENT);
	again = begin_reserved(&rig, k.id, "ann");
	assert_int_equal(again.err.code, 0);
	assert_string_equal(again.id, k.id);
	assert_false(look(&rig, k.id)->is_reserved);
	assert_int_equal(begin_reserved(&rig, k.id, "ann").err.code, EBUSY);
	play(&rig, 0);
	play(&rig, 0);
	assert_int_equal(look(&rig, k.id)->status, BUILD_READY);
	assert_int_equal(look(&rig, k.id)->steps[2].lines, 1);
	o = template_own_find(rig.all, "ann", "own:prod");
	assert_non_null(o);
	assert_string_equal(o->name, "own:1");
	assert_ptr_equal(template_own_find(rig.all, "ann", "own:v1"), o);
	assert_int_equal(begin_reserved(&rig, k.id, "ann").err.code, EBUSY);
	while ((o = objects_by_name(rig.all->objects[OBJECTS_ALIAS], "ann", "own:prod")) ||
	       (o = objects_by_name(rig.all->objects[OBJECTS_ALIAS], "ann", "own:v1"))) {
		objects_remove(rig.all->objects[OBJECTS_ALIAS], o->id, on_kept, &again);
		rig_run(&rig);
	}
	clear(&rig);
	rig_close(&rig);
}

static void an_owner_has_so_many_reserved_and_the_oldest_gives_way(void **state)
{
	static const struct jv_strings none = { 0 };
	struct sandbox_rig rig;
	struct kept first, last = { 0 };

	(void)state;
	rig_open(&rig);
	first = reserve(&rig, "own", none);
	for (int i = 0; i < 32; i++) {
		rig_pass(&rig, 1);
		last = reserve(&rig, "own", none);
		assert_int_equal(last.err.code, 0);
	}
	rig_run(&rig);
	assert_int_equal(look(&rig, first.id)->status, -1);
	assert_int_equal(look(&rig, last.id)->status, BUILD_WAITING);
	rig_close(&rig);
}

static void what_cannot_be_reserved_is_refused(void **state)
{
	static const char *const many[BUILD_TAGS_MAX + 1] = { "a", "b", "c", "d", "e", "f",
							      "g", "h", "i", "j", "k", "l",
							      "m", "n", "o", "p", "q" };
	static const char *const bad[] = { "Not a tag" };
	struct sandbox_rig rig;

	(void)state;
	rig_open(&rig);
	assert_int_equal(reserve(&rig, "Own", (struct jv_strings){ 0 }).err.code, EINVAL);
	assert_int_equal(reserve(&rig, "python", (struct jv_strings){ 0 }).err.code, EEXIST);
	assert_int_equal(reserve(&rig, "own", (struct jv_strings){ bad, 1 }).err.code, EINVAL);
	assert_int_equal(
		reserve(&rig, "own", (struct jv_strings){ many, BUILD_TAGS_MAX + 1 }).err.code,
		EINVAL);
	assert_int_equal(count_objects(&rig, OBJECTS_BUILD), 0);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_step_has_a_box_of_its_own_and_a_layer),
		cmocka_unit_test(what_was_done_before_needs_no_box),
		cmocka_unit_test(a_step_that_fails_ends_the_build_and_its_box),
		cmocka_unit_test(a_full_disk_leaves_nothing),
		cmocka_unit_test(a_box_that_cannot_be_had_fails_the_build),
		cmocka_unit_test(builds_wait_for_each_other_and_can_be_canceled),
		cmocka_unit_test(a_death_at_any_step_leaves_nothing_half_made),
		cmocka_unit_test(what_is_no_step_is_refused),
		cmocka_unit_test(one_that_is_reserved_does_nothing_until_it_is_told_what),
		cmocka_unit_test(an_owner_has_so_many_reserved_and_the_oldest_gives_way),
		cmocka_unit_test(what_cannot_be_reserved_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
