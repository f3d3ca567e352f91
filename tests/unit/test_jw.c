#include "json/jw.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "check.h"
#include "fault.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static void commas_come_by_themselves(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	(void)state;
	jw_object_begin(&w);
	jw_str_field(&w, "id", "a");
	jw_int_field(&w, "i", -5);
	jw_uint_field(&w, "u", UINT64_MAX);
	jw_double_field(&w, "d", 0.1);
	jw_bool_field(&w, "b", true);
	jw_null_field(&w, "z");
	jw_raw_field(&w, "r", "[1, 2]", 6);
	jw_str_field(&w, "none", NULL);
	jw_key(&w, "list");
	jw_array_begin(&w);
	jw_array_begin(&w);
	jw_array_end(&w);
	jw_object_begin(&w);
	jw_object_end(&w);
	jw_string(&w, "x");
	jw_bool(&w, false);
	jw_array_end(&w);
	jw_iso_field(&w, "at", 1000);
	jw_iso_field(&w, "never", 0);
	jw_object_end(&w);
	assert_int_equal(jw_end(&w), 0);
	assert_string_equal(b.data, "{\"id\":\"a\",\"i\":-5,\"u\":18446744073709551615,\"d\":0.1,"
				    "\"b\":true,\"z\":null,\"r\":[1, 2],\"none\":null,"
				    "\"list\":[[],{},\"x\",false],"
				    "\"at\":\"1970-01-01T00:00:01.000Z\",\"never\":null}");
}

static void a_single_value_is_a_document(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	(void)state;
	buf_puts(&b, "data: ");
	jw_int(&w, INT64_MIN);
	assert_int_equal(jw_end(&w), 0);
	assert_string_equal(b.data, "data: -9223372036854775808");
}

static void strings_and_keys_are_escaped_and_repaired(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	(void)state;
	jw_object_begin(&w);
	jw_key_n(&w, "k\"\0", 3);
	jw_string_n(&w, "a\n\x01\\\0\xff z \xe2\x82", 11);
	jw_object_end(&w);
	assert_int_equal(jw_end(&w), 0);
	assert_string_equal(b.data,
			    "{\"k\\\"\\u0000\":"
			    "\"a\\n\\u0001\\\\\\u0000\xef\xbf\xbd z \xef\xbf\xbd\xef\xbf\xbd"
			    "\"}");
}

static void doubles_read_back_the_same(void **state)
{
	static const double values[] = { 0,        -0.0,          1,       0.1,     1.0 / 3,
					 1e21,     -1.5e-7,       DBL_MAX, DBL_MIN, 5e-324,
					 1e22,     123456789.125, 4.35,    2.5e15,  1e15 + 1,
					 0.000001, 1e-5,          -DBL_MAX };

	(void)state;
	for (size_t i = 0; i < LEN(values); i++) {
		_cleanup_(buf_done) struct buf b = { 0 };
		struct jw w = jw_begin(&b);
		struct jv_doc *doc = NULL;
		double again = 7;

		jw_double(&w, values[i]);
		assert_int_equal(jw_end(&w), 0);
		assert_int_equal(jv_parse(b.data, b.len, 100, &doc, NULL), 0);
		assert_int_equal(jv_double(jv_root(doc), &again), 0);
		assert_memory_equal(&again, &values[i], sizeof(again));
		jv_free(doc);
	}
}

static void what_is_no_number_is_null(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	(void)state;
	jw_array_begin(&w);
	jw_double(&w, NAN);
	jw_double(&w, INFINITY);
	jw_double(&w, -INFINITY);
	jw_array_end(&w);
	assert_int_equal(jw_end(&w), 0);
	assert_string_equal(b.data, "[null,null,null]");
}

static void a_value_that_was_read_is_written_again(void **state)
{
	static const char text[] =
		"{\"a\":[1,-2,1.5,18446744073709551615,\"\\u0000\"],\"b\":{\"c\":"
		"null},\"d\":true,\"e\":false,\"f\":[],\"g\":{}}";
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct jv_doc *doc = NULL;

	(void)state;
	assert_int_equal(jv_parse(text, sizeof(text) - 1, sizeof(text), &doc, NULL), 0);
	jw_value(&w, jv_root(doc));
	assert_int_equal(jw_end(&w), 0);
	assert_string_equal(b.data, text);
	buf_clear(&b);
	w = jw_begin(&b);
	jw_value(&w, (struct jv){ NULL });
	assert_int_equal(jw_end(&w), 0);
	assert_string_equal(b.data, "null");
	jv_free(doc);
}

static void all_levels_can_be_used(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	(void)state;
	for (int i = 0; i < JW_DEPTH_MAX; i++) {
		if (i % 2) {
			jw_key(&w, "k");
			jw_array_begin(&w);
		} else {
			jw_object_begin(&w);
		}
	}
	for (int i = JW_DEPTH_MAX; i-- > 0;) {
		if (i % 2) {
			jw_int(&w, 1);
			jw_array_end(&w);
		} else {
			jw_int_field(&w, "n", 2);
			jw_object_end(&w);
		}
	}
	assert_int_equal(jw_end(&w), 0);
	assert_int_equal(strncmp(b.data, "{\"k\":[{\"k\":[", 12), 0);
	assert_string_equal(b.data + b.len - 20, ",1],\"n\":2},1],\"n\":2}");
}

static void the_ceiling_is_told_at_the_end(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w;

	(void)state;
	buf_init(&b, 16);
	w = jw_begin(&b);
	jw_array_begin(&w);
	jw_string(&w, "this is longer than that");
	jw_double(&w, 1);
	jw_uint(&w, 1);
	jw_int(&w, 1);
	jw_array_end(&w);
	assert_int_equal(jw_end(&w), -E2BIG);
	assert_true(b.len <= 16);
}

static int write_once(void *arg)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	(void)arg;
	jw_object_begin(&w);
	for (int i = 0; i < 100; i++)
		jw_str_field(&w, "some key", "some longer value to make it grow");
	jw_object_end(&w);
	return jw_end(&w);
}

static void a_lack_of_memory_is_told_at_the_end(void **state)
{
	(void)state;
	assert_true(fault_each(write_once, NULL) > 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commas_come_by_themselves),
		cmocka_unit_test(a_single_value_is_a_document),
		cmocka_unit_test(strings_and_keys_are_escaped_and_repaired),
		cmocka_unit_test(doubles_read_back_the_same),
		cmocka_unit_test(what_is_no_number_is_null),
		cmocka_unit_test(a_value_that_was_read_is_written_again),
		cmocka_unit_test(all_levels_can_be_used),
		cmocka_unit_test(the_ceiling_is_told_at_the_end),
		cmocka_unit_test(a_lack_of_memory_is_told_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
