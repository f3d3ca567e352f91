#include "json/jv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "check.h"
#include "fault.h"

#define MAX 100000
#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static struct jv_doc *parse(const char *text)
{
	struct jv_doc *doc = NULL;
	struct err err = { 0 };

	if (jv_parse(text, strlen(text), MAX, &doc, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	return doc;
}

static int result_of(const char *text, size_t n)
{
	struct jv_doc *doc = NULL;
	struct err err = { 0 };
	int r = jv_parse(text, n, MAX, &doc, &err);

	if (r < 0) {
		assert_null(doc);
		assert_int_equal(err.code, -r);
		assert_true(strncmp(err.text, "JSON", 4) == 0);
	}
	jv_free(doc);
	return r;
}

static void every_kind_is_read(void **state)
{
	struct jv_doc *doc = parse("{\"s\":\"a\\u0000b\",\"n\":-7,\"d\":1.5,\"t\":true,\"z\":null,"
				   "\"a\":[1,2,3],\"o\":{\"x\":{}}}");
	struct jv root = jv_root(doc);
	struct str s;
	int64_t i = 0;
	double d = 0;
	bool b = false;

	(void)state;
	assert_int_equal(jv_kind(root), JV_OBJECT);
	assert_int_equal(jv_len(root), 7);
	assert_int_equal(jv_str(jv_get(root, "s"), &s), 0);
	assert_int_equal(s.len, 3);
	assert_memory_equal(s.data, "a\0b", 4);
	assert_null(jv_text(jv_get(root, "s"))); /* it has a NUL inside */
	assert_int_equal(jv_i64(jv_get(root, "n"), &i), 0);
	assert_int_equal(i, -7);
	assert_int_equal(jv_double(jv_get(root, "d"), &d), 0);
	assert_true(d == 1.5);
	assert_int_equal(jv_double(jv_get(root, "n"), &d), 0);
	assert_true(d == -7);
	assert_int_equal(jv_bool(jv_get(root, "t"), &b), 0);
	assert_true(b);
	assert_int_equal(jv_kind(jv_get(root, "z")), JV_NULL);
	assert_int_equal(jv_i64(jv_at(jv_get(root, "a"), 2), &i), 0);
	assert_int_equal(i, 3);
	assert_int_equal(jv_kind(jv_at(jv_get(root, "a"), 3)), JV_ABSENT);
	assert_int_equal(jv_kind(jv_get(jv_get(root, "o"), "x")), JV_OBJECT);
	assert_null(jv_free(doc));
	assert_null(jv_free(NULL));
}

static void what_is_absent_is_of_no_kind(void **state)
{
	struct jv none = { NULL };
	struct str s = STR("kept");
	int64_t i = 5;
	uint64_t u = 5;
	double d = 5;
	bool b = true;

	(void)state;
	assert_int_equal(jv_kind(none), JV_ABSENT);
	assert_int_equal(jv_kind(jv_get(none, "x")), JV_ABSENT);
	assert_int_equal(jv_kind(jv_at(none, 0)), JV_ABSENT);
	assert_int_equal(jv_len(none), 0);
	assert_null(jv_text(none));
	assert_int_equal(jv_str(none, &s), -EINVAL);
	assert_int_equal(jv_i64(none, &i), -EINVAL);
	assert_int_equal(jv_u64(none, &u), -EINVAL);
	assert_int_equal(jv_double(none, &d), -EINVAL);
	assert_int_equal(jv_bool(none, &b), -EINVAL);
	assert_true(str_is(s, "kept") && i == 5 && u == 5 && d == 5 && b);
	JV_FOREACH (none, it)
		fail_msg("a member of nothing");
}

static void a_wrong_kind_is_refused(void **state)
{
	static const char *const texts[] = { "\"x\"", "1", "1.5", "true", "null", "[]", "{}" };
	int want[][5] = {
		/* str, i64, u64, double, bool */
		{ 0, -EINVAL, -EINVAL, -EINVAL, -EINVAL },
		{ -EINVAL, 0, 0, 0, -EINVAL },
		{ -EINVAL, -EINVAL, -EINVAL, 0, -EINVAL },
		{ -EINVAL, -EINVAL, -EINVAL, -EINVAL, 0 },
		{ -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL },
		{ -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL },
		{ -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < LEN(texts); i++) {
		struct jv_doc *doc = parse(texts[i]);
		struct jv v = jv_root(doc);
		struct str s;
		int64_t n;
		uint64_t u;
		double d;
		bool b;

		assert_int_equal(jv_str(v, &s), want[i][0]);
		assert_int_equal(jv_i64(v, &n), want[i][1]);
		assert_int_equal(jv_u64(v, &u), want[i][2]);
		assert_int_equal(jv_double(v, &d), want[i][3]);
		assert_int_equal(jv_bool(v, &b), want[i][4]);
		jv_free(doc);
	}
}

static void numbers_fit_or_say_so(void **state)
{
	static const struct {
		const char *text;
		int i64, u64;
		int64_t value;
	} rows[] = {
		{ "0", 0, 0, 0 },
		{ "9223372036854775807", 0, 0, INT64_MAX },
		{ "9223372036854775808", -ERANGE, 0, INT64_MIN }, /* as bits */
		{ "-9223372036854775808", 0, -ERANGE, INT64_MIN },
		{ "18446744073709551615", -ERANGE, 0, -1 },
		{ "18446744073709551616", -ERANGE, -ERANGE, 0 }, /* a double now */
		{ "-1", 0, -ERANGE, -1 },
		{ "3.0", 0, 0, 3 },
		{ "1e3", 0, 0, 1000 },
		{ "1e300", -ERANGE, -ERANGE, 0 },
		{ "0.5", -EINVAL, -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < LEN(rows); i++) {
		struct jv_doc *doc = parse(rows[i].text);
		int64_t n = rows[i].value;
		uint64_t u = (uint64_t)rows[i].value;

		assert_int_equal(jv_i64(jv_root(doc), &n), rows[i].i64);
		assert_int_equal(jv_u64(jv_root(doc), &u), rows[i].u64);
		assert_int_equal(n, rows[i].value);
		assert_int_equal(u, (uint64_t)rows[i].value);
		jv_free(doc);
	}
}

static void what_is_not_strict_json_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		" ",
		"{",
		"[1,]",
		"{\"a\":1,}",
		"{a:1}",
		"{'a':1}",
		"nul",
		"NaN",
		"Infinity",
		"-",
		"01",
		"1.",
		".5",
		"+1",
		"1e999",
		"[1]x",
		"{} {}",
		"/**/1",
		"1 // x",
		"\"\t\"",
		"\"\\x41\"",
		"\"\\ud800\"",
		"\"\xff\"",
		"\"\xc0\xaf\"",
		"\"\xed\xa0\x80\"",
		"\xef\xbb\xbf{}",
		"\"abc",
		"[1 2]",
		"{\"a\" 1}",
	};

	(void)state;
	for (size_t i = 0; i < LEN(texts); i++)
		if (result_of(texts[i], strlen(texts[i])) != -EINVAL)
			fail_msg("accepted: %s", texts[i]);
	assert_int_equal(result_of("1\0", 2), -EINVAL);
	assert_int_equal(result_of("{\"a\0\":1}", 8), -EINVAL);
}

static void a_key_stands_once_at_every_depth(void **state)
{
	static const char good[] = "{\"a\":{\"a\":[{\"a\":1},{\"a\":1}]},\"A\":0,\"a\\u0000\":1}";
	static const char *const bad[] = {
		"{\"a\":1,\"a\":1}",
		"{\"a\":1,\"b\":2,\"\\u0061\":3}", /* the same when decoded */
		"[[{\"x\":{\"\":1,\"\":2}}]]",
		"{\"1\":0,\"2\":0,\"3\":0,\"4\":0,\"5\":0,\"6\":0,\"7\":0,\"8\":0,\"9\":0,\"1\":0}",
	};

	(void)state;
	for (size_t i = 0; i < LEN(bad); i++)
		if (result_of(bad[i], strlen(bad[i])) != -EINVAL)
			fail_msg("accepted: %s", bad[i]);
	assert_int_equal(result_of(good, strlen(good)), 0);
}

static void many_keys_are_compared_quickly(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jv_doc *doc = NULL;

	(void)state;
	buf_putc(&b, '{');
	for (int i = 0; i < 50000; i++)
		buf_printf(&b, "\"k%d\":%d,", i, i);
	buf_puts(&b, "\"end\":0}");
	assert_false(b.failed);
	assert_int_equal(jv_parse(b.data, b.len, b.len, &doc, NULL), 0);
	assert_int_equal(jv_len(jv_root(doc)), 50001);
	jv_free(doc);
	b.len--; /* the brace */
	buf_puts(&b, ",\"k777\":0}");
	assert_int_equal(jv_parse(b.data, b.len, b.len, &doc, NULL), -EINVAL);
}

static void nesting_has_a_limit_and_brackets_in_strings_are_none(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	(void)state;
	for (int extra = 0; extra < 2; extra++) {
		buf_clear(&b);
		for (int i = 0; i < JV_DEPTH_MAX + extra; i++)
			buf_puts(&b, i % 2 ? "[" : "{\"a\":");
		buf_puts(&b, "\"[[[[\\\"[[[[\"");
		for (int i = JV_DEPTH_MAX + extra; i-- > 0;)
			buf_puts(&b, i % 2 ? "]" : "}");
		assert_int_equal(result_of(b.data, b.len), extra ? -E2BIG : 0);
	}
	buf_clear(&b);
	for (int i = 0; i < 90000; i++) /* far more than a recursive parser would stand */
		buf_putc(&b, '[');
	assert_int_equal(result_of(b.data, b.len), -E2BIG);
}

static void size_has_a_limit(void **state)
{
	struct jv_doc *doc = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(jv_parse("[1,2]", 5, 4, &doc, &err), -E2BIG);
	assert_string_equal(err.text, "JSON of 5 bytes, limit 4");
	assert_null(doc);
	assert_int_equal(jv_parse("[1,2]", 5, 5, &doc, &err), 0);
	jv_free(doc);
}

static void errors_say_where(void **state)
{
	struct jv_doc *doc = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(jv_parse("{\"a\": x}", 8, MAX, &doc, &err), -EINVAL);
	assert_non_null(strstr(err.text, "at byte 6"));
	assert_int_equal(jv_parse("{\"k\":1,\"k\":2}", 13, MAX, &doc, &err), -EINVAL);
	assert_string_equal(err.text, "JSON: the key \"k\" is there twice");
}

static void members_are_walked_in_order(void **state)
{
	struct jv_doc *doc = parse("{\"b\":[10,[],20],\"a\":{},\"c\":\"x\"}");
	const char *keys = "bac";
	size_t n = 0;
	int64_t sum = 0, v;

	(void)state;
	JV_FOREACH (jv_root(doc), it) {
		assert_int_equal(it.index, n);
		assert_int_equal(it.key.len, 1);
		assert_int_equal(it.key.data[0], keys[n++]);
	}
	assert_int_equal(n, 3);
	JV_FOREACH (jv_get(jv_root(doc), "b"), it) {
		assert_null(it.key.data);
		if (jv_i64(it.value, &v) == 0)
			sum += v * (int64_t)(it.index + 1);
	}
	assert_int_equal(sum, 70);
	JV_FOREACH (jv_get(jv_root(doc), "a"), it)
		fail_msg("a member of {}");
	JV_FOREACH (jv_get(jv_root(doc), "c"), it)
		fail_msg("a member of a string");
	jv_free(doc);
}

static void kinds_have_names(void **state)
{
	(void)state;
	assert_string_equal(jv_kind_name(JV_STRING), "a string");
	assert_string_equal(jv_kind_name(JV_ABSENT), "nothing");
	assert_string_equal(jv_kind_name((enum jv_kind)99), "nothing");
}

static int parse_once(void *arg)
{
	const char *text = arg;
	struct jv_doc *doc = NULL;
	int r = jv_parse(text, strlen(text), MAX, &doc, NULL);

	jv_free(doc);
	return r;
}

static void parsing_fails_cleanly_without_memory(void **state)
{
	char few[] = "[1,2]", many[] = "{\"a\":0,\"b\":0,\"c\":0,\"d\":0,\"e\":0,\"f\":0,\"g\":0,"
				       "\"h\":0,\"i\":0}";

	(void)state;
	assert_true(fault_each(parse_once, few) > 0);
	assert_true(fault_each(parse_once, many) > fault_each(parse_once, few)); /* sorts */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_is_read),
		cmocka_unit_test(what_is_absent_is_of_no_kind),
		cmocka_unit_test(a_wrong_kind_is_refused),
		cmocka_unit_test(numbers_fit_or_say_so),
		cmocka_unit_test(what_is_not_strict_json_is_refused),
		cmocka_unit_test(a_key_stands_once_at_every_depth),
		cmocka_unit_test(many_keys_are_compared_quickly),
		cmocka_unit_test(nesting_has_a_limit_and_brackets_in_strings_are_none),
		cmocka_unit_test(size_has_a_limit),
		cmocka_unit_test(errors_say_where),
		cmocka_unit_test(members_are_walked_in_order),
		cmocka_unit_test(kinds_have_names),
		cmocka_unit_test(parsing_fails_cleanly_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
