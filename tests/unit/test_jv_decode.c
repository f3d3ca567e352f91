#include "json/jv_decode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "check.h"
#include "fault.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

struct port {
	uint32_t number;
	const char *name;
};

struct resources {
	uint64_t memory;
	uint32_t cpu;
};

struct ask {
	const char *template;
	bool keep;
	uint32_t u32;
	uint64_t u64;
	int64_t i64;
	double share;
	uint64_t timeout;
	int level;
	struct jv_strings tags;
	struct jv_pairs env;
	struct resources resources;
	struct jv_objects ports;
	struct jv any;
};

static const char *const levels[] = { "standard", "high", NULL };
static const struct jv_field resource_fields[] = {
	JV_FIELD("memory", SIZE, struct resources, memory, .min = 8 << 20, .max = 1 << 30),
	JV_FIELD("cpu", CPU, struct resources, cpu, .min = 10),
};
static const struct jv_field port_fields[] = {
	JV_FIELD("number", U32, struct port, number, .flags = JV_REQUIRED, .min = 1, .max = 65535),
	JV_FIELD("name", STRING, struct port, name),
};
static const struct jv_field fields[] = {
	JV_FIELD("template", STRING, struct ask, template, .flags = JV_REQUIRED, .min = 2,
		 .max = 8),
	JV_FIELD("keep", BOOL, struct ask, keep, .flags = JV_NULLABLE),
	JV_FIELD("u32", U32, struct ask, u32),
	JV_FIELD("u64", U64, struct ask, u64),
	JV_FIELD("i64", I64, struct ask, i64, .min = -3, .max = 3),
	JV_FIELD("share", DOUBLE, struct ask, share, .min = 0, .max = 1),
	JV_FIELD("timeout", DURATION, struct ask, timeout, .min = 1, .max = 3600000),
	JV_FIELD("level", CHOICE, struct ask, level, .choices = levels),
	JV_FIELD("tags", STRINGS, struct ask, tags, .max = 3, .text_max = 4),
	JV_FIELD("env", PAIRS, struct ask, env, .max = 2, .text_max = 5),
	JV_FIELD("resources", OBJECT, struct ask, resources, .sub = resource_fields,
		 .sub_count = LEN(resource_fields)),
	JV_FIELD("ports", OBJECTS, struct ask, ports, .max = 2, .sub = port_fields,
		 .sub_count = LEN(port_fields), .size = sizeof(struct port)),
	JV_FIELD("any", VALUE, struct ask, any, .flags = JV_NULLABLE),
};

struct fixture {
	struct arena *arena;
	struct jv_doc *doc;
	struct ask ask;
	struct jv_problem problem;
};

static int setup(void **state)
{
	static struct fixture f; /* one test at a time */

	f = (struct fixture){ .arena = arena_create(1 << 20) };
	*state = &f;
	return f.arena ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	jv_free(f->doc);
	arena_free(f->arena);
	return 0;
}

static int decode_n(struct fixture *f, const char *text, size_t n)
{
	f->doc = jv_free(f->doc);
	f->ask = (struct ask){ .u32 = 77, .level = 1 };
	f->problem = (struct jv_problem){ "", "" };
	assert_int_equal(jv_parse(text, n, 1 << 20, &f->doc, NULL), 0);
	return jv_decode(jv_root(f->doc), fields, LEN(fields), f->arena, &f->ask, &f->problem);
}

static int decode(struct fixture *f, const char *text)
{
	return decode_n(f, text, strlen(text));
}

