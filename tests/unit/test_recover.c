#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fault.h"
#include "sandbox/execution.h"
#include "sandbox_rig.h"

/* ---- rows and boxes ---- */

/* The row of a sandbox as an earlier life may have left it. */
static void put_row(struct sandbox_rig *rig, const char *id, const char *box_id,
		    enum sandbox_state state, const char *env)
{
	bool is_paused = state == SANDBOX_PAUSED || state == SANDBOX_RESUMING;
	struct sandbox_row row = { .id = id,
				   .owner = "ann",
				   .name = "web",
				   .box_id = box_id,
				   .template = "python",
				   .state = (uint8_t)state,
				   .is_live = true,
				   .spec = "{}",
				   .env = env,
				   .metadata = "{}",
				   .created_ms = rig->wall_ms - 1000,
				   .expires_ms = is_paused ? 0 : rig->wall_ms + 50000,
				   .remaining_ms = is_paused ? 70000 : 0,
				   .timeout_ms = 100000 };

	assert_int_equal(store_put_sandbox(&rig->store, &row, NULL, NULL), 0);
	store_dispatch(&rig->store);
}

/* A box that an earlier life claimed for this sandbox. */
static void on_claimed(void *user, const struct provider_reply *r)
{
	assert_int_equal(r->code, 0);
	memcpy(user, r->box->id, ID_LEN + 1);
}

static struct fake_box *add_box(struct sandbox_rig *rig, const char *tag, char id[ID_LEN + 1])
{
	struct launch_spec spec = { .template_id = 1, .tag = tag };

	assert_int_equal(rig->provider.ops->claim(rig->provider.self, &spec, on_claimed, id, NULL),
			 0);
	assert_int_equal(fake_run(&rig->fake), 1);
	return fake_find(&rig->fake, id);
}

enum box { NONE, RUNS, FROZEN, BOX_COUNT };

static void every_row_and_box_are_made_to_agree(void **state)
{
	static const struct {
		enum sandbox_state row;
		enum sandbox_state want[BOX_COUNT];
	} cases[] = {
		{ SANDBOX_RUNNING, { SANDBOX_FAILED, SANDBOX_RUNNING, SANDBOX_PAUSED } },
		{ SANDBOX_PAUSING, { SANDBOX_FAILED, SANDBOX_RUNNING, SANDBOX_PAUSED } },
		{ SANDBOX_PAUSED, { SANDBOX_FAILED, SANDBOX_RUNNING, SANDBOX_PAUSED } },
		{ SANDBOX_RESUMING, { SANDBOX_FAILED, SANDBOX_RUNNING, SANDBOX_PAUSED } },
		{ SANDBOX_STOPPING, { SANDBOX_STOPPED, SANDBOX_STOPPED, SANDBOX_STOPPED } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]) * BOX_COUNT; i++) {
		enum sandbox_state was = cases[i / BOX_COUNT].row;
		enum sandbox_state want = cases[i / BOX_COUNT].want[i % BOX_COUNT];
		bool was_paused = was == SANDBOX_PAUSED || was == SANDBOX_RESUMING;
		struct sandbox_rig rig;
		struct sandbox_info info;
		struct fake_box *box = NULL;
		struct sandbox *sb;
		char id[ID_LEN + 1], box_id[ID_LEN + 1];

		rig_open(&rig);
		rig_death(&rig);
		id_make(id);
		id_make(box_id);
		if (i % BOX_COUNT != NONE)
			box = add_box(&rig, id, box_id);
		if (i % BOX_COUNT == FROZEN)
			box->frozen = true;
		put_row(&rig, id, box_id, was, "{\"A\":\"1\"}");
		rig_birth(&rig);
		rig_ready(&rig);
		rig_run(&rig);
		if (want == SANDBOX_RUNNING) {
			assert_int_equal(rig.ready, 1); /* not before the box has spoken */
			rig_say_ready(box, 0);
			rig_run(&rig);
		}
		assert_int_equal(rig.ready, 2);
		assert_int_equal(rig_row_state(&rig, id, NULL), want);
		sb = sandboxes_find(rig.all, "web", "ann");
		assert_int_equal(sb != NULL, state_is_live(want));
		assert_int_equal(rig.fake.live, sb ? 1 : 0);
		if (sb) {
			sandbox_info(sb, &info);
			assert_int_equal(info.state, want);
			assert_int_equal(info.n_env, 1);
			assert_int_equal(want == SANDBOX_PAUSED ? (int64_t)info.remaining_ms
								: info.expires_ms - rig.wall_ms,
					 was_paused ? 70000 : 50000);
		}
		rig_close(&rig);
	}
}

