#include "telemetry/traceparent.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "check.h"

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"
#define GOOD "00-" TRACE "-" SPAN "-01"

static void a_good_header_comes_out_as_it_went_in(void **state)
{
	struct trace_context t = { 0 };
	char text[TRACEPARENT_SIZE];

	(void)state;
	assert_int_equal(traceparent_parse(STR(GOOD), &t), 0);
	assert_true(trace_is_set(&t));
	assert_int_equal(t.flags, TRACE_SAMPLED);
	traceparent_format(&t, text);
	assert_string_equal(text, GOOD);
}

static void what_is_not_well_formed_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"00",
		"00-" TRACE "-" SPAN,
		"00-" TRACE "-" SPAN "-",
		"00-" TRACE "-" SPAN "-0",
		"00-" TRACE "-" SPAN "-011",
		GOOD "-",
		GOOD "-more",
		GOOD " ",
		" " GOOD,
		"00_" TRACE "-" SPAN "-01",
		"00-" TRACE "_" SPAN "-01",
		"00-" TRACE "-" SPAN "_01",
		"ff-" TRACE "-" SPAN "-01",
		"FF-" TRACE "-" SPAN "-01",
		"0-" TRACE "-" SPAN "-001",
		"0x-" TRACE "-" SPAN "-01",
		"00-00000000000000000000000000000000-" SPAN "-01",
		"00-" TRACE "-0000000000000000-01",
		"00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01",
		"00-" TRACE "-B7AD6B7169203331-01",
		"00-" TRACE "-" SPAN "-0A",
		"00-0af7651916cd43dd8448eb211c80319g-" SPAN "-01",
		"00-" TRACE "-b7ad6b716920333.-01",
		"01-" TRACE "-" SPAN "-01.x",
		"01-" TRACE "-" SPAN "-01x",
		"cc-" TRACE "-" SPAN "-0",
	};
	struct trace_context t = { .flags = 77 };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (traceparent_parse(str_of(bad[i]), &t) != -EINVAL)
			fail_msg("'%s' was taken", bad[i]);
		assert_int_equal(t.flags, 77);
		assert_false(trace_is_set(&t));
	}
	assert_int_equal(traceparent_parse((struct str){ GOOD, TRACEPARENT_LEN - 1 }, &t), -EINVAL);
}

static void a_later_version_is_read_as_far_as_it_is_known(void **state)
{
	static const char *const good[] = {
		"01-" TRACE "-" SPAN "-01",
		"cc-" TRACE "-" SPAN "-01-what-the-future-brings",
		"fe-" TRACE "-" SPAN "-01-",
	};
	char text[TRACEPARENT_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct trace_context t = { 0 };

		assert_int_equal(traceparent_parse(str_of(good[i]), &t), 0);
		traceparent_format(&t, text);
		assert_string_equal(text, GOOD); /* what goes on is of our version */
	}
}

static void only_flags_that_are_known_are_passed_on(void **state)
{
	static const struct {
		const char *in;
		uint8_t flags;
	} table[] = {
		{ "00-" TRACE "-" SPAN "-00", 0 },
		{ "00-" TRACE "-" SPAN "-02", TRACE_RANDOM },
		{ "00-" TRACE "-" SPAN "-03", TRACE_SAMPLED | TRACE_RANDOM },
		{ "00-" TRACE "-" SPAN "-fc", 0 },
		{ "00-" TRACE "-" SPAN "-ff", TRACE_SAMPLED | TRACE_RANDOM },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct trace_context t = { 0 };

		assert_int_equal(traceparent_parse(str_of(table[i].in), &t), 0);
		assert_int_equal(t.flags, table[i].flags);
	}
}

static const char *state_of(struct tracestate *s, const char *text)
{
	*s = (struct tracestate){ 0 };
	tracestate_add(s, str_of(text));
	return tracestate_text(s);
}

