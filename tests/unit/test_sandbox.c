#include "check.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "fault.h"
#include "sandbox/files.h"
#include "sandbox/registry.h"
#include "sandbox_rig.h"

/* ---- making ---- */

static void a_created_sandbox_runs_in_a_box_of_its_own_and_is_recorded(void **state)
{
	const struct sandbox_pair env[] = { { "A", "1" }, { "B", "two words" } };
	const struct sandbox_pair metadata[] = { { "job", "42" } };
	struct sandbox_request req = rig_request("web");
	struct sandbox_rig rig;
	struct sandbox_info info;
	struct told t = { 0 };

	(void)state;
	rig_open(&rig);
	req.template = "node";
	req.env = env;
	req.n_env = 2;
	req.metadata = metadata;
	req.n_metadata = 1;
	req.limits.memory_bytes = 64 << 20;
	sandbox_create(rig.all, &req, rig_told, &t);
	assert_int_equal(t.calls, 0);
	rig_run(&rig);
	assert_int_equal(t.calls, 1);
	assert_int_equal(t.state, SANDBOX_RUNNING);
	assert_false(t.is_existing);
	sandbox_info(t.sb, &info);
	assert_true(id_is_valid(info.id));
	assert_string_equal(info.owner, "ann");
	assert_string_equal(info.name, "web");
	assert_string_equal(info.template, "node");
	assert_int_equal(info.limits.memory_bytes, 64 << 20);
	assert_int_equal(info.limits.pids, LIMIT_PIDS_DEFAULT);
	assert_int_equal(info.n_env, 2);
	assert_string_equal(info.env[1].value, "two words");
	assert_string_equal(info.metadata[0].name, "job");
	assert_int_equal(info.created_ms, rig.wall_ms);
	assert_int_equal(info.expires_ms, rig.wall_ms + 600000);
	assert_non_null(rig_box(&rig, info.id));
	assert_string_equal(rig_box(&rig, info.id)->id, info.box_id);
	assert_int_equal(rig_box(&rig, info.id)->template_id, template_find("node")->id);
	assert_int_equal(rig_row_state(&rig, info.id, NULL), SANDBOX_RUNNING);
	assert_ptr_equal(sandboxes_find(rig.all, info.id, "ann"), t.sb);
	assert_ptr_equal(sandboxes_find(rig.all, "web", "ann"), t.sb);
	assert_ptr_equal(sandboxes_find(rig.all, info.id, NULL), t.sb);
	assert_null(sandboxes_find(rig.all, info.id, "bob"));
	assert_null(sandboxes_find(rig.all, "web", "bob"));
	assert_true(metrics_value(rig.metrics, METRIC_SANDBOXES, LABELS("running")) == 1);
	rig_close(&rig);
}

