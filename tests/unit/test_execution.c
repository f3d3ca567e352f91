/* Executions: how they start. */
#include "check.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fault.h"
#include "sandbox/execution.h"
#include "sandbox_rig.h"

/* What a box was asked to run. */
static uint32_t take_exec(struct sandbox_rig *rig, struct fake_box *box, struct guest_exec *ret)
{
	struct rd payload;
	uint32_t id = rig_expect(rig, box, G_EXEC, &payload);

	assert_int_equal(guest_get_exec(&payload, ret), 0);
	return id;
}

static bool has_text(const char *const *list, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i], text) == 0)
			return true;
	return false;
}

/* ---- starting ---- */

static void
a_command_runs_in_a_shell_and_its_end_is_recorded_before_the_box_forgets_it(void **state)
{
	struct exec_request req = { .command = "echo hello" };
	struct sandbox_rig rig;
	struct guest_exec e;
	struct exec_told t = { 0 };
	struct exec_info info;
	struct exec_row_look row;
	struct buf out = { 0 };
	struct sandbox *sb;
	struct fake_box *box;
	uint32_t id;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	box = rig_box(&rig, sb->id);
	exec_start(sb, &req, rig_exec_told, &t);
	id = take_exec(&rig, box, &e);
	assert_int_equal(e.kind, EXEC_COMMAND);
	assert_int_equal(e.argc, 3);
	assert_string_equal(e.argv[0], "/bin/bash");
	assert_string_equal(e.argv[1], "-c");
	assert_string_equal(e.argv[2], "echo hello");
	assert_string_equal(e.cwd, "/workspace");
	assert_int_equal(e.timeout_ms, 30000);
	assert_int_equal(e.flags, EXEC_LOGIN | EXEC_KEEP | EXEC_SHELL);
	assert_true(id_is_valid(e.tag));
	rig_say_started(box, id, 7);
	rig_run(&rig);
	assert_int_equal(t.calls, 1);
	assert_non_null(exec_wait(t.x, rig_exec_ended, &t));
	exec_info(t.x, &info);
	assert_int_equal(info.state, EXECUTION_RUNNING);
	assert_int_equal(info.pid, 7);
	assert_ptr_equal(exec_find(sb, info.id), t.x);
	assert_int_equal(rig_exec_row(&rig, info.id).r, -ENOENT); /* no row at the start */
	rig.faults.is_held = true;
	rig_say_output(box, id, 1, 0, "hello\n", 6);
	rig_say_exit(box, id, 3, 0);
	rig_run(&rig);
	assert_int_equal(t.ends, 1); /* told at once: the answer does not wait for the store */
	rig_expect_nothing(&rig, box);
	rig.faults.is_held = false;
	rig_run(&rig);
	assert_int_equal(rig_expect(&rig, box, G_ACK, NULL), id);
	exec_info(t.x, &info);
	assert_int_equal(info.state, EXECUTION_EXITED);
	assert_int_equal(info.exit_code, 3);
	assert_int_equal(info.signal, 0);
	assert_int_equal(info.wall_us, 1500);
	assert_int_equal(info.cpu_us, 300);
	assert_int_equal(info.output_end, 6);
	assert_null(exec_find(sb, info.id));
	assert_int_equal(output_collect(exec_output(t.x), 1, &out), 0);
	assert_string_equal(buf_str(&out), "hello\n");
	row = rig_exec_row(&rig, info.id);
	assert_int_equal(row.r, 0);
	assert_false(row.is_live);
	assert_int_equal(row.exit_code, 3);
	assert_int_equal(row.output_bytes, 6);
	assert_string_equal(row.content, "{\"type\":\"command\",\"command\":\"echo hello\"}");
	buf_done(&out);
	exec_told_done(&t);
	rig_close(&rig);
}

