/* The lines that an edit makes new. */
#include "tools/edit_scan.h"

#include <string.h>

#include "check.h"

static void assert_changes(const char *text, const char *old_text, const char *new_text,
			   const char *wanted)
{
	struct buf b = { 0 };
	struct edit_change c;
	struct edit_scan s;

	edit_scan_begin(&s, text, strlen(text), old_text, new_text);
	while (edit_scan_next(&s, &c)) {
		assert_int_equal(buf_printf(&b, "%u:%s;", (unsigned)c.line, buf_str(&c.text)), 0);
		buf_done(&c.text);
	}
	assert_string_equal(buf_str(&b), wanted);
	buf_done(&b);
}

static void lines_are_told_whole_and_by_their_new_number(void **state)
{
	(void)state;
	assert_changes("a\nb x c\nd\n", "x", "y", "2:b y c;");
	assert_changes("x", "x", "", "1:;");
	assert_changes("a\nb x c x\nd\nx\n", "x", "1\n2", "2:b 1\n2 c 1\n2;6:1\n2;");
	assert_changes("a\nd\nx\n", "d\n", "", "2:x;");
	assert_changes("aaaa\n", "aa", "b", "1:bb;");
	assert_changes("a\nb\n", "a\nb", "c", "1:c;");
	assert_changes("abc", "x", "y", "");
	assert_changes("", "x", "y", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_told_whole_and_by_their_new_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
