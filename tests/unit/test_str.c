#include "base/str.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "fault.h"

static void slices_compare_by_content(void **state)
{
	struct str none = { NULL, 0 };

	(void)state;
	assert_true(str_eq(STR("abc"), str_of("abc")));
	assert_false(str_eq(STR("abc"), STR("abd")));
	assert_false(str_eq(STR("abc"), STR("ab")));
	assert_true(str_eq(none, str_of(NULL)));
	assert_true(str_is(none, ""));
	assert_true(str_is((struct str){ "abcdef", 3 }, "abc"));
	assert_false(str_is((struct str){ "a\0b", 3 }, "a"));
}

static void prefixes_and_suffixes(void **state)
{
	struct str none = { NULL, 0 };

	(void)state;
	assert_true(str_starts(STR("holt-init"), "holt"));
	assert_true(str_starts(STR("holt"), "holt"));
	assert_false(str_starts(STR("hol"), "holt"));
	assert_true(str_starts(none, ""));
	assert_false(str_starts(none, "x"));
	assert_true(str_ends(STR("a.tar.gz"), ".gz"));
	assert_false(str_ends(STR("gz"), ".gz"));
	assert_true(str_ends(none, ""));
	assert_false(str_ends(none, "x"));
}

static void blanks_are_trimmed_at_both_ends_only(void **state)
{
	(void)state;
	assert_true(str_is(str_trim(STR(" \t\r\n a b \v\f")), "a b"));
	assert_true(str_is(str_trim(STR("a")), "a"));
	assert_true(str_is(str_trim(STR("   ")), ""));
	assert_int_equal(str_trim((struct str){ NULL, 0 }).len, 0);
}

static void assert_parts(const char *text, const char *const *want, size_t count)
{
	struct str rest = str_of(text), part = { 0 };
	size_t n = 0;

	while (str_split(&rest, ',', &part)) {
		assert_true(n < count);
		assert_true(str_is(part, want[n]));
		n++;
	}
	assert_int_equal(n, count);
}

static void a_text_splits_at_each_separator(void **state)
{
	(void)state;
	assert_parts("a,,b", (const char *const[]){ "a", "", "b" }, 3);
	assert_parts("a", (const char *const[]){ "a" }, 1);
	assert_parts(",a", (const char *const[]){ "", "a" }, 2);
	assert_parts("a,", (const char *const[]){ "a" }, 1);
	assert_parts(",", (const char *const[]){ "" }, 1);
	assert_parts("", NULL, 0);
}

static void a_copy_fits_whole_or_not_at_all(void **state)
{
	char dst[4] = "zzz";

	(void)state;
	assert_int_equal(str_copy(dst, sizeof(dst), "abc"), 0);
	assert_string_equal(dst, "abc");
	assert_int_equal(str_copy(dst, sizeof(dst), "abcd"), -E2BIG);
	assert_string_equal(dst, "");
	assert_int_equal(str_copy(dst, 1, ""), 0);
	dst[0] = 'q';
	assert_int_equal(str_copy(dst, 0, ""), -E2BIG);
	assert_int_equal(dst[0], 'q');
}

static void a_formatted_text_fits_whole_or_not_at_all(void **state)
{
	char dst[8] = "zzz";

	(void)state;
	assert_int_equal(str_format(dst, sizeof(dst), "%s/%d", "a", 12345), 0);
	assert_string_equal(dst, "a/12345");
	assert_int_equal(str_format(dst, sizeof(dst), "%s/%d", "a", 123456), -E2BIG);
	assert_string_equal(dst, "");
	dst[0] = 'q';
	assert_int_equal(str_format(dst, 0, "x"), -E2BIG);
	assert_int_equal(dst[0], 'q');
}

static void a_duplicate_is_terminated_and_owned(void **state)
{
	char *s = str_dup((struct str){ "abcdef", 3 }), *empty = str_dup((struct str){ NULL, 0 });

	(void)state;
	assert_string_equal(s, "abc");
	assert_string_equal(empty, "");
	free(s);
	free(empty);
	assert_null(str_dup((struct str){ "x", SIZE_MAX }));
	fault_arm(1);
	assert_null(str_dup(STR("x")));
	assert_true(fault_disarm());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slices_compare_by_content),
		cmocka_unit_test(prefixes_and_suffixes),
		cmocka_unit_test(blanks_are_trimmed_at_both_ends_only),
		cmocka_unit_test(a_text_splits_at_each_separator),
		cmocka_unit_test(a_copy_fits_whole_or_not_at_all),
		cmocka_unit_test(a_formatted_text_fits_whole_or_not_at_all),
		cmocka_unit_test(a_duplicate_is_terminated_and_owned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