static void every_type_reaches_its_place(void **state)
{
	struct fixture *f = *state;
	struct port *ports = NULL;
	int64_t n = 0;

	assert_int_equal(
		decode(f,
		       "{\"template\":\"python\",\"keep\":true,\"u32\":4294967295,"
		       "\"u64\":18446744073709551615,\"i64\":-3,\"share\":0.25,\"timeout\":\"30s\","
		       "\"level\":\"standard\",\"tags\":[\"a\",\"\",\"bcde\"],"
		       "\"env\":{\"A\":\"1\",\"B\":\"\"},"
		       "\"resources\":{\"memory\":\"256Mi\",\"cpu\":0.5},"
		       "\"ports\":[{\"number\":80},{\"number\":443,\"name\":\"tls\"}],"
		       "\"any\":[7]}"),
		0);
	assert_string_equal(f->ask.template, "python");
	assert_true(f->ask.keep);
	assert_int_equal(f->ask.u32, UINT32_MAX);
	assert_int_equal(f->ask.u64, UINT64_MAX);
	assert_int_equal(f->ask.i64, -3);
	assert_true(f->ask.share == 0.25);
	assert_int_equal(f->ask.timeout, 30000);
	assert_int_equal(f->ask.level, 0);
	assert_int_equal(f->ask.tags.len, 3);
	assert_string_equal(f->ask.tags.items[1], "");
	assert_string_equal(f->ask.tags.items[2], "bcde");
	assert_int_equal(f->ask.env.len, 2);
	assert_string_equal(f->ask.env.items[0].name, "A");
	assert_string_equal(f->ask.env.items[0].value, "1");
	assert_string_equal(f->ask.env.items[1].value, "");
	assert_int_equal(f->ask.resources.memory, 256 << 20);
	assert_int_equal(f->ask.resources.cpu, 500);
	ports = f->ask.ports.items;
	assert_int_equal(f->ask.ports.len, 2);
	assert_int_equal(ports[0].number, 80);
	assert_null(ports[0].name);
	assert_string_equal(ports[1].name, "tls");
	assert_int_equal(jv_i64(jv_at(f->ask.any, 0), &n), 0);
	assert_int_equal(n, 7);
}

static void strings_outlive_the_document(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(decode(f, "{\"template\":\"ab\",\"env\":{\"K\":\"v\"}}"), 0);
	f->doc = jv_free(f->doc);
	assert_string_equal(f->ask.template, "ab");
	assert_string_equal(f->ask.env.items[0].name, "K");
}

static void absent_fields_keep_their_defaults(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(decode(f, "{\"template\":\"ab\",\"keep\":null,\"any\":null}"), 0);
	assert_int_equal(f->ask.u32, 77);
	assert_int_equal(f->ask.level, 1);
	assert_false(f->ask.keep);
	assert_int_equal(jv_kind(f->ask.any), JV_ABSENT);
	assert_int_equal(f->ask.tags.len, 0);
}

static void numbers_stand_for_sizes_times_and_shares_too(void **state)
{
	static const struct {
		const char *text;
		uint64_t memory, cpu, timeout;
	} rows[] = {
		{ "{\"template\":\"ab\",\"timeout\":30,\"resources\":{\"memory\":8388608,\"cpu\":2}"
		  "}",
		  8 << 20, 2000, 30000 },
		{ "{\"template\":\"ab\",\"timeout\":0.29,\"resources\":{\"memory\":\"1G\","
		  "\"cpu\":\"250m\"}}",
		  1 << 30, 250, 290 },
		{ "{\"template\":\"ab\",\"timeout\":\"250ms\",\"resources\":{\"memory\":1e8,"
		  "\"cpu\":0.01}}",
		  100000000, 10, 250 },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < LEN(rows); i++) {
		assert_int_equal(decode(f, rows[i].text), 0);
		assert_int_equal(f->ask.resources.memory, rows[i].memory);
		assert_int_equal(f->ask.resources.cpu, rows[i].cpu);
		assert_int_equal(f->ask.timeout, rows[i].timeout);
	}
}

