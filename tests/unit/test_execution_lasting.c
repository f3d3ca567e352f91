/* Executions without a bound of time: written down once they last, and found by what they are. */
#include "check.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "sandbox/execution.h"
#include "sandbox_rig.h"

static const char *const argv[] = { "/bin/bash", "-l", "-c", "serve" };
static const struct sandbox_pair env[] = { { "SECRET", "value" } };
static const struct exec_request request = {
	.argv = argv,
	.argc = 4,
	.env = env,
	.n_env = 1,
	.tag = "web",
	.is_unbounded = true,
	.is_whole = true,
};

struct test {
	struct sandbox_rig rig;
	struct sandbox *sb;
	struct fake_box *box;
	struct exec_told t;
	struct exec_info info;
	uint32_t id;
};

static int setup(void **state)
{
	static struct test t;

	t = (struct test){ 0 };
	rig_open(&t.rig);
	t.sb = rig_create(&t.rig, "");
	t.box = rig_box(&t.rig, t.sb->id);
	*state = &t;
	return 0;
}

static int teardown(void **state)
{
	struct test *t = *state;

	exec_told_done(&t->t);
	rig_close(&t->rig);
	return 0;
}

static void start(struct test *t, const struct exec_request *req)
{
	t->id = rig_exec(&t->rig, t->sb, req, &t->t);
	exec_info(t->t.x, &t->info);
}

static void the_box_is_told_of_no_deadline_and_to_wait_for_the_pipes(void **state)
{
	struct test *t = *state;
	struct exec_request req = request;
	struct guest_exec e;
	struct rd payload;

	req.timeout_ms = 100 * 3600 * 1000; /* above the operator's maximum */
	exec_start(t->sb, &request, rig_exec_told, &t->t);
	rig_expect(&t->rig, t->box, G_EXEC, &payload);
	assert_int_equal(guest_get_exec(&payload, &e), 0);
	assert_int_equal(e.timeout_ms, 0);
	assert_int_equal(e.flags, EXEC_LOGIN | EXEC_KEEP | EXEC_WHOLE);
	exec_start(t->sb, &req, rig_exec_told, &t->t);
	rig_expect(&t->rig, t->box, G_EXEC, &payload);
	assert_int_equal(guest_get_exec(&payload, &e), 0);
	assert_int_equal(e.timeout_ms, req.timeout_ms);
}

static void one_that_lasts_is_written_down_without_the_values_of_its_variables(void **state)
{
	struct test *t = *state;
	struct exec_row_look row;

	start(t, &request);
	rig_run(&t->rig);
	assert_int_equal(rig_exec_row(&t->rig, t->info.id).r, -ENOENT);
	rig_tick(&t->rig, 1);
	rig_run(&t->rig);
	row = rig_exec_row(&t->rig, t->info.id);
	assert_int_equal(row.r, 0);
	assert_true(row.is_live);
	assert_non_null(strstr(row.content, "\"tag\":\"web\""));
	assert_non_null(strstr(row.content, "SECRET"));
	assert_null(strstr(row.content, "value"));
	rig_say_exit(t->box, t->id, 5, 0);
	rig_run(&t->rig);
	row = rig_exec_row(&t->rig, t->info.id);
	assert_false(row.is_live);
	assert_int_equal(row.exit_code, 5);
	assert_int_equal(t->sb->n_running, 0);
	assert_int_equal(t->sb->n_unrecorded, 0);
}

static void one_that_ends_at_once_is_written_down_once(void **state)
{
	struct test *t = *state;
	uint32_t acks = 0;
	struct wire_head head;
	struct rd payload;

	start(t, &request);
	t->rig.faults.is_held = true; /* its end is on the way when the time has come */
	rig_say_exit(t->box, t->id, 0, 0);
	rig_run(&t->rig);
	rig_tick(&t->rig, 2);
	rig_run(&t->rig);
	t->rig.faults.is_held = false;
	rig_run(&t->rig);
	assert_int_equal(rig_exec_row(&t->rig, t->info.id).r, 0);
	assert_int_equal(t->sb->n_unrecorded, 0);
	while (rig_recv(&t->rig, t->box, &head, &payload))
		acks += head.type == G_ACK;
	assert_int_equal(acks, 1);
}

static void a_start_is_told_before_it_is_written_down(void **state)
{
	struct test *t = *state;
	struct rd payload;

	exec_start(t->sb, &request, rig_exec_told, &t->t);
	t->id = rig_expect(&t->rig, t->box, G_EXEC, &payload);
	t->rig.faults.is_held = true; /* the store takes its time, and the box does, too */
	rig_tick(&t->rig, 1);
	rig_run(&t->rig);
	assert_null(t->t.x);
	rig_say_started(t->box, t->id, 7);
	rig_run(&t->rig);
	assert_non_null(t->t.x); /* from here on a reader may hold what comes */
	t->rig.faults.is_held = false;
	rig_run(&t->rig);
	rig_say_exit(t->box, t->id, 0, 0);
	rig_run(&t->rig);
}

static void one_that_cannot_be_written_down_goes_on(void **state)
{
	struct test *t = *state;

	start(t, &request);
	rig_run(&t->rig);
	t->rig.faults.fail_in = 1;
	t->rig.faults.fail_with = ENOSPC;
	rig_tick(&t->rig, 1);
	rig_run(&t->rig);
	rig_expect_nothing(&t->rig, t->box);
	assert_int_equal(t->sb->n_running, 1);
	rig_say_exit(t->box, t->id, 0, 0);
	rig_run(&t->rig);
	assert_int_equal(rig_exec_row(&t->rig, t->info.id).r, 0);
}

static bool has_pid(void *user, const struct exec_info *info)
{
	return info->pid == *(const uint32_t *)user;
}

static void the_newest_of_those_that_are_meant_is_found(void **state)
{
	struct test *t = *state;
	struct exec_told other = { 0 };
	struct exec_info info;
	uint32_t pid;

	start(t, &request);
	exec_info(t->t.x, &info);
	assert_int_equal(info.n_env, 1);
	assert_string_equal(info.env[0].value, "value");
	pid = info.pid;
	assert_ptr_equal(exec_search(t->sb, has_pid, &pid), t->t.x);
	(void)rig_exec(&t->rig, t->sb, &request, &other); /* the rig gives all the same number */
	assert_ptr_equal(exec_search(t->sb, has_pid, &pid), other.x);
	pid++;
	assert_null(exec_search(t->sb, has_pid, &pid));
	exec_told_done(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(the_box_is_told_of_no_deadline_and_to_wait_for_the_pipes),
		TEST(one_that_lasts_is_written_down_without_the_values_of_its_variables),
		TEST(a_start_is_told_before_it_is_written_down),
		TEST(one_that_ends_at_once_is_written_down_once),
		TEST(one_that_cannot_be_written_down_goes_on),
		TEST(the_newest_of_those_that_are_meant_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
