/* Sessions of agents and their sandboxes, over a fake provider and a store in memory. */
#include "check.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "fault.h"
#include "sandbox/registry.h"
#include "sandbox/session.h"
#include "sandbox_rig.h"

#define WAIT_MS 60000u

static struct session_wish wish_of(const char *id)
{
	struct session_wish wish = session_defaults;

	wish.id = id;
	return wish;
}

struct session_told {
	int calls;
	struct object *o;
	struct err err;
};

static void on_session(void *user, struct object *o, const struct err *err)
{
	struct session_told *t = user;

	t->calls++;
	t->o = o;
	t->err = err ? *err : (struct err){ 0 };
}

static struct session_told add(struct sandbox_rig *g, const char *owner,
			       const struct session_wish *wish)
{
	struct session_told told = { 0 };

	session_add(g->all, owner, wish, on_session, &told);
	rig_run(g);
	assert_int_equal(told.calls, 1);
	return told;
}

static struct object *open_session(struct sandbox_rig *g, const char *id)
{
	struct session_wish wish = wish_of(id);
	struct session_told told;

	rig_open(g);
	told = add(g, "ann", &wish);
	assert_int_equal(told.err.code, 0);
	return told.o;
}

/* Timers are the machine's, the clock is the test's. */
static void wait_for(struct sandbox_rig *g, const int *calls)
{
	for (int i = 0; i < 5000 && *calls == 0; i++) {
		(void)usleep(2000);
		g->now_ms += 2;
		rig_run(g);
	}
	assert_int_equal(*calls, 1);
}

static struct told provision(struct sandbox_rig *g, const struct object *o)
{
	struct told told = { 0 };

	session_provision(g->all, o, "", WAIT_MS, rig_told, &told);
	assert_int_equal(told.calls, 0); /* never from inside */
	rig_run(g);
	wait_for(g, &told.calls);
	return told;
}

static void end_session(struct sandbox_rig *g, const struct object *o)
{
	struct session_told told = { 0 };

	session_end(g->all, o, on_session, &told);
	rig_run(g);
	assert_int_equal(told.calls, 1);
	assert_int_equal(told.err.code, 0);
}

static void live_again(struct sandbox_rig *g)
{
	rig_death(g);
	rig_birth(g);
	rig_ready(g);
	rig_run(g);
}

static void a_hundred_callers_get_one_sandbox(void **state)
{
	struct told told[100] = { 0 };
	struct sandbox_rig g;
	struct object *o = open_session(&g, "chat-1");
	int made = 0;

	(void)state;
	for (int i = 0; i < 100; i++)
		session_provision(g.all, o, "", WAIT_MS, rig_told, &told[i]);
	rig_run(&g);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(told[i].calls, 1);
		assert_int_equal(told[i].err.code, 0);
		assert_int_equal(told[i].state, SANDBOX_RUNNING);
		assert_string_equal(told[i].id, told[0].id);
		made += !told[i].is_existing;
	}
	assert_int_equal(made, 1);
	assert_int_equal(g.fake.live, 1);
	end_session(&g, o);
	rig_assert_nothing_left(&g);
	rig_close(&g);
}

static void a_session_and_its_sandbox_outlive_the_daemon(void **state)
{
	struct sandbox_rig g;
	struct object *o = open_session(&g, "Chat.1");
	struct told first = provision(&g, o), again;

	(void)state;
	live_again(&g);
	o = session_find(g.all, "ann", "Chat.1");
	assert_non_null(o);
	assert_null(session_find(g.all, "bob", "Chat.1"));
	assert_ptr_equal(session_find_any(g.all, o->id), o);
	assert_string_equal(sandbox_id(session_sandbox(g.all, o)), first.id);
	again = provision(&g, o);
	assert_true(again.is_existing);
	assert_string_equal(again.id, first.id);
	rig_close(&g);
}

