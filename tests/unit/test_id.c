#include "base/id.h"

#include <string.h>

#include "check.h"

static void made_ids_are_valid_and_differ(void **state)
{
	enum { COUNT = 1000 };
	static char ids[COUNT][ID_LEN + 1];

	(void)state;
	for (size_t i = 0; i < COUNT; i++) {
		id_make(ids[i]);
		assert_true(id_is_valid(ids[i]));
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(ids[i], ids[k]);
	}
}

/* 400,000 letters: each of 36 is expected 11,111 times with a deviation of 104. A plain remainder
 * of a byte would give four letters 12,500. The bounds are seven deviations away. */
static void no_letter_is_favoured(void **state)
{
	unsigned seen[256] = { 0 };
	char id[ID_LEN + 1];

	(void)state;
	for (int i = 0; i < 20000; i++) {
		id_make(id);
		for (size_t k = 0; k < ID_LEN; k++)
			seen[(unsigned char)id[k]]++;
	}
	for (int c = 0; c < 256; c++) {
		if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
			assert_in_range(seen[c], 10383, 11839);
		else
			assert_int_equal(seen[c], 0);
	}
}

static void ids_of_a_source_are_valid_and_differ(void **state)
{
	enum { COUNT = 1000 };
	static char ids[COUNT][ID_LEN + 1];
	struct id_source s = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT; i++) {
		id_next(&s, ids[i]);
		assert_true(id_is_valid(ids[i]));
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(ids[i], ids[k]);
	}
}

static void only_the_exact_form_is_valid(void **state)
{
	char id[ID_LEN + 1] = "abcdefghij0123456789";

	(void)state;
	assert_true(id_is_valid(id));
	assert_false(id_is_valid(NULL));
	assert_false(id_is_valid(""));
	assert_false(id_is_valid("abcdefghij012345678"));
	assert_false(id_is_valid("abcdefghij01234567890"));
	for (int c = 1; c < 256; c++) {
		bool good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');

		id[7] = (char)c;
		assert_int_equal(id_is_valid(id), good);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(made_ids_are_valid_and_differ),
		cmocka_unit_test(no_letter_is_favoured),
		cmocka_unit_test(ids_of_a_source_are_valid_and_differ),
		cmocka_unit_test(only_the_exact_form_is_valid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
