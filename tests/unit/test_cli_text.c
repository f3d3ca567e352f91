/* What the command line makes of text from outside: escapes, tables, times. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "check.h"
#include "cli/escape.h"
#include "cli/show.h"
#include "cli/table.h"
#include "cli/when.h"
#include "fault.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static void what_would_move_a_cursor_is_shown(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "plain", "plain" },
		{ "", "" },
		{ "\033[2Jx", "\\x1b[2Jx" },
		{ "a\nb\rc\td\x7f", "a\\x0ab\\x0dc\\x09d\\x7f" },
		{ "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
		  "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80" },
		{ "\xc2\x9b"
		  "31m",
		  "\\xc2\\x9b31m" },        /* C1: CSI */
		{ "\xc2\xa0", "\xc2\xa0" }, /* the first behind C1 */
		{ "a\xe2\x80\xae"
		  "b\xe2\x81\xa6\xe2\x80\x8f",
		  "a\\xe2\\x80\\xaeb\\xe2\\x81\\xa6\\xe2\\x80\\x8f" }, /* direction */
		{ "\xe2\x80\x93", "\xe2\x80\x93" },                    /* a dash beside them */
		{ "\xff\xc3(\xe2\x82", "\\xff\\xc3(\\xe2\\x82" },      /* no UTF-8 */
	};

	(void)state;
	for (size_t i = 0; i < LEN(rows); i++) {
		_cleanup_(buf_done) struct buf b = { 0 };

		assert_int_equal(escape_text(&b, rows[i].in, strlen(rows[i].in)), 0);
		assert_string_equal(buf_str(&b), rows[i].out);
	}
}

static void a_nul_is_shown_too(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	(void)state;
	assert_int_equal(escape_text(&b, "a\0b", 3), 0);
	assert_string_equal(b.data, "a\\x00b");
}

static char *printed(const struct table *t)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	table_print(t, f);
	(void)fclose(f);
	return text;
}

static void columns_are_as_wide_as_their_widest_cell(void **state)
{
	static const char *const heads[] = { "ID", "NAME", "LAST", NULL };
	static const char *const cells[] = { "a", "caf\xc3\xa9!", "x", "longer", NULL, "",
					     "b", "\033",         "z" };
	_free_ char *text = NULL;
	struct table t;

	(void)state;
	table_init(&t, heads);
	for (size_t i = 0; i < LEN(cells); i++)
		assert_int_equal(table_add(&t, cells[i]), 0);
	text = printed(&t);
	assert_string_equal(text, "ID      NAME   LAST\n"
				  "a       caf\xc3\xa9!  x\n"
				  "longer  -      -\n"
				  "b       \\x1b   z\n");
	table_done(&t);
}

static void a_table_without_rows_is_its_heads(void **state)
{
	static const char *const heads[] = { "A", "B", NULL };
	_free_ char *text = NULL;
	struct table t;

	(void)state;
	table_init(&t, heads);
	text = printed(&t);
	assert_string_equal(text, "A  B\n");
	table_done(&t);
}

static int fill_table(void *arg)
{
	static const char *const heads[] = { "A", NULL };
	struct table t;
	int r = 0;

	(void)arg;
	table_init(&t, heads);
	for (int i = 0; i < 70 && r == 0; i++)
		r = table_add(&t, "cell");
	table_done(&t);
	return r == -E2BIG ? -ENOMEM : r; /* a buffer without memory says so */
}

static void a_table_that_finds_no_memory_says_so(void **state)
{
	(void)state;
	assert_true(fault_each(fill_table, NULL) > 70);
}

/* Callers that keep the buffer and not what is returned must not print what it held before. */
static void every_value_is_written_to_the_buffer(void **state)
{
	static const struct {
		const char *json, *shown;
	} rows[] = {
		{ "null", "-" }, { "true", "yes" },      { "false", "no" },
		{ "7", "7" },    { "1.5", "1.5" },       { "[1]", "-" },
		{ "{}", "-" },   { "\"text\"", "text" }, { "\"longer than the buffer\"", "" },
	};

	(void)state;
	for (size_t i = 0; i < LEN(rows); i++) {
		struct jv_doc *doc = NULL;
		char text[8];

		memset(text, '#', sizeof(text));
		assert_int_equal(jv_parse(rows[i].json, strlen(rows[i].json), 64, &doc, NULL), 0);
		assert_ptr_equal(show_text(jv_root(doc), text, sizeof(text)), text);
		assert_string_equal(text, rows[i].shown);
		jv_free(doc);
	}
}

static void a_time_that_is_not_there_is_written_to_the_buffer(void **state)
{
	struct jv none = { 0 };
	char text[8] = "#######";

	(void)state;
	assert_ptr_equal(show_since(none, text, sizeof(text)), text);
	assert_string_equal(text, "-");
}

static void times_of_the_api_are_read(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} good[] = {
		{ "1970-01-01T00:00:00.000Z", 0 },
		{ "2026-01-02T03:04:05.678Z", 1767323045678 },
		{ "2026-01-02T03:04:05Z", 1767323045000 },
		{ "2026-01-02T03:04:05.6Z", 1767323045600 },
		{ "2026-01-02", 1767312000000 },
	};
	static const char *const bad[] = { "", "2026-01-02T03:04:05", "x",
					   "2026-01-02T03:04:05.678Zx", "2026-13-02T03:04:05Z" };

	(void)state;
	for (size_t i = 0; i < LEN(good); i++) {
		int64_t ms = -1;

		assert_int_equal(when_parse(good[i].text, &ms), 0);
		assert_int_equal(ms, good[i].ms);
	}
	for (size_t i = 0; i < LEN(bad); i++) {
		int64_t ms;

		assert_int_equal(when_parse(bad[i], &ms), -EINVAL);
	}
}

static void spans_are_told_in_the_largest_unit_of_which_there_are_two(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} rows[] = {
		{ -5, "0ms" },
		{ 0, "0ms" },
		{ 999, "999ms" },
		{ 1000, "1s" },
		{ 119999, "119s" },
		{ 120000, "2m" },
		{ 7199000, "119m" },
		{ 7200000, "2h" },
		{ 47 * 3600000ll, "47h" },
		{ 48 * 3600000ll, "2d" },
		{ INT64_MAX, "106751991167d" },
	};
	char text[WHEN_SIZE];

	(void)state;
	for (size_t i = 0; i < LEN(rows); i++) {
		when_span(rows[i].ms, text);
		assert_string_equal(text, rows[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_would_move_a_cursor_is_shown),
		cmocka_unit_test(a_nul_is_shown_too),
		cmocka_unit_test(columns_are_as_wide_as_their_widest_cell),
		cmocka_unit_test(a_table_without_rows_is_its_heads),
		cmocka_unit_test(a_table_that_finds_no_memory_says_so),
		cmocka_unit_test(every_value_is_written_to_the_buffer),
		cmocka_unit_test(a_time_that_is_not_there_is_written_to_the_buffer),
		cmocka_unit_test(times_of_the_api_are_read),
		cmocka_unit_test(spans_are_told_in_the_largest_unit_of_which_there_are_two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