static void a_box_that_ended_unwatched_says_so(void **state)
{
	struct sandbox_rig rig;
	char id[ID_LEN + 1], box_id[ID_LEN + 1], *reason = NULL;

	(void)state;
	rig_open(&rig);
	rig_death(&rig);
	id_make(id);
	id_make(box_id);
	put_row(&rig, id, box_id, SANDBOX_RUNNING, "");
	rig_birth(&rig);
	rig_ready(&rig);
	rig_run(&rig);
	assert_int_equal(rig_row_state(&rig, id, &reason), SANDBOX_FAILED);
	assert_string_equal(reason, "its box ended while nobody watched");
	free(reason);
	rig_close(&rig);
}

static void boxes_that_nobody_knows_are_destroyed(void **state)
{
	struct sandbox_rig rig;
	struct sandbox *sb;
	char known[ID_LEN + 1], a[ID_LEN + 1], b[ID_LEN + 1], c[ID_LEN + 1], tag[ID_LEN + 1];

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	memcpy(known, sb->id, sizeof(known));
	rig_death(&rig);
	id_make(tag);
	(void)add_box(&rig, "", a);
	(void)add_box(&rig, tag, b);
	(void)add_box(&rig, known, c); /* a second one for the same sandbox */
	assert_int_equal(rig.fake.live, 4);
	rig_birth(&rig);
	rig_ready(&rig);
	rig_run(&rig);
	assert_int_equal(rig.fake.live, 1);
	assert_null(fake_find(&rig.fake, c));
	rig_say_ready(rig_box(&rig, known), 0);
	rig_run(&rig);
	(void)add_box(&rig, tag, b); /* and so later */
	sweep_run(rig.all);
	rig_run(&rig);
	assert_int_equal(rig.fake.live, 1);
	rig_close(&rig);
}

static void a_sweep_finds_a_death_that_nobody_told(void **state)
{
	struct sandbox_rig rig;
	struct sandbox *sb;
	char id[ID_LEN + 1];

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	memcpy(id, sb->id, sizeof(id));
	rig.fake.on_death = NULL;
	fake_kill(&rig.fake, sb->box_id, SIGKILL);
	(void)fake_run(&rig.fake);
	sweep_run(rig.all);
	rig_run(&rig);
	assert_int_equal(rig_row_state(&rig, id, NULL), SANDBOX_FAILED);
	rig_close(&rig);
}

static void a_box_that_never_speaks_does_not_keep_the_others_waiting_for_ever(void **state)
{
	struct exec_request req = { .command = "x" };
	struct sandbox_rig rig;
	struct exec_told t = { 0 };
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	(void)rig_create(&rig, "web");
	rig_death(&rig);
	rig_birth(&rig);
	rig_ready(&rig);
	rig_run(&rig);
	rig_tick(&rig, GUEST_PATIENCE_MS / 1000 - 1);
	assert_int_equal(rig.ready, 1);
	rig_tick(&rig, 1);
	assert_int_equal(rig.ready, 2);
	assert_int_equal(rig.ready_err.code, 0);
	sb = sandboxes_find(rig.all, "web", "ann");
	exec_start(sb, &req, rig_exec_told, &t);
	rig_run(&rig);
	assert_int_equal(t.err.code, EREMOTEIO);
	rig_say_ready(rig_box(&rig, sb->id), 0);
	rig_run(&rig);
	(void)rig_exec(&rig, sb, &req, &t);
	exec_told_done(&t);
	rig_close(&rig);
}

/* Whatever it is that a launcher under load does not answer in time. */
static void a_launcher_that_is_late_costs_no_sandbox(void **state)
{
	(void)state;
	for (unsigned at = 1; at <= 6; at++) {
		struct sandbox_rig rig;
		struct sandbox *sb;

		rig_open(&rig);
		(void)rig_create(&rig, "web");
		rig_death(&rig);
		rig_birth(&rig);
		rig.fake.fail_in = at;
		rig.fake.fail_with = ETIMEDOUT;
		rig_ready(&rig);
		rig_run(&rig);
		rig_tick(&rig, 3);
		sb = sandboxes_find(rig.all, "web", "ann");
		assert_non_null(sb);
		rig_say_ready(rig_box(&rig, sb->id), 0);
		rig_run(&rig);
		assert_int_equal(sb->state, SANDBOX_RUNNING);
		assert_non_null(sb->guest);
		rig_close(&rig);
	}
}

