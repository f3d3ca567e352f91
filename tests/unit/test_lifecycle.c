/* What becomes of a sandbox by itself: at its timeout, and when somebody wants something of it. */
#include "check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/check.h"
#include "sandbox/registry.h"
#include "sandbox_rig.h"

static struct sandbox *create(struct sandbox_rig *rig, struct lifecycle life, const char *note)
{
	struct sandbox_request req = rig_request("web");
	struct told t = { 0 };

	req.life = life;
	req.note = note;
	req.timeout_ms = 60000;
	sandbox_create(rig->all, &req, rig_told, &t);
	rig_run(rig);
	assert_int_equal(t.err.code, 0);
	return t.sb;
}

static struct told wake(struct sandbox_rig *rig, struct sandbox *sb)
{
	struct told t = { 0 };

	sandbox_wake(sb, rig_told, &t);
	rig_run(rig);
	assert_int_equal(t.calls, 1);
	return t;
}

static void a_timeout_pauses_and_the_time_begins_anew(void **state)
{
	struct sandbox_rig rig;
	struct sandbox_info info;
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = create(&rig, (struct lifecycle){ LAPSE_PAUSE, false }, NULL);
	rig_pass(&rig, 59999);
	assert_int_equal(rig_state(sb), SANDBOX_RUNNING);
	rig_pass(&rig, 1);
	assert_int_equal(rig_state(sb), SANDBOX_PAUSED);
	assert_int_equal(rig_row_state(&rig, sb->id, NULL), SANDBOX_PAUSED);
	sandbox_info(sb, &info);
	assert_int_equal(info.remaining_ms, 60000);
	rig_pass(&rig, 10000000); /* paused time is not its time */
	assert_int_equal(rig_state(sb), SANDBOX_PAUSED);
	assert_int_equal(wake(&rig, sb).state, SANDBOX_RUNNING);
	rig_pass(&rig, 59999);
	assert_int_equal(rig_state(sb), SANDBOX_RUNNING);
	rig_pass(&rig, 1);
	assert_int_equal(rig_state(sb), SANDBOX_PAUSED);
	rig_close(&rig);
}

static void a_timeout_stops_and_keeps_the_files(void **state)
{
	struct sandbox_rig rig;
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = create(&rig, (struct lifecycle){ LAPSE_STOP, false }, NULL);
	rig_pass(&rig, 60000);
	assert_int_equal(rig_state(sb), SANDBOX_SUSPENDED);
	assert_int_equal(rig.fake.live, 0);
	assert_int_equal(wake(&rig, sb).state, SANDBOX_RUNNING);
	assert_int_equal(rig_box(&rig, sb->id)->n_layers, 1);
	rig_close(&rig);
}

static void idleness_pauses_too_and_the_rest_of_its_time_stays(void **state)
{
	struct sandbox_request req = rig_request("web");
	struct sandbox_rig rig;
	struct sandbox_info info;
	struct told t = { 0 };

	(void)state;
	rig_open(&rig);
	req.life.on_timeout = LAPSE_PAUSE;
	req.timeout_ms = 60000;
	req.idle_ms = 5000;
	sandbox_create(rig.all, &req, rig_told, &t);
	rig_run(&rig);
	rig_pass(&rig, 5000);
	assert_int_equal(rig_state(t.sb), SANDBOX_PAUSED);
	sandbox_info(t.sb, &info);
	assert_int_equal(info.remaining_ms, 55000);
	rig_close(&rig);
}

static void what_cannot_be_paused_at_its_timeout_is_tried_again_later(void **state)
{
	struct sandbox_rig rig;
	struct sandbox *sb;
	unsigned calls;

	(void)state;
	rig_open(&rig);
	sb = create(&rig, (struct lifecycle){ LAPSE_PAUSE, false }, NULL);
	rig.fake.fail_in = 1;
	rig.fake.fail_with = ENOSYS;
	calls = rig.fake.calls;
	rig_pass(&rig, 60000);
	assert_int_equal(rig_state(sb), SANDBOX_RUNNING);
	assert_int_equal(rig.fake.calls, calls + 1);
	rig_pass(&rig, LAPSE_AGAIN_MS - 1);
	assert_int_equal(rig_state(sb), SANDBOX_RUNNING);
	assert_int_equal(rig.fake.calls, calls + 1);
	rig_pass(&rig, 1);
	assert_int_equal(rig_state(sb), SANDBOX_PAUSED);
	rig_close(&rig);
}

static void all_of_it_is_there_after_a_restart(void **state)
{
	struct sandbox_rig rig;
	struct sandbox_info info;
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	(void)create(&rig, (struct lifecycle){ LAPSE_STOP, true }, "{\"alias\":\"a\\\"b\"}");
	rig_death(&rig);
	rig_birth(&rig);
	rig_ready(&rig);
	rig_run(&rig);
	sb = sandboxes_find(rig.all, "web", "ann");
	sandbox_info(sb, &info);
	assert_int_equal(info.life.on_timeout, LAPSE_STOP);
	assert_true(info.life.auto_resume);
	assert_string_equal(info.note, "{\"alias\":\"a\\\"b\"}");
	rig_close(&rig);
}