/* What is wrong with each, by the field it names. */
static const struct {
	const char *text;
	int code;
	const char *field, *problem;
} refusals[] = {
	{ "[]", -EINVAL, "", "want an object, got an array" },
	{ "{}", -EINVAL, "template", "is required" },
	{ "{\"template\":null}", -EINVAL, "template", "want a string, got null" },
	{ "{\"template\":5}", -EINVAL, "template", "want a string, got a number" },
	{ "{\"template\":\"a\"}", -EINVAL, "template", "want at least 2 bytes, got 1" },
	{ "{\"template\":\"123456789\"}", -E2BIG, "template", "want at most 8 bytes, got 9" },
	{ "{\"template\":\"a\\u0000b\"}", -EINVAL, "template", "want a string without NUL bytes" },
	{ "{\"template\":\"ab\",\"Keep\":true}", -EINVAL, "Keep", "is not a field of this" },
	{ "{\"template\":\"ab\",\"keep\":1}", -EINVAL, "keep", "want true or false, got a number" },
	{ "{\"template\":\"ab\",\"u32\":4294967296}", -EINVAL, "u32",
	  "want a whole number up to 4294967295" },
	{ "{\"template\":\"ab\",\"u64\":-1}", -EINVAL, "u64", "want a whole number, not negative" },
	{ "{\"template\":\"ab\",\"u64\":1.5}", -EINVAL, "u64",
	  "want a whole number, not negative" },
	{ "{\"template\":\"ab\",\"u64\":null}", -EINVAL, "u64",
	  "want a whole number, not negative" },
	{ "{\"template\":\"ab\",\"i64\":4}", -EINVAL, "i64", "want a whole number from -3 to 3" },
	{ "{\"template\":\"ab\",\"i64\":-4}", -EINVAL, "i64", "want a whole number from -3 to 3" },
	{ "{\"template\":\"ab\",\"i64\":\"1\"}", -EINVAL, "i64", "want a whole number" },
	{ "{\"template\":\"ab\",\"share\":1.01}", -EINVAL, "share", "want a number from 0 to 1" },
	{ "{\"template\":\"ab\",\"share\":-0.1}", -EINVAL, "share", "want a number from 0 to 1" },
	{ "{\"template\":\"ab\",\"share\":\"x\"}", -EINVAL, "share",
	  "want a number, got a string" },
	{ "{\"template\":\"ab\",\"timeout\":0}", -EINVAL, "timeout",
	  "want a time in milliseconds from 1 to 3600000" },
	{ "{\"template\":\"ab\",\"timeout\":3601}", -EINVAL, "timeout",
	  "want a time in milliseconds from 1 to 3600000" },
	{ "{\"template\":\"ab\",\"timeout\":-1}", -EINVAL, "timeout",
	  "want a time such as 30 (seconds), 1.5 or \"5m\"" },
	{ "{\"template\":\"ab\",\"timeout\":1e300}", -EINVAL, "timeout",
	  "want a time such as 30 (seconds), 1.5 or \"5m\"" },
	{ "{\"template\":\"ab\",\"timeout\":\"soon\"}", -EINVAL, "timeout",
	  "want a time such as 30 (seconds), 1.5 or \"5m\"" },
	{ "{\"template\":\"ab\",\"level\":\"High\"}", -EINVAL, "level",
	  "want one of: standard, high" },
	{ "{\"template\":\"ab\",\"level\":1}", -EINVAL, "level", "want one of: standard, high" },
	{ "{\"template\":\"ab\",\"tags\":{}}", -EINVAL, "tags", "want an array, got an object" },
	{ "{\"template\":\"ab\",\"tags\":[\"\",\"\",\"\",\"\"]}", -E2BIG, "tags",
	  "want at most 3 entries, got 4" },
	{ "{\"template\":\"ab\",\"tags\":[\"a\",1]}", -EINVAL, "tags[1]",
	  "want a string, got a number" },
	{ "{\"template\":\"ab\",\"tags\":[\"12345\"]}", -E2BIG, "tags[0]",
	  "want at most 4 bytes, got 5" },
	{ "{\"template\":\"ab\",\"env\":[]}", -EINVAL, "env", "want an object, got an array" },
	{ "{\"template\":\"ab\",\"env\":{\"a\":\"\",\"b\":\"\",\"c\":\"\"}}", -E2BIG, "env",
	  "want at most 2 entries, got 3" },
	{ "{\"template\":\"ab\",\"env\":{\"PATH\":true}}", -EINVAL, "env.PATH",
	  "want a string, got true or false" },
	{ "{\"template\":\"ab\",\"env\":{\"PATH\":\"123456\"}}", -E2BIG, "env.PATH",
	  "want at most 5 bytes, got 6" },
	{ "{\"template\":\"ab\",\"env\":{\"\":\"x\"}}", -EINVAL, "env.",
	  "want names of 1 to 256 bytes without NUL" },
	{ "{\"template\":\"ab\",\"env\":{\"A\\u0000\":\"x\"}}", -EINVAL, "env.A",
	  "want names of 1 to 256 bytes without NUL" },
	{ "{\"template\":\"ab\",\"resources\":{\"memory\":\"7Mi\"}}", -EINVAL, "resources.memory",
	  "want a size in bytes from 8388608 to 1073741824" },
	{ "{\"template\":\"ab\",\"resources\":{\"memory\":\"lots\"}}", -EINVAL, "resources.memory",
	  "want a size such as 268435456 or \"256Mi\"" },
	{ "{\"template\":\"ab\",\"resources\":{\"cpu\":0.001}}", -EINVAL, "resources.cpu",
	  "want thousandths of a core of at least 10" },
	{ "{\"template\":\"ab\",\"resources\":{\"cpu\":1e9}}", -EINVAL, "resources.cpu",
	  "want a number of cores such as 0.5 or \"500m\"" },
	{ "{\"template\":\"ab\",\"resources\":{\"gpu\":1}}", -EINVAL, "resources.gpu",
	  "is not a field of this" },
	{ "{\"template\":\"ab\",\"resources\":7}", -EINVAL, "resources",
	  "want an object, got a number" },
	{ "{\"template\":\"ab\",\"ports\":[{\"number\":1},{}]}", -EINVAL, "ports[1].number",
	  "is required" },
	{ "{\"template\":\"ab\",\"ports\":[{\"number\":0}]}", -EINVAL, "ports[0].number",
	  "want a whole number from 1 to 65535" },
	{ "{\"template\":\"ab\",\"ports\":[{\"number\":1},{\"number\":2},{\"number\":3}]}", -E2BIG,
	  "ports", "want at most 2 entries, got 3" },
};

