#include "guest/warm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "python_rig.h"
#include "spec/warm.h"

#define PYTHON "/usr/bin/python3"

struct rig {
	struct python_rig python;
	struct warm warm;
	char user[16]; /* whoever runs the test: an ordinary user cannot become another */
};

static int start(void **state)
{
	static struct rig rig;
	struct err err = { 0 };

	warm_init(&rig.warm);
	(void)str_format(rig.user, sizeof(rig.user), "%u", getuid());
	if (python_rig_start(&rig.python, PYTHON, "") < 0)
		return 0; /* the tests skip */
	*state = &rig;
	return warm_adopt_python(&rig.warm, TAKE_FD(rig.python.sock), &err);
}

static int stop(void **state)
{
	struct rig *rig = *state;

	if (!rig)
		return 0;
	warm_done(&rig->warm);
	python_rig_stop(&rig->python);
	while (waitpid(-1, NULL, 0) > 0)
		;
	return 0;
}

static struct rig *rig_of(void **state)
{
	if (!*state)
		skip();
	return *state;
}

static struct guest_exec python_exec(struct rig *rig, const char *code)
{
	return (struct guest_exec){
		.kind = EXEC_PYTHON, .user = rig->user, .cwd = "", .code = code
	};
}

static const char longer_path[] = "PATH=" GUEST_PATH "x";

static void read_to_end(int fd, struct buf *b)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char data[4096];
	ssize_t n = 1;

	while (n != 0) {
		assert_int_equal(poll(&p, 1, 30000), 1);
		n = read(fd, data, sizeof(data));
		assert_true(n >= 0 || errno == EAGAIN);
		if (n > 0)
			assert_int_equal(buf_append(b, data, (size_t)n), 0);
	}
}

/* The wait status; output in *out, which the caller frees. */
static int finish(struct spawned *s, struct buf *out)
{
	int status = 0;

	read_to_end(s->out, out);
	assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
	spawn_close(s);
	return status;
}

static int run(struct rig *rig, const struct guest_exec *e, struct buf *out)
{
	struct spawned s = { .in = -1, .out = -1, .err = -1 };
	struct err err = { 0 };
	int r = warm_take(&rig->warm, e, &s, &err);

	if (r < 0)
		return r;
	assert_int_equal(s.warm, 1);
	return finish(&s, out);
}

static void a_waiting_python_runs_the_code(void **state)
{
	struct rig *rig = rig_of(state);
	struct guest_exec e = python_exec(rig, "import sys; print(sys.argv); sys.exit(3)");
	struct buf out = { 0 };

	e.argv[e.argc++] = "a b";
	assert_int_equal(WEXITSTATUS(run(rig, &e, &out)), 3);
	assert_string_equal(buf_str(&out), "['-c', 'a b']\n");
	buf_done(&out);
}

static void each_run_has_a_process_of_its_own(void **state)
{
	struct rig *rig = rig_of(state);
	struct guest_exec e = python_exec(rig, "print('x' in globals()); x = 1");
	struct spawned s[2] = { { .in = -1 }, { .in = -1 } };

	for (int i = 0; i < 2; i++) {
		struct buf out = { 0 };

		assert_int_equal(warm_take(&rig->warm, &e, &s[i], NULL), 0);
		assert_int_equal(finish(&s[i], &out), 0);
		assert_string_equal(buf_str(&out), "False\n");
		buf_done(&out);
	}
	assert_int_not_equal(s[0].pid, s[1].pid);
}

/* A fresh one in its place would not know the template's code. */
static void it_is_a_copy_of_the_template(void **state)
{
	struct rig *rig = rig_of(state);
	struct guest_exec e = python_exec(rig, "import gc; print(gc.get_freeze_count() > 0)");
	struct buf out = { 0 };

	assert_int_equal(run(rig, &e, &out), 0);
	assert_string_equal(buf_str(&out), "True\n");
	buf_done(&out);
}

static void the_environment_is_the_requests(void **state)
{
	struct rig *rig = rig_of(state);
	struct guest_exec e = python_exec(rig, "import os; print(sorted(os.environ))");
	struct buf out = { 0 };

	e.envp[e.envc++] = "B=2";
	e.envp[e.envc++] = "LANG=C.UTF-8";
	assert_int_equal(run(rig, &e, &out), 0);
	assert_string_equal(buf_str(&out), "['B', 'LANG']\n");
	buf_done(&out);
}

static void nothing_of_the_machinery_shows(void **state)
{
	struct rig *rig = rig_of(state);
	struct guest_exec e = python_exec(
		rig, "import os; e = open('/proc/self/environ').read()\n"
		     "print('HOLT' in e, 'holt' in e, sorted(os.listdir('/proc/self/fd')))");
	struct buf out = { 0 };

	assert_int_equal(run(rig, &e, &out), 0);
	assert_string_equal(buf_str(&out), "False False ['0', '1', '2', '3']\n");
	buf_done(&out);
}

