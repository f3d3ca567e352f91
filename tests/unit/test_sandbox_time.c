/* Sandboxes and time: how long they live, and how they stand still. */
#include "check.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "fault.h"
#include "sandbox/files.h"
#include "sandbox/registry.h"
#include "sandbox_rig.h"

/* ---- time ---- */

static void time_to_live_ends_a_sandbox_and_can_be_moved(void **state)
{
	struct sandbox_patch patch = { .has_timeout = true, .timeout_ms = 900000 };
	struct sandbox_rig rig;
	struct told t = { 0 };
	struct sandbox *sb;
	char id[ID_LEN + 1], *reason = NULL;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	memcpy(id, sb->id, sizeof(id));
	rig_pass(&rig, 599999);
	assert_int_equal(rig_state(sb), SANDBOX_RUNNING);
	sandbox_patch(sb, &patch, rig_told, &t);
	rig_run(&rig);
	assert_int_equal(t.err.code, 0);
	rig_pass(&rig, 899999);
	assert_int_equal(rig_state(sb), SANDBOX_RUNNING);
	rig_pass(&rig, 1);
	assert_int_equal(rig_row_state(&rig, id, &reason), SANDBOX_STOPPED);
	assert_string_equal(reason, "timeout");
	free(reason);
	rig_assert_nothing_left(&rig);
	rig_close(&rig);
}

static void clocks_stand_still_while_paused(void **state)
{
	struct sandbox_rig rig;
	struct sandbox_info info;
	struct told t = { 0 };
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	rig_pass(&rig, 100000);
	sandbox_pause(sb, rig_told, &t);
	rig_run(&rig);
	assert_int_equal(t.err.code, 0);
	assert_int_equal(t.state, SANDBOX_PAUSED);
	assert_true(rig_box(&rig, sb->id)->frozen);
	sandbox_info(sb, &info);
	assert_int_equal(info.expires_ms, 0);
	assert_int_equal(info.remaining_ms, 500000);
	rig_pass(&rig, 10000000);
	assert_int_equal(rig_state(sb), SANDBOX_PAUSED);
	sandbox_resume(sb, rig_told, &t);
	rig_run(&rig);
	assert_int_equal(t.err.code, 0);
	assert_int_equal(t.state, SANDBOX_RUNNING);
	assert_false(rig_box(&rig, sb->id)->frozen);
	sandbox_info(sb, &info);
	assert_int_equal(info.expires_ms, rig.wall_ms + 500000);
	assert_int_equal(info.remaining_ms, 0);
	rig_pass(&rig, 499999);
	assert_int_equal(rig_state(sb), SANDBOX_RUNNING);
	rig_pass(&rig, 1);
	rig_assert_nothing_left(&rig);
	rig_close(&rig);
}

static void on_file_failed(void *user, const struct err *err)
{
	(void)user;
	(void)err;
}

static void on_nothing(void *user)
{
	(void)user;
}

/* Behind another one, whose last frames nobody has looked at. */
static uint32_t rig_exec_again(struct sandbox_rig *rig, struct sandbox *sb,
			       const struct exec_request *req, struct exec_told *t)
{
	struct wire_head head;
	struct rd payload;

	exec_told_done(t);
	while (rig_recv(rig, rig_box(rig, sb->id), &head, &payload))
		;
	return rig_exec(rig, sb, req, t);
}

static void an_idle_sandbox_ends_and_a_used_one_does_not(void **state)
{
	struct sandbox_request req = rig_request("web");
	struct exec_request command = { .command = "sleep 100" };
	struct guest_file file = { .op = FILE_WATCH, .user = "", .path = "/", .target = "" };
	const struct file_ops ops = { .failed = on_file_failed };
	struct sandbox_rig rig;
	struct exec_told x;
	struct exec_reader *r;
	struct file_op *op;
	struct told t = { 0 };
	uint32_t id;
	char sandbox_id[ID_LEN + 1], *reason = NULL;

	(void)state;
	rig_open(&rig);
	req.idle_ms = 5000;
	sandbox_create(rig.all, &req, rig_told, &t);
	rig_run(&rig);
	memcpy(sandbox_id, t.id, sizeof(sandbox_id));
	rig_pass(&rig, 4999);
	sandbox_touch(t.sb);
	rig_pass(&rig, 4999);
	assert_int_equal(rig_state(t.sb), SANDBOX_RUNNING);
	id = rig_exec(&rig, t.sb, &command, &x); /* what runs is use */
	rig_pass(&rig, 100000);
	assert_int_equal(rig_state(t.sb), SANDBOX_RUNNING);
	assert_int_equal(file_start(t.sb, &file, &ops, NULL, &op, NULL), 0); /* a watch, too */
	rig_say_exit(rig_box(&rig, sandbox_id), id, 0, 0);
	rig_run(&rig);
	rig_pass(&rig, 100000);
	assert_int_equal(rig_state(t.sb), SANDBOX_RUNNING);
	id = rig_exec_again(&rig, t.sb, &command, &x);
	rig.faults.is_held = true;
	file_cancel(op);
	r = exec_reader_open(x.x, 0, on_nothing,
			     NULL); /* and whoever reads, until it is recorded */
	rig_say_exit(rig_box(&rig, sandbox_id), id, 0, 0);
	rig_run(&rig);
	rig_pass(&rig, 100000);
	assert_int_equal(rig_state(t.sb), SANDBOX_RUNNING);
	rig.faults.is_held = false;
	rig_run(&rig);
	rig_pass(&rig, 4999);
	assert_int_equal(rig_state(t.sb), SANDBOX_RUNNING);
	rig_pass(&rig, 1);
	assert_int_equal(rig_row_state(&rig, sandbox_id, &reason), SANDBOX_STOPPED);
	assert_string_equal(reason, "idle");
	free(reason);
	exec_reader_close(r);
	exec_told_done(&x);
	rig_close(&rig);
}

