#include <string.h>

#include "check.h"
#include "launch/backlog_count.h"

#define HEAD                                                                                \
	"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid" \
	"  timeout inode                                                     \n"
#define ROW(state, queues, inode)                                                           \
	"   1: 0100007F:AA93 0100007F:9290 " state " " queues " 00:00000000 00000000  1000" \
	"        0 " inode " 1 0000000000000000 20 4 30 10 -1      \n"
#define ROW6                                                                                     \
	"   0: 00000000000000000000000001000000:AA93 00000000000000000000000001000000:9290 08"   \
	" 00000000:00000010 00:00000000 00000000     0        0 0 1 0000000000000000 20 0 0 10 " \
	"-1\n"

static uint64_t count(const char *text)
{
	uint64_t bytes = 0;

	(void)backlog_parse_rows(text, strlen(text), &bytes);
	return bytes;
}

static void what_lies_in_connections_of_nobody_is_added(void **state)
{
	(void)state;
	assert_int_equal(count(HEAD), 0);
	assert_int_equal(count(HEAD ROW("08", "00000000:00238581", "0")),
			 0x238581 + BACKLOG_CONNECTION_BYTES);
	assert_int_equal(count(ROW("01", "00000000:00000000", "0") ROW6),
			 0x10 + 2 * BACKLOG_CONNECTION_BYTES);
}

static void connections_of_programs_count_as_nothing(void **state)
{
	(void)state;
	assert_int_equal(count(ROW("01", "00000000:00238581", "4711")), 0);
	assert_int_equal(count(ROW("04", "00238581:00000000", "0")), 0); /* closed, not sent yet */
	assert_int_equal(count(ROW("0A", "00000000:00000064", "12")), 0);
	assert_int_equal(count(ROW("06", "00000000:00000000", "0")), 0);
}

static void a_line_that_is_cut_waits_for_its_end(void **state)
{
	static const char text[] = ROW6 ROW6;
	uint64_t bytes = 0;
	size_t used = backlog_parse_rows(text, sizeof(text) - 10, &bytes);

	(void)state;
	assert_int_equal(used, strlen(ROW6));
	(void)backlog_parse_rows(text + used, strlen(text) - used, &bytes);
	assert_int_equal(bytes, 2 * (0x10 + BACKLOG_CONNECTION_BYTES));
}

static void nonsense_counts_as_nothing(void **state)
{
	static const char *const texts[] = { "\n",
					     "a\n",
					     "1: 2 3 01 5 6 7 8 9 0\n",
					     ROW("01", "00000000:0000000G", "0"),
					     ROW("01", "00000000:000000001", "0"),
					     ROW("01", "0000000000000000", "0"),
					     "" };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(count(texts[i]), 0);
}

static void numbers_are_found_by_their_words(void **state)
{
	static const char text[] = "sockets: used 23\n"
				   "TCP: inuse 1 orphan 0 tw 1294 alloc 12 mem 161\n"
				   "UDP: inuse 7 mem 57\n";

	(void)state;
	assert_int_equal(backlog_parse_sockstat(text, "TCP:", "mem"), 161);
	assert_int_equal(backlog_parse_sockstat(text, "TCP:", "alloc"), 12);
	assert_int_equal(backlog_parse_sockstat(text, "UDP:", "inuse"), 7);
	assert_int_equal(backlog_parse_sockstat("TCP6: inuse 5\n", "TCP6:", "inuse"), 5);
	assert_int_equal(backlog_parse_sockstat(text, "TCP6:", "inuse"), 0);
	assert_int_equal(backlog_parse_sockstat("TCP: mem\n", "TCP:", "mem"), 0);
	assert_int_equal(backlog_parse_sockstat("TCP: mem -1\n", "TCP:", "mem"), 0);
	assert_int_equal(backlog_parse_sockstat("", "TCP:", "mem"), 0);
}

static void a_box_may_have_a_part_of_its_memory(void **state)
{
	(void)state;
	assert_int_equal(backlog_allowance(0), BACKLOG_BOX_MIN);
	assert_int_equal(backlog_allowance(8ull << 20), BACKLOG_BOX_MIN);
	assert_int_equal(backlog_allowance(64ull << 20), 16ull << 20);
}

static void boxes_are_looked_at_when_the_machine_holds_much(void **state)
{
	(void)state;
	assert_int_equal(backlog_threshold(0), BACKLOG_MACHINE_MIN);
	assert_int_equal(backlog_threshold(256ull << 20), 32ull << 20);
	assert_int_equal(backlog_threshold(UINT64_MAX), BACKLOG_MACHINE_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_lies_in_connections_of_nobody_is_added),
		cmocka_unit_test(connections_of_programs_count_as_nothing),
		cmocka_unit_test(a_line_that_is_cut_waits_for_its_end),
		cmocka_unit_test(nonsense_counts_as_nothing),
		cmocka_unit_test(numbers_are_found_by_their_words),
		cmocka_unit_test(a_box_may_have_a_part_of_its_memory),
		cmocka_unit_test(boxes_are_looked_at_when_the_machine_holds_much),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