static void the_mark_is_taken_before_the_code_runs(void **state)
{
	struct rig *rig = rig_of(state);
	struct guest_exec e =
		python_exec(rig, "print([l for l in open('/proc/self/limits')\n"
				 "if l.startswith(('Max file locks', 'Max resident'))])");
	struct spawned s = { .in = -1, .out = -1, .err = -1, .mark = 77 };
	struct buf out = { 0 };

	assert_int_equal(warm_take(&rig->warm, &e, &s, NULL), 0);
	assert_int_equal(s.mark, 77);
	assert_int_equal(finish(&s, &out), 0);
	assert_non_null(strstr(buf_str(&out), " 77 "));
	assert_non_null(strstr(buf_str(&out), "4611686018427387827"));
	buf_done(&out);
}

static void the_cpu_limit_ends_a_loop(void **state)
{
	struct rig *rig = rig_of(state);
	struct guest_exec e = python_exec(rig, "while True: pass");
	struct buf out = { 0 };
	int status;

	e.cpu_seconds = 1;
	status = run(rig, &e, &out);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGXCPU);
	buf_done(&out);
}

static void standard_input_is_a_pipe_of_its_own(void **state)
{
	struct rig *rig = rig_of(state);
	struct guest_exec e = python_exec(rig, "import sys; print(sys.stdin.read())");
	struct spawned s = { .in = -1, .out = -1, .err = -1 };
	struct buf out = { 0 };

	e.flags = EXEC_STDIN;
	assert_int_equal(warm_take(&rig->warm, &e, &s, NULL), 0);
	assert_int_equal(write(s.in, "hi", 2), 2);
	s.in = fd_close(s.in);
	assert_int_equal(finish(&s, &out), 0);
	assert_string_equal(buf_str(&out), "hi\n");
	buf_done(&out);
}

static void what_needs_another_start_is_refused(void **state)
{
	static const char *const vars[] = { "PYTHONHASHSEED=0",
					    "PYTHONPATH=/x",
					    "LC_ALL=C",
					    "LANG=de_DE.UTF-8",
					    "PATH=/opt/bin",
					    "HOME=/elsewhere",
					    longer_path,
					    "PATH=/usr/local/bin:/usr/bin",
					    "PYTHONPATH=/holt/lib:/x",
					    "PYTHONPATH=" };
	struct rig *rig = rig_of(state);
	struct buf out = { 0 };

	for (size_t i = 0; i < sizeof(vars) / sizeof(vars[0]); i++) {
		struct guest_exec e = python_exec(rig, "pass");

		e.envp[e.envc++] = vars[i];
		assert_int_equal(run(rig, &e, &out), -ENOENT);
	}
}

static void a_waiting_python_finds_what_is_made_for_its_box(void **state)
{
	struct rig *rig = rig_of(state);
	struct guest_exec e = python_exec(rig, "import sys, os\n"
					       "print(sys.path[:2], os.environ['PYTHONPATH'])\n"
					       "print(os.environ['PATH'])");
	struct buf out = { 0 };

	e.envp[e.envc++] = "PYTHONPATH=/holt/lib";
	e.envp[e.envc++] = "PATH=" GUEST_PATH ":/holt/bin";
	assert_int_equal(run(rig, &e, &out), 0);
	assert_string_equal(buf_str(&out),
			    "['', '/holt/lib'] /holt/lib\n" GUEST_PATH ":/holt/bin\n");
	buf_done(&out);
}

static void a_terminal_and_broken_text_are_refused(void **state)
{
	struct rig *rig = rig_of(state);
	struct guest_exec e = python_exec(rig, "print('\xff')");
	struct buf out = { 0 };

	assert_int_equal(run(rig, &e, &out), -ENOENT);
	e = python_exec(rig, "pass");
	e.flags = EXEC_PTY;
	assert_int_equal(run(rig, &e, &out), -ENOENT);
}

static void a_directory_that_is_not_there_is_left_to_the_cold_start(void **state)
{
	struct rig *rig = rig_of(state);
	struct guest_exec e = python_exec(rig, "print(1)");
	struct buf out = { 0 };

	e.cwd = "/nonexistent";
	assert_int_equal(run(rig, &e, &out), -ENOENT);
	e.cwd = "/";
	assert_int_equal(run(rig, &e, &out), 0);
	assert_string_equal(buf_str(&out), "1\n");
	buf_done(&out);
}