static void what_ended_long_ago_is_forgotten(void **state)
{
	struct sandbox_rig rig;
	struct told t = { 0 };
	struct sandbox *sb;
	char id[ID_LEN + 1];

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	memcpy(id, sb->id, sizeof(id));
	sandbox_delete(sb, "deleted", rig_told, &t);
	rig_run(&rig);
	rig_pass(&rig, rig.settings.retention_ms);
	reaper_cut(rig.all);
	rig_run(&rig);
	assert_int_equal(rig_row_state(&rig, id, NULL), SANDBOX_STOPPED);
	rig_pass(&rig, 1000);
	reaper_cut(rig.all);
	rig_run(&rig);
	assert_int_equal(rig_row_state(&rig, id, NULL), -ENOENT);
	rig_close(&rig);
}

/* ---- pausing ---- */

static void pausing_and_resuming_twice_is_once(void **state)
{
	struct sandbox_rig rig;
	struct told t[4] = { 0 };
	struct sandbox *sb;
	unsigned calls;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	calls = rig.fake.calls;
	sandbox_pause(sb, rig_told, &t[0]);
	sandbox_pause(sb, rig_told, &t[1]);
	rig_run(&rig);
	sandbox_pause(sb, rig_told, &t[2]);
	rig_run(&rig);
	for (int i = 0; i < 3; i++)
		assert_true(t[i].calls == 1 && t[i].err.code == 0);
	assert_int_equal(rig.fake.calls, calls + 1);
	sandbox_resume(sb, rig_told, &t[3]);
	sandbox_resume(sb, rig_told, &t[0]);
	rig_run(&rig);
	assert_int_equal(t[3].err.code, 0);
	assert_int_equal(t[0].calls, 2);
	assert_int_equal(rig.fake.calls, calls + 2);
	rig_close(&rig);
}

static void a_freeze_that_fails_leaves_it_running_and_a_thaw_that_fails_paused(void **state)
{
	struct sandbox_rig rig;
	struct told t = { 0 };
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	rig.fake.fail_with = ENOSYS;
	rig.fake.fail_in = 1;
	sandbox_pause(sb, rig_told, &t);
	rig_run(&rig);
	assert_int_equal(t.err.code, EREMOTEIO);
	assert_int_equal(rig_state(sb), SANDBOX_RUNNING);
	sandbox_pause(sb, rig_told, &t);
	rig_run(&rig);
	assert_int_equal(t.err.code, 0);
	rig.fake.fail_in = 1;
	sandbox_resume(sb, rig_told, &t);
	rig_run(&rig);
	assert_int_equal(t.err.code, EREMOTEIO);
	assert_int_equal(rig_state(sb), SANDBOX_PAUSED);
	assert_int_equal(sb->remaining_ms, 600000);
	rig_close(&rig);
}

static void a_pause_that_the_store_does_not_take_is_told_but_true(void **state)
{
	struct sandbox_rig rig;
	struct told t = { 0 };
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	rig.faults.fail_in = 1;
	rig.faults.fail_with = EIO;
	sandbox_pause(sb, rig_told, &t);
	rig_run(&rig);
	assert_int_equal(t.err.code, EIO);
	assert_int_equal(rig_state(sb), SANDBOX_PAUSED);
	assert_int_equal(rig_row_state(&rig, sb->id, NULL), SANDBOX_RUNNING);
	rig_tick(&rig, 1);
	assert_int_equal(rig_row_state(&rig, sb->id, NULL), SANDBOX_PAUSED);
	assert_true(metrics_value(rig.metrics, METRIC_STORE_ERRORS, LABELS("put_sandbox")) == 1);
	rig_close(&rig);
}

