/* JSON Schema of tables of fields. */
#include "check.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "json/jv_decode.h"
#include "json/jw.h"
#include "json/schema.h"

struct inner {
	const char *name;
};
struct outer {
	const char *text;
	uint32_t count;
	bool on;
	int kind;
	uint64_t time_ms;
	struct jv_pairs pairs;
	struct jv_objects items;
	struct jv any;
};

static const char *const kinds[] = { "a", "b", NULL };
static const struct jv_field inner[] = { JV_FIELD("name", STRING, struct inner, name, .max = 5) };
static const struct jv_field fields[] = {
	JV_FIELD("text", STRING, struct outer, text, .flags = JV_REQUIRED, .min = 1, .max = 9,
		 .help = "what it says"),
	JV_FIELD("count", U32, struct outer, count, .flags = JV_NULLABLE, .min = 2, .max = 7),
	JV_FIELD("on", BOOL, struct outer, on),
	JV_FIELD("kind", CHOICE, struct outer, kind, .choices = kinds),
	JV_FIELD("time", DURATION, struct outer, time_ms, .max = 1500),
	JV_FIELD("pairs", PAIRS, struct outer, pairs, .max = 3, .text_max = 4),
	JV_FIELD("items", OBJECTS, struct outer, items, .flags = JV_REQUIRED, .sub = inner,
		 .sub_count = 1, .size = sizeof(struct inner)),
	JV_FIELD("any", VALUE, struct outer, any),
};
#define N (sizeof(fields) / sizeof(fields[0]))

static void assert_written(void (*write)(struct jw *, const struct jv_field *, size_t),
			   const char *wanted)
{
	struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	write(&w, fields, N);
	assert_int_equal(jw_end(&w), 0);
	assert_string_equal(buf_str(&b), wanted);
	buf_done(&b);
}

static void a_body_is_described_with_the_bounds_that_are_checked(void **state)
{
	(void)state;
	assert_written(
		schema_write_body,
		"{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
		"\"text\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":9,"
		"\"description\":\"what it says\"},"
		"\"count\":{\"type\":[\"integer\",\"null\"],\"minimum\":2,\"maximum\":7},"
		"\"on\":{\"type\":\"boolean\"},\"kind\":{\"type\":\"string\",\"enum\":[\"a\",\"b\"]"
		"},"
		"\"time\":{\"type\":[\"number\",\"string\"],\"minimum\":0.0,\"maximum\":1.5,"
		"\"pattern\":\"^[0-9]+(\\\\.[0-9]+)?(ms|s|m|h|d)?$\"},"
		"\"pairs\":{\"type\":\"object\",\"maxProperties\":3,"
		"\"additionalProperties\":{\"type\":\"string\",\"maxLength\":4}},"
		"\"items\":{\"type\":\"array\",\"maxItems\":64,\"items\":{\"type\":\"object\","
		"\"additionalProperties\":false,\"properties\":{"
		"\"name\":{\"type\":\"string\",\"maxLength\":5}}}},"
		"\"any\":{}},\"required\":[\"text\",\"items\"]}");
}

/* What we say ourselves may grow, and clients must not refuse it for that. */
static void an_answer_is_described_without_bounds(void **state)
{
	(void)state;
	assert_written(
		schema_write_answer,
		"{\"type\":\"object\",\"properties\":{"
		"\"text\":{\"type\":\"string\",\"description\":\"what it says\"},"
		"\"count\":{\"type\":[\"integer\",\"null\"]},"
		"\"on\":{\"type\":\"boolean\"},\"kind\":{\"type\":\"string\",\"enum\":[\"a\",\"b\"]"
		"},"
		"\"time\":{\"type\":[\"number\",\"string\"]},"
		"\"pairs\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}},"
		"\"items\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"
		"\"name\":{\"type\":\"string\"}}}},"
		"\"any\":{}},\"required\":[\"text\",\"items\"]}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_body_is_described_with_the_bounds_that_are_checked),
		cmocka_unit_test(an_answer_is_described_without_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