static void a_dead_template_ends_in_cold_starts(void **state)
{
	struct rig *rig = rig_of(state);
	struct guest_exec e = python_exec(rig, "print(1)");
	struct buf out = { 0 };

	(void)kill(rig->python.pid, SIGKILL);
	assert_int_equal(waitpid(rig->python.pid, NULL, 0), rig->python.pid);
	rig->python.pid = 0;
	assert_int_equal(run(rig, &e, &out), 0); /* the parked one is still there */
	assert_int_equal(run(rig, &e, &out), -ENOENT);
	assert_int_equal(rig->warm.python_fd, -1);
	buf_done(&out);
}

static void a_parked_python_that_died_is_replaced(void **state)
{
	struct rig *rig = rig_of(state);
	struct guest_exec e = python_exec(rig, "print(1)");
	pid_t parked = rig->warm.parked_pid;
	struct buf out = { 0 };

	(void)kill(parked, SIGKILL);
	assert_int_equal(waitpid(parked, NULL, 0), parked);
	warm_reaped(&rig->warm, parked);
	assert_int_equal(rig->warm.parked_fd, -1);
	assert_int_equal(run(rig, &e, &out), 0);
	buf_done(&out);
}

/* What the template has said and holt-init has not yet heard. */
static pid_t pid_on_its_way(const struct warm *w)
{
	struct pollfd p = { .fd = w->python_fd, .events = POLLIN };
	struct warm_parked parked = { 0 };

	assert_int_equal(poll(&p, 1, 30000), 1);
	assert_int_equal(recv(w->python_fd, &parked, sizeof(parked), MSG_PEEK), sizeof(parked));
	return parked.pid;
}

static void the_next_python_is_asked_for_ahead(void **state)
{
	struct rig *rig = rig_of(state);
	struct guest_exec e = python_exec(rig, "print(1)");
	struct spawned s = { .in = -1 };
	struct buf out = { 0 };
	pid_t ahead;

	assert_false(warm_lacks_python(&rig->warm));
	warm_park(&rig->warm); /* one waits: nothing is asked for */
	assert_false(rig->warm.is_asked);
	assert_int_equal(run(rig, &e, &out), 0);
	assert_true(warm_lacks_python(&rig->warm));
	warm_park(&rig->warm);
	assert_false(warm_lacks_python(&rig->warm));
	warm_park(&rig->warm);
	ahead = pid_on_its_way(&rig->warm);
	assert_int_equal(warm_take(&rig->warm, &e, &s, NULL), 0);
	assert_int_equal(s.pid, ahead);
	assert_int_equal(finish(&s, &out), 0);
	assert_int_equal(run(rig, &e, &out), 0); /* without being asked for */
	assert_string_equal(buf_str(&out), "1\n1\n1\n");
	buf_done(&out);
}

static void one_that_died_on_its_way_is_replaced(void **state)
{
	struct rig *rig = rig_of(state);
	struct guest_exec e = python_exec(rig, "print(1)");
	struct buf out = { 0 };
	pid_t ahead;

	assert_int_equal(run(rig, &e, &out), 0);
	warm_park(&rig->warm);
	ahead = pid_on_its_way(&rig->warm);
	(void)kill(ahead, SIGKILL);
	assert_int_equal(waitpid(ahead, NULL, 0), ahead);
	warm_reaped(&rig->warm, ahead);
	assert_int_equal(run(rig, &e, &out), 0);
	assert_string_equal(buf_str(&out), "1\n1\n");
	buf_done(&out);
}

static void a_template_that_cannot_fork_is_kept(void **state)
{
	const struct warm_parked none = { -1 };
	struct guest_exec e = { .kind = EXEC_PYTHON, .user = "", .cwd = "", .code = "pass" };
	struct spawned s = { .in = -1, .out = -1, .err = -1 };
	struct warm w;
	int pair[2];
	char ask;

	(void)state;
	warm_init(&w);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	w.python_fd = pair[0];
	for (int i = 0; i < 2; i++) {
		assert_int_equal(write(pair[1], &none, sizeof(none)), sizeof(none));
		assert_int_equal(warm_take(&w, &e, &s, NULL), -ENOENT);
		assert_int_equal(read(pair[1], &ask, 1), 1);
		assert_int_equal(ask, WARM_FORK);
		assert_true(warm_lacks_python(&w));
	}
	(void)close(pair[1]);
	warm_done(&w);
}

static void without_an_interpreter_nothing_is_taken(void **state)
{
	struct warm w;
	struct spawned s = { .in = -1, .out = -1, .err = -1 };
	struct guest_exec e = { .kind = EXEC_PYTHON, .user = "", .cwd = "", .code = "pass" };

	(void)state;
	warm_init(&w);
	assert_int_equal(warm_take(&w, &e, &s, NULL), -ENOENT);
	e.kind = EXEC_NODE;
	assert_int_equal(warm_take(&w, &e, &s, NULL), -ENOENT);
	e.kind = EXEC_COMMAND;
	assert_int_equal(warm_take(&w, &e, &s, NULL), -ENOENT);
	warm_done(&w);
}