static void each_kind_of_request_becomes_what_the_box_runs(void **state)
{
	const char *const argv[] = { "ls", "-l" };
	const struct {
		struct exec_request req;
		uint8_t kind, flags;
		const char *argv0, *last, *code;
		uint32_t timeout_ms;
	} cases[] = {
		{ { .argv = argv, .argc = 2 }, EXEC_COMMAND, 0, "ls", "-l", "", 30000 },
		{ { .kind = EXECUTION_CODE, .language = "python", .code = "print(1)" },
		  EXEC_PYTHON,
		  0,
		  NULL,
		  NULL,
		  "print(1)",
		  30000 },
		{ { .kind = EXECUTION_CODE, .language = "javascript", .code = "1" },
		  EXEC_NODE,
		  0,
		  NULL,
		  NULL,
		  "1",
		  30000 },
		{ { .kind = EXECUTION_CODE, .language = "bash", .code = "true" },
		  EXEC_COMMAND,
		  EXEC_SHELL,
		  "/bin/bash",
		  "true",
		  "",
		  30000 },
		{ { .kind = EXECUTION_PTY },
		  EXEC_COMMAND,
		  EXEC_PTY | EXEC_STDIN,
		  "/bin/bash",
		  "-l",
		  "",
		  0 },
		{ { .kind = EXECUTION_PTY, .command = "top" },
		  EXEC_COMMAND,
		  EXEC_PTY | EXEC_STDIN | EXEC_SHELL,
		  "/bin/bash",
		  "top",
		  "",
		  0 },
		{ { .command = "cat", .has_stdin = true },
		  EXEC_COMMAND,
		  EXEC_STDIN | EXEC_SHELL,
		  "/bin/bash",
		  "cat",
		  "",
		  30000 },
		{ { .command = "x", .background = true },
		  EXEC_COMMAND,
		  EXEC_SHELL,
		  "/bin/bash",
		  "x",
		  "",
		  0 },
		{ { .command = "x", .timeout_ms = 5 },
		  EXEC_COMMAND,
		  EXEC_SHELL,
		  "/bin/bash",
		  "x",
		  "",
		  5 },
	};
	struct sandbox_rig rig;
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct exec_told t = { 0 };
		struct guest_exec e;
		uint32_t id;

		exec_start(sb, &cases[i].req, rig_exec_told, &t);
		id = take_exec(&rig, rig_box(&rig, sb->id), &e);
		assert_int_equal(e.kind, cases[i].kind);
		assert_int_equal(e.flags, cases[i].flags | EXEC_LOGIN | EXEC_KEEP);
		assert_int_equal(e.timeout_ms, cases[i].timeout_ms);
		assert_string_equal(e.code, cases[i].code);
		if (cases[i].argv0) {
			assert_string_equal(e.argv[0], cases[i].argv0);
			assert_string_equal(e.argv[e.argc - 1], cases[i].last);
		} else {
			assert_int_equal(e.argc, 0);
		}
		assert_int_equal(has_text(e.envp, e.envc, "TERM=xterm-256color"),
				 cases[i].req.kind == EXECUTION_PTY);
		rig_say_started(rig_box(&rig, sb->id), id, 7);
		rig_run(&rig);
		assert_int_equal(t.err.code, 0);
		exec_told_done(&t);
	}
	rig_close(&rig);
}

static void a_bad_request_is_refused_by_its_name_and_reaches_no_box(void **state)
{
	static char large[70 << 10];
	const char *const argv[] = { "ls" };
	const char *const empty[] = { "" };
	const struct sandbox_pair bad_env[] = { { "A=B", "x" } };
	const struct {
		struct exec_request req;
		int code;
		const char *says;
	} cases[] = {
		{ { .kind = EXECUTION_COMMAND }, EINVAL, "command:" },
		{ { .argv = empty, .argc = 1 }, EINVAL, "command:" },
		{ { .command = "x", .argv = argv, .argc = 1 }, EINVAL, "command:" },
		{ { .argv = argv, .argc = GUEST_ARGS_MAX + 1 }, EINVAL, "argv:" },
		{ { .kind = EXECUTION_CODE, .language = "python" }, EINVAL, "code:" },
		{ { .kind = EXECUTION_CODE, .language = "ruby", .code = "1" },
		  EINVAL,
		  "language:" },
		{ { .kind = EXECUTION_CODE, .code = "1" }, EINVAL, "language:" },
		{ { .command = "x", .timeout_ms = 600001 }, EINVAL, "timeout:" },
		{ { .command = "x", .env = bad_env, .n_env = 1 }, EINVAL, "env:" },
		{ { .command = large }, E2BIG, "" },
	};
	struct sandbox_rig rig;
	struct sandbox *sb;

	(void)state;
	memset(large, 'x', sizeof(large) - 1);
	rig_open(&rig);
	sb = rig_create(&rig, "");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct exec_told t = { 0 };

		exec_start(sb, &cases[i].req, rig_exec_told, &t);
		assert_int_equal(t.calls, 0);
		rig_run(&rig);
		assert_int_equal(t.calls, 1);
		assert_int_equal(t.err.code, cases[i].code);
		if (strncmp(t.err.text, cases[i].says, strlen(cases[i].says)) != 0)
			fail_msg("case %zu: %s", i, t.err.text);
		rig_expect_nothing(&rig, rig_box(&rig, sb->id));
	}
	assert_int_equal(sb->n_running, 0);
	rig_close(&rig);
}