static void a_sandbox_that_has_ended_is_made_anew(void **state)
{
	struct sandbox_rig g;
	struct object *o = open_session(&g, "chat-1");
	struct told first = provision(&g, o), ended = { 0 }, again;

	(void)state;
	sandbox_delete(session_sandbox(g.all, o), "by hand", rig_told, &ended);
	rig_turn(&g); /* it is ending, and not yet gone */
	again = provision(&g, o);
	assert_int_equal(ended.calls, 1);
	assert_int_equal(again.err.code, 0);
	assert_false(again.is_existing);
	assert_string_not_equal(again.id, first.id);
	fake_kill(&g.fake, rig_box(&g, again.id)->id, 9);
	rig_run(&g);
	assert_null(session_sandbox(g.all, o));
	assert_false(provision(&g, o).is_existing);
	assert_int_equal(g.fake.live, 1);
	rig_close(&g);
}

static void one_that_stands_still_is_woken(void **state)
{
	struct sandbox_rig g;
	struct object *o = open_session(&g, "chat-1");
	struct told first = provision(&g, o), paused = { 0 }, again;

	(void)state;
	sandbox_pause(session_sandbox(g.all, o), rig_told, &paused);
	rig_run(&g);
	assert_int_equal(paused.state, SANDBOX_PAUSED);
	again = provision(&g, o);
	assert_int_equal(again.state, SANDBOX_RUNNING);
	assert_true(again.is_existing);
	assert_string_equal(again.id, first.id);
	rig_close(&g);
}

static void it_lives_as_long_as_it_is_used_unless_it_says_how_long(void **state)
{
	struct session_wish wish = wish_of("brief");
	struct sandbox_rig g;
	struct object *o = open_session(&g, "chat-1"), *brief;
	uint64_t life = g.all->settings.timeout_ms;
	struct sandbox_info info;
	struct told told;

	(void)state;
	wish.workspace.timeout_ms = life;
	brief = add(&g, "ann", &wish).o;
	(void)provision(&g, brief);
	(void)provision(&g, o);
	rig_pass(&g, life / 2 + 2000);
	told = provision(&g, o); /* somebody asks for it again */
	assert_true(told.is_existing);
	(void)provision(&g, brief);
	rig_pass(&g, life / 2 + 2000);
	assert_non_null(session_sandbox(g.all, o));
	assert_null(session_sandbox(g.all, brief));
	sandbox_info(session_sandbox(g.all, o), &info);
	assert_true(session_is_kept(g.all, &info));
	info.owner = "bob"; /* who has taken such a name for one of his own */
	assert_false(session_is_kept(g.all, &info));
	rig_close(&g);
}

static void the_sandbox_says_whose_it_is(void **state)
{
	static const struct jv_pair env[] = { { "A", "1" } };
	static const struct jv_pair metadata[] = { { "session", "forged" }, { "team", "x" } };
	struct session_wish wish = wish_of("chat-1");
	struct sandbox_info info;
	struct sandbox_rig g;
	struct object *o;

	(void)state;
	rig_open(&g);
	wish.workspace.template = "bash";
	wish.workspace.limits.pids = 17;
	wish.workspace.timeout_ms = 7000;
	wish.workspace.on_timeout = LAPSE_PAUSE;
	wish.workspace.env = (struct jv_pairs){ env, 1 };
	wish.workspace.metadata = (struct jv_pairs){ metadata, 2 };
	o = add(&g, "ann", &wish).o;
	live_again(&g); /* so it is in the store */
	o = session_find(g.all, "ann", "chat-1");
	sandbox_info(provision(&g, o).sb, &info);
	assert_string_equal(info.template, "bash");
	assert_int_equal(info.limits.pids, 17);
	assert_int_equal(info.timeout_ms, 7000);
	assert_int_equal(info.life.on_timeout, LAPSE_PAUSE);
	assert_true(info.life.auto_resume);
	assert_int_equal(info.n_env, 1);
	assert_string_equal(info.env[0].value, "1");
	assert_int_equal(info.n_metadata, 2);
	assert_string_equal(info.metadata[0].value, "chat-1");
	assert_string_equal(info.metadata[1].value, "x");
	rig_close(&g);
}

