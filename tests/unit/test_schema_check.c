/* Values by schemas of others'. */
#include "json/schema_check.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "check.h"

/* NULL: it is right; else what is said of it. */
static void assert_checked(const char *schema, const char *value, const char *says)
{
	struct jv_doc *s = NULL, *v = NULL;
	struct err err = { 0 };
	int r;

	assert_int_equal(jv_parse(schema, strlen(schema), 1 << 20, &s, &err), 0);
	assert_int_equal(jv_parse(value, strlen(value), 1 << 20, &v, &err), 0);
	r = schema_check(jv_root(s), jv_root(v), &err);
	if (says && (r != -EINVAL || strcmp(err.text, says) != 0))
		fail_msg("%s by %s: '%s', not '%s'", value, schema, err.text, says);
	if (!says && r != 0)
		fail_msg("%s by %s: '%s'", value, schema, err.text);
	assert_int_equal(schema_check(jv_root(s), jv_root(v), NULL), r);
	(void)jv_free(s);
	(void)jv_free(v);
}

#define OBJECT(properties) "{\"type\":\"object\",\"properties\":{" properties "}}"

static void types_and_bounds_are_held(void **state)
{
	static const struct {
		const char *schema, *value, *says;
	} rows[] = {
		{ "{\"type\":\"object\"}", "{}", NULL },
		{ "{\"type\":\"object\"}", "[]", "arguments: want an object" },
		{ OBJECT("\"a\":{\"type\":\"string\"}"), "{\"a\":5}", "a: want a string" },
		{ OBJECT("\"a\":{\"type\":\"integer\"}"), "{\"a\":1.0}", NULL },
		{ OBJECT("\"a\":{\"type\":\"integer\"}"), "{\"a\":1.5}", "a: want an integer" },
		{ OBJECT("\"a\":{\"type\":[\"string\",\"null\"]}"), "{\"a\":null}", NULL },
		{ OBJECT("\"a\":{\"minimum\":2,\"maximum\":5}"), "{\"a\":6}", "a: want at most 5" },
		{ OBJECT("\"a\":{\"exclusiveMinimum\":2}"), "{\"a\":2}", "a: want more than 2" },
		{ OBJECT("\"a\":{\"maxLength\":2}"), "{\"a\":\"\xc3\xa4\xc3\xb6\"}", NULL },
		{ OBJECT("\"a\":{\"minLength\":1}"), "{\"a\":\"\"}",
		  "a: want at least 1 characters" },
		{ OBJECT("\"a\":{\"enum\":[\"x\",1]}"), "{\"a\":1}", NULL },
		{ OBJECT("\"a\":{\"enum\":[\"x\",1]}"), "{\"a\":\"y\"}",
		  "a: it is none of the values that are allowed" },
		{ OBJECT("\"a\":{\"const\":true}"), "{\"a\":false}",
		  "a: it is not the value that is wanted" },
		{ OBJECT("\"a\":{\"items\":{\"type\":\"string\"},\"maxItems\":2}"),
		  "{\"a\":[\"x\",1]}", "a[1]: want a string" },
		{ OBJECT("\"a\":{\"maxItems\":2}"), "{\"a\":[1,2,3]}",
		  "a: want at most 2 elements" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_checked(rows[i].schema, rows[i].value, rows[i].says);
}

static void members_are_wanted_known_or_of_a_kind(void **state)
{
	static const char wanted[] = "{\"required\":[\"a\"],\"properties\":{\"a\":{\"required\":"
				     "[\"b\"]}},\"additionalProperties\":false}";
	static const char kind[] = "{\"additionalProperties\":{\"type\":\"number\"}}";

	(void)state;
	assert_checked(wanted, "{}", "a: it must be given");
	assert_checked(wanted, "{\"a\":{}}", "a.b: it must be given");
	assert_checked(wanted, "{\"a\":{\"b\":1},\"c\":1}", "c: there is no such argument");
	assert_checked(kind, "{\"x\":1}", NULL);
	assert_checked(kind, "{\"x\":\"1\"}", "x: want a number");
}

static void schemas_are_made_of_schemas(void **state)
{
	static const char any[] =
		OBJECT("\"a\":{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"string\"}]}");
	static const char all[] = OBJECT("\"a\":{\"allOf\":[{\"minimum\":1},{\"maximum\":2}]}");
	static const char ref[] = "{\"$defs\":{\"t\":{\"type\":\"object\",\"properties\":{\"sub\":"
				  "{\"items\":{\"$ref\":\"#/$defs/t\"}},\"n\":{\"type\":"
				  "\"number\"}}}},\"properties\":{\"t\":{\"$ref\":\"#/$defs/t\"}}}";

	(void)state;
	assert_checked(any, "{\"a\":null}", NULL);
	assert_checked(any, "{\"a\":\"x\"}", NULL);
	assert_checked(any, "{\"a\":1}", "a: want a string");
	assert_checked(all, "{\"a\":3}", "a: want at most 2");
	assert_checked(ref, "{\"t\":{\"sub\":[{\"sub\":[]}]}}", NULL);
	assert_checked(ref, "{\"t\":{\"sub\":[{\"n\":\"x\"}]}}", "t.sub[0].n: want a number");
}

static void what_is_not_understood_is_passed(void **state)
{
	(void)state;
	assert_checked("{\"type\":\"no-such\",\"pattern\":\"(\",\"$ref\":\"http://x/y\"}", "{}",
		       NULL);
	assert_checked("{\"$ref\":\"#\"}", "{}", NULL); /* in circles */
	assert_checked("{\"anyOf\":[{\"$ref\":\"#\"},{\"$ref\":\"#\"}]}", "{}", NULL);
	assert_checked("{\"properties\":5,\"required\":7,\"items\":1,\"enum\":{}}", "{\"a\":[1]}",
		       NULL);
	assert_checked("true", "{}", NULL);
	assert_checked("false", "{}", "arguments: there is no such argument");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_and_bounds_are_held),
		cmocka_unit_test(members_are_wanted_known_or_of_a_kind),
		cmocka_unit_test(schemas_are_made_of_schemas),
		cmocka_unit_test(what_is_not_understood_is_passed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
