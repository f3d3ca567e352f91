#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "guest/user.h"

#define PASSWD                                      \
	"root:x:0:0:root:/root:/bin/bash\n"         \
	"user:x:1000:1000:,,,:/home/user:/bin/sh\n" \
	"bare:x:1001:50::: \n"                      \
	"empty:x:1002:1002:::\n"
#define GROUP                    \
	"root:x:0:\n"            \
	"user:x:1000:user\n"     \
	"tape:x:26:other,user\n" \
	"video:x:44:user,root\n" \
	"again:x:44:user\n"      \
	"not:x:45:users\n"

static int find(const char *passwd, const char *group, const char *who, struct user *ret)
{
	return user_find(str_of(passwd), str_of(group), who, ret, NULL);
}

static void a_name_gives_ids_home_shell_and_groups(void **state)
{
	struct user u;

	(void)state;
	assert_int_equal(find(PASSWD, GROUP, "user", &u), 0);
	assert_int_equal(u.uid, 1000);
	assert_int_equal(u.gid, 1000);
	assert_string_equal(u.name, "user");
	assert_string_equal(u.home, "/home/user");
	assert_string_equal(u.shell, "/bin/sh");
	assert_int_equal(u.ngroups, 2); /* its own is not repeated, nor is one id */
	assert_int_equal(u.groups[0], 26);
	assert_int_equal(u.groups[1], 44);
}

static void nobody_in_particular_is_the_boxs_user(void **state)
{
	struct user u;

	(void)state;
	assert_int_equal(find(PASSWD, GROUP, "", &u), 0);
	assert_string_equal(u.name, "user");
	assert_int_equal(find("", "", "", &u), 0);
	assert_int_equal(u.uid, USER_DEFAULT);
	assert_int_equal(u.gid, USER_DEFAULT);
	assert_string_equal(u.home, "/");
	assert_string_equal(u.name, "");
}

static void a_number_need_not_be_known(void **state)
{
	struct user u;

	(void)state;
	assert_int_equal(find(PASSWD, GROUP, "0", &u), 0);
	assert_string_equal(u.name, "root");
	assert_int_equal(u.groups[0], 44);
	assert_int_equal(find(PASSWD, GROUP, "1001", &u), 0);
	assert_int_equal(u.gid, 50);
	assert_int_equal(find(PASSWD, GROUP, "77", &u), 0);
	assert_int_equal(u.uid, 77);
	assert_int_equal(u.gid, 77);
	assert_int_equal(u.ngroups, 0);
	assert_int_equal(find(PASSWD, GROUP, "4294967294", &u), 0);
	assert_int_equal(u.uid, 4294967294u);
}

static void empty_fields_have_stand_ins(void **state)
{
	struct user u;

	(void)state;
	assert_int_equal(find(PASSWD, GROUP, "empty", &u), 0);
	assert_string_equal(u.home, "/");
	assert_string_equal(u.shell, "/bin/sh");
}

static void what_is_nobody_is_refused(void **state)
{
	static const char *const bad[] = {
		"nobody",
		"4294967295",
		"4294967296",
		"99999999999999999999",
		"-1",
		"user\n",
		"root:x:0:0:root:/",
		"user:x",
		" user",
		"0x0",
		"1000 ",
		":",
		",",
		"\n",
	};
	struct user u = { .uid = 42 };
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(find(PASSWD, GROUP, bad[i], &u),
				 strspn(bad[i], "0123456789") == strlen(bad[i]) ? -EINVAL : -ESRCH);
	assert_int_equal(u.uid, 42);
	assert_int_equal(user_find(STR(""), STR(""), "joe", &u, &err), -ESRCH);
	assert_string_equal(err.text, "user 'joe': not in the box's passwd file");
}

static void a_line_that_is_not_well_formed_does_not_exist(void **state)
{
	static const char *const lines[] = {
		"evil:x:4294967295:0::/:/bin/sh\n",
		"evil:x:4294967296:0::/:/bin/sh\n",
		"evil:x:0:-1::/:/bin/sh\n",
		"evil:x:+0:0::/:/bin/sh\n",
		"evil:x: 0:0::/:/bin/sh\n",
		"evil:x::0::/:/bin/sh\n",
		"evil:x:0\n",
		"evil\n",
		"evil:x:0:0::/:/bin/sh:more\n",
		"evil:x:00000000000:0::/:/bin/sh\n",
	};
	struct user u;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_int_equal(find(lines[i], "", "evil", &u), -ESRCH);
	/* and the next line still counts */
	assert_int_equal(find("\n::::::\nevil:x:1\nevil:x:7:7::/:/bin/sh", "", "evil", &u), 0);
	assert_int_equal(u.uid, 7);
}