static void who_waits_too_long_hears_so_and_finds_it_later(void **state)
{
	struct told late = { 0 };
	struct sandbox_rig g;
	struct object *o = open_session(&g, "chat-1");

	(void)state;
	session_provision(g.all, o, "", 5, rig_told, &late);
	g.now_ms += 5;
	for (int i = 0; i < 5000 && late.calls == 0; i++) { /* the provider says nothing */
		(void)usleep(1000);
		rig_turn(&g);
	}
	assert_int_equal(late.calls, 1);
	assert_int_equal(late.err.code, ETIMEDOUT);
	rig_run(&g);
	assert_true(provision(&g, o).is_existing);
	assert_int_equal(late.calls, 1);
	rig_close(&g);
}

static void who_makes_it_fails_and_all_who_wait_hear_why(void **state)
{
	struct told told[3] = { 0 };
	struct sandbox_rig g;
	struct object *o = open_session(&g, "chat-1");

	(void)state;
	g.fake.fail_in = 1;
	g.fake.fail_with = ENOSPC;
	for (int i = 0; i < 3; i++)
		session_provision(g.all, o, "", WAIT_MS, rig_told, &told[i]);
	rig_run(&g);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(told[i].calls, 1);
		assert_int_not_equal(told[i].err.code, 0);
	}
	assert_int_equal(g.fake.live, 0);
	assert_int_equal(provision(&g, o).err.code, 0);
	rig_close(&g);
}

static void an_end_while_it_is_being_made_leaves_nothing(void **state)
{
	(void)state;
	for (int steps = 0; steps < 8; steps++) {
		struct session_told ended = { 0 };
		struct told told = { 0 };
		struct sandbox_rig g;
		struct object *o = open_session(&g, "chat-1");

		session_provision(g.all, o, "", WAIT_MS, rig_told, &told);
		for (int i = 0; i < steps; i++) {
			(void)fake_step(&g.fake);
			store_dispatch(&g.store);
			rig_turn(&g);
		}
		session_end(g.all, o, on_session, &ended);
		rig_run(&g);
		wait_for(&g, &ended.calls);
		wait_for(&g, &told.calls);
		assert_int_equal(ended.err.code, 0);
		assert_null(session_find(g.all, "ann", "chat-1"));
		rig_assert_nothing_left(&g);
		live_again(&g);
		assert_null(session_find(g.all, "ann", "chat-1"));
		rig_assert_nothing_left(&g);
		rig_close(&g);
	}
}

/* Once the store knows that it ends, it does. */
static void an_end_goes_on_after_a_death_at_any_point(void **state)
{
	bool was_marked = false, was_whole = false;

	(void)state;
	for (int steps = 0; steps < 12; steps++) {
		struct session_told ended = { 0 };
		struct sandbox_rig g;
		struct object *o = open_session(&g, "chat-1");

		(void)provision(&g, o);
		session_end(g.all, o, on_session, &ended);
		for (int i = 0; i < steps; i++) {
			(void)fake_step(&g.fake);
			store_dispatch(&g.store);
			rig_turn(&g);
		}
		live_again(&g);
		o = session_find(g.all, "ann", "chat-1");
		if (o) { /* the store had not heard of it: then all is as before */
			assert_non_null(session_sandbox(g.all, o));
			was_whole = true;
		} else {
			rig_assert_nothing_left(&g);
			was_marked = true;
		}
		rig_close(&g);
	}
	assert_true(was_marked || was_whole);
	assert_true(was_marked);
}

