/* What holt-call makes of an answer. */
#include "guest/call.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "check.h"

#define RESULT "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":"
#define ERROR "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":"

static void expect(const char *line, bool is_raw, enum call_answer want, const char *want_text)
{
	_cleanup_(buf_done) struct buf text = { 0 };

	assert_int_equal(call_read(line, is_raw, &text), want);
	if (want_text)
		assert_string_equal(buf_str(&text), want_text);
}

static void the_text_of_a_result_is_printed_as_it_is(void **state)
{
	(void)state;
	expect(RESULT "{\"isError\":false,\"text\":\"a\\n\\t\\\"b\\\" \\\\ \\/ \\u001b\xc3\xa9\"}}",
	       false, CALL_DONE, "a\n\t\"b\" \\ / \x1b\xc3\xa9");
	expect(RESULT "{\"isError\":false,\"text\":\"\"}}", false, CALL_DONE, "");
	expect(RESULT "{\"isError\":true,\"text\":\"no\"}}", false, CALL_FAILED, "no");
}

static void a_result_can_be_had_as_json(void **state)
{
	(void)state;
	expect(RESULT "{\"content\":[{\"type\":\"text\"}]}}", true, CALL_DONE,
	       "{\"content\":[{\"type\":\"text\"}]}");
}

static void an_error_is_told_by_its_message(void **state)
{
	(void)state;
	expect(ERROR "{\"code\":-32602,\"message\":\"no such tool\"}}", false, CALL_FAILED,
	       "no such tool");
	expect("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"m\"}}",
	       true, CALL_FAILED, "m");
}

static void anything_else_is_no_answer(void **state)
{
	static const char *const bad[] = {
		"",
		"{}",
		RESULT,
		RESULT "{",
		RESULT "{}",
		RESULT "{\"isError\":false,\"text\":\"a",
		RESULT "{\"isError\":false,\"text\":\"a\\",
		RESULT "{\"isError\":false,\"text\":\"\\u00}}",
		RESULT "{\"isError\":false,\"text\":\"\\x\"}}",
		ERROR "{\"code\":1}}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		expect(bad[i], false, CALL_BROKEN, NULL);
}

static void the_program_knows_its_name(void **state)
{
	(void)state;
	assert_true(call_is_name("/holt/bin/holt-call"));
	assert_true(call_is_name("holt-call"));
	assert_false(call_is_name("holt-init"));
	assert_false(call_is_name(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_text_of_a_result_is_printed_as_it_is),
		cmocka_unit_test(a_result_can_be_had_as_json),
		cmocka_unit_test(an_error_is_told_by_its_message),
		cmocka_unit_test(anything_else_is_no_answer),
		cmocka_unit_test(the_program_knows_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
