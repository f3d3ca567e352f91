#include "check.h"

#include <errno.h>
#include <string.h>

#include "sandbox/state.h"
#include "sandbox/template.h"

#define C (1u << SANDBOX_CREATING)
#define R (1u << SANDBOX_RUNNING)
#define PG (1u << SANDBOX_PAUSING)
#define P (1u << SANDBOX_PAUSED)
#define RG (1u << SANDBOX_RESUMING)
#define SG (1u << SANDBOX_STOPPING)
#define S (1u << SANDBOX_STOPPED)
#define F (1u << SANDBOX_FAILED)
#define UG (1u << SANDBOX_SUSPENDING)
#define U (1u << SANDBOX_SUSPENDED)
#define TG (1u << SANDBOX_STARTING)

/* Written down a second time on purpose: a change of the table must be meant. */
static const unsigned allowed[SANDBOX_STATE_COUNT] = {
	[SANDBOX_CREATING] = R | F,
	[SANDBOX_RUNNING] = PG | UG | SG | F,
	[SANDBOX_PAUSING] = P | R | SG | F,
	[SANDBOX_PAUSED] = RG | UG | SG | F,
	[SANDBOX_RESUMING] = R | P | SG | F,
	[SANDBOX_STOPPING] = S | F,
	[SANDBOX_SUSPENDING] = U | R | P | SG | F,
	[SANDBOX_SUSPENDED] = TG | SG | F,
	[SANDBOX_STARTING] = R | U | SG | F,
};

static void every_transition_is_allowed_or_refused_as_written_down(void **state)
{
	(void)state;
	for (unsigned from = 0; from < SANDBOX_STATE_COUNT; from++)
		for (unsigned to = 0; to < SANDBOX_STATE_COUNT; to++)
			assert_int_equal(state_may_become(from, to), (allowed[from] >> to) & 1);
	assert_false(state_may_become(SANDBOX_STATE_COUNT, SANDBOX_RUNNING));
	assert_false(state_may_become(SANDBOX_RUNNING, SANDBOX_STATE_COUNT));
}

static void what_has_ended_stays_so_and_is_not_live(void **state)
{
	(void)state;
	for (unsigned to = 0; to < SANDBOX_STATE_COUNT; to++) {
		assert_false(state_may_become(SANDBOX_STOPPED, to));
		assert_false(state_may_become(SANDBOX_FAILED, to));
		assert_int_equal(state_is_live(to), to != SANDBOX_STOPPED && to != SANDBOX_FAILED);
	}
}

static void every_state_has_a_name_that_leads_back_to_it(void **state)
{
	enum sandbox_state s = SANDBOX_STATE_COUNT;

	(void)state;
	for (unsigned i = 0; i < SANDBOX_STATE_COUNT; i++) {
		assert_int_equal(state_from(state_name(i), &s), 0);
		assert_int_equal(s, i);
	}
	assert_int_equal(state_from("asleep", &s), -EINVAL);
	assert_int_equal(s, SANDBOX_STATE_COUNT - 1);
	assert_string_equal(state_name(SANDBOX_STATE_COUNT), "unknown");
}

static void templates_are_found_by_the_names_that_others_use(void **state)
{
	static const struct {
		const char *asked, *name; /* NULL: not there */
	} cases[] = {
		{ "", TEMPLATE_DEFAULT },
		{ "python", "python" },
		{ "python3", "python" },
		{ "python:3", "python" },
		{ "python:3.11", "python" },
		{ "nodejs", "node" },
		{ "nodejs:18", "node" },
		{ "node:22.1", "node" },
		{ "javascript", "node" },
		{ "bash", "bash" },
		{ "sh", "bash" },
		{ "base", "base" },
		{ "e2b", "e2b" },
		{ "python:2.7", NULL },
		{ "python:31", NULL },
		{ "python:", NULL },
		{ "python:3x", NULL },
		{ "bash:5", NULL },
		{ "javascript:1", NULL },
		{ "ruby", NULL },
		{ ":3", NULL },
		{ "Python", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct template_row *row = template_find(cases[i].asked);

		if (!cases[i].name) {
			assert_null(row);
			continue;
		}
		assert_non_null(row);
		assert_string_equal(row->name, cases[i].name);
	}
}

static void templates_have_numbers_of_their_own_that_the_launcher_takes(void **state)
{
	size_t n;
	const struct template_row *rows = template_rows(&n);
	uint64_t seen = 0;

	(void)state;
	assert_true(n >= 4);
	for (size_t i = 0; i < n; i++) {
		assert_true(rows[i].id >= 1 && rows[i].id < TEMPLATE_MAX);
		assert_false((seen >> rows[i].id) & 1);
		seen |= 1ull << rows[i].id;
		assert_ptr_equal(template_find(rows[i].name), &rows[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_transition_is_allowed_or_refused_as_written_down),
		cmocka_unit_test(what_has_ended_stays_so_and_is_not_live),
		cmocka_unit_test(every_state_has_a_name_that_leads_back_to_it),
		cmocka_unit_test(templates_are_found_by_the_names_that_others_use),
		cmocka_unit_test(templates_have_numbers_of_their_own_that_the_launcher_takes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