static void a_state_is_passed_on_as_it_is(void **state)
{
	static const struct {
		const char *in, *out;
	} table[] = {
		{ "", "" },
		{ "a=1", "a=1" },
		{ "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
		  "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE" },
		{ "  a=1 ,\t, b@c=2  ,", "a=1,b@c=2" },
		{ "1a-_*/=x y!", "1a-_*/=x y!" },
		{ "a", "" },
		{ "=1", "" },
		{ "a=", "" },
		{ "A=1", "" },
		{ "a=1,b", "" },
		{ "a=b=c", "" },
		{ "a b=c", "" },
		{ "_a=c", "" },
		{ "a=\x7f", "" },
		{ "a=\xc3\xa4", "" },
		{ "a=x\ty", "" },
	};
	struct tracestate s;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_string_equal(state_of(&s, table[i].in), table[i].out);
}

static void a_repeated_state_is_one_list(void **state)
{
	struct tracestate s = { 0 };

	(void)state;
	tracestate_add(&s, STR("a=1"));
	tracestate_add(&s, STR("b=2"));
	assert_string_equal(tracestate_text(&s), "a=1,b=2");
	tracestate_add(&s, STR("!"));
	assert_string_equal(tracestate_text(&s), "");
}

static void a_state_has_32_members_at_most(void **state)
{
	char text[8 * TRACESTATE_MEMBERS + 16] = "";
	struct tracestate s;

	(void)state;
	for (unsigned i = 0; i < TRACESTATE_MEMBERS; i++)
		assert_int_equal(str_format(text + strlen(text), 8, "%sk%u=v", i ? "," : "", i), 0);
	assert_string_equal(state_of(&s, text), text);
	memcpy(text + strlen(text), ",z=1", 5);
	assert_string_equal(state_of(&s, text), "");
}

static void of_a_long_state_the_first_members_are_passed_on(void **state)
{
	char text[4096], value[257];
	struct tracestate s;

	(void)state;
	memset(value, 'v', 256);
	value[256] = '\0';
	assert_int_equal(str_format(text, sizeof(text), "a=1,b=%s,c=2,d=%s,e=3", value, value), 0);
	value[0] = '\0';
	(void)state_of(&s, text);
	assert_true(s.len <= TRACESTATE_MAX);
	assert_int_equal(strncmp(s.text, "a=1,b=vvv", 9), 0);
	assert_non_null(strstr(s.text, ",c=2,e=3")); /* d is too long for what is left */
	assert_null(strstr(s.text, "d="));
}

static void a_value_or_key_that_is_too_long_spoils_all(void **state)
{
	char text[600] = "a=";
	struct tracestate s;

	(void)state;
	memset(text + 2, 'v', 256);
	assert_string_equal(state_of(&s, text), text);
	text[258] = 'v';
	assert_string_equal(state_of(&s, text), "");
	memset(text, 'k', 256);
	memcpy(text + 256, "=v", 3);
	assert_string_equal(state_of(&s, text), text);
	memset(text, 'k', 257);
	memcpy(text + 257, "=v", 3);
	assert_string_equal(state_of(&s, text), "");
}

static void a_huge_state_is_not_looked_at(void **state)
{
	static char text[TRACESTATE_INPUT + 2];
	struct tracestate s;

	(void)state;
	memset(text, ',', sizeof(text) - 1);
	assert_string_equal(state_of(&s, text), "");
	assert_true(s.is_bad);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_good_header_comes_out_as_it_went_in),
		cmocka_unit_test(what_is_not_well_formed_is_refused),
		cmocka_unit_test(a_later_version_is_read_as_far_as_it_is_known),
		cmocka_unit_test(only_flags_that_are_known_are_passed_on),
		cmocka_unit_test(a_state_is_passed_on_as_it_is),
		cmocka_unit_test(a_repeated_state_is_one_list),
		cmocka_unit_test(a_state_has_32_members_at_most),
		cmocka_unit_test(of_a_long_state_the_first_members_are_passed_on),
		cmocka_unit_test(a_value_or_key_that_is_too_long_spoils_all),
		cmocka_unit_test(a_huge_state_is_not_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
