#include "cli/options.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "check.h"

struct args {
	bool flag;
	const char *text;
	struct opt_list list;
	uint32_t count, cpu;
	uint64_t size, time, cpus;
	int choice;
};

static const char *const colours[] = { "red", "green", NULL };

static const struct opt table[] = {
	{ .name = "flag", .letter = 'f', .type = OPT_FLAG, .offset = offsetof(struct args, flag) },
	{ .name = "text", .type = OPT_TEXT, .arg = "T", .offset = offsetof(struct args, text) },
	{ .name = "list",
	  .letter = 'l',
	  .type = OPT_LIST,
	  .arg = "L",
	  .offset = offsetof(struct args, list) },
	{ .name = "count",
	  .type = OPT_COUNT,
	  .arg = "N",
	  .offset = offsetof(struct args, count),
	  .min = 4,
	  .max = 99 },
	{ .name = "memory",
	  .letter = 'm',
	  .type = OPT_SIZE,
	  .arg = "SIZE",
	  .offset = offsetof(struct args, size),
	  .min = 8 << 20,
	  .max = 1ull << 40 },
	{ .name = "time",
	  .type = OPT_DURATION,
	  .arg = "TIME",
	  .offset = offsetof(struct args, time),
	  .max = 60000 },
	{ .name = "cpu",
	  .type = OPT_CPU,
	  .arg = "CORES",
	  .offset = offsetof(struct args, cpu),
	  .min = 10,
	  .max = 4000 },
	{ .name = "pin", .type = OPT_CPUS, .arg = "CPUS", .offset = offsetof(struct args, cpus) },
	{ .name = "colour",
	  .type = OPT_CHOICE,
	  .arg = "COLOUR",
	  .offset = offsetof(struct args, choice),
	  .choices = colours },
	{ 0 },
};

#define PARSE(a, err, ...)                                                                    \
	({                                                                                    \
		char *argv_[] = { (char *)"cmd", __VA_ARGS__, NULL };                         \
		struct opt_rows all_ = { 0 };                                                 \
		options_add(&all_, table);                                                    \
		options_parse(&all_, (int)(sizeof(argv_) / sizeof(argv_[0])) - 1, argv_, (a), \
			      (err));                                                         \
	})

static void every_type_fills_its_field(void **state)
{
	struct args a = { 0 };

	(void)state;
	assert_int_equal(PARSE(&a, NULL, (char *)"-f", (char *)"--text=x", (char *)"-l",
			       (char *)"1", (char *)"--list", (char *)"2", (char *)"--count",
			       (char *)"42", (char *)"-m", (char *)"64M", (char *)"--time",
			       (char *)"1.5s", (char *)"--cpu", (char *)"0.5", (char *)"--pin",
			       (char *)"0,2-3", (char *)"--colour", (char *)"green",
			       (char *)"rest"),
			 19);
	assert_true(a.flag);
	assert_string_equal(a.text, "x");
	assert_int_equal(a.list.len, 2);
	assert_string_equal(a.list.items[1], "2");
	assert_int_equal(a.count, 42);
	assert_int_equal(a.size, 64 << 20);
	assert_int_equal(a.time, 1500);
	assert_int_equal(a.cpu, 500);
	assert_int_equal(a.cpus, 0xd);
	assert_int_equal(a.choice, 1);
}

static void the_first_operand_ends_the_options(void **state)
{
	struct args a = { 0 };

	(void)state;
	assert_int_equal(PARSE(&a, NULL, (char *)"ls", (char *)"-f"), 1);
	assert_false(a.flag);
	assert_int_equal(PARSE(&a, NULL, (char *)"--", (char *)"-f"), 2);
	assert_false(a.flag);
}

static void mixed_options_may_stand_behind_operands(void **state)
{
	char *argv[] = { (char *)"cmd", (char *)"one",     (char *)"-f",
			 (char *)"two", (char *)"--count", (char *)"9",
			 (char *)"--",  (char *)"--text",  NULL };
	struct opt_rows all = { .mixed = true };
	struct args a = { 0 };

	(void)state;
	options_add(&all, table);
	assert_int_equal(options_parse(&all, 8, argv, &a, NULL), 5);
	assert_true(a.flag);
	assert_int_equal(a.count, 9);
	assert_null(a.text);
	assert_string_equal(argv[5], "one");
	assert_string_equal(argv[6], "two");
	assert_string_equal(argv[7], "--text");
}

static void help_is_recognised(void **state)
{
	struct args a = { 0 };

	(void)state;
	assert_int_equal(PARSE(&a, NULL, (char *)"--help"), OPT_HELP_WANTED);
	assert_int_equal(PARSE(&a, NULL, (char *)"-f", (char *)"-h"), OPT_HELP_WANTED);
}

