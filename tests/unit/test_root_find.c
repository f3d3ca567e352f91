#include <errno.h>
#include <string.h>

#include "check.h"
#include "sandbox/root_find.h"

static void a_reference_is_the_name_of_its_file(void **state)
{
	static const char *const rows[][2] = {
		{ "ubuntu:22.04", "ubuntu:22.04" },
		{ "docker.io/library/ubuntu:22.04", "ubuntu:22.04" },
		{ "docker.io/me/app", "me/app:latest" },
		{ "library/python", "python:latest" },
		{ "ghcr.io/a/b:1", "ghcr.io/a/b:1" },
		{ "registry:5000/a/b", "registry:5000/a/b:latest" },
		{ "a@sha256:0123", "a@sha256:0123" },
		{ "a:1@sha256:0123", "a:1@sha256:0123" },
	};
	char path[128];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(root_reference_path(rows[i][0], path, sizeof(path)), 0);
		assert_string_equal(path, rows[i][1]);
	}
}

static void what_could_lead_elsewhere_is_none(void **state)
{
	static const char *const rows[] = {
		"",     "/etc", "../x", "a/../b", "a/./b", ".hidden",
		"a//b", "a/",   "a:",   "a:..",   ":1",    "docker.io/",
		"a b",  "a\nb", "a@",   "-a",     "a::b",  "\xc3\xa9",
	};
	char path[128];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (root_reference_path(rows[i], path, sizeof(path)) != -EINVAL)
			fail_msg("'%s' was taken", rows[i]);
	assert_int_equal(root_reference_path("abcdefgh", path, 8), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reference_is_the_name_of_its_file),
		cmocka_unit_test(what_could_lead_elsewhere_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