static void one_whose_time_went_by_while_nobody_watched_is_paused_and_not_deleted(void **state)
{
	struct sandbox_rig rig;
	struct sandbox_info info;
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	(void)create(&rig, (struct lifecycle){ LAPSE_PAUSE, false }, NULL);
	rig_death(&rig);
	rig.now_ms += 100000;
	rig.wall_ms += 100000;
	rig_birth(&rig);
	rig_ready(&rig);
	rig_run(&rig);
	sb = sandboxes_find(rig.all, "web", "ann");
	rig_say_ready(rig_box(&rig, sb->id), 0);
	rig_run(&rig);
	rig_pass(&rig, 1);
	assert_int_equal(rig_state(sb), SANDBOX_PAUSED);
	sandbox_info(sb, &info);
	assert_int_equal(info.remaining_ms, 60000);
	rig_close(&rig);
}

static void a_patch_changes_one_and_leaves_the_other(void **state)
{
	struct sandbox_patch patch = { .has_on_timeout = true, .life = { LAPSE_PAUSE, false } };
	struct sandbox_rig rig;
	struct sandbox_info info;
	struct told t = { 0 };
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = create(&rig, (struct lifecycle){ LAPSE_DELETE, true }, "{}");
	sandbox_patch(sb, &patch, rig_told, &t);
	rig_run(&rig);
	sandbox_info(sb, &info);
	assert_int_equal(info.life.on_timeout, LAPSE_PAUSE);
	assert_true(info.life.auto_resume);
	assert_string_equal(info.note, "{}");
	patch = (struct sandbox_patch){ .has_auto_resume = true, .note = "{\"a\":1}" };
	sandbox_patch(sb, &patch, rig_told, &t);
	rig_run(&rig);
	sandbox_info(sb, &info);
	assert_int_equal(info.life.on_timeout, LAPSE_PAUSE);
	assert_false(info.life.auto_resume);
	assert_string_equal(info.note, "{\"a\":1}");
	rig_close(&rig);
}

static void a_note_has_its_limit(void **state)
{
	_free_ char *note = malloc(SANDBOX_NOTE_MAX + 2);
	struct err err = { 0 };

	(void)state;
	assert_non_null(note);
	memset(note, 'a', SANDBOX_NOTE_MAX + 1);
	note[SANDBOX_NOTE_MAX] = '\0';
	assert_int_equal(check_note(note, &err), 0);
	note[SANDBOX_NOTE_MAX] = 'a';
	note[SANDBOX_NOTE_MAX + 1] = '\0';
	assert_int_equal(check_note(note, &err), -EINVAL);
	assert_int_equal(check_note("\xff", &err), -EINVAL);
}

static void waking_finds_its_way_from_every_state(void **state)
{
	static const struct {
		void (*into)(struct sandbox *sb, sandbox_cb cb, void *user);
		bool is_half_way;
	} ways[] = { { sandbox_resume, false },
		     { sandbox_pause, false },
		     { sandbox_pause, true },
		     { sandbox_suspend, false },
		     { sandbox_suspend, true } };

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct sandbox_rig rig;
		struct told t = { 0 };
		struct sandbox *sb;

		rig_open(&rig);
		sb = create(&rig, (struct lifecycle){ LAPSE_DELETE, true }, NULL);
		assert_false(sandbox_wakes(sb));
		ways[i].into(sb, rig_told, &t);
		if (!ways[i].is_half_way)
			rig_run(&rig);
		assert_int_equal(sandbox_wakes(sb), i > 0);
		assert_int_equal(wake(&rig, sb).state, SANDBOX_RUNNING);
		assert_int_equal(rig_state(sb), SANDBOX_RUNNING);
		assert_false(rig_box(&rig, sb->id)->frozen);
		rig_close(&rig);
	}
}

static void one_that_ends_is_not_woken_and_who_waits_is_told(void **state)
{
	struct sandbox_rig rig;
	struct told t = { 0 }, ended = { 0 }, paused = { 0 };
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = create(&rig, (struct lifecycle){ LAPSE_DELETE, true }, NULL);
	sandbox_pause(sb, rig_told, &paused);
	sandbox_wake(sb, rig_told, &t);
	sandbox_delete(sb, "deleted", rig_told, &ended);
	rig_run(&rig);
	assert_int_equal(t.calls, 1);
	assert_int_equal(ended.err.code, 0);
	assert_true(t.err.code == EBUSY || t.err.code == 0);
	rig_assert_nothing_left(&rig);
	rig_close(&rig);
}

static void the_registry_may_go_while_somebody_waits_for_one_to_wake(void **state)
{
	struct sandbox_rig rig;
	struct told t = { 0 }, paused = { 0 };
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = create(&rig, (struct lifecycle){ LAPSE_DELETE, true }, NULL);
	sandbox_pause(sb, rig_told, &paused);
	sandbox_wake(sb, rig_told, &t);
	rig_close(&rig); /* nothing is leaked: the sanitizer says so */
	assert_int_equal(t.calls, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_timeout_pauses_and_the_time_begins_anew),
		cmocka_unit_test(a_timeout_stops_and_keeps_the_files),
		cmocka_unit_test(idleness_pauses_too_and_the_rest_of_its_time_stays),
		cmocka_unit_test(what_cannot_be_paused_at_its_timeout_is_tried_again_later),
		cmocka_unit_test(all_of_it_is_there_after_a_restart),
		cmocka_unit_test(
			one_whose_time_went_by_while_nobody_watched_is_paused_and_not_deleted),
		cmocka_unit_test(a_patch_changes_one_and_leaves_the_other),
		cmocka_unit_test(a_note_has_its_limit),
		cmocka_unit_test(waking_finds_its_way_from_every_state),
		cmocka_unit_test(one_that_ends_is_not_woken_and_who_waits_is_told),
		cmocka_unit_test(the_registry_may_go_while_somebody_waits_for_one_to_wake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