static void what_cannot_be_asked_for_is_refused_by_its_name(void **state)
{
	static char long_value[40 << 10];
	const struct sandbox_pair bad_env[] = { { "1A", "x" } };
	const struct sandbox_pair twice[] = { { "A", "x" }, { "A", "y" } };
	const struct sandbox_pair large[] = { { "A", long_value } };
	const struct sandbox_pair no_utf8[] = { { "A", "\xff" } };
	const struct sandbox_pair no_name[] = { { "", "x" } };
	const struct {
		struct sandbox_request req;
		const char *says;
	} cases[] = {
		{ { .owner = "ann", .name = "Web", .template = "" }, "name:" },
		{ { .owner = "ann", .name = "-web", .template = "" }, "name:" },
		{ { .owner = "ann", .name = "a/b", .template = "" }, "name:" },
		{ { .owner = "ann",
		    .name = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		    .template = "" },
		  "name:" },
		{ { .owner = "", .name = "", .template = "" }, "owner:" },
		{ { .owner = "ann", .name = "", .template = "ruby" }, "template:" },
		{ { .owner = "ann", .name = "", .template = "", .get_or_create = true }, "name:" },
		{ { .owner = "ann", .name = "", .template = "", .timeout_ms = 3600001 },
		  "timeout:" },
		{ { .owner = "ann", .name = "", .template = "", .limits.pids = 1 }, "" },
		{ { .owner = "ann", .name = "", .template = "", .env = bad_env, .n_env = 1 },
		  "env:" },
		{ { .owner = "ann", .name = "", .template = "", .env = twice, .n_env = 2 },
		  "env:" },
		{ { .owner = "ann", .name = "", .template = "", .env = large, .n_env = 1 },
		  "env:" },
		{ { .owner = "ann", .name = "", .template = "", .env = no_utf8, .n_env = 1 },
		  "env:" },
		{ { .owner = "ann", .name = "", .template = "", .env = twice, .n_env = 257 },
		  "env:" },
		{ { .owner = "ann",
		    .name = "",
		    .template = "",
		    .metadata = no_name,
		    .n_metadata = 1 },
		  "metadata:" },
		{ { .owner = "ann",
		    .name = "",
		    .template = "",
		    .metadata = large,
		    .n_metadata = 1 },
		  "metadata:" },
		{ { .owner = "ann",
		    .name = "",
		    .template = "",
		    .metadata = twice,
		    .n_metadata = 65 },
		  "metadata:" },
	};
	struct sandbox_rig rig;

	(void)state;
	memset(long_value, 'x', sizeof(long_value) - 1);
	rig_open(&rig);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct told t = { 0 };
		unsigned calls = rig.fake.calls;

		sandbox_create(rig.all, &cases[i].req, rig_told, &t);
		assert_int_equal(t.calls, 0);
		rig_run(&rig);
		assert_int_equal(t.calls, 1);
		assert_true(t.err.code == EINVAL || t.err.code == ERANGE);
		if (strncmp(t.err.text, cases[i].says, strlen(cases[i].says)) != 0)
			fail_msg("case %zu: %s", i, t.err.text);
		assert_int_equal(rig.fake.calls, calls);
	}
	rig_assert_nothing_left(&rig);
	rig_close(&rig);
}

static void creating_that_fails_at_any_step_leaves_nothing(void **state)
{
	static const struct {
		const char *what;
		unsigned claim_fails, at_once;
		unsigned write_fails, write_refused;
		int want;
	} cases[] = {
		{ "claim refused at once", EDQUOT, 1, 0, 0, EDQUOT },
		{ "a limit that only the launcher knows", ERANGE, 0, 0, 0, ERANGE },
		{ "a mount that failed", EINVAL, 0, 0, 0, EREMOTEIO },
		{ "a namespace that is denied", EPERM, 0, 0, 0, EREMOTEIO },
		{ "no space for a box", ENOSPC, 0, 0, 0, EREMOTEIO },
		{ "row not written", 0, 0, ENOSPC, 0, ENOSPC },
		{ "row refused", 0, 0, 0, 1, EAGAIN },
	};
	struct sandbox_rig rig;

	(void)state;
	rig_open(&rig);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sandbox_request req = rig_request("web");
		struct told t = { 0 };

		rig.fake.fail_in = cases[i].claim_fails ? 1 : 0;
		rig.fake.fail_with = (int)cases[i].claim_fails;
		rig.fake.fail_at_once = cases[i].at_once;
		rig.faults.fail_in = cases[i].write_fails ? 1 : 0;
		rig.faults.fail_with = (int)cases[i].write_fails;
		rig.faults.refuse_in = cases[i].write_refused;
		sandbox_create(rig.all, &req, rig_told, &t);
		assert_int_equal(t.calls, 0);
		rig_run(&rig);
		assert_int_equal(t.calls, 1);
		assert_int_equal(t.err.code, cases[i].want);
		if (cases[i].claim_fails)
			assert_string_equal(t.err.text, "claim refused");
		rig_assert_nothing_left(&rig);
		assert_null(sandboxes_find(rig.all, "web", "ann"));
	}
	(void)rig_create(&rig, "web"); /* and the name is free */
	rig_close(&rig);
}