static void a_box_that_speaks_another_version_is_ended_and_recorded(void **state)
{
	struct wire_head head = { WIRE_VERSION + 1, G_READY, 0, 0 };
	char id[ID_LEN + 1], *reason = NULL;
	struct sandbox_rig rig;
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	memcpy(id, sb->id, sizeof(id));
	rig_death(&rig);
	rig_birth(&rig);
	rig_ready(&rig);
	rig_run(&rig);
	rig_say(rig_box(&rig, id), &head, sizeof(head));
	rig_run(&rig);
	rig_tick(&rig, 2);
	assert_int_equal(rig.ready, 2); /* nobody waits for it */
	assert_int_equal(rig.ready_err.code, 0);
	assert_int_equal(rig_row_state(&rig, id, &reason), SANDBOX_FAILED);
	assert_string_equal(reason, "its box is of another version of the service");
	free(reason);
	assert_int_equal(rig.fake.live, 0);
	rig_close(&rig);
}

static void on_looked_up(void *user, const struct sandbox_info *info, const struct err *err)
{
	assert_null(info);
	*(struct err *)user = *err;
}

static void a_damaged_row_of_an_ended_one_is_told_as_such(void **state)
{
	struct sandbox_rig rig;
	struct err err = { 0 };
	char id[ID_LEN + 1];
	struct sandbox_row row = { .id = id,
				   .owner = "ann",
				   .name = "",
				   .box_id = "",
				   .template = "python",
				   .reason = "",
				   .state = SANDBOX_STATE_COUNT,
				   .spec = "{}",
				   .env = "{}",
				   .metadata = "{}" };

	(void)state;
	rig_open(&rig);
	id_make(id);
	assert_int_equal(store_put_sandbox(&rig.store, &row, NULL, NULL), 0);
	sandbox_get(rig.all, id, "ann", on_looked_up, &err);
	rig_run(&rig);
	assert_int_equal(err.code, EUCLEAN);
	rig_close(&rig);
}

static void check_damaged(enum sandbox_state found, const char *env)
{
	struct sandbox_rig rig;
	char id[ID_LEN + 1], box_id[ID_LEN + 1], *reason = NULL;

	rig_open(&rig);
	rig_death(&rig);
	id_make(id);
	(void)add_box(&rig, id, box_id);
	put_row(&rig, id, box_id, found, env);
	rig_birth(&rig);
	rig_ready(&rig);
	rig_run(&rig);
	assert_int_equal(rig_row_state(&rig, id, &reason), SANDBOX_STOPPED);
	assert_string_equal(reason, "its record is damaged");
	free(reason);
	assert_int_equal(rig.fake.live, 0);
	rig_close(&rig);
}

static void a_damaged_row_is_an_end(void **state)
{
	(void)state;
	check_damaged(SANDBOX_RUNNING, "{\"A\":");
	check_damaged(SANDBOX_STATE_COUNT, "{}");
	check_damaged((enum sandbox_state)255, "{}");
}

static void a_time_that_was_over_meanwhile_ends_it(void **state)
{
	struct sandbox_rig rig;
	struct sandbox *sb;
	char id[ID_LEN + 1];

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	memcpy(id, sb->id, sizeof(id));
	rig_death(&rig);
	rig.wall_ms += 600001;
	rig_birth(&rig);
	rig_ready(&rig);
	rig_run(&rig);
	rig_say_ready(rig_box(&rig, id), 0);
	rig_pass(&rig, 0);
	assert_int_equal(rig_row_state(&rig, id, NULL), SANDBOX_STOPPED);
	assert_int_equal(rig.fake.live, 0);
	rig_close(&rig);
}

/* The row has the time of a clock that anybody may set. */
static void a_clock_that_was_set_back_gives_no_more_time_than_was_asked_for(void **state)
{
	struct sandbox_rig rig;
	struct sandbox_info info;
	struct sandbox *sb;
	char id[ID_LEN + 1];

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	memcpy(id, sb->id, sizeof(id));
	rig_death(&rig);
	rig.wall_ms -= 86400000;
	rig_birth(&rig);
	rig_ready(&rig);
	rig_run(&rig);
	rig_say_ready(rig_box(&rig, id), 0);
	rig_run(&rig);
	sandbox_info(sandboxes_find(rig.all, id, "ann"), &info);
	assert_int_equal(info.timeout_ms, 600000);
	assert_int_equal(info.expires_ms, rig.wall_ms + 600000);
	rig_pass(&rig, 600000);
	assert_int_equal(rig_row_state(&rig, id, NULL), SANDBOX_STOPPED);
	rig_close(&rig);
}