static void a_bad_field_is_named_with_its_path(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < LEN(refusals); i++) {
		int r = decode(f, refusals[i].text);

		if (r != refusals[i].code || strcmp(f->problem.field, refusals[i].field) != 0 ||
		    strcmp(f->problem.text, refusals[i].problem) != 0)
			fail_msg("%s: %d, %s: %s", refusals[i].text, r, f->problem.field,
				 f->problem.text);
		assert_int_equal(
			jv_decode(jv_root(f->doc), fields, LEN(fields), f->arena, &f->ask, NULL),
			refusals[i].code);
	}
}

static void a_contract_of_others_may_grow(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(decode(f, "{\"template\":\"ab\",\"new\":1,\"resources\":{\"gpu\":1}}"),
			 -EINVAL);
	assert_int_equal(jv_decode_known(jv_root(f->doc), fields, LEN(fields), f->arena, &f->ask,
					 &f->problem),
			 0);
	assert_string_equal(f->ask.template, "ab");
	assert_int_equal(decode(f, "{\"new\":1}"), -EINVAL);
	assert_int_equal(jv_decode_known(jv_root(f->doc), fields, LEN(fields), f->arena, &f->ask,
					 &f->problem),
			 -EINVAL);
	assert_string_equal(f->problem.field, "template");
}

static void rows_without_bounds_have_the_common_ones(void **state)
{
	static const struct jv_field plain[] = {
		JV_FIELD("s", STRING, struct ask, template),
		JV_FIELD("tags", STRINGS, struct ask, tags),
		JV_FIELD("i64", I64, struct ask, i64),
		JV_FIELD("share", DOUBLE, struct ask, share),
		JV_FIELD("min", DOUBLE, struct ask, share, .min = 2),
		JV_FIELD("big", U64, struct ask, u64, .max = INT64_MAX),
	};
	struct fixture *f = *state;
	_cleanup_(buf_done) struct buf b = { 0 };

	for (size_t extra = 0; extra < 2; extra++) {
		int want = extra ? -E2BIG : 0;

		buf_clear(&b);
		buf_puts(&b, "{\"s\":\"");
		for (size_t i = 0; i < JV_TEXT_MAX + extra; i++)
			buf_putc(&b, 'x');
		buf_puts(&b, "\"}");
		(void)decode_n(f, b.data, b.len);
		assert_int_equal(
			jv_decode(jv_root(f->doc), plain, LEN(plain), f->arena, &f->ask, NULL),
			want);
		buf_clear(&b);
		buf_puts(&b, "{\"tags\":[\"\"");
		for (size_t i = 1; i < JV_COUNT_MAX + extra; i++)
			buf_puts(&b, ",\"\"");
		buf_puts(&b, "]}");
		(void)decode_n(f, b.data, b.len);
		assert_int_equal(
			jv_decode(jv_root(f->doc), plain, LEN(plain), f->arena, &f->ask, NULL),
			want);
	}
	(void)decode(f, "{\"i64\":-9223372036854775808,\"share\":-1e300,\"min\":1e300}");
	assert_int_equal(jv_decode(jv_root(f->doc), plain, LEN(plain), f->arena, &f->ask, NULL), 0);
	assert_int_equal(f->ask.i64, INT64_MIN);
	(void)decode(f, "{\"min\":1.9}");
	assert_int_equal(jv_decode(jv_root(f->doc), plain, LEN(plain), f->arena, &f->ask, NULL),
			 -EINVAL);
	(void)decode(f, "{\"big\":9223372036854775808}");
	assert_int_equal(jv_decode(jv_root(f->doc), plain, LEN(plain), f->arena, &f->ask, NULL),
			 -EINVAL);
}