static void creating_without_memory_fails_cleanly_wherever_that_strikes(void **state)
{
	struct sandbox_rig rig;
	bool is_whole = false;

	(void)state;
	rig_open(&rig);
	for (size_t n = 1; n < 200 && !is_whole; n++) {
		struct sandbox_request req = rig_request("web");
		struct told t = { 0 };

		fault_arm(n);
		sandbox_create(rig.all, &req, rig_told, &t);
		rig_run(&rig);
		is_whole = !fault_disarm();
		rig_run(&rig);
		assert_int_equal(t.calls, 1);
		if (t.err.code) {
			assert_null(sandboxes_find(rig.all, "web", "ann"));
			assert_int_equal(rig.fake.live, 0);
			continue;
		}
		sandbox_delete(t.sb, "deleted", rig_told, &t);
		rig_run(&rig);
	}
	assert_true(is_whole);
	rig_tick(&rig, 2);
	rig_assert_nothing_left(&rig);
	rig_close(&rig);
}

static void there_are_no_more_than_the_limit(void **state)
{
	struct sandbox_request req = rig_request("");
	struct sandbox_rig rig;
	struct told t = { 0 };
	struct sandbox *sb = NULL;

	(void)state;
	rig_open(&rig);
	for (unsigned i = 0; i < rig.settings.max_sandboxes; i++)
		sb = rig_create(&rig, "");
	sandbox_create(rig.all, &req, rig_told, &t);
	rig_run(&rig);
	assert_int_equal(t.err.code, EDQUOT);
	sandbox_delete(sb, "deleted", rig_told, &t);
	rig_run(&rig);
	assert_int_equal(t.err.code, 0);
	(void)rig_create(&rig, "");
	rig_close(&rig);
}

static void a_name_is_one_owners_until_it_has_ended(void **state)
{
	struct sandbox_request req = rig_request("web");
	struct sandbox_rig rig;
	struct told first = { 0 }, second = { 0 }, bobs = { 0 };

	(void)state;
	rig_open(&rig);
	sandbox_create(rig.all, &req, rig_told, &first);
	sandbox_create(rig.all, &req, rig_told, &second); /* while the first is being made */
	req.owner = "bob";
	sandbox_create(rig.all, &req, rig_told, &bobs);
	rig_run(&rig);
	assert_int_equal(first.err.code, 0);
	assert_int_equal(second.err.code, EEXIST);
	assert_int_equal(bobs.err.code, 0);
	assert_string_not_equal(first.id, bobs.id);
	sandbox_delete(first.sb, "deleted", rig_told, &first);
	rig_run(&rig);
	(void)rig_create(&rig, "web");
	rig_close(&rig);
}

/* A client may ask for any text; "team" must not get at what is "team/ann"'s by asking for it. */
static void a_name_is_never_another_owners_whatever_they_are_called(void **state)
{
	struct sandbox_request req = rig_request("web");
	struct sandbox_rig rig;
	struct told t = { 0 };

	(void)state;
	rig_open(&rig);
	req.owner = "team/ann";
	sandbox_create(rig.all, &req, rig_told, &t);
	rig_run(&rig);
	assert_int_equal(t.err.code, 0);
	assert_ptr_equal(sandboxes_find(rig.all, "web", "team/ann"), t.sb);
	assert_null(sandboxes_find(rig.all, "ann/web", "team"));
	assert_null(sandboxes_find(rig.all, "/ann/web", "team"));
	assert_null(sandboxes_find(rig.all, "team/ann/web", ""));
	assert_null(sandboxes_find(rig.all, "web", "team/ann/"));
	rig_close(&rig);
}

static void a_hundred_callers_who_get_or_create_share_one(void **state)
{
	struct sandbox_request req = rig_request("web");
	struct sandbox_rig rig;
	struct told t[100] = { 0 };
	int made = 0;

	(void)state;
	rig_open(&rig);
	req.get_or_create = true;
	for (size_t i = 0; i < 100; i++) {
		sandbox_create(rig.all, &req, rig_told, &t[i]);
		if (i % 10 == 9) /* at different points of its making */
			(void)fake_step(&rig.fake);
	}
	rig_run(&rig);
	for (size_t i = 0; i < 100; i++) {
		assert_int_equal(t[i].calls, 1);
		assert_int_equal(t[i].err.code, 0);
		assert_ptr_equal(t[i].sb, t[0].sb);
		made += !t[i].is_existing;
	}
	assert_int_equal(made, 1);
	assert_int_equal(rig.fake.live, 1);
	rig_close(&rig);
}

