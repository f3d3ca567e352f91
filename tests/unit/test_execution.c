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

struct row_look {
	int r;
	bool is_live;
	unsigned state, flags;
	int32_t exit_code;
	size_t output_len;
	uint64_t output_bytes;
	char reason[240], content[400];
};

static void on_row(void *user, int r, const struct execution_row *rows, size_t n, bool more)
{
	struct row_look *l = user;

	(void)more;
	l->r = r;
	if (r < 0)
		return;
	assert_int_equal(n, 1);
	l->is_live = rows[0].is_live;
	l->state = rows[0].state;
	l->flags = rows[0].flags;
	l->exit_code = rows[0].exit_code;
	l->output_len = rows[0].output_len;
	l->output_bytes = rows[0].output_bytes;
	(void)snprintf(l->reason, sizeof(l->reason), "%s", rows[0].reason);
	(void)snprintf(l->content, sizeof(l->content), "%s", rows[0].content);
}

static struct row_look look_up(struct sandbox_rig *rig, const char *id)
{
	struct row_look l = { .r = -EIO };

	assert_int_equal(store_get_execution(&rig->store, id, on_row, &l), 0);
	store_dispatch(&rig->store);
	return l;
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
	struct row_look row;
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
	assert_int_equal(look_up(&rig, info.id).r, -ENOENT); /* no row at the start */
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
	row = look_up(&rig, info.id);
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
	assert_true(has_text(e.envp, e.envc, "PATH=/usr/local/bin:/usr/bin:/bin"));
	rig_close(&rig);
}

static void check_start_failed(int code)
{
	const char *const argv[] = { "/no/such" };
	struct exec_request req = { .argv = argv, .argc = 1 };
	struct sandbox_rig rig;
	struct exec_told t = { 0 };
	struct exec_info info;
	struct row_look row;
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
	row = look_up(&rig, info.id);
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
	struct row_look row;
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
	row = look_up(&rig, info.id);
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

/* ---- ending ---- */

static void how_it_ended_is_flagged(void **state)
{
	static const struct {
		uint32_t code, flags;
		uint32_t oom_kills; /* as the box reports afterwards */
		unsigned want;
		int32_t exit_code, signal;
	} cases[] = {
		{ 0, 0, 0, 0, 0, 0 },
		{ SIGTERM, EXIT_SIGNALED | EXIT_TIMED_OUT, 0, EXECUTION_TIMED_OUT, -1, SIGTERM },
		{ SIGKILL, EXIT_SIGNALED | EXIT_TIMED_OUT, 0, EXECUTION_TIMED_OUT, -1, SIGKILL },
		{ SIGKILL, EXIT_SIGNALED | EXIT_CANCELLED, 0, EXECUTION_CANCELLED, -1, SIGKILL },
		{ SIGKILL, EXIT_SIGNALED, 1, EXECUTION_OOM_KILLED, -1, SIGKILL },
		{ SIGKILL, EXIT_SIGNALED, 1, 0, -1, SIGKILL }, /* no further one */
		{ 137, 0, 2, EXECUTION_OOM_KILLED, 137, 0 },
		{ 137, 0, 2, 0, 137, 0 },
		{ 0, EXIT_LEFTOVERS, 0, EXECUTION_LEFTOVERS, 0, 0 },
		{ 0, EXIT_TRUNCATED, 0, EXECUTION_TRUNCATED, 0, 0 },
	};
	struct exec_request req = { .command = "x" };
	struct sandbox_rig rig;
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct exec_told t;
		struct exec_info info;
		uint32_t id = rig_exec(&rig, sb, &req, &t);

		assert_non_null(exec_wait(t.x, rig_exec_ended, &t));
		rig.fake.usage.oom_kills = cases[i].oom_kills;
		rig_say_exit(rig_box(&rig, sb->id), id, cases[i].code, cases[i].flags);
		rig_run(&rig);
		assert_int_equal(t.ends, 1);
		exec_info(t.x, &info);
		assert_int_equal(info.flags, cases[i].want);
		assert_int_equal(info.exit_code, cases[i].exit_code);
		assert_int_equal(info.signal, cases[i].signal);
		assert_int_equal(look_up(&rig, info.id).flags, cases[i].want);
		assert_int_equal(rig_expect(&rig, rig_box(&rig, sb->id), G_ACK, NULL), id);
		exec_told_done(&t);
	}
	rig_close(&rig);
}