static void a_name_in_a_map_has_a_limit(void **state)
{
	struct fixture *f = *state;
	_cleanup_(buf_done) struct buf b = { 0 };

	for (size_t extra = 0; extra < 2; extra++) {
		buf_clear(&b);
		buf_puts(&b, "{\"template\":\"ab\",\"env\":{\"");
		for (size_t i = 0; i < JV_KEY_MAX + extra; i++)
			buf_putc(&b, 'k');
		buf_puts(&b, "\":\"\"}}");
		assert_int_equal(decode_n(f, b.data, b.len), extra ? -E2BIG : 0);
	}
	assert_int_equal(strlen(f->problem.field), sizeof(f->problem.field) - 1); /* cut */
}

static void a_long_path_is_cut_between_characters(void **state)
{
	struct fixture *f = *state;
	_cleanup_(buf_done) struct buf b = { 0 };
	size_t n;

	buf_puts(&b, "{\"x");
	for (int i = 0; i < 200; i++)
		buf_puts(&b, "\xe2\x82\xac");
	buf_puts(&b, "\":1}");
	assert_int_equal(decode_n(f, b.data, b.len), -EINVAL);
	n = strlen(f->problem.field);
	assert_int_equal(n, 94); /* x and 31 of them; 95 would fit */
	assert_memory_equal(f->problem.field + n - 3, "\xe2\x82\xac", 3);
}

static void the_arena_has_a_limit(void **state)
{
	struct fixture *f = *state;
	struct arena *small = arena_create(16);

	assert_non_null(small);
	assert_int_equal(decode(f, "{\"template\":\"ab\",\"tags\":[\"a\",\"b\",\"c\"]}"), 0);
	assert_int_equal(
		jv_decode(jv_root(f->doc), fields, LEN(fields), small, &f->ask, &f->problem),
		-ENOMEM);
	arena_free(small);
}

static int decode_once(void *arg)
{
	struct fixture *f = arg;
	struct arena *a = arena_create(1 << 20);
	int r = -ENOMEM;

	if (a)
		r = jv_decode(jv_root(f->doc), fields, LEN(fields), a, &f->ask, NULL);
	arena_free(a);
	return r;
}

static void decoding_fails_cleanly_without_memory(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(decode(f, "{\"template\":\"ab\",\"tags\":[\"a\"],\"env\":{\"a\":\"b\"},"
				   "\"ports\":[{\"number\":1}]}"),
			 0);
	assert_true(fault_each(decode_once, f) > 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_type_reaches_its_place, setup, teardown),
		cmocka_unit_test_setup_teardown(strings_outlive_the_document, setup, teardown),
		cmocka_unit_test_setup_teardown(absent_fields_keep_their_defaults, setup, teardown),
		cmocka_unit_test_setup_teardown(numbers_stand_for_sizes_times_and_shares_too, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_bad_field_is_named_with_its_path, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_contract_of_others_may_grow, setup, teardown),
		cmocka_unit_test_setup_teardown(rows_without_bounds_have_the_common_ones, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_name_in_a_map_has_a_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(a_long_path_is_cut_between_characters, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_arena_has_a_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(decoding_fails_cleanly_without_memory, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
