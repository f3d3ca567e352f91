#include "cli/top_view.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "check.h"

#define BOX(id, name, cpu, memory)                                                           \
	"{\"id\":\"" id "\",\"name\":" name ",\"status\":\"running\",\"template\":\"bash\"," \
	"\"createdAt\":\"2026-01-02T03:04:05.678Z\",\"runningExecutions\":2,"                \
	"\"resources\":{\"cpu\":0.5,\"memory\":268435456,\"disk\":134217728,\"pids\":64},"   \
	"\"usage\":{\"cpuSeconds\":" cpu ",\"memory\":" memory ",\"processes\":3}}"

static int add_all(struct top_look *l, const char *text)
{
	struct jv_doc *doc = NULL;
	int r = 0;

	assert_int_equal(jv_parse(text, strlen(text), 1 << 20, &doc, NULL), 0);
	JV_FOREACH (jv_root(doc), it)
		if (r == 0)
			r = top_look_add(l, it.value);
	(void)jv_free(doc);
	return r;
}

static char *print(const struct top_look *l)
{
	char *text = NULL;
	size_t n = 0;
	FILE *to = open_memstream(&text, &n);

	assert_non_null(to);
	assert_int_equal(top_print(l, to), 0);
	assert_int_equal(fclose(to), 0);
	return text;
}

static void order_is(struct top_look *l, enum top_order by, const char *ids)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	top_look_sort(l, by);
	for (size_t i = 0; i < l->n; i++)
		assert_int_equal(buf_puts(&b, l->rows[i].id), 0);
	assert_string_equal(buf_str(&b), ids);
}

static void a_share_of_a_core_is_the_work_between_two_looks(void **state)
{
	_cleanup_(top_look_done) struct top_look a = { .at_ns = 1000000000 };
	_cleanup_(top_look_done) struct top_look b = { .at_ns = 3000000000 };

	(void)state;
	assert_int_equal(
		add_all(&a, "[" BOX("z", "null", "1.5", "1") "," BOX("y", "null", "9", "1") "]"),
		0);
	assert_int_equal(
		add_all(&b, "[" BOX("new", "null", "5", "1") "," BOX("y", "null", "1", "1") "," BOX(
				    "z", "null", "2.5", "1") ",{\"id\":\"x\"}]"),
		0);
	top_look_compare(&b, &a);
	assert_true(b.rows[0].percent < 0); /* it was not there */
	assert_true(b.rows[1].percent < 0); /* another box since: it began anew */
	assert_true(b.rows[2].percent > 49.9 && b.rows[2].percent < 50.1);
	assert_true(b.rows[3].percent < 0 && !b.rows[3].has_usage);
}

static void without_an_earlier_look_no_share_is_known(void **state)
{
	_cleanup_(top_look_done) struct top_look a = { 0 }, b = { .at_ns = 1 };
	_free_ char *text = NULL;

	(void)state;
	assert_int_equal(add_all(&b, "[" BOX("a", "null", "1", "1048576") "]"), 0);
	top_look_compare(&b, &a);
	text = print(&b);
	assert_non_null(strstr(text,
			       "sandboxes 1, running 1; executions 2; cpu 0.0%; memory 1 MiB of "
			       "256 MiB; processes 3\n\n"));
	assert_non_null(strstr(text, "a   -     running  bash      -     1 MiB / 256 MiB  3      "
				     "128 MiB   2      "));
}

static void rows_are_sorted_by_each_column(void **state)
{
	_cleanup_(top_look_done) struct top_look l = { 0 };

	(void)state;
	assert_int_equal(
		add_all(&l,
			"[" BOX("a", "\"n2\"", "1", "30") "," BOX("b", "null", "1", "20") "," BOX(
				"c", "\"n1\"", "1", "10") "," BOX("d", "null", "1", "20") "]"),
		0);
	l.rows[0].percent = 1;
	l.rows[2].percent = 5;
	order_is(&l, TOP_BY_CPU, "cabd");
	order_is(&l, TOP_BY_MEMORY, "abdc");
	order_is(&l, TOP_BY_NAME, "cabd");
}

static void what_the_daemon_says_cannot_move_the_cursor(void **state)
{
	_cleanup_(top_look_done) struct top_look l = { 0 };
	_free_ char *text = NULL;

	(void)state;
	assert_int_equal(add_all(&l, "[" BOX("a", "\"x\\u001b[2Jy\"", "1", "1") "]"), 0);
	text = print(&l);
	assert_null(strchr(text, '\x1b'));
}

static void a_screen_has_its_rows_and_columns(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	(void)state;
	assert_int_equal(
		top_draw("12345678\n\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f+\nc\nd\n", "status", 3, 4, &b),
		0);
	assert_string_equal(
		b.data, "\x1b[H1234\x1b[K\r\n\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f\x1b[K\r\nstat\x1b[J");
	buf_clear(&b);
	assert_int_equal(top_draw("a\n", "s", 1, 80, &b), 0);
	assert_string_equal(b.data, "\x1b[Hs\x1b[J");
}

static void a_program_gets_every_field(void **state)
{
	_cleanup_(top_look_done) struct top_look l = { 0 };
	_cleanup_(buf_done) struct buf b = { 0 };

	(void)state;
	assert_int_equal(
		add_all(&l, "[" BOX("a", "null", "1", "7") ",{\"id\":\"b\",\"usage\":null}]"), 0);
	l.rows[0].percent = 12.5;
	assert_int_equal(top_print_json(&l, &b), 0);
	assert_string_equal(
		b.data,
		"[{\"id\":\"a\",\"name\":null,\"status\":\"running\",\"template\":\"bash\","
		"\"cpuPercent\":12.5,\"memory\":7,\"processes\":3,\"memoryMax\":268435456,"
		"\"diskMax\":134217728,\"executions\":2,\"createdAt\":\"2026-01-02T03:04:05.678Z\"}"
		","
		"{\"id\":\"b\",\"name\":null,\"status\":\"\",\"template\":\"\",\"cpuPercent\":null,"
		"\"memory\":null,\"processes\":null,\"memoryMax\":0,\"diskMax\":0,\"executions\":0,"
		"\"createdAt\":\"\"}]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_share_of_a_core_is_the_work_between_two_looks),
		cmocka_unit_test(without_an_earlier_look_no_share_is_known),
		cmocka_unit_test(rows_are_sorted_by_each_column),
		cmocka_unit_test(what_the_daemon_says_cannot_move_the_cursor),
		cmocka_unit_test(a_screen_has_its_rows_and_columns),
		cmocka_unit_test(a_program_gets_every_field),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