static void all_who_wait_for_one_that_cannot_be_made_are_told(void **state)
{
	struct sandbox_request req = rig_request("web");
	struct sandbox_rig rig;
	struct told t[10] = { 0 };

	(void)state;
	rig_open(&rig);
	req.get_or_create = true;
	rig.faults.fail_in = 1;
	rig.faults.fail_with = EROFS;
	for (size_t i = 0; i < 10; i++)
		sandbox_create(rig.all, &req, rig_told, &t[i]);
	rig_run(&rig);
	for (size_t i = 0; i < 10; i++) {
		assert_int_equal(t[i].calls, 1);
		assert_int_equal(t[i].err.code, EROFS);
	}
	rig_assert_nothing_left(&rig);
	rig_close(&rig);
}

static void callers_who_wait_for_one_change_are_bounded(void **state)
{
	struct sandbox_request req = rig_request("web");
	struct sandbox_rig rig;
	struct told *t = calloc(SANDBOX_WAITERS_MAX + 1, sizeof(*t));

	(void)state;
	rig_open(&rig);
	req.get_or_create = true;
	for (size_t i = 0; i <= SANDBOX_WAITERS_MAX; i++)
		sandbox_create(rig.all, &req, rig_told, &t[i]);
	rig_run(&rig);
	for (size_t i = 0; i < SANDBOX_WAITERS_MAX; i++)
		assert_int_equal(t[i].err.code, 0);
	assert_int_equal(t[SANDBOX_WAITERS_MAX].err.code, EAGAIN);
	rig_close(&rig);
	free(t);
}

static void a_box_that_dies_while_its_sandbox_is_made_leaves_a_failed_one(void **state)
{
	struct sandbox_request req = rig_request("web");
	struct sandbox_rig rig;
	struct told t = { 0 };
	struct sandbox_info info;
	char id[ID_LEN + 1];

	(void)state;
	rig_open(&rig);
	rig.faults.is_held = true;
	sandbox_create(rig.all, &req, rig_told, &t);
	assert_int_equal(fake_run(&rig.fake), 1);
	sandbox_info(sandboxes_find(rig.all, "web", "ann"), &info);
	memcpy(id, info.id, sizeof(id));
	fake_kill(&rig.fake, info.box_id, SIGKILL);
	(void)fake_run(&rig.fake);
	rig.faults.is_held = false;
	rig_run(&rig);
	assert_int_equal(t.calls, 1);
	assert_int_equal(t.err.code, EPIPE);
	assert_non_null(strstr(t.err.text, "signal 9"));
	rig_assert_nothing_left(&rig);
	assert_int_equal(rig_row_state(&rig, id, NULL), SANDBOX_FAILED);
	(void)rig_create(&rig, "web"); /* and the name is free */
	rig_close(&rig);
}

/* ---- ending ---- */

static void a_deleted_sandbox_is_gone_and_remembered(void **state)
{
	struct sandbox_rig rig;
	struct told t[3] = { 0 };
	struct sandbox *sb;
	char id[ID_LEN + 1], *reason = NULL;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	memcpy(id, sb->id, sizeof(id));
	for (size_t i = 0; i < 3; i++) { /* several share one end */
		sandbox_delete(sb, "deleted", rig_told, &t[i]);
		assert_int_equal(t[i].calls, 0);
	}
	rig_turn(&rig);
	assert_int_equal(rig_row_state(&rig, id, NULL), SANDBOX_STOPPING); /* before the box goes */
	assert_int_equal(rig.fake.live, 1);
	rig_run(&rig);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(t[i].calls, 1);
		assert_int_equal(t[i].err.code, 0);
		assert_int_equal(t[i].state, SANDBOX_STOPPED);
	}
	rig_assert_nothing_left(&rig);
	assert_null(sandboxes_find(rig.all, id, "ann"));
	assert_int_equal(rig_row_state(&rig, id, &reason), SANDBOX_STOPPED);
	assert_string_equal(reason, "deleted");
	free(reason);
	rig_close(&rig);
}