static void an_unknown_option_suggests_the_nearest(void **state)
{
	struct args a = { 0 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(PARSE(&a, &err, (char *)"--memry=1"), -EINVAL);
	assert_string_equal(err.text, "unknown option '--memry': did you mean --memory?");
	assert_int_equal(PARSE(&a, &err, (char *)"--entirely-different"), -EINVAL);
	assert_string_equal(err.text, "unknown option '--entirely-different'");
	assert_int_equal(PARSE(&a, &err, (char *)"-z"), -EINVAL);
	assert_string_equal(err.text, "unknown option '-z'");
}

static void the_beginning_of_a_name_is_not_enough(void **state)
{
	struct args a = { 0 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(PARSE(&a, &err, (char *)"--tex", (char *)"x"), -EINVAL);
	assert_string_equal(err.text, "unknown option '--tex': did you mean --text?");
	assert_int_equal(PARSE(&a, &err, (char *)"--mem=64M"), -EINVAL);
	assert_int_equal(PARSE(&a, &err, (char *)"--fla"), -EINVAL);
	assert_null(a.text);
	assert_int_equal(a.size, 0);
	assert_false(a.flag);
	assert_int_equal(PARSE(&a, &err, (char *)"--text", (char *)"--flag"), 3); /* its value */
	assert_string_equal(a.text, "--flag");
}

static void a_missing_value_names_its_option(void **state)
{
	struct args a = { 0 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(PARSE(&a, &err, (char *)"--memory"), -EINVAL);
	assert_string_equal(err.text, "option '--memory' wants a value");
}

static void a_bad_value_names_the_option_and_what_it_accepts(void **state)
{
	static const struct {
		const char *option, *value, *expected;
		int code;
	} cases[] = {
		{ "--memory", "lots",
		  "--memory does not accept 'lots': wants a size such as 64M, 1.5G or 268435456, "
		  "from 8M to 1T",
		  EINVAL },
		{ "--memory", "1K",
		  "--memory is out of range: '1K': wants a size such as 64M, 1.5G or 268435456, "
		  "from 8M to 1T",
		  ERANGE },
		{ "--count", "3",
		  "--count is out of range: '3': wants a whole number, from 4 to 99", ERANGE },
		{ "--colour", "blue", "--colour does not accept 'blue': wants one of red, green",
		  EINVAL },
		{ "--pin", "3-1",
		  "--pin does not accept '3-1': wants CPU numbers such as 0, 0,2 or 1-3 (at most "
		  "63)",
		  EINVAL },
		{ "--cpu", "-1",
		  "--cpu does not accept '-1': wants a number of cores such as 0.5, 2 or 250m, "
		  "from 10m to 4",
		  EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct args a = { 0 }, untouched = { 0 };
		struct err err = { 0 };

		assert_int_equal(PARSE(&a, &err, (char *)cases[i].option, (char *)cases[i].value),
				 -cases[i].code);
		assert_string_equal(err.text, cases[i].expected);
		assert_memory_equal(&a, &untouched, sizeof(a));
	}
}

static void a_list_has_an_end(void **state)
{
	char *argv[2 * (OPT_LIST_MAX + 1) + 2] = { (char *)"cmd" };
	struct opt_rows all = { 0 };
	struct args a = { 0 };
	struct err err = { 0 };
	int n = 1;

	(void)state;
	options_add(&all, table);
	for (int i = 0; i <= OPT_LIST_MAX; i++) {
		argv[n++] = (char *)"-l";
		argv[n++] = (char *)"x";
	}
	assert_int_equal(options_parse(&all, n, argv, &a, &err), -E2BIG);
	assert_int_equal(a.list.len, OPT_LIST_MAX);
}

static void only_near_words_are_suggested(void **state)
{
	static const char *const names[] = { "exec", "doctor", "run-code", NULL };

	(void)state;
	assert_string_equal(options_nearest("exce", names), "exec");
	assert_string_equal(options_nearest("docter", names), "doctor");
	assert_string_equal(options_nearest("run_code", names), "run-code");
	assert_null(options_nearest("zzzz", names));
	assert_null(options_nearest("", names));
	assert_null(options_nearest("a-word-that-is-much-longer-than-any-command-there-is", names));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_fills_its_field),
		cmocka_unit_test(the_first_operand_ends_the_options),
		cmocka_unit_test(mixed_options_may_stand_behind_operands),
		cmocka_unit_test(help_is_recognised),
		cmocka_unit_test(an_unknown_option_suggests_the_nearest),
		cmocka_unit_test(the_beginning_of_a_name_is_not_enough),
		cmocka_unit_test(a_missing_value_names_its_option),
		cmocka_unit_test(a_bad_value_names_the_option_and_what_it_accepts),
		cmocka_unit_test(a_list_has_an_end),
		cmocka_unit_test(only_near_words_are_suggested),
	};

	return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
