#include <string.h>

#include "check.h"
#include "launch/locks_count.h"

#define TEXT                                                    \
	"1: FLOCK  ADVISORY  WRITE 28869 fe:00:9997371 0 EOF\n" \
	"2: OFDLCK ADVISORY  WRITE -1 fe:00:909315 8 8\n"       \
	"3: POSIX  ADVISORY  READ 17 00:1f:14314 0 EOF\n"       \
	"3: -> POSIX  ADVISORY  WRITE 18 00:1f:14314 0 EOF\n"   \
	"4: POSIX  *NOINODE* READ 17 <none>:0 0 EOF\n"          \
	"5: POSIX  ADVISORY  WRITE 17 00:1f:143"

static void every_owner_in_the_text_is_counted(void **state)
{
	struct lock_holder holders[8];
	pid_t pids[8];
	size_t n = 0, rows, used = locks_parse(TEXT, strlen(TEXT), pids, &n, 8);

	(void)state;
	assert_int_equal(strlen(TEXT) - used, strlen("5: POSIX  ADVISORY  WRITE 17 00:1f:143"));
	assert_int_equal(n, 5);
	rows = locks_count(pids, n, holders);
	assert_int_equal(rows, 2); /* the first may be gone, and its number another's */
	assert_int_equal(holders[0].pid, 17);
	assert_int_equal(holders[0].count, 2);
	assert_int_equal(holders[1].pid, 18);
}

static void a_full_list_takes_no_more(void **state)
{
	pid_t pids[2];
	size_t n = 0;

	(void)state;
	(void)locks_parse(TEXT, strlen(TEXT), pids, &n, 2);
	assert_int_equal(n, 2);
	assert_int_equal(locks_parse(TEXT, strlen(TEXT), pids, &n, 2), 0);
}

static void nonsense_is_nobodys(void **state)
{
	static const char *const texts[] = { "\n",
					     "a\n",
					     "1: 2 3 4\n",
					     "1: 2 3 4 -5 6\n",
					     "1: 2 3 4 0 6\n",
					     "1: 2 3 4 99999999999 6\n" };
	struct lock_holder holders[8];
	pid_t pids[8];
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(locks_parse(texts[i], strlen(texts[i]), pids, &n, 8),
				 strlen(texts[i]));
	assert_int_equal(locks_count(pids, n, holders), 0);
}

static void the_box_with_most_is_found_by_the_sum_of_its_processes(void **state)
{
	struct lock_holder holders[] = {
		{ 2, 60, 7 }, { 3, 9000, 0 }, { 4, 70, 8 }, { 5, 60, 7 }, { 6, 40, 9 }
	};

	(void)state;
	assert_int_equal(locks_judge(holders, 5, 100), 7);
	assert_int_equal(locks_judge(holders, 5, 50), 7);
	assert_int_equal(locks_judge(holders, 5, 120), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_owner_in_the_text_is_counted),
		cmocka_unit_test(a_full_list_takes_no_more),
		cmocka_unit_test(nonsense_is_nobodys),
		cmocka_unit_test(the_box_with_most_is_found_by_the_sum_of_its_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