static void deleting_one_that_is_being_made_waits_for_it(void **state)
{
	struct sandbox_request req = rig_request("web");
	struct sandbox_rig rig;
	struct told made = { 0 }, ended = { 0 };

	(void)state;
	rig_open(&rig);
	sandbox_create(rig.all, &req, rig_told, &made);
	sandbox_delete(sandboxes_find(rig.all, "web", "ann"), "deleted", rig_told, &ended);
	rig_turn(&rig);
	assert_int_equal(ended.calls, 0);
	rig_run(&rig);
	assert_int_equal(made.calls, 1);
	assert_int_equal(made.err.code, 0);
	assert_int_equal(ended.calls, 1);
	assert_int_equal(ended.err.code, 0);
	rig_assert_nothing_left(&rig);
	rig_close(&rig);
}

static void a_box_that_cannot_be_destroyed_is_tried_again(void **state)
{
	struct sandbox_rig rig;
	struct told t = { 0 };
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	rig.fake.fail_in = 1;
	rig.fake.fail_with = EIO;
	sandbox_delete(sb, "deleted", rig_told, &t);
	rig_run(&rig);
	assert_int_equal(t.err.code, EREMOTEIO);
	assert_int_equal(rig_state(sb), SANDBOX_STOPPING);
	assert_int_equal(rig.fake.live, 1);
	rig_tick(&rig, 1);
	rig_assert_nothing_left(&rig);
	rig_close(&rig);
}

static void a_box_that_is_gone_already_is_as_good_as_destroyed(void **state)
{
	struct sandbox_rig rig;
	struct told t = { 0 };
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	rig.fake.on_death = NULL; /* the news is on its way, and comes too late */
	fake_kill(&rig.fake, sb->box_id, SIGKILL);
	sandbox_delete(sb, "deleted", rig_told, &t);
	rig_run(&rig);
	assert_int_equal(t.calls, 1);
	assert_int_equal(t.err.code, 0);
	rig_assert_nothing_left(&rig);
	rig_close(&rig);
}

static void an_end_that_the_store_does_not_take_is_told_and_written_later(void **state)
{
	struct sandbox_rig rig;
	struct told t = { 0 };
	struct sandbox *sb;
	char id[ID_LEN + 1];

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	memcpy(id, sb->id, sizeof(id));
	rig.faults.fail_in = 1;
	rig.faults.fail_on = true;
	rig.faults.fail_with = ENOSPC;
	sandbox_delete(sb, "deleted", rig_told, &t);
	rig_run(&rig);
	assert_int_equal(t.calls, 1);
	assert_int_equal(t.err.code, ENOSPC);
	assert_int_equal(rig.fake.live, 0); /* the end itself is true */
	assert_null(sandboxes_find(rig.all, id, "ann"));
	rig_tick(&rig, 3);
	assert_int_equal(rig_row_state(&rig, id, NULL), SANDBOX_RUNNING);
	rig.faults.fail_in = 0;
	rig_tick(&rig, 1);
	assert_int_equal(rig_row_state(&rig, id, NULL), SANDBOX_STOPPED);
	rig_assert_nothing_left(&rig);
	rig_close(&rig);
}

