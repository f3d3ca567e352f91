#include "cli/outcome.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "check.h"

static struct launcher_box box = { .id = "abcdefghij0123456789",
				   .limits = { .memory_bytes = 256u << 20 } };

static int code_of(const struct outcome *o, char *reason, size_t size)
{
	struct run_facts f = { .box = &box, .outcome = o, .timeout_ms = 1500 };
	struct buf b = { 0 };
	int code = outcome_exit_code(&f, &b);

	(void)snprintf(reason, size, "%s", buf_str(&b));
	buf_done(&b);
	return code;
}

static void each_end_has_its_exit_code_and_its_reason(void **state)
{
	static const struct {
		struct outcome o;
		int code;
		const char *reason;
	} cases[] = {
		{ { .ended = true }, 0, "" },
		{ { .ended = true, .exit.code = 7 }, 7, "" },
		{ { .ended = true,
		    .exit = { .code = 15, .flags = EXIT_TIMED_OUT | EXIT_SIGNALED } },
		  124,
		  "timed out after 1.5 s (see --timeout)" },
		{ { .ended = true, .exit = { .code = SIGSEGV, .flags = EXIT_SIGNALED } },
		  139,
		  "killed by signal 11 (SEGV)" },
		{ { .ended = true,
		    .exit = { .code = SIGKILL, .flags = EXIT_SIGNALED },
		    .usage.oom_kills = 1 },
		  137,
		  "killed: out of memory (the limit is 256 MiB; see --memory)" },
		{ { .ended = true, .exit.code = 1, .usage.oom_kills = 1 },
		  1,
		  "killed: out of memory (the limit is 256 MiB; see --memory)" },
		{ { .ended = true, .usage.oom_kills = 1 }, 0, "" },
		{ { .fail_code = ENOENT, .fail_text = "exec 'x': No such file or directory" },
		  127,
		  "exec 'x': No such file or directory" },
		{ { .fail_code = EACCES, .fail_text = "exec 'x': Permission denied" },
		  126,
		  "exec 'x': Permission denied" },
		{ { .fail_code = ENOENT, .fail_text = "chdir '/no': No such file or directory" },
		  125,
		  "chdir '/no': No such file or directory" },
		{ { .fail_code = EPIPE, .fail_text = "the box is gone" }, 125, "the box is gone" },
		{ { .fail_code = EPIPE, .fail_text = "the box is gone", .usage.oom_kills = 3 },
		  137,
		  "killed: out of memory (the limit is 256 MiB; see --memory)" },
		{ { .ended = true, .exit.code = 5, .signal = SIGINT }, 130, "" },
		{ { .ended = true, .output_closed = true }, 141, "" },
	};
	char reason[300];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(code_of(&cases[i].o, reason, sizeof(reason)), cases[i].code);
		assert_string_equal(reason, cases[i].reason);
	}
}

static void check_json(const char *out, size_t n, const char *expected, bool base64)
{
	struct outcome o = { .ended = true, .exit.wall_us = 1500 };
	struct buf text = { 0 }, none = { 0 }, json = { 0 };
	struct run_facts f = { .box = &box,
			       .outcome = &o,
			       .out = &text,
			       .err = &none,
			       .level = "standard",
			       .net = "none" };

	assert_int_equal(buf_append(&text, out, n), 0);
	assert_int_equal(outcome_json(&f, &json), 0);
	assert_non_null(strstr(buf_str(&json), expected));
	assert_non_null(strstr(buf_str(&json), "\"durationMs\":1.500"));
	assert_int_equal(strstr(buf_str(&json), "stdoutBase64") != NULL, base64);
	assert_int_equal(json.data[json.len - 1], '\n');
	buf_done(&text);
	buf_done(&json);
}

static void text_is_escaped_and_other_bytes_also_come_in_base64(void **state)
{
	(void)state;
	check_json("a\"b\n", 4, "\"stdout\":\"a\\\"b\\n\"", false);
	check_json("\xff\x00z", 3, "\"stdoutBase64\":\"/wB6\"", true);
	check_json("", 0, "\"stdout\":\"\"", false);
}

static void limits_that_do_not_hold_are_named(void **state)
{
	struct outcome o = { .ended = true };
	struct buf none = { 0 }, json = { 0 };
	struct run_facts f = { .box = &box,
			       .outcome = &o,
			       .out = &none,
			       .err = &none,
			       .level = "standard",
			       .net = "none",
			       .not_enforced = CONTROLLER_MEMORY | CONTROLLER_CPUSET };

	(void)state;
	assert_int_equal(outcome_json(&f, &json), 0);
	assert_non_null(strstr(buf_str(&json), "\"notEnforced\":[\"memory\",\"pin\"]"));
	buf_done(&json);
}

static void sizes_are_written_for_people(void **state)
{
	char text[32];

	(void)state;
	outcome_size(0, text);
	assert_string_equal(text, "0 B");
	outcome_size(256u << 20, text);
	assert_string_equal(text, "256 MiB");
	outcome_size(1536u << 20, text);
	assert_string_equal(text, "1.5 GiB");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_end_has_its_exit_code_and_its_reason),
		cmocka_unit_test(text_is_escaped_and_other_bytes_also_come_in_base64),
		cmocka_unit_test(limits_that_do_not_hold_are_named),
		cmocka_unit_test(sizes_are_written_for_people),
	};

	return cmocka_run_group_tests_name("outcome", tests, NULL, NULL);
}
