/* A keeper with a shell script for a launcher. In most cases the test forks: its child calls
 * keeper_start() and is the keeper from then on, the grandchild plays the daemon. */
#include "provider/keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "check.h"

/* In the daemon an assertion must not come back to the runner: it ends with a status of its own. */
#define MUST(cond)                                                                       \
	do {                                                                             \
		if (!(cond)) {                                                           \
			(void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
			_exit(99);                                                       \
		}                                                                        \
	} while (0)

/* What the launcher leaves to be seen, then it waits for the end of its socket like a real one. */
#define SCRIPT                                           \
	"#!/bin/sh\nexec 2>/dev/null\n"                  \
	"d=${0%/*}\n"                                    \
	"echo \"$*\" >>$d/args\n"                        \
	"cat /proc/$$/environ >>$d/environ\n"            \
	"ls -d /proc/self/fd/4/launch >>$d/state 2>&1\n" \
	"echo hello >&3\n"                               \
	"exec cat <&3 >/dev/null\n"

struct place {
	char dir[32], program[64];
};

static int setup(void **state)
{
	static struct place p;
	FILE *f;

	p = (struct place){ .dir = "/tmp/holt-keeper-XXXXXX" };
	assert_non_null(mkdtemp(p.dir));
	assert_int_equal(str_format(p.program, sizeof(p.program), "%s/launch", p.dir), 0);
	f = fopen(p.program, "we");
	assert_non_null(f);
	assert_true(fputs(SCRIPT, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(p.program, 0755), 0);
	*state = &p;
	return 0;
}

static int teardown(void **state)
{
	static const char *const names[] = { "launch", "args", "environ", "state" };
	struct place *p = *state;
	char path[96];

	for (size_t i = 0; i < 4; i++) {
		(void)str_format(path, sizeof(path), "%s/%s", p->dir, names[i]);
		(void)unlink(path);
	}
	return rmdir(p->dir);
}

typedef int (*daemon_fn)(struct keeper_client *k, const struct place *p);

/* Forks the keeper, whose child runs fn and ends with its result. */
static pid_t start(const struct place *p, daemon_fn fn)
{
	struct launcher_options o = { .program = p->program, .cgroup = "none", .persistent = true };
	struct keeper_client k;
	pid_t pid;

	o.state_fd = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(o.state_fd >= 0);
	(void)fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		MUST(keeper_start(&o, &k, NULL) == 0);
		MUST(fcntl(o.state_fd, F_GETFD) < 0); /* not for the daemon */
		_exit(fn(&k, p));
	}
	(void)fd_close(o.state_fd);
	return pid;
}

static int code_of(pid_t pid)
{
	int status = 0;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int run(const struct place *p, daemon_fn fn)
{
	return code_of(start(p, fn));
}

static int read_in(const struct place *p, const char *name, char *dst, size_t size)
{
	char path[96];

	MUST(str_format(path, sizeof(path), "%s/%s", p->dir, name) == 0);
	return fd_read_file_at(AT_FDCWD, path, dst, size);
}

/* Until its first word, so that it has written all it writes. */
static void hear_hello(int sock)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	char text[16];
	size_t nfds = 0;

	MUST(poll(&p, 1, 10000) == 1);
	MUST(fd_recv(sock, text, sizeof(text), NULL, &nfds) == 6);
	MUST(memcmp(text, "hello\n", 6) == 0);
}

static int ask_once(struct keeper_client *k, const struct place *p)
{
	struct launcher_source source = keeper_source(k);
	char text[256];
	int sock = -1;
	pid_t pid = 0;

	MUST(source.get(source.self, &sock, &pid, NULL) == 0);
	MUST(pid > 0 && pid != getpid());
	MUST(fcntl(sock, F_GETFD) == FD_CLOEXEC);
	hear_hello(sock);
	MUST(read_in(p, "args", text, sizeof(text)) > 0);
	MUST(strcmp(text, "--fd 3 --cgroup none --state 4\n") == 0);
	MUST(read_in(p, "state", text, sizeof(text)) > 0);
	MUST(strcmp(text, "/proc/self/fd/4/launch\n") == 0);
	MUST(read_in(p, "environ", text, sizeof(text)) == 0);
	return 0;
}

static void a_launcher_gets_its_socket_its_state_and_no_environment(void **state)
{
	assert_int_equal(run(*state, ask_once), 0);
}

static int ask_twice(struct keeper_client *k, const struct place *p)
{
	int first = -1, second = -1;
	pid_t pid[2];
	char byte;
	size_t nfds = 0;

	(void)p;
	MUST(keeper_launcher(k, &first, &pid[0], NULL) == 0);
	hear_hello(first);
	MUST(keeper_launcher(k, &second, &pid[1], NULL) == 0);
	MUST(pid[0] != pid[1]);
	/* Dead and waited for before the second was there. */
	MUST(kill(pid[0], 0) < 0 && errno == ESRCH);
	MUST(fd_recv(first, &byte, 1, NULL, &nfds) <= 0);
	hear_hello(second);
	MUST(kill(pid[1], 0) == 0);
	return 0;
}

static void a_second_launcher_comes_when_the_first_is_gone(void **state)
{
	assert_int_equal(run(*state, ask_twice), 0);
}

static int ask_four_times(struct keeper_client *k, const struct place *p)
{
	uint64_t start_ms = clock_now_ms();
	int sock = -1;
	pid_t pid;

	(void)p;
	for (int i = 0; i < 4; i++) {
		MUST(keeper_launcher(k, &sock, &pid, NULL) == 0);
		hear_hello(sock);
		sock = fd_close(sock);
	}
	MUST(clock_now_ms() - start_ms >= 100 + 200 + 400);
	return 0;
}

static void launchers_that_do_not_last_come_more_and_more_slowly(void **state)
{
	assert_int_equal(run(*state, ask_four_times), 0);
}

static int say_nonsense(struct keeper_client *k, const struct place *p)
{
	int sock = -1, fd = STDIN_FILENO;
	pid_t pid;

	(void)p;
	MUST(fd_send(k->sock, "xx", 2, NULL, 0) == 2);
	MUST(fd_send(k->sock, "a long story", 12, &fd, 1) == 12);
	MUST(keeper_launcher(k, &sock, &pid, NULL) == 0); /* not one of those was a request */
	MUST(k->asked == 1);
	hear_hello(sock);
	return 0;
}

static void what_is_not_one_byte_is_no_request(void **state)
{
	assert_int_equal(run(*state, say_nonsense), 0);
}

static int ask_for_nothing(struct keeper_client *k, const struct place *p)
{
	struct err err = { 0 };
	int sock = -1;
	pid_t pid = 0;

	MUST(unlink(p->program) == 0);
	MUST(keeper_launcher(k, &sock, &pid, &err) == -ENOENT);
	MUST(strstr(err.text, p->program));
	MUST(sock == -1 && pid == 0);
	return 0;
}

static void a_launcher_that_cannot_be_started_is_named(void **state)
{
	assert_int_equal(run(*state, ask_for_nothing), 0);
}

/* Beside stdin, stdout and stderr. */
static int count_fds(pid_t pid)
{
	struct dirent *entry;
	char path[64];
	int n = -3;
	DIR *dir;

	MUST(str_format(path, sizeof(path), "/proc/%d/fd", (int)pid) == 0);
	dir = opendir(path);
	MUST(dir);
	while ((entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	(void)closedir(dir);
	return n;
}

static int look_at_keeper(struct keeper_client *k, const struct place *p)
{
	int n = -1, sock = -1;
	pid_t pid;

	(void)p;
	MUST(keeper_launcher(k, &sock, &pid, NULL) == 0); /* it has come so far */
	for (int i = 0; i < 500 && n != 3; i++) {         /* and closes what it has sent */
		n = count_fds(getppid());
		(void)usleep(10000);
	}
	return n;
}

static void the_keeper_holds_three_descriptors(void **state)
{
	int other = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (geteuid() != 0)
		skip(); /* it is not dumpable: only root can look */
	/* its end of our socket, its signals, the state directory */
	assert_int_equal(run(*state, look_at_keeper), 3);
	(void)fd_close(other);
}

static int seven(struct keeper_client *k, const struct place *p)
{
	(void)k;
	(void)p;
	return 7;
}

static int kill_self(struct keeper_client *k, const struct place *p)
{
	(void)k;
	(void)p;
	(void)raise(SIGKILL);
	return 0;
}

static void the_keeper_ends_as_its_daemon_does(void **state)
{
	assert_int_equal(run(*state, seven), 7);
	assert_int_equal(run(*state, kill_self), 128 + SIGKILL);
}

static int ask_and_end(struct keeper_client *k, const struct place *p)
{
	int sock = -1;
	pid_t pid;

	(void)p;
	MUST(keeper_launcher(k, &sock, &pid, NULL) == 0);
	hear_hello(sock);
	return (int)(pid % 64) + 1; /* a hint of it, to make sure that it was */
}

static void when_the_keeper_has_ended_its_launcher_has(void **state)
{
	struct place *p = *state;
	char text[64];
	uint64_t start_ms = clock_now_ms();

	assert_true(run(p, ask_and_end) <= 64);
	assert_true(clock_now_ms() - start_ms < 3000); /* it was waited for, not given up */
	assert_true(read_in(p, "args", text, sizeof(text)) > 0);
}

/* Ends with what it was sent. */
static int wait_for_signal(struct keeper_client *k, const struct place *p)
{
	sigset_t set;
	int signo = 0, sock = -1;
	pid_t pid;

	(void)p;
	(void)sigfillset(&set);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	MUST(keeper_launcher(k, &sock, &pid, NULL) == 0);
	hear_hello(sock); /* the test sees what the launcher wrote: we are ready */
	MUST(sigwait(&set, &signo) == 0);
	return signo;
}

static void await_args(const struct place *p)
{
	char text[64];

	for (int i = 0; i < 1000 && read_in(p, "environ", text, sizeof(text)) < 0; i++)
		(void)usleep(10000);
}

static void signals_go_to_the_daemon(void **state)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
	struct place *p = *state;
	char path[96];

	for (size_t i = 0; i < 3; i++) {
		pid_t pid = start(p, wait_for_signal);

		await_args(p);
		assert_int_equal(kill(pid, signals[i]), 0);
		assert_int_equal(code_of(pid), signals[i]);
		(void)str_format(path, sizeof(path), "%s/environ", p->dir);
		assert_int_equal(unlink(path), 0);
	}
}

/* Tells the test through a file that it was told to end. */
static int tied(struct keeper_client *k, const struct place *p)
{
	char path[96];
	sigset_t set;
	int signo = 0, fd;

	(void)sigfillset(&set);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	MUST(keeper_tie(k, NULL) == 0);
	MUST(kill(getppid(), SIGKILL) == 0);
	MUST(sigwait(&set, &signo) == 0 && signo == SIGTERM);
	MUST(keeper_tie(k, NULL) == -EPIPE);
	MUST(str_format(path, sizeof(path), "%s/args", p->dir) == 0);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	MUST(fd >= 0);
	return 0;
}

static void a_daemon_that_nobody_keeps_is_told_to_end(void **state)
{
	struct place *p = *state;
	int status = 0;
	char text[8];
	pid_t pid = start(p, tied);

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	for (int i = 0; i < 1000 && read_in(p, "args", text, sizeof(text)) < 0; i++)
		(void)usleep(10000);
	assert_int_equal(read_in(p, "args", text, sizeof(text)), 0);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_launcher_gets_its_socket_its_state_and_no_environment),
		CASE(a_second_launcher_comes_when_the_first_is_gone),
		CASE(launchers_that_do_not_last_come_more_and_more_slowly),
		CASE(what_is_not_one_byte_is_no_request),
		CASE(a_launcher_that_cannot_be_started_is_named),
		CASE(the_keeper_holds_three_descriptors),
		CASE(the_keeper_ends_as_its_daemon_does),
		CASE(when_the_keeper_has_ended_its_launcher_has),
		CASE(signals_go_to_the_daemon),
		CASE(a_daemon_that_nobody_keeps_is_told_to_end),
	};

	return cmocka_run_group_tests_name("keeper", tests, NULL, NULL);
}