static void those_in_a_sandbox_that_ends_are_interrupted_and_recorded(void **state)
{
	static const struct {
		enum { DELETED, KILLED, LYING } how;
		const char *reason;
	} cases[] = {
		{ DELETED, "the sandbox was ended: deleted" },
		{ KILLED, "its box ended: killed by signal 9" },
		{ LYING, "its box does not answer" },
	};
	struct exec_request req = { .command = "x" };
	struct sandbox_rig rig;

	(void)state;
	rig_open(&rig);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sandbox *sb = rig_create(&rig, "");
		struct exec_told t, starting = { 0 };
		struct exec_info info;
		struct told ended = { 0 };
		struct row_look row;
		uint32_t id = rig_exec(&rig, sb, &req, &t);

		exec_start(sb, &req, rig_exec_told,
			   &starting); /* the box never says a word of it */
		assert_non_null(exec_wait(t.x, rig_exec_ended, &t));
		rig_say_output(rig_box(&rig, sb->id), id, 2, 0, "half", 4);
		rig_run(&rig);
		if (cases[i].how == KILLED)
			fake_kill(&rig.fake, sb->box_id, SIGKILL);
		else if (cases[i].how == DELETED)
			sandbox_delete(sb, "deleted", rig_told, &ended);
		else
			rig_say(rig_box(&rig, sb->id), "garbage", 7);
		rig_run(&rig);
		rig_tick(&rig, cases[i].how == LYING ? 2 : 0);
		assert_int_equal(t.ends, 1);
		assert_int_equal(starting.calls, 1);
		assert_int_equal(starting.err.code, EBUSY);
		exec_info(t.x, &info); /* it outlives its sandbox for whoever holds it */
		assert_int_equal(info.state, EXECUTION_INTERRUPTED);
		assert_string_equal(info.reason, cases[i].reason);
		assert_int_equal(info.exit_code, -1);
		assert_int_equal(info.output_end, 4);
		row = look_up(&rig, info.id);
		assert_int_equal(row.state, EXECUTION_INTERRUPTED);
		assert_int_equal(row.output_bytes, 4);
		assert_int_equal(exec_stdin(t.x, "x", 1), -EPIPE);
		assert_int_equal(exec_cancel(t.x), -ESRCH);
		exec_told_done(&t);
	}
	assert_int_equal(rig.fake.live, 0);
	rig_close(&rig);
}

static void ends_that_the_store_does_not_take_are_kept_and_written_when_it_heals(void **state)
{
	struct exec_request req = { .command = "x" };
	struct sandbox_rig rig;
	struct exec_told t = { 0 };
	struct sandbox *sb;
	struct fake_box *box;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	box = rig_box(&rig, sb->id);
	rig.faults.fail_in = 1;
	rig.faults.fail_on = true;
	rig.faults.fail_with = ENOSPC;
	for (unsigned i = 0; i < SANDBOX_UNRECORDED_MAX; i++) {
		uint32_t id = rig_exec(&rig, sb, &req, &t);

		assert_non_null(exec_wait(t.x, rig_exec_ended, &t));
		rig_say_exit(box, id, 0, 0);
		rig_run(&rig);
		assert_int_equal(t.ends, 1); /* the caller has its answer */
		exec_told_done(&t);
	}
	rig_expect_nothing(&rig, box); /* no acknowledgement */
	exec_start(sb, &req, rig_exec_told, &t);
	rig_run(&rig);
	assert_int_equal(t.err.code, EAGAIN);
	assert_non_null(strstr(t.err.text, "No space left"));
	rig_tick(&rig, 1);
	rig_expect_nothing(&rig, box);
	rig.faults.fail_in = 0;
	rig_tick(&rig, 1);
	for (unsigned i = 0; i < SANDBOX_UNRECORDED_MAX; i++)
		(void)rig_expect(&rig, box, G_ACK, NULL);
	assert_int_equal(sb->n_unrecorded, 0);
	(void)rig_exec(&rig, sb, &req, &t);
	exec_told_done(&t);
	rig_close(&rig);
}

static void waiting_for_one_that_has_ended_is_answered_in_the_next_turn(void **state)
{
	struct exec_request req = { .command = "x" };
	struct sandbox_rig rig;
	struct exec_told t;
	struct exec_wait *w;
	struct sandbox *sb;
	uint32_t id;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	id = rig_exec(&rig, sb, &req, &t);
	rig_say_exit(rig_box(&rig, sb->id), id, 0, 0);
	rig_run(&rig);
	assert_non_null(exec_wait(t.x, rig_exec_ended, &t));
	w = exec_wait(t.x, rig_exec_ended, &t);
	assert_int_equal(t.ends, 0);
	exec_unwait(w);
	rig_run(&rig);
	assert_int_equal(t.ends, 1);
	exec_told_done(&t);
	rig_close(&rig);
}

/* ---- input ---- */

static void on_room(void *user)
{
	++*(int *)user;
}