static void variables_of_the_request_win_over_those_of_the_sandbox_and_the_defaults(void **state)
{
	const struct sandbox_pair own[] = { { "A", "sandbox" }, { "B", "sandbox" } };
	const struct sandbox_pair asked[] = { { "B", "request" }, { "LANG", "C" } };
	struct sandbox_request req = rig_request("");
	struct exec_request command = { .command = "env", .env = asked, .n_env = 2 };
	struct sandbox_rig rig;
	struct exec_told x = { 0 };
	struct guest_exec e;
	struct told t = { 0 };

	(void)state;
	rig_open(&rig);
	req.env = own;
	req.n_env = 2;
	sandbox_create(rig.all, &req, rig_told, &t);
	rig_run(&rig);
	exec_start(t.sb, &command, rig_exec_told, &x);
	(void)take_exec(&rig, rig_box(&rig, t.id), &e);
	assert_int_equal(e.envc, 4);
	assert_true(has_text(e.envp, e.envc, "A=sandbox"));
	assert_true(has_text(e.envp, e.envc, "B=request"));
	assert_true(has_text(e.envp, e.envc, "LANG=C"));
	assert_true(has_text(e.envp, e.envc, "PATH=" GUEST_PATH));
	rig_close(&rig);
}

static void check_start_failed(int code)
{
	const char *const argv[] = { "/no/such" };
	struct exec_request req = { .argv = argv, .argc = 1 };
	struct sandbox_rig rig;
	struct exec_told t = { 0 };
	struct exec_info info;
	struct exec_row_look row;
	uint8_t frame[128];
	struct sandbox *sb;
	struct fake_box *box;
	uint32_t id;

	rig_open(&rig);
	sb = rig_create(&rig, "");
	box = rig_box(&rig, sb->id);
	exec_start(sb, &req, rig_exec_told, &t);
	id = rig_expect(&rig, box, G_EXEC, NULL);
	rig_say(box, frame, guest_put_error(frame, sizeof(frame), id, code, "no such program"));
	rig_run(&rig);
	assert_int_equal(t.calls, 1);
	assert_int_equal(t.err.code, 0);
	exec_info(t.x, &info);
	assert_int_equal(info.state, EXECUTION_FAILED);
	assert_string_equal(info.reason, "no such program");
	row = rig_exec_row(&rig, info.id);
	assert_int_equal(row.r, 0);
	assert_int_equal(row.state, EXECUTION_FAILED);
	rig_expect_nothing(&rig, box); /* an error needs no acknowledgement */
	exec_told_done(&t);
	rig_close(&rig);
}

static void one_that_the_box_cannot_start_has_failed_and_is_recorded(void **state)
{
	(void)state;
	check_start_failed(ENOENT);
	check_start_failed(EPIPE); /* which is not the end of its box */
	check_start_failed(EPROTO);
}

static void one_in_the_background_is_recorded_before_the_answer(void **state)
{
	struct exec_request req = { .command = "server", .background = true };
	struct sandbox_rig rig;
	struct exec_told t = { 0 };
	struct exec_info info;
	struct exec_row_look row;
	struct sandbox *sb;
	struct fake_box *box;
	uint32_t id;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	box = rig_box(&rig, sb->id);
	rig.faults.is_held = true;
	exec_start(sb, &req, rig_exec_told, &t);
	id = rig_expect(&rig, box, G_EXEC, NULL);
	rig_say_started(box, id, 7);
	rig_run(&rig);
	assert_int_equal(t.calls, 0);
	rig.faults.is_held = false;
	rig_run(&rig);
	assert_int_equal(t.calls, 1);
	exec_info(t.x, &info);
	row = rig_exec_row(&rig, info.id);
	assert_true(row.is_live);
	assert_true(info.flags & EXECUTION_BACKGROUND);
	exec_told_done(&t);
	rig_close(&rig);
}