static void a_box_that_dies_fails_its_sandbox_and_says_how(void **state)
{
	static const struct {
		int status;
		uint32_t oom_kills;
		const char *reason;
	} cases[] = {
		{ SIGKILL, 1, "its box ended: killed by signal 9 (out of memory)" },
		{ SIGSEGV, 0, "its box ended: killed by signal 11" },
		{ 3 << 8, 0, "its box ended: exit status 3" },
		{ -1, 0, "its box ended" },
	};
	struct sandbox_rig rig;

	(void)state;
	rig_open(&rig);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sandbox *sb = rig_create(&rig, "web");
		char id[ID_LEN + 1], *reason = NULL;

		memcpy(id, sb->id, sizeof(id));
		rig.fake.usage.oom_kills = cases[i].oom_kills;
		fake_kill(&rig.fake, sb->box_id, cases[i].status);
		rig_run(&rig);
		assert_int_equal(rig_row_state(&rig, id, &reason), SANDBOX_FAILED);
		assert_string_equal(reason, cases[i].reason);
		free(reason);
		rig_assert_nothing_left(&rig);
	}
	rig_close(&rig);
}

static void a_box_that_hangs_up_without_dying_is_connected_again_then_given_up(void **state)
{
	struct sandbox_rig rig;
	struct sandbox *sb;
	char id[ID_LEN + 1], *reason = NULL;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	memcpy(id, sb->id, sizeof(id));
	for (int i = 0; i < 3; i++) {
		struct fake_box *box = rig_box(&rig, id);

		(void)close(box->guest);
		box->guest = -1;
		rig_run(&rig);
		assert_int_equal(rig_state(sb), SANDBOX_RUNNING);
		rig_tick(&rig, 2);
		rig_say_ready(box, 0);
		rig_run(&rig);
		assert_true(sb->is_guest_ready);
	}
	(void)close(rig_box(&rig, id)->guest);
	rig_box(&rig, id)->guest = -1;
	rig_run(&rig);
	rig_tick(&rig, 2);
	assert_int_equal(rig_row_state(&rig, id, &reason), SANDBOX_FAILED);
	assert_string_equal(reason, "its box does not answer");
	free(reason);
	rig_assert_nothing_left(&rig);
	rig_close(&rig);
}

static void a_box_that_lies_is_destroyed(void **state)
{
	struct sandbox_rig rig;
	struct sandbox *sb;
	char id[ID_LEN + 1];

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	memcpy(id, sb->id, sizeof(id));
	rig_say(rig_box(&rig, id), "garbage", 7);
	rig_run(&rig);
	rig_tick(&rig, 2);
	assert_int_equal(rig_row_state(&rig, id, NULL), SANDBOX_FAILED);
	rig_assert_nothing_left(&rig);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_created_sandbox_runs_in_a_box_of_its_own_and_is_recorded),
		cmocka_unit_test(what_cannot_be_asked_for_is_refused_by_its_name),
		cmocka_unit_test(creating_that_fails_at_any_step_leaves_nothing),
		cmocka_unit_test(creating_without_memory_fails_cleanly_wherever_that_strikes),
		cmocka_unit_test(there_are_no_more_than_the_limit),
		cmocka_unit_test(a_name_is_one_owners_until_it_has_ended),
		cmocka_unit_test(a_name_is_never_another_owners_whatever_they_are_called),
		cmocka_unit_test(a_hundred_callers_who_get_or_create_share_one),
		cmocka_unit_test(all_who_wait_for_one_that_cannot_be_made_are_told),
		cmocka_unit_test(callers_who_wait_for_one_change_are_bounded),
		cmocka_unit_test(a_box_that_dies_while_its_sandbox_is_made_leaves_a_failed_one),
		cmocka_unit_test(a_deleted_sandbox_is_gone_and_remembered),
		cmocka_unit_test(deleting_one_that_is_being_made_waits_for_it),
		cmocka_unit_test(a_box_that_cannot_be_destroyed_is_tried_again),
		cmocka_unit_test(a_box_that_is_gone_already_is_as_good_as_destroyed),
		cmocka_unit_test(an_end_that_the_store_does_not_take_is_told_and_written_later),
		cmocka_unit_test(a_box_that_dies_fails_its_sandbox_and_says_how),
		cmocka_unit_test(
			a_box_that_hangs_up_without_dying_is_connected_again_then_given_up),
		cmocka_unit_test(a_box_that_lies_is_destroyed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
