#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "check.h"

static char line[16384]; /* what the last capture saw */

/* Standard error is a pipe for the length of one call. */
#define CAPTURE(call)                                                      \
	do {                                                               \
		int pipe_[2], saved_ = dup(STDERR_FILENO);                 \
		ssize_t n_;                                                \
		assert_int_equal(pipe2(pipe_, O_CLOEXEC | O_NONBLOCK), 0); \
		(void)dup2(pipe_[1], STDERR_FILENO);                       \
		call;                                                      \
		(void)dup2(saved_, STDERR_FILENO);                         \
		n_ = read(pipe_[0], line, sizeof(line) - 1);               \
		line[n_ > 0 ? n_ : 0] = '\0';                              \
		(void)close(pipe_[0]);                                     \
		(void)close(pipe_[1]);                                     \
		(void)close(saved_);                                       \
	} while (0)

/* The line behind its time. */
static const char *rest(void)
{
	assert_true(strlen(line) > CLOCK_ISO_SIZE);
	assert_int_equal(line[CLOCK_ISO_SIZE - 2], 'Z');
	return line + CLOCK_ISO_SIZE;
}

static void a_line_has_time_level_module_and_text(void **state)
{
	(void)state;
	log_set_level(LOG_INFO);
	CAPTURE(log_info("launch", "box %s is up after %d ms", "b1", 3));
	assert_string_equal(rest(), "info launch: box b1 is up after 3 ms\n");
	CAPTURE(log_error("launch", "x"));
	assert_string_equal(rest(), "error launch: x\n");
	CAPTURE(log_warn("launch", "x"));
	assert_string_equal(rest(), "warn launch: x\n");
}

static void lines_above_the_level_are_not_written(void **state)
{
	(void)state;
	log_set_level(LOG_WARN);
	CAPTURE(log_info("m", "no"));
	assert_string_equal(line, "");
	CAPTURE(log_warn("m", "yes"));
	assert_string_equal(rest(), "warn m: yes\n");
	log_set_level(LOG_DEBUG);
	CAPTURE(log_debug("m", "yes"));
	assert_string_equal(rest(), "debug m: yes\n");
}

static void hostile_text_cannot_forge_a_line_or_move_the_cursor(void **state)
{
	(void)state;
	log_set_level(LOG_INFO);
	CAPTURE(log_info("m", "a\nb\r\t\x1b[2J\x7f"));
	assert_string_equal(rest(), "info m: a\\nb\\x0d\\x09\\x1b[2J\\x7f\n");
	CAPTURE(log_info("m", "c1 \xc2\x9b bad \xff cut \xe2\x82"));
	assert_string_equal(rest(), "info m: c1 \\xc2\\x9b bad \\xff cut \\xe2\\x82\n");
	CAPTURE(log_info("m", "literal \\n"));
	assert_string_equal(rest(), "info m: literal \\\\n\n");
}

static void letters_of_any_script_stay_as_they_are(void **state)
{
	(void)state;
	log_set_level(LOG_INFO);
	CAPTURE(log_info("m", "na\xc3\xafve \xe2\x82\xac \xf0\x9f\xa6\xa6"));
	assert_string_equal(rest(), "info m: na\xc3\xafve \xe2\x82\xac \xf0\x9f\xa6\xa6\n");
}

static void a_long_text_is_cut_and_says_so(void **state)
{
	char big[5000];
	size_t n;

	(void)state;
	log_set_level(LOG_INFO);
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	CAPTURE(log_info("m", "%s", big));
	n = strlen(line);
	assert_true(n < 1200);
	assert_string_equal(line + n - 5, "x...\n");
	memset(big, '\x01', sizeof(big) - 1);
	CAPTURE(log_info("m", "%s", big)); /* every byte takes four */
	n = strlen(line);
	assert_string_equal(line + n - 8, "\\x01...\n");
}

static void errno_is_what_it_was(void **state)
{
	(void)state;
	log_set_level(LOG_INFO);
	CAPTURE({
		(void)close(STDERR_FILENO); /* the write fails */
		errno = ENOTTY;
		log_info("m", "x");
		assert_int_equal(errno, ENOTTY);
	});
}

static void levels_have_names(void **state)
{
	enum log_level level = LOG_WARN;

	(void)state;
	assert_int_equal(log_level_from("verbose", &level), -EINVAL);
	assert_int_equal(log_level_from("", &level), -EINVAL);
	assert_int_equal(log_level_from(NULL, &level), -EINVAL);
	assert_int_equal(level, LOG_WARN);
	assert_int_equal(log_level_from("error", &level), 0);
	assert_int_equal(level, LOG_ERROR);
	assert_int_equal(log_level_from("debug", &level), 0);
	assert_int_equal(level, LOG_DEBUG);
}