static void an_end_that_fails_is_taken_up_again(void **state)
{
	struct session_told ended = { 0 };
	struct sandbox_rig g;
	struct object *o = open_session(&g, "chat-1");

	(void)state;
	(void)provision(&g, o);
	g.fake.fail_in = 1; /* the box does not go */
	session_end(g.all, o, on_session, &ended);
	rig_run(&g);
	assert_int_equal(ended.calls, 1);
	assert_int_not_equal(ended.err.code, 0);
	assert_null(session_find(g.all, "ann", "chat-1"));
	rig_tick(&g, 3);
	sessions_settle(g.all);
	rig_run(&g);
	rig_assert_nothing_left(&g);
	assert_int_equal(add(&g, "ann", &(struct session_wish){ .id = "chat-1" }).err.code, 0);
	rig_close(&g);
}

static void an_id_is_free_again_at_once(void **state)
{
	struct session_wish wish = wish_of("chat-1");
	struct sandbox_rig g;
	struct object *o = open_session(&g, "chat-1");
	struct told first = provision(&g, o);

	(void)state;
	assert_int_equal(add(&g, "ann", &wish).err.code, EEXIST);
	assert_int_equal(add(&g, "bob", &wish).err.code, 0);
	end_session(&g, o);
	o = add(&g, "ann", &wish).o;
	assert_null(session_sandbox(g.all, o));
	assert_string_not_equal(provision(&g, o).id, first.id);
	rig_close(&g);
}

static void they_go_with_their_owner(void **state)
{
	struct session_wish wish = wish_of("chat-1");
	struct sandbox_rig g;
	struct object *o = open_session(&g, "chat-1");

	(void)state;
	(void)provision(&g, o);
	assert_int_equal(add(&g, "bob", &wish).err.code, 0);
	sandboxes_end_owner(g.all, "ann", "gone");
	rig_run(&g);
	rig_assert_nothing_left(&g);
	assert_null(session_find(g.all, "ann", "chat-1"));
	assert_non_null(session_find(g.all, "bob", "chat-1"));
	rig_close(&g);
}

static void what_cannot_be_is_refused_by_name(void **state)
{
	static const char *const bad[] = { "", ".", "..", "-a", "a/b", "a b", "\xc3\xa9", "a%2f" };
	char longest[SESSION_ID_MAX + 2];
	struct session_wish wish;
	struct sandbox_rig g;
	struct err err;

	(void)state;
	rig_open(&g);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		wish = wish_of(bad[i]);
		err = add(&g, "ann", &wish).err;
		assert_int_equal(err.code, EINVAL);
		assert_non_null(strstr(err.text, "id:"));
	}
	memset(longest, 'x', sizeof(longest));
	longest[SESSION_ID_MAX + 1] = '\0';
	wish = wish_of(longest);
	assert_int_equal(add(&g, "ann", &wish).err.code, EINVAL);
	longest[SESSION_ID_MAX] = '\0';
	assert_int_equal(add(&g, "ann", &wish).err.code, 0);
	wish = wish_of(NULL);
	assert_int_equal(strlen(add(&g, "ann", &wish).o->name), ID_LEN);
	wish.workspace.template = "none-such";
	assert_non_null(strstr(add(&g, "ann", &wish).err.text, "template"));
	wish.workspace.template = NULL;
	wish.workspace.timeout_ms = UINT64_MAX;
	assert_non_null(strstr(add(&g, "ann", &wish).err.text, "timeout"));
	wish.workspace.timeout_ms = 0;
	wish.workspace.env = (struct jv_pairs){ &(struct jv_pair){ "no name", "" }, 1 };
	assert_non_null(strstr(add(&g, "ann", &wish).err.text, "env"));
	rig_close(&g);
}

static void an_owner_has_so_many_and_no_more(void **state)
{
	const size_t most = session_kind.owner_max;
	struct session_wish wish = wish_of(NULL);
	struct session_told told = { 0 };
	struct sandbox_rig g;

	(void)state;
	rig_open(&g);
	for (size_t i = 0; i < most; i++) {
		session_add(g.all, "ann", &wish, on_session, &told);
		if (i % 256 == 0)
			rig_run(&g);
		assert_int_equal(told.err.code, 0);
	}
	rig_run(&g);
	assert_int_equal(told.calls, most);
	assert_int_equal(add(&g, "ann", &wish).err.code, EDQUOT);
	assert_int_equal(add(&g, "bob", &wish).err.code, 0);
	rig_close(&g);
}

