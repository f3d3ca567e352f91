/* Packages: what is a name and a version, and what only looks like one. */
#include "api/package_plan.h"

#include <string.h>

#include "base/arena.h"
#include "check.h"
#include "sandbox/sandbox.h"

static void refuse_all(enum package_manager m, const char *const *names)
{
	for (; *names; names++)
		if (package_is_good(m, *names))
			fail_msg("'%s' was taken", *names);
}

static void take_all(enum package_manager m, const char *const *names)
{
	for (; *names; names++)
		if (!package_is_good(m, *names))
			fail_msg("'%s' was refused", *names);
}

static void names_and_versions_of_each_manager_are_taken(void **state)
{
	(void)state;
	take_all(PACKAGE_PIP,
		 (const char *[]){ "a", "Django", "a.b-c_d", "a==1.2", "a>=1,<2", "a~=1.0", "a[x]",
				   "a[x,y]==1.*", "a==1!2.0+local", NULL });
	take_all(PACKAGE_NPM, (const char *[]){ "a", "left-pad", "@a/b", "a@1.2.3", "@a/b@^1",
						"a@latest", "a@>=1", "a@1.0.0-rc.1+b", NULL });
	take_all(PACKAGE_CARGO,
		 (const char *[]){ "a", "serde_json", "rip-grep@1.2.3", "a@1.0.0-b", NULL });
	take_all(PACKAGE_GO, (const char *[]){ "x.example/y", "x.example/y/z@v1.2.3",
					       "x.example/y@latest", NULL });
}

static void options_paths_addresses_and_shell_are_refused(void **state)
{
	static const char *const bad[] = { "",         "-x",         "--index-url=http://e",
					   "a b",      "./a",        "../a",
					   "/a",       "http://x/y", "a;b",
					   "a|b",      "a&b",        "$(id)",
					   "`id`",     "a\nb",       "a\tb",
					   "a\"b",     "a'b",        "git+ssh://x",
					   "file:a",   "a@http://x", "a@../b",
					   "\xc3\xa9", NULL };

	(void)state;
	for (int m = 0; m < PACKAGE_MANAGERS; m++)
		refuse_all((enum package_manager)m, bad);
	refuse_all(PACKAGE_PIP,
		   (const char *[]){ "a==", "a==1,", "a[", "a[]", "a[x", "a===1", "a@1", NULL });
	refuse_all(PACKAGE_NPM,
		   (const char *[]){ "A", "a/b", "@a", "@a/", "a@", "a@npm:b", "a@1 || 2", NULL });
	refuse_all(PACKAGE_CARGO, (const char *[]){ "1a", "a@", "a@=1", "a/b", NULL });
	refuse_all(PACKAGE_GO,
		   (const char *[]){ "cmd/go", "x.example", "x.example//y", "x.example/../y",
				     "x.example/y@", "x.example/y/", NULL });
}

static void a_name_that_is_too_long_is_refused(void **state)
{
	char name[PACKAGE_TEXT_MAX + 2];

	(void)state;
	memset(name, 'a', sizeof(name));
	name[PACKAGE_TEXT_MAX + 1] = '\0';
	assert_false(package_is_good(PACKAGE_PIP, name));
	name[PACKAGE_TEXT_MAX] = '\0';
	assert_true(package_is_good(PACKAGE_PIP, name));
}

/* Each package is one argument, and behind all options. */
static void the_command_names_the_registry_and_the_way_out(void **state)
{
	static const char *const packages[] = { "one", "two" };
	struct arena *a = arena_create(1 << 20);
	struct package_plan plan;
	bool has_proxy = false;

	(void)state;
	for (int m = 0; m < PACKAGE_MANAGERS; m++) {
		bool has_registry = false;

		assert_int_equal(package_plan((enum package_manager)m, packages, 2, "http://r/",
					      "http://127.0.0.1:9", a, &plan),
				 0);
		assert_string_equal(plan.argv[plan.argc - 2], "one");
		assert_string_equal(plan.argv[plan.argc - 1], "two");
		for (size_t i = 0; i < plan.argc; i++)
			has_registry |= strcmp(plan.argv[i], "http://r/") == 0;
		for (size_t i = 0; i < plan.n_env; i++) {
			has_registry |= strstr(plan.env[i].value, "http://r/") != NULL;
			has_proxy |= strcmp(plan.env[i].name, "HTTPS_PROXY") == 0 &&
				     strcmp(plan.env[i].value, "http://127.0.0.1:9") == 0;
		}
		assert_true(has_registry && has_proxy);
	}
	(void)arena_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_versions_of_each_manager_are_taken),
		cmocka_unit_test(options_paths_addresses_and_shell_are_refused),
		cmocka_unit_test(a_name_that_is_too_long_is_refused),
		cmocka_unit_test(the_command_names_the_registry_and_the_way_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