static void a_start_without_memory_fails_and_another_finds_everything(void **state)
{
	struct exec_request req = { .command = "x", .background = true };
	struct sandboxes_deps deps;
	struct sandbox_rig rig;
	struct exec_told t;
	struct sandbox *sb;
	bool is_whole = false;
	int failed = 0;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	(void)rig_exec(&rig, sb, &req, &t);
	exec_told_done(&t);
	rig_death(&rig);
	deps = (struct sandboxes_deps){
		.loop = rig.loop, .store = &rig.store, .settings = rig.settings, .clock = &rig.clock
	};
	for (size_t n = 1; n < 500 && !is_whole; n++) {
		struct sandboxes *all = NULL;
		struct err err = { 0 };
		int r;

		fault_arm(n);
		r = sandboxes_create(&deps, &all, &err);
		is_whole = !fault_disarm();
		assert_int_equal(r < 0, all == NULL);
		if (r < 0) {
			assert_int_equal(err.code, ENOMEM);
			failed++;
		}
		(void)sandboxes_free(all);
		store_dispatch(&rig.store);
	}
	assert_true(is_whole);
	assert_true(failed > 10);
	rig_birth(&rig);
	sb = sandboxes_find(rig.all, "web", "ann");
	assert_non_null(sb);
	assert_int_equal(sb->n_running, 1);
	rig_close(&rig);
}

/* ---- the launcher goes and comes ---- */

static void go_away(struct sandbox_rig *rig)
{
	fake_go_away(&rig->fake);
	sandboxes_provider_lost(rig->all);
}

static void what_is_asked_while_the_launcher_is_away_waits_for_it(void **state)
{
	struct sandbox_request req = rig_request("web");
	struct sandbox_rig rig;
	struct sandboxes_stats stats;
	struct told t = { 0 };

	(void)state;
	rig_open(&rig);
	go_away(&rig);
	sandboxes_stats(rig.all, &stats);
	assert_false(stats.is_ready);
	sandbox_create(rig.all, &req, rig_told, &t);
	rig_tick(&rig, 5);
	assert_int_equal(t.calls, 0);
	rig_ready(&rig);
	rig_run(&rig);
	assert_int_equal(t.calls, 1);
	assert_int_equal(t.err.code, 0);
	assert_int_equal(rig.ready, 2);
	rig_close(&rig);
}

static void nobody_waits_longer_than_patience_lasts(void **state)
{
	struct sandbox_request req = rig_request("web");
	struct sandbox_rig rig;
	struct told made = { 0 }, paused = { 0 }, ended = { 0 };
	struct sandbox *a, *b;

	(void)state;
	rig_open(&rig);
	a = rig_create(&rig, "a");
	b = rig_create(&rig, "b");
	go_away(&rig);
	sandbox_create(rig.all, &req, rig_told, &made);
	sandbox_pause(a, rig_told, &paused);
	sandbox_delete(b, "deleted", rig_told, &ended);
	rig_run(&rig);
	rig_tick(&rig, PROVIDER_PATIENCE_MS / 1000 - 1);
	assert_int_equal(made.calls + paused.calls + ended.calls, 0);
	rig_tick(&rig, 1);
	assert_int_equal(made.err.code, EPIPE);
	assert_int_equal(paused.err.code, EPIPE);
	assert_int_equal(ended.err.code, EPIPE);
	assert_int_equal(rig_state(a), SANDBOX_RUNNING);
	assert_int_equal(rig_state(b), SANDBOX_STOPPING);
	assert_null(sandboxes_find(rig.all, "web", "ann"));
	rig_ready(&rig);
	rig_run(&rig);
	assert_null(sandboxes_find(rig.all, "b", "ann")); /* its end went on by itself */
	assert_int_equal(rig.fake.live, 1);
	rig_close(&rig);
}

static void a_claim_that_was_on_its_way_is_made_anew_and_its_box_destroyed(void **state)
{
	struct sandbox_request req = rig_request("web");
	struct sandbox_rig rig;
	struct told t = { 0 };
	char tag[ID_LEN + 1], box_id[ID_LEN + 1];

	(void)state;
	rig_open(&rig);
	sandbox_create(rig.all, &req, rig_told, &t);
	memcpy(tag, sandboxes_find(rig.all, "web", "ann")->id, sizeof(tag));
	go_away(&rig); /* the answer is lost, and the box is there */
	rig.fake.gone = false;
	(void)add_box(&rig, tag, box_id);
	rig.fake.gone = true;
	rig_run(&rig);
	assert_int_equal(t.calls, 0);
	rig_ready(&rig);
	rig_run(&rig);
	assert_int_equal(t.calls, 1);
	assert_int_equal(t.err.code, 0);
	assert_string_equal(t.id, tag);
	assert_int_equal(rig.fake.live, 1);
	assert_null(fake_find(&rig.fake, box_id));
	rig_close(&rig);
}