static void a_newer_change_that_was_refused_is_not_taken_for_written(void **state)
{
	const struct sandbox_pair one[] = { { "v", "1" } }, two[] = { { "v", "2" } };
	struct sandbox_patch patch = { .has_metadata = true, .metadata = one, .n_metadata = 1 };
	struct sandbox_rig rig;
	struct told first = { 0 }, second = { 0 };
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	rig.faults.is_held = true;
	sandbox_patch(sb, &patch, rig_told, &first);
	patch.metadata = two;
	rig.faults.refuse_in = 1;
	sandbox_patch(sb, &patch, rig_told, &second);
	rig.faults.is_held = false;
	rig_run(&rig); /* the older one is written now */
	assert_int_equal(first.err.code, 0);
	assert_int_equal(second.err.code, EAGAIN);
	assert_false(list_is_empty(&sb->dirty));
	rig_tick(&rig, 1);
	assert_true(list_is_empty(&sb->dirty));
	rig_death(&rig);
	rig_birth(&rig);
	sb = sandboxes_find(rig.all, "web", "ann");
	assert_string_equal(sb->metadata.items[0].value, "2");
	rig_close(&rig);
}

static void nothing_runs_in_a_sandbox_that_is_not_running(void **state)
{
	static const enum sandbox_state states[] = { SANDBOX_CREATING, SANDBOX_PAUSING,
						     SANDBOX_PAUSED, SANDBOX_RESUMING,
						     SANDBOX_STOPPING };
	struct exec_request command = { .command = "true" };
	struct sandbox_patch patch = { .has_timeout = true, .timeout_ms = 1000 };
	struct sandbox_rig rig;
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		enum sandbox_state s = states[i];
		struct exec_told x = { 0 };
		struct told paused = { 0 }, resumed = { 0 }, patched = { 0 };

		sandbox_adopt_state(sb, s);
		exec_start(sb, &command, rig_exec_told, &x);
		sandbox_patch(sb, &patch, rig_told, &patched);
		if (s != SANDBOX_PAUSING && s != SANDBOX_PAUSED)
			sandbox_pause(sb, rig_told, &paused);
		if (s != SANDBOX_RESUMING && s != SANDBOX_PAUSED)
			sandbox_resume(sb, rig_told, &resumed);
		rig_turn(&rig);
		assert_int_equal(x.err.code, EBUSY);
		assert_int_equal(sb->state, s);
		if (s != SANDBOX_PAUSED)
			assert_int_equal(patched.err.code, EBUSY);
		if (s != SANDBOX_PAUSING && s != SANDBOX_PAUSED)
			assert_int_equal(paused.err.code, EBUSY);
		if (s != SANDBOX_RESUMING && s != SANDBOX_PAUSED)
			assert_int_equal(resumed.err.code, EBUSY);
	}
	sandbox_adopt_state(sb, SANDBOX_RUNNING);
	rig_close(&rig);
}

static void deleting_while_it_is_being_paused_or_resumed_ends_both(void **state)
{
	struct sandbox_rig rig;

	(void)state;
	rig_open(&rig);
	for (int is_resume = 0; is_resume < 2; is_resume++) {
		struct sandbox *sb = rig_create(&rig, "web");
		struct told changed = { 0 }, ended = { 0 };

		if (is_resume) {
			sandbox_pause(sb, rig_told, &changed);
			rig_run(&rig);
			sandbox_resume(sb, rig_told, &changed);
		} else {
			sandbox_pause(sb, rig_told, &changed);
		}
		sandbox_delete(sb, "deleted", rig_told, &ended);
		rig_turn(&rig); /* before the provider has answered */
		rig_run(&rig);
		assert_int_equal(changed.err.code, EBUSY);
		assert_int_equal(ended.err.code, 0);
		rig_assert_nothing_left(&rig);
	}
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_to_live_ends_a_sandbox_and_can_be_moved),
		cmocka_unit_test(clocks_stand_still_while_paused),
		cmocka_unit_test(an_idle_sandbox_ends_and_a_used_one_does_not),
		cmocka_unit_test(what_ended_long_ago_is_forgotten),
		cmocka_unit_test(pausing_and_resuming_twice_is_once),
		cmocka_unit_test(
			a_freeze_that_fails_leaves_it_running_and_a_thaw_that_fails_paused),
		cmocka_unit_test(a_pause_that_the_store_does_not_take_is_told_but_true),
		cmocka_unit_test(a_newer_change_that_was_refused_is_not_taken_for_written),
		cmocka_unit_test(nothing_runs_in_a_sandbox_that_is_not_running),
		cmocka_unit_test(deleting_while_it_is_being_paused_or_resumed_ends_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
