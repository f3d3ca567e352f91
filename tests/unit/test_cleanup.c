#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>

#include "check.h"

struct thing {
	int *ended;
};

static struct thing *thing_free(struct thing *t)
{
	(*t->ended)++;
	return NULL;
}
CLEANUP_FUNC(struct thing *, thing_free)

static void an_owning_local_ends_with_its_scope(void **state)
{
	int ended = 0;

	(void)state;
	{
		struct thing t = { &ended };
		_cleanup_(thing_free_p) struct thing *owned = &t;
		_cleanup_(thing_free_p) struct thing *empty = NULL;

		assert_non_null(owned);
		assert_null(empty);
	}
	assert_int_equal(ended, 1);
}

static void a_taken_pointer_is_the_taker_s(void **state)
{
	int ended = 0;
	struct thing t = { &ended }, *kept;

	(void)state;
	{
		_cleanup_(thing_free_p) struct thing *owned = &t;

		kept = TAKE(owned);
		assert_null(owned);
	}
	assert_ptr_equal(kept, &t);
	assert_int_equal(ended, 0);
}

static void a_descriptor_is_closed_unless_taken(void **state)
{
	int closed, kept;

	(void)state;
	{
		_close_ int a = open("/dev/null", O_RDONLY | O_CLOEXEC);
		_close_ int b = open("/dev/null", O_RDONLY | O_CLOEXEC);
		_close_ int none = -1;

		closed = a;
		kept = TAKE_FD(b);
		assert_int_equal(b, -1);
		assert_int_equal(none, -1);
	}
	assert_int_equal(fcntl(closed, F_GETFD), -1);
	assert_int_equal(errno, EBADF);
	assert_true(fcntl(kept, F_GETFD) >= 0);
	assert_int_equal(close(kept), 0);
}

/* What these two leave behind is the leak checker's to report. */
static void memory_and_streams_are_released(void **state)
{
	_free_ char *p = malloc(10);
	_fclose_ FILE *f = fopen("/dev/null", "re");

	(void)state;
	assert_non_null(p);
	assert_non_null(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_owning_local_ends_with_its_scope),
		cmocka_unit_test(a_taken_pointer_is_the_taker_s),
		cmocka_unit_test(a_descriptor_is_closed_unless_taken),
		cmocka_unit_test(memory_and_streams_are_released),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