static void fields_follow_the_message(void **state)
{
	(void)state;
	log_set_level(LOG_INFO);
	CAPTURE(log_record(LOG_INFO, "http", "request", LOG_STR("method", "GET"),
			   LOG_STR("path", "/a b"), LOG_STR("none", NULL), LOG_STR("empty", ""),
			   LOG_INT("left", -3), LOG_UINT("bytes", UINT64_MAX),
			   LOG_MS("ms", 1234567), LOG_BOOL("warm", true)));
	assert_string_equal(rest(),
			    "info http: request method=GET path=\"/a b\" empty=\"\" left=-3 "
			    "bytes=18446744073709551615 ms=1234.567 warm=true\n");
	CAPTURE(log_record(LOG_DEBUG, "http", "request", LOG_UINT("status", 200)));
	assert_string_equal(line, "");
}

static void a_hostile_value_cannot_forge_a_field_or_a_line(void **state)
{
	(void)state;
	log_set_level(LOG_INFO);
	CAPTURE(log_record(LOG_INFO, "m", "x", LOG_STR("a", "1\n2 b=3"), LOG_STR("q", "\"c=\\"),
			   LOG_STR("e", "\x1b[2J\xff\x7f"), LOG_STR("p", "\x7f"),
			   LOG_STR("k", "a=b")));
	assert_string_equal(rest(), "info m: x a=\"1\\n2 b=3\" q=\"\\\"c=\\\\\" "
				    "e=\"\\x1b[2J\\xff\\x7f\" p=\"\\x7f\" k=\"a=b\"\n");
}

static void lines_can_be_json(void **state)
{
	(void)state;
	log_set_level(LOG_INFO);
	log_set_format(LOG_JSON);
	CAPTURE(log_info("m", "say \"%s\" \\ \xff\n", "h\x01"));
	assert_int_equal(strncmp(line, "{\"time\":\"2", 10), 0);
	assert_string_equal(line + 33, "\",\"level\":\"info\",\"module\":\"m\",\"message\":"
				       "\"say \\\"h\\u0001\\\" \\\\ \xef\xbf\xbd\\n\"}\n");
	CAPTURE(log_record(LOG_WARN, "m", "x", LOG_STR("s", "a\"b"), LOG_INT("i", -1),
			   LOG_BOOL("b", false), LOG_MS("ms", 5), LOG_STR("none", NULL)));
	log_set_format(LOG_LOGFMT);
	assert_string_equal(line + 33, "\",\"level\":\"warn\",\"module\":\"m\",\"message\":\"x\","
				       "\"s\":\"a\\\"b\",\"i\":-1,\"b\":false,\"ms\":0.005}\n");
}

static void a_long_value_is_cut_between_characters(void **state)
{
	char big[2000];

	(void)state;
	log_set_level(LOG_INFO);
	for (size_t i = 0; i + 3 < sizeof(big); i += 3)
		memcpy(big + i, "\xe2\x82\xac", 4);
	CAPTURE(log_record(LOG_INFO, "m", "x", LOG_STR("s", big), LOG_UINT("after", 1)));
	assert_int_equal(strlen(strstr(line, "s=")), 2 + 510 + 3 + strlen("\"\" after=1\n"));
	assert_non_null(strstr(line, "\xe2\x82\xac...\" after=1\n"));
	memset(big, 0xff, sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	CAPTURE(log_record(LOG_INFO, "m", "x", LOG_STR("s", big)));
	assert_non_null(strstr(line, "\\xff...\"\n"));
}

static void fields_beyond_the_line_are_left_out_and_it_says_so(void **state)
{
	char big[1200];
	size_t n;

	(void)state;
	log_set_level(LOG_INFO);
	memset(big, '\x01', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	for (int format = LOG_LOGFMT; format <= LOG_JSON; format++) {
		log_set_format((enum log_format)format);
		CAPTURE(log_record(LOG_INFO, "m", big, LOG_STR("a", big), LOG_STR("b", big),
				   LOG_STR("c", big), LOG_STR("d", big)));
		log_set_format(LOG_LOGFMT);
		n = strlen(line);
		assert_true(n < sizeof(line));
		if (format == LOG_JSON)
			assert_string_equal(line + n - 14, "\",\"cut\":true}\n");
		else
			assert_string_equal(line + n - 11, "\" cut=true\n");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_has_time_level_module_and_text),
		cmocka_unit_test(lines_above_the_level_are_not_written),
		cmocka_unit_test(hostile_text_cannot_forge_a_line_or_move_the_cursor),
		cmocka_unit_test(letters_of_any_script_stay_as_they_are),
		cmocka_unit_test(a_long_text_is_cut_and_says_so),
		cmocka_unit_test(errno_is_what_it_was),
		cmocka_unit_test(levels_have_names),
		cmocka_unit_test(fields_follow_the_message),
		cmocka_unit_test(a_hostile_value_cannot_forge_a_field_or_a_line),
		cmocka_unit_test(lines_can_be_json),
		cmocka_unit_test(a_long_value_is_cut_between_characters),
		cmocka_unit_test(fields_beyond_the_line_are_left_out_and_it_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
