#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "check.h"

static char line[8192]; /* what the last capture saw */

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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