static void a_template_that_says_nonsense_is_dropped(void **state)
{
	struct err err = { 0 };
	struct warm w;
	int pair[2];

	(void)state;
	warm_init(&w);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(write(pair[1], "nonsense", 8), 8);
	assert_int_equal(warm_adopt_python(&w, pair[0], &err), -ENOENT);
	assert_string_equal(err.text, "the waiting Python is gone");
	assert_int_equal(w.python_fd, -1);
	(void)close(pair[1]);
	warm_done(&w);
}

static void a_module_that_is_missing_leaves_no_template(void **state)
{
	struct python_rig python;
	struct err err = { 0 };
	struct warm w;

	(void)state;
	warm_init(&w);
	if (python_rig_start(&python, PYTHON, "json,no_such_module") < 0)
		skip();
	assert_int_equal(warm_adopt_python(&w, TAKE_FD(python.sock), &err), -ENOENT);
	python_rig_stop(&python);
	warm_done(&w);
}

static void preloaded_modules_are_there(void **state)
{
	struct rig rig = { 0 };
	struct guest_exec e;
	struct buf out = { 0 };

	(void)state;
	warm_init(&rig.warm);
	(void)str_format(rig.user, sizeof(rig.user), "%u", getuid());
	if (python_rig_start(&rig.python, PYTHON, "json, decimal") < 0)
		skip();
	assert_int_equal(warm_adopt_python(&rig.warm, TAKE_FD(rig.python.sock), NULL), 0);
	e = python_exec(&rig, "import sys; print('json' in sys.modules, 'decimal' in sys.modules)");
	assert_int_equal(run(&rig, &e, &out), 0);
	assert_string_equal(buf_str(&out), "True True\n");
	buf_done(&out);
	warm_done(&rig.warm);
	python_rig_stop(&rig.python);
}

/* Root alone can become the box's user. */
static void a_waiting_node_runs_the_code_once(void **state)
{
	struct guest_exec e = {
		.kind = EXEC_NODE, .user = "", .cwd = "/", .code = "console.log(process.argv[1])"
	};
	struct spawned s = { .in = -1, .out = -1, .err = -1 };
	struct err err = { 0 };
	struct buf out = { 0 };
	struct warm w;

	(void)state;
	warm_init(&w);
	if (getuid() != 0 || warm_start_node(&w, 5, "", &err) < 0)
		skip();
	e.argv[e.argc++] = "one";
	assert_int_equal(warm_take(&w, &e, &s, &err), 0);
	assert_int_equal(s.mark, 5);
	assert_int_equal(finish(&s, &out), 0);
	assert_string_equal(buf_str(&out), "one\n");
	assert_int_equal(warm_take(&w, &e, &s, &err), -ENOENT);
	buf_done(&out);
	warm_done(&w);
}

int main(void)
{
#define WITH_PYTHON(f) cmocka_unit_test_setup_teardown(f, start, stop)
	const struct CMUnitTest tests[] = {
		WITH_PYTHON(a_waiting_python_runs_the_code),
		WITH_PYTHON(each_run_has_a_process_of_its_own),
		WITH_PYTHON(it_is_a_copy_of_the_template),
		WITH_PYTHON(the_environment_is_the_requests),
		WITH_PYTHON(nothing_of_the_machinery_shows),
		WITH_PYTHON(the_mark_is_taken_before_the_code_runs),
		WITH_PYTHON(the_cpu_limit_ends_a_loop),
		WITH_PYTHON(standard_input_is_a_pipe_of_its_own),
		WITH_PYTHON(what_needs_another_start_is_refused),
		WITH_PYTHON(a_waiting_python_finds_what_is_made_for_its_box),
		WITH_PYTHON(a_terminal_and_broken_text_are_refused),
		WITH_PYTHON(a_directory_that_is_not_there_is_left_to_the_cold_start),
		WITH_PYTHON(a_dead_template_ends_in_cold_starts),
		WITH_PYTHON(a_parked_python_that_died_is_replaced),
		WITH_PYTHON(the_next_python_is_asked_for_ahead),
		WITH_PYTHON(one_that_died_on_its_way_is_replaced),
		cmocka_unit_test(without_an_interpreter_nothing_is_taken),
		cmocka_unit_test(a_template_that_cannot_fork_is_kept),
		cmocka_unit_test(a_template_that_says_nonsense_is_dropped),
		cmocka_unit_test(a_module_that_is_missing_leaves_no_template),
		cmocka_unit_test(preloaded_modules_are_there),
		cmocka_unit_test(a_waiting_node_runs_the_code_once),
	};

	return cmocka_run_group_tests_name("warm", tests, NULL, NULL);
}