static void one_in_the_background_that_cannot_be_recorded_is_cancelled(void **state)
{
	struct exec_request req = { .command = "server", .background = true };
	struct sandbox_rig rig;
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	for (int is_refused = 0; is_refused < 2; is_refused++) {
		struct fake_box *box = rig_box(&rig, sb->id);
		struct exec_told t = { 0 };
		uint32_t id;

		if (is_refused) {
			rig.faults.refuse_in = 1;
		} else {
			rig.faults.fail_in = 1;
			rig.faults.fail_with = ENOSPC;
		}
		exec_start(sb, &req, rig_exec_told, &t);
		id = rig_expect(&rig, box, G_EXEC, NULL);
		rig_say_started(box, id, 7);
		rig_run(&rig);
		assert_int_equal(t.calls, 1);
		assert_int_equal(t.err.code, is_refused ? EAGAIN : ENOSPC);
		assert_int_equal(rig_expect(&rig, box, G_CANCEL, NULL), id);
		rig_say_exit(box, id, SIGTERM, EXIT_SIGNALED | EXIT_CANCELLED);
		rig_run(&rig);
		assert_int_equal(rig_expect(&rig, box, G_ACK, NULL), id);
	}
	assert_int_equal(sb->n_running, 0);
	rig_close(&rig);
}

static void one_without_memory_is_refused_or_runs_and_never_half(void **state)
{
	static const char data[40000];
	struct exec_request req = { .command = "x", .background = true, .has_stdin = true };
	struct sandbox_rig rig;
	struct sandbox *sb;
	bool is_whole = false;
	int refused = 0;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	for (size_t n = 1; n < 300 && !is_whole; n++) {
		struct fake_box *box = rig_box(&rig, sb->id);
		struct exec_told t = { 0 };
		struct wire_head head;
		struct rd payload;

		fault_arm(n);
		exec_start(sb, &req, rig_exec_told, &t);
		while (rig_recv(&rig, box, &head, &payload))
			if (head.type == G_EXEC) {
				rig_say_started(box, head.id, 7);
				rig_say_output(box, head.id, 1, 0, data, 20000);
				rig_say_output(box, head.id, 2, 0, data, 20000);
				rig_say_exit(box, head.id, 0, 0);
			}
		rig_run(&rig);
		is_whole = !fault_disarm();
		rig_tick(&rig, 2);
		assert_int_equal(t.calls, 1);
		refused += t.err.code != 0;
		assert_int_equal(sb->n_running, 0);
		assert_int_equal(sb->n_unrecorded, 0);
		exec_told_done(&t);
	}
	assert_true(is_whole);
	assert_true(refused > 3);
	assert_int_equal(rig_state(sb), SANDBOX_RUNNING);
	rig_close(&rig);
}

static void no_more_run_at_once_than_the_limit(void **state)
{
	struct exec_request req = { .command = "sleep 1" };
	struct sandbox_rig rig;
	struct exec_told t[SANDBOX_EXECUTIONS_MAX + 1] = { 0 };
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	for (size_t i = 0; i < SANDBOX_EXECUTIONS_MAX; i++)
		(void)rig_exec(&rig, sb, &req, &t[i]);
	exec_start(sb, &req, rig_exec_told, &t[SANDBOX_EXECUTIONS_MAX]);
	rig_run(&rig);
	assert_int_equal(t[SANDBOX_EXECUTIONS_MAX].err.code, EAGAIN);
	rig_say_exit(rig_box(&rig, sb->id), t[0].x->guest_id, 0, 0);
	rig_run(&rig);
	exec_start(sb, &req, rig_exec_told, &t[SANDBOX_EXECUTIONS_MAX]);
	rig_run(&rig);
	assert_int_equal(t[SANDBOX_EXECUTIONS_MAX].calls,
			 1); /* not refused: it waits for the box */
	for (size_t i = 0; i <= SANDBOX_EXECUTIONS_MAX; i++)
		exec_told_done(&t[i]);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_command_runs_in_a_shell_and_its_end_is_recorded_before_the_box_forgets_it),
		cmocka_unit_test(each_kind_of_request_becomes_what_the_box_runs),
		cmocka_unit_test(a_bad_request_is_refused_by_its_name_and_reaches_no_box),
		cmocka_unit_test(
			variables_of_the_request_win_over_those_of_the_sandbox_and_the_defaults),
		cmocka_unit_test(one_that_the_box_cannot_start_has_failed_and_is_recorded),
		cmocka_unit_test(one_in_the_background_is_recorded_before_the_answer),
		cmocka_unit_test(one_in_the_background_that_cannot_be_recorded_is_cancelled),
		cmocka_unit_test(one_without_memory_is_refused_or_runs_and_never_half),
		cmocka_unit_test(no_more_run_at_once_than_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
