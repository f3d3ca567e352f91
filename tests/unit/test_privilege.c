/* Each case drops in a process of its own: there is no way back. Needs root to be worth anything.
 */
#include "provider/privilege.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "check.h"

/* In a child an assertion must not come back to the runner: the line is the exit status. */
#define MUST(cond)                                 \
	do {                                       \
		if (!(cond))                       \
			_exit(__LINE__ % 200 + 1); \
	} while (0)

static int status_of(void (*fn)(void))
{
	pid_t pid = fork();
	int status = 0;

	assert_true(pid >= 0);
	if (pid == 0) {
		fn();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void drop_all(void)
{
	gid_t groups[2] = { 1, 2 };
	struct account a;
	char status[4096];

	MUST(setgroups(2, groups) == 0);
	MUST(privilege_find_account("nobody", &a, NULL) == 0);
	MUST(privilege_drop(&a, NULL) == 0);
	MUST(getuid() == a.uid && geteuid() == a.uid && getgid() == a.gid && getegid() == a.gid);
	MUST(getgroups(0, NULL) == 0);
	MUST(setuid(0) < 0 && seteuid(0) < 0 && setgid(0) < 0 && setgroups(1, groups) < 0);
	MUST(open("/etc/shadow", O_RDONLY | O_CLOEXEC) < 0);
	MUST(fd_read_file_at(AT_FDCWD, "/proc/self/status", status, sizeof(status)) > 0);
	MUST(strstr(status, "CapInh:\t0000000000000000\n"));
	MUST(strstr(status, "CapPrm:\t0000000000000000\n"));
	MUST(strstr(status, "CapEff:\t0000000000000000\n"));
	MUST(strstr(status, "CapBnd:\t0000000000000000\n"));
	MUST(strstr(status, "CapAmb:\t0000000000000000\n"));
	MUST(strstr(status, "NoNewPrivs:\t1\n"));
	MUST(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
}

static void who_dropped_has_nothing_left_and_no_way_back(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(status_of(drop_all), 0);
}

static void drop_twice(void)
{
	struct account a;
	struct err err = { 0 };

	MUST(privilege_find_account("nobody", &a, NULL) == 0);
	MUST(privilege_drop(&a, NULL) == 0);
	MUST(privilege_drop(&a, &err) == -EPERM);
	MUST(strcmp(err.text, "only root can become user 'nobody'") == 0);
}

static void only_root_can_drop(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(status_of(drop_twice), 0);
}

/* Without CAP_SETUID the change of user fails when the groups are already gone. */
static void drop_with_less(void)
{
	struct account a;

	MUST(privilege_find_account("nobody", &a, NULL) == 0);
	MUST(prctl(PR_CAPBSET_DROP, CAP_SETUID, 0, 0, 0) == 0);
	MUST(execl("/proc/self/exe", "test_privilege", "--drop", NULL) == 0);
}

static void a_drop_that_fails_half_way_ends_the_process(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(status_of(drop_with_less), 1); /* and not 0, nor 42: it has not returned */
}

static void an_account_that_is_not_there_is_named(void **state)
{
	struct account a;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(privilege_find_account("nosuchuser", &a, &err), -ENOENT);
	assert_string_equal(err.text, "there is no user 'nosuchuser'");
}

static void root_is_no_account_to_drop_to(void **state)
{
	struct account a = { .name = "root" };

	(void)state;
	assert_int_equal(privilege_find_account("root", &a, NULL), -EINVAL);
	if (geteuid() == 0)
		assert_int_equal(privilege_drop(&a, NULL), -EINVAL);
	assert_int_equal(geteuid(), getuid());
}

static void without_a_name_it_is_holt_or_nobody(void **state)
{
	struct account a, named, holt;

	(void)state;
	assert_int_equal(privilege_find_account("", &a, NULL), 0);
	assert_int_equal(privilege_find_account("nobody", &named, NULL), 0);
	if (privilege_find_account("holt", &holt, NULL) == 0)
		named = holt;
	assert_string_equal(a.name, named.name);
	assert_int_equal(a.uid, named.uid);
	assert_int_equal(privilege_find_account(NULL, &a, NULL), 0);
	assert_int_equal(a.uid, named.uid);
}

/* The program itself, started by a case with less privilege than it needs. */
static int drop_and_say(void)
{
	struct account a;

	return privilege_find_account("nobody", &a, NULL) < 0 ? 41
	       : privilege_drop(&a, NULL) < 0                 ? 42
							      : 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_dropped_has_nothing_left_and_no_way_back),
		cmocka_unit_test(only_root_can_drop),
		cmocka_unit_test(a_drop_that_fails_half_way_ends_the_process),
		cmocka_unit_test(an_account_that_is_not_there_is_named),
		cmocka_unit_test(root_is_no_account_to_drop_to),
		cmocka_unit_test(without_a_name_it_is_holt_or_nobody),
	};

	if (argc == 2 && strcmp(argv[1], "--drop") == 0)
		return drop_and_say();
	return cmocka_run_group_tests_name("privilege", tests, NULL, NULL);
}