static void what_is_damaged_is_no_session(void **state)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{}", /* whose it is */
		"{\"user_id\":1}",
		"{\"user_id\":\"u\",\"workspace\":1}",
		"{\"user_id\":\"u\",\"workspace\":{\"resources\":{\"cpu\":\"much\"}}}",
		"{\"user_id\":\"u\",\"metadata\":{\"a\":1}}",
	};
	void *data = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(session_kind.parse(bad[i], &data), -EINVAL);
	assert_int_equal(session_kind.parse("{\"user_id\":\"u\",\"new\":1}", &data), 0);
	assert_true(((struct session *)data)->wish.workspace.enabled);
	session_kind.free(data);
}

static void without_memory_there_is_no_session(void **state)
{
	struct session_wish wish = wish_of("chat-1");
	struct sandbox_rig g;

	(void)state;
	rig_open(&g);
	for (size_t n = 1;; n++) {
		struct session_told told = { 0 };
		bool is_failed;

		fault_arm(n);
		session_add(g.all, "ann", &wish, on_session, &told);
		is_failed = fault_disarm();
		rig_run(&g);
		assert_int_equal(told.calls, 1);
		if (told.err.code == 0)
			break;
		assert_true(is_failed);
		assert_null(session_find(g.all, "ann", "chat-1"));
	}
	rig_close(&g);
}

static void without_memory_nothing_is_left_of_its_sandbox(void **state)
{
	struct sandbox_rig g;
	struct object *o = open_session(&g, "chat-1");

	(void)state;
	for (size_t n = 1;; n++) {
		struct session_told ended = { 0 };
		struct told told = { 0 };
		bool is_failed;

		fault_arm(n);
		session_provision(g.all, o, "", WAIT_MS, rig_told, &told);
		is_failed = fault_disarm();
		rig_run(&g);
		wait_for(&g, &told.calls);
		if (told.err.code == 0 && !is_failed)
			break;
		fault_arm(n);
		session_end(g.all, o, on_session, &ended);
		(void)fault_disarm();
		rig_run(&g);
		wait_for(&g, &ended.calls);
		if (session_find(g.all, "ann", "chat-1"))
			continue;
		rig_assert_nothing_left(&g);
		o = add(&g, "ann", &(struct session_wish){ .id = "chat-1" }).o;
	}
	rig_close(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hundred_callers_get_one_sandbox),
		cmocka_unit_test(a_session_and_its_sandbox_outlive_the_daemon),
		cmocka_unit_test(a_sandbox_that_has_ended_is_made_anew),
		cmocka_unit_test(one_that_stands_still_is_woken),
		cmocka_unit_test(it_lives_as_long_as_it_is_used_unless_it_says_how_long),
		cmocka_unit_test(the_sandbox_says_whose_it_is),
		cmocka_unit_test(who_waits_too_long_hears_so_and_finds_it_later),
		cmocka_unit_test(who_makes_it_fails_and_all_who_wait_hear_why),
		cmocka_unit_test(an_end_while_it_is_being_made_leaves_nothing),
		cmocka_unit_test(an_end_goes_on_after_a_death_at_any_point),
		cmocka_unit_test(an_end_that_fails_is_taken_up_again),
		cmocka_unit_test(an_id_is_free_again_at_once),
		cmocka_unit_test(they_go_with_their_owner),
		cmocka_unit_test(what_cannot_be_is_refused_by_name),
		cmocka_unit_test(an_owner_has_so_many_and_no_more),
		cmocka_unit_test(what_is_damaged_is_no_session),
		cmocka_unit_test(without_memory_there_is_no_session),
		cmocka_unit_test(without_memory_nothing_is_left_of_its_sandbox),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