static void input_is_taken_whole_or_not_at_all_within_its_limits(void **state)
{
	static const char data[EXEC_STDIN_MAX + 1] = { 1 };
	struct exec_request req = { .command = "cat", .has_stdin = true };
	struct sandbox_rig rig;
	struct exec_told t;
	struct wire_head head;
	struct rd payload;
	uint8_t frame[64];
	struct sandbox *sb;
	struct fake_box *box;
	uint32_t id;
	size_t sent = 0;
	int room = 0;
	bool is_ended = false;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	box = rig_box(&rig, sb->id);
	id = rig_exec(&rig, sb, &req, &t);
	exec_on_room(t.x, on_room, &room);
	assert_int_equal(exec_stdin(t.x, data, EXEC_STDIN_MAX + 1), -E2BIG);
	assert_int_equal(exec_stdin(t.x, data, EXEC_STDIN_MAX), 0); /* a window of it is sent */
	assert_int_equal(exec_stdin(t.x, data, GUEST_WINDOW), 0);
	assert_int_equal(exec_stdin(t.x, data, 1), -EAGAIN);
	assert_int_equal(exec_stdin_end(t.x), 0);
	assert_int_equal(exec_stdin(t.x, data, 1), -EPIPE);
	assert_int_equal(exec_stdin_end(t.x), -EPIPE);
	assert_false(exec_stdin_is_sent(t.x)); /* the process would take the rest along */
	while (!is_ended) {
		while (rig_recv(&rig, box, &head, &payload)) {
			size_t n = (size_t)(payload.end - payload.p);

			assert_int_equal(head.type, G_STDIN);
			is_ended = n == 0;
			sent += n;
			rig_say(box, frame, guest_put_u64(frame, sizeof(frame), G_TAKEN, id, n));
		}
		rig_run(&rig);
	}
	assert_int_equal(sent, EXEC_STDIN_MAX + GUEST_WINDOW);
	assert_true(room > 0);
	assert_true(exec_stdin_is_sent(t.x));
	exec_told_done(&t);
	rig_close(&rig);
}

static void signals_sizes_and_cancels_reach_the_box_while_it_runs(void **state)
{
	struct exec_request req = { .kind = EXECUTION_PTY, .rows = 24, .cols = 80 };
	struct exec_request plain = { .command = "x" };
	struct sandbox_rig rig;
	struct exec_told t, p;
	struct rd payload;
	struct told paused = { 0 };
	struct sandbox *sb;
	struct fake_box *box;
	uint32_t id;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	box = rig_box(&rig, sb->id);
	id = rig_exec(&rig, sb, &req, &t);
	(void)rig_exec(&rig, sb, &plain, &p);
	assert_int_equal(exec_stdin(p.x, "x", 1), -EPIPE); /* it has none */
	assert_int_equal(exec_resize(p.x, 1, 1), -ENOTTY);
	assert_int_equal(exec_signal(t.x, SIGINT, true), 0);
	assert_int_equal(rig_expect(&rig, box, G_SIGNAL, &payload), id);
	assert_int_equal(rd_u32(&payload), SIGINT);
	assert_int_equal(rd_u8(&payload), 1);
	assert_int_equal(exec_resize(t.x, 50, 132), 0);
	assert_int_equal(rig_expect(&rig, box, G_RESIZE, NULL), id);
	sandbox_pause(sb, rig_told, &paused);
	rig_run(&rig);
	assert_int_equal(exec_signal(t.x, SIGINT, false), -EBUSY);
	assert_int_equal(exec_stdin(t.x, "x", 1), -EBUSY);
	assert_int_equal(exec_cancel(t.x), -EBUSY);
	sandbox_resume(sb, rig_told, &paused);
	rig_run(&rig);
	assert_int_equal(exec_cancel(t.x), 0);
	assert_int_equal(rig_expect(&rig, box, G_CANCEL, NULL), id);
	rig_say_exit(box, id, SIGHUP, EXIT_SIGNALED | EXIT_CANCELLED);
	rig_run(&rig);
	assert_int_equal(exec_signal(t.x, SIGINT, false), -ESRCH);
	assert_int_equal(exec_resize(t.x, 1, 1), -ESRCH);
	exec_told_done(&t);
	exec_told_done(&p);
	rig_close(&rig);
}

/* ---- looking ---- */

struct got {
	int calls;
	enum execution_state state;
	struct buf out;
	size_t n;
	bool more;
	char ids[8][ID_LEN + 1];
	struct err err;
};

static void on_get(void *user, const struct exec_info *info, const struct output *output,
		   const struct err *err)
{
	struct got *g = user;

	g->calls++;
	g->err = err ? *err : (struct err){ 0 };
	buf_clear(&g->out);
	if (info)
		g->state = info->state;
	if (output)
		assert_int_equal(output_collect(output, 1, &g->out), 0);
}