static void fields_too_long_or_with_a_nul_are_not_taken(void **state)
{
	static const char nul[] = "evil:x:0:0::/a\0b:/bin/sh\n";
	char line[1024] = "long:x:5:5::/";
	struct user u;

	(void)state;
	memset(line + strlen(line), 'h', 300);
	memcpy(line + 313, ":/bin/sh\n", 10);
	assert_int_equal(find(line, "", "long", &u), -ESRCH);
	assert_int_equal(user_find((struct str){ nul, sizeof(nul) - 1 }, STR(""), "evil", &u, NULL),
			 -ESRCH);
}

static void more_groups_than_fit_are_left_out(void **state)
{
	char *group = calloc(1, 64 * 1024);
	struct user u;
	size_t n = 0;

	(void)state;
	assert_non_null(group);
	for (unsigned i = 0; i < 1000; i++) {
		static const char digits[] = "0123456789";
		const char line[] = { 'g',
				      ':',
				      ':',
				      digits[2],
				      digits[i / 100],
				      digits[i / 10 % 10],
				      digits[i % 10],
				      ':',
				      'u',
				      's',
				      'e',
				      'r',
				      '\n' };

		memcpy(group + n, line, sizeof(line));
		n += sizeof(line);
	}
	assert_int_equal(find(PASSWD, group, "user", &u), 0);
	assert_int_equal(u.ngroups, USER_GROUPS_MAX);
	assert_int_equal(u.groups[USER_GROUPS_MAX - 1], 2000 + USER_GROUPS_MAX - 1);
	free(group);
}

static void the_machines_own_files_can_be_read(void **state)
{
	struct user u;

	(void)state;
	assert_int_equal(user_load("root", &u, NULL), 0);
	assert_int_equal(u.uid, 0);
}

static void files_that_did_not_change_are_not_read_again(void **state)
{
	struct user_memory m = { 0 };
	struct user u, fresh;

	(void)state;
	assert_int_equal(user_load("", &fresh, NULL), 0);
	assert_int_equal(user_load_again(&m, "", &u, NULL), 0);
	assert_true(m.is_known);
	assert_string_equal(u.name, fresh.name);
	m.is_fixed = false; /* whatever this machine's /etc is */
	m.user.uid = 4711;  /* which no file says */
	assert_int_equal(user_load_again(&m, "", &u, NULL), 0);
	assert_int_equal(u.uid, 4711);
	m.group.st_mtim.tv_nsec ^= 1;
	assert_int_equal(user_load_again(&m, "", &u, NULL), 0);
	assert_int_equal(u.uid, USER_DEFAULT);
	m.is_fixed = false;
	m.user.uid = 4711;
	m.passwd.st_ino++;
	assert_int_equal(user_load_again(&m, "", &u, NULL), 0);
	assert_int_equal(u.uid, USER_DEFAULT);
}

static void what_cannot_change_is_not_even_looked_at(void **state)
{
	struct user_memory m = { .is_known = true, .is_fixed = true, .user.uid = 4711 };
	struct user u;

	(void)state;
	assert_int_equal(user_load_again(&m, "", &u, NULL), 0);
	assert_int_equal(u.uid, 4711);
	assert_int_equal(user_load_again(&m, "root", &u, NULL),
			 0); /* others are never remembered */
	assert_int_equal(u.uid, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_gives_ids_home_shell_and_groups),
		cmocka_unit_test(nobody_in_particular_is_the_boxs_user),
		cmocka_unit_test(a_number_need_not_be_known),
		cmocka_unit_test(empty_fields_have_stand_ins),
		cmocka_unit_test(what_is_nobody_is_refused),
		cmocka_unit_test(a_line_that_is_not_well_formed_does_not_exist),
		cmocka_unit_test(fields_too_long_or_with_a_nul_are_not_taken),
		cmocka_unit_test(more_groups_than_fit_are_left_out),
		cmocka_unit_test(the_machines_own_files_can_be_read),
		cmocka_unit_test(files_that_did_not_change_are_not_read_again),
		cmocka_unit_test(what_cannot_change_is_not_even_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