static void a_request_is_asked_for_a_second_time_and_no_third(void **state)
{
	struct sandbox_request req = rig_request("web");
	struct sandbox_rig rig;
	struct told t = { 0 };

	(void)state;
	rig_open(&rig);
	sandbox_create(rig.all, &req, rig_told, &t);
	go_away(&rig);
	rig_ready(&rig);
	(void)fake_step(&rig.fake); /* the list; the claim is on its way again */
	assert_int_equal(t.calls, 0);
	go_away(&rig);
	rig_run(&rig);
	assert_int_equal(t.calls, 1);
	assert_int_equal(t.err.code, EPIPE);
	rig_close(&rig);
}

static void sandboxes_keep_their_connections_over_a_launchers_restart(void **state)
{
	struct exec_request req = { .command = "x" };
	struct sandbox_rig rig;
	struct exec_told t;
	struct sandbox *a, *b;
	unsigned calls;
	uint32_t id;

	(void)state;
	rig_open(&rig);
	a = rig_create(&rig, "a");
	b = rig_create(&rig, "b");
	id = rig_exec(&rig, a, &req, &t);
	go_away(&rig);
	rig_say_output(rig_box(&rig, a->id), id, 1, 0, "on", 2);
	fake_kill(&rig.fake, b->box_id, SIGKILL); /* nobody is told */
	rig.fake.on_death = NULL;
	rig_run(&rig);
	assert_int_equal(output_end(exec_output(t.x)), 2);
	calls = rig.fake.calls;
	rig_ready(&rig);
	rig_run(&rig);
	/* A list of boxes and one of layers; nothing is attached anew. */
	assert_int_equal(rig.fake.calls, calls + 2);
	assert_int_equal(rig.ready, 2);
	assert_null(sandboxes_find(rig.all, "b", "ann"));
	rig_say_exit(rig_box(&rig, a->id), id, 0, 0);
	rig_run(&rig);
	assert_int_equal(t.x->state, EXECUTION_EXITED);
	exec_told_done(&t);
	rig_close(&rig);
}

static void a_launcher_that_goes_while_it_is_asked_what_lives_is_told_as_lost(void **state)
{
	struct sandbox_rig rig;

	(void)state;
	rig_open(&rig);
	(void)rig_create(&rig, "web");
	rig_death(&rig);
	rig_birth(&rig);
	rig_ready(&rig);
	go_away(&rig);
	rig_run(&rig);
	assert_int_equal(rig.ready, 2);
	assert_int_equal(rig.ready_err.code, EPIPE);
	rig_ready(&rig);
	rig_run(&rig);
	rig_say_ready(rig_box(&rig, sandboxes_find(rig.all, "web", "ann")->id), 0);
	rig_run(&rig);
	assert_int_equal(rig.ready, 3);
	assert_int_equal(rig.ready_err.code, 0);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_and_box_are_made_to_agree),
		cmocka_unit_test(a_box_that_ended_unwatched_says_so),
		cmocka_unit_test(boxes_that_nobody_knows_are_destroyed),
		cmocka_unit_test(a_sweep_finds_a_death_that_nobody_told),
		cmocka_unit_test(a_box_that_never_speaks_does_not_keep_the_others_waiting_for_ever),
		cmocka_unit_test(a_launcher_that_is_late_costs_no_sandbox),
		cmocka_unit_test(a_box_that_speaks_another_version_is_ended_and_recorded),
		cmocka_unit_test(a_damaged_row_is_an_end),
		cmocka_unit_test(a_damaged_row_of_an_ended_one_is_told_as_such),
		cmocka_unit_test(a_time_that_was_over_meanwhile_ends_it),
		cmocka_unit_test(a_clock_that_was_set_back_gives_no_more_time_than_was_asked_for),
		cmocka_unit_test(a_start_without_memory_fails_and_another_finds_everything),
		cmocka_unit_test(what_is_asked_while_the_launcher_is_away_waits_for_it),
		cmocka_unit_test(nobody_waits_longer_than_patience_lasts),
		cmocka_unit_test(a_claim_that_was_on_its_way_is_made_anew_and_its_box_destroyed),
		cmocka_unit_test(a_request_is_asked_for_a_second_time_and_no_third),
		cmocka_unit_test(sandboxes_keep_their_connections_over_a_launchers_restart),
		cmocka_unit_test(a_launcher_that_goes_while_it_is_asked_what_lives_is_told_as_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
