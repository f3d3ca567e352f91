#include "base/arena.h"

#include <errno.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#include "check.h"
#include "fault.h"

static void pieces_are_aligned_zeroed_and_apart(void **state)
{
	struct arena *a = arena_create(1 << 20);
	char *last = NULL;

	(void)state;
	for (size_t n = 0; n < 600; n++) {
		char *p = arena_alloc(a, n);

		assert_non_null(p);
		assert_true(p != last);
		assert_int_equal((uintptr_t)p % 16, 0);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(p[i], 0);
		memset(p, 0xee, n);
		last = p;
	}
	assert_null(arena_free(a));
}

static void earlier_pieces_survive_later_ones(void **state)
{
	enum { COUNT = 500 };
	struct arena *a = arena_create(4 << 20);
	uint8_t *pieces[COUNT];

	(void)state;
	for (size_t i = 0; i < COUNT; i++) {
		size_t n = i % 7 == 0 ? 9000 : 33; /* some get a block of their own */

		pieces[i] = arena_alloc(a, n);
		assert_non_null(pieces[i]);
		memset(pieces[i], (int)(i & 0xff), n);
	}
	for (size_t i = 0; i < COUNT; i++) {
		assert_int_equal(pieces[i][0], i & 0xff);
		assert_int_equal(pieces[i][i % 7 == 0 ? 8999 : 32], i & 0xff);
	}
	arena_free(a);
}

static void the_ceiling_can_be_reached_and_not_passed(void **state)
{
	struct arena *a = arena_create(100);

	(void)state;
	assert_null(arena_alloc(a, 113));
	assert_int_equal(arena_used(a), 0);
	assert_non_null(arena_alloc(a, 100));
	assert_int_equal(arena_used(a), 112);
	assert_null(arena_alloc(a, 1));
	assert_null(arena_alloc(a, 0));
	assert_int_equal(arena_used(a), 112);
	arena_free(a);
}

static void an_arena_of_nothing_gives_nothing(void **state)
{
	struct arena *a = arena_create(0);

	(void)state;
	assert_non_null(a);
	assert_null(arena_alloc(a, 1));
	assert_null(arena_alloc(a, 0));
	arena_free(a);
}

static void sizes_that_overflow_are_refused(void **state)
{
	struct arena *a = arena_create(SIZE_MAX);

	(void)state;
	assert_null(arena_alloc(a, SIZE_MAX));
	assert_null(arena_array(a, SIZE_MAX / 2, 3));
	assert_null(arena_array(a, (size_t)1 << 63, 2));
	assert_null(arena_strndup(a, "x", SIZE_MAX));
	assert_int_equal(arena_used(a), 0);
	assert_non_null(arena_array(a, 10, 10));
	arena_free(a);
}

static void strings_are_copied_and_terminated(void **state)
{
	struct arena *a = arena_create(1 << 20);
	char big[5000];

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	assert_string_equal(arena_strndup(a, "hello", 3), "hel");
	assert_string_equal(arena_strndup(a, NULL, 0), "");
	assert_string_equal(arena_printf(a, "%d-%s", 7, "up"), "7-up");
	assert_string_equal(arena_printf(a, "%s", ""), "");
	assert_string_equal(arena_printf(a, "%s", big), big);
	arena_free(a);
}

static void a_text_above_the_ceiling_is_refused_whole(void **state)
{
	struct arena *a = arena_create(16);

	(void)state;
	assert_null(arena_printf(a, "%s", "sixteen bytes and more"));
	assert_int_equal(arena_used(a), 0);
	assert_string_equal(arena_printf(a, "%s", "fifteen bytes ."), "fifteen bytes .");
	arena_free(a);
}

static void a_reset_arena_gives_zeroed_memory_up_to_its_ceiling_again(void **state)
{
	struct arena *a = arena_create(200000);
	static const size_t sizes[] = { 100, 70000, 3000, 90000, 16 };

	(void)state;
	arena_reset(a); /* also when it is fresh */
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			char *p = arena_alloc(a, sizes[i]);

			assert_non_null(p);
			for (size_t k = 0; k < sizes[i]; k++)
				assert_int_equal(p[k], 0);
			memset(p, 0xff, sizes[i]);
		}
		assert_null(arena_alloc(a, 100000));
		arena_reset(a);
		assert_int_equal(arena_used(a), 0);
	}
	a = arena_free(a);
}

/* Only where AddressSanitizer runs: who looks at what a request had is found at once. */
static void what_was_handed_out_before_a_reset_cannot_be_read(void **state)
{
#ifdef __SANITIZE_ADDRESS__
	struct arena *a = arena_create(1 << 20);
	char *small = arena_alloc(a, 5);

	(void)state;
	assert_false(__asan_address_is_poisoned(small + 4));
	assert_true(__asan_address_is_poisoned(small + 5)); /* nor what is between two pieces */
	arena_reset(a);
	assert_true(__asan_address_is_poisoned(small));
	assert_ptr_equal(arena_alloc(a, 5), small);
	assert_false(__asan_address_is_poisoned(small));
	arena_free(a);
#else
	(void)state;
	skip();
#endif
}

static void nothing_is_freed_from_null(void **state)
{
	(void)state;
	assert_null(arena_free(NULL));
}

static int build(void *arg)
{
	struct arena *a = arena_create(1 << 20);
	int r = 0;

	(void)arg;
	if (!a)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < 40; i++) {
		size_t used = arena_used(a);

		if (!arena_alloc(a, i * 300)) {
			assert_int_equal(arena_used(a), used);
			assert_non_null(arena_alloc(a, i * 300)); /* it works again */
			r = -ENOMEM;
		}
	}
	arena_free(a);
	return r;
}

static void a_failed_allocation_is_an_answer_and_not_the_end(void **state)
{
	(void)state;
	assert_true(fault_each(build, NULL) > 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_are_aligned_zeroed_and_apart),
		cmocka_unit_test(earlier_pieces_survive_later_ones),
		cmocka_unit_test(the_ceiling_can_be_reached_and_not_passed),
		cmocka_unit_test(an_arena_of_nothing_gives_nothing),
		cmocka_unit_test(sizes_that_overflow_are_refused),
		cmocka_unit_test(strings_are_copied_and_terminated),
		cmocka_unit_test(a_text_above_the_ceiling_is_refused_whole),
		cmocka_unit_test(a_reset_arena_gives_zeroed_memory_up_to_its_ceiling_again),
		cmocka_unit_test(what_was_handed_out_before_a_reset_cannot_be_read),
		cmocka_unit_test(nothing_is_freed_from_null),
		cmocka_unit_test(a_failed_allocation_is_an_answer_and_not_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
