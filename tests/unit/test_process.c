#include "launch/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "check.h"

/* Fields 3 to 21 of proc(5), then the start. */
#define FIELDS "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 "

static int start_of(const char *stat)
{
	uint64_t ticks = 7;

	if (process_parse_start(stat, &ticks) < 0)
		return ticks == 7 ? -1 : -2;
	return (int)ticks;
}

static void the_start_is_found_behind_any_name(void **state)
{
	(void)state;
	assert_int_equal(start_of("12 (sh) " FIELDS "4711 0 0"), 4711);
	assert_int_equal(start_of("12 (a b) c) " FIELDS "4711 0"), 4711);
	assert_int_equal(start_of("12 (() " FIELDS "4711"), 4711);
	assert_int_equal(start_of("12 (x\n) S 9) " FIELDS "4711 0"), 4711);
}

static void a_descendant_is_known(void **state)
{
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		pid_t below = fork();
		int status = 1;

		if (below == 0)
			_exit(process_descends(getpid(), getppid()) ? 0 : 1);
		(void)waitpid(below, &status, 0);
		_exit(status != 0 || process_descends(getppid(), getpid()));
	}
	assert_true(process_descends(pid, getpid()));
	assert_true(process_descends(pid, pid));
	assert_false(process_descends(pid, 1)); /* everybody does */
	assert_false(process_descends(getppid(), getpid()));
	{
		int status = 1;

		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	assert_false(process_descends(pid, getpid())); /* it is gone */
}

static void a_text_without_a_start_is_refused(void **state)
{
	(void)state;
	assert_int_equal(start_of(""), -1);
	assert_int_equal(start_of("12 sh " FIELDS "4711"), -1);
	assert_int_equal(start_of("12 (sh)"), -1);
	assert_int_equal(start_of("12 (sh)" FIELDS "4711"), -1);
	assert_int_equal(start_of("12 (sh) " FIELDS), -1);
	assert_int_equal(start_of("12 (sh) " FIELDS "-4 0"), -1);
	assert_int_equal(start_of("12 (sh) " FIELDS "99999999999999999999999 0"), -1);
}

static void only_the_first_process_of_a_namespace_below_ours_is_one(void **state)
{
	(void)state;
	assert_true(process_parse_is_init("Name:\tx\nNSpid:\t4711\t1\nNSpgid:\t1\n"));
	assert_true(process_parse_is_init("NSpid:\t4711\t20\t1\n"));
	assert_false(process_parse_is_init("NSpid:\t1\nNSpgid:\t1\t1\n")); /* the machine's own */
	assert_false(process_parse_is_init("NSpid:\t4711\t2\n"));
	assert_false(process_parse_is_init("NSpid:\t1\t4711\n"));
	assert_false(process_parse_is_init("NSpid:\t4711\t11\n"));
	assert_false(process_parse_is_init("Name:\tNSpid:\t4711\t1\n"));
	assert_false(process_parse_is_init(""));
}

static int open_proc(void)
{
	return open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void a_process_is_opened_by_its_start_until_it_ends(void **state)
{
	_close_ int proc = open_proc(), fd = -1;
	uint64_t ticks;
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		for (;;)
			(void)pause();
	}
	assert_int_equal(process_start(proc, child, &ticks), 0);
	assert_false(process_is_init(proc, child));
	assert_int_equal(process_open(proc, child, ticks + 1), -ESRCH);
	fd = process_open(proc, child, ticks);
	assert_true(fd >= 0);
	assert_int_equal(process_wait(fd, 0), -ETIMEDOUT);
	process_kill(fd);
	assert_int_equal(process_wait(fd, 30000), 0);
	/* Nobody has waited for it yet: it is there, and yet it is over. */
	assert_int_equal(process_open(proc, child, ticks), -ESRCH);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(process_open(proc, child, ticks), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_start_is_found_behind_any_name),
		cmocka_unit_test(a_descendant_is_known),
		cmocka_unit_test(a_text_without_a_start_is_refused),
		cmocka_unit_test(only_the_first_process_of_a_namespace_below_ours_is_one),
		cmocka_unit_test(a_process_is_opened_by_its_start_until_it_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
