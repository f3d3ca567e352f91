#include "check.h"

#include <string.h>

#include "api/recent.h"
#include "base/id.h"
#include "base/str.h"

static void make_id(unsigned i, char id[ID_LEN + 1])
{
	assert_int_equal(str_format(id, ID_LEN + 1, "%020u", i), 0);
}

/* What is looked through does not grow with how many sandboxes there are. */
static void the_last_ones_are_kept_and_no_more(void **state)
{
	struct recent r = { 0 };
	char id[ID_LEN + 1];

	(void)state;
	for (unsigned i = 1; i <= 100000; i++) {
		make_id(i, id);
		recent_note(&r, id);
		assert_string_equal(r.ids[0], id);
		assert_int_equal(r.n, i < RECENT_MAX ? i : RECENT_MAX);
	}
	for (unsigned i = 0; i < RECENT_MAX; i++) {
		make_id(100000 - i, id);
		assert_string_equal(r.ids[i], id);
	}
}

static void one_that_is_used_again_is_first_and_there_once(void **state)
{
	struct recent r = { 0 };
	char id[ID_LEN + 1];

	(void)state;
	for (unsigned i = 1; i <= RECENT_MAX; i++) {
		make_id(i, id);
		recent_note(&r, id);
	}
	make_id(1, id); /* the last one */
	recent_note(&r, id);
	recent_note(&r, id);
	assert_int_equal(r.n, RECENT_MAX);
	assert_string_equal(r.ids[0], id);
	make_id(2, id);
	assert_string_equal(r.ids[RECENT_MAX - 1], id);
	make_id(RECENT_MAX, id);
	assert_string_equal(r.ids[1], id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_ones_are_kept_and_no_more),
		cmocka_unit_test(one_that_is_used_again_is_first_and_there_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