static void on_list(void *user, const struct exec_info *infos, size_t n, bool more,
		    const struct err *err)
{
	struct got *g = user;

	g->calls++;
	g->err = err ? *err : (struct err){ 0 };
	g->n = n;
	g->more = more;
	for (size_t i = 0; i < n && i < 8; i++)
		memcpy(g->ids[i], infos[i].id, ID_LEN + 1);
}

static void executions_are_found_running_ended_and_after_their_sandbox(void **state)
{
	struct exec_request req = { .command = "x" };
	struct sandbox_rig rig;
	struct exec_told t;
	struct got g = { 0 };
	struct told ended = { 0 };
	char id[ID_LEN + 1], sandbox_id[ID_LEN + 1];
	struct sandbox *sb;
	uint32_t guest_id;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	memcpy(sandbox_id, sb->id, sizeof(sandbox_id));
	guest_id = rig_exec(&rig, sb, &req, &t);
	memcpy(id, t.x->id, sizeof(id));
	exec_get(rig.all, sandbox_id, "ann", id, on_get, &g);
	assert_int_equal(g.calls, 0);
	rig_run(&rig);
	assert_int_equal(g.calls, 1);
	assert_int_equal(g.state, EXECUTION_RUNNING);
	rig_say_output(rig_box(&rig, sandbox_id), guest_id, 1, 0, "out", 3);
	rig_say_exit(rig_box(&rig, sandbox_id), guest_id, 0, 0);
	rig_run(&rig);
	exec_told_done(&t);
	sandbox_delete(sb, "deleted", rig_told, &ended);
	rig_run(&rig);
	exec_get(rig.all, sandbox_id, "ann", id, on_get, &g);
	rig_run(&rig);
	assert_int_equal(g.err.code, 0);
	assert_int_equal(g.state, EXECUTION_EXITED);
	assert_string_equal(buf_str(&g.out), "out");
	exec_get(rig.all, sandbox_id, "bob", id, on_get, &g);
	rig_run(&rig);
	assert_int_equal(g.err.code, ENOENT);
	exec_get(rig.all, "aaaaaaaaaaaaaaaaaaaa", "ann", id, on_get, &g);
	rig_run(&rig);
	assert_int_equal(g.err.code, ENOENT);
	exec_get(rig.all, sandbox_id, "ann", "no such id", on_get, &g);
	rig_run(&rig);
	assert_int_equal(g.err.code, ENOENT);
	buf_done(&g.out);
	rig_close(&rig);
}

static void a_list_has_running_and_recorded_ones_newest_first(void **state)
{
	struct exec_request req = { .command = "x" };
	struct sandbox_rig rig;
	struct exec_told t[4];
	struct got g = { 0 };
	char ids[4][ID_LEN + 1];
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	for (size_t i = 0; i < 4; i++) {
		uint32_t id = rig_exec(&rig, sb, &req, &t[i]);

		memcpy(ids[i], t[i].x->id, sizeof(ids[i]));
		if (i % 2 == 0) {
			rig_say_exit(rig_box(&rig, sb->id), id, 0, 0);
			rig_run(&rig);
			(void)rig_expect(&rig, rig_box(&rig, sb->id), G_ACK, NULL);
		}
		rig_pass(&rig, 5);
	}
	exec_list(rig.all, sb->id, "ann", 0, NULL, 3, on_list, &g);
	rig_run(&rig);
	assert_int_equal(g.n, 3);
	assert_true(g.more);
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(g.ids[i], ids[3 - i]);
	exec_list(rig.all, sb->id, "ann", t[1].x->started_ms, ids[1], 3, on_list, &g);
	rig_run(&rig);
	assert_int_equal(g.n, 1);
	assert_false(g.more);
	assert_string_equal(g.ids[0], ids[0]);
	exec_list(rig.all, sb->id, "bob", 0, NULL, 3, on_list, &g);
	rig_run(&rig);
	assert_int_equal(g.n, 0);
	for (size_t i = 0; i < 4; i++)
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
		cmocka_unit_test(how_it_ended_is_flagged),
		cmocka_unit_test(those_in_a_sandbox_that_ends_are_interrupted_and_recorded),
		cmocka_unit_test(
			ends_that_the_store_does_not_take_are_kept_and_written_when_it_heals),
		cmocka_unit_test(waiting_for_one_that_has_ended_is_answered_in_the_next_turn),
		cmocka_unit_test(input_is_taken_whole_or_not_at_all_within_its_limits),
		cmocka_unit_test(signals_sizes_and_cancels_reach_the_box_while_it_runs),
		cmocka_unit_test(executions_are_found_running_ended_and_after_their_sandbox),
		cmocka_unit_test(a_list_has_running_and_recorded_ones_newest_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
