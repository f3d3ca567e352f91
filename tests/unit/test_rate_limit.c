#include "auth/rate_limit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "check.h"
#include "fault.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

enum { PEERS = 4, LIMIT = 3, WINDOW = 1000 };

static int setup(void **state)
{
	*state = rate_limit_create(PEERS, LIMIT, WINDOW);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	rate_limit_free(*state);
	return 0;
}

static void the_last_failure_shuts_a_peer_out_until_the_window_ends(void **state)
{
	struct rate_limit *rl = *state;

	assert_int_equal(rate_limit_wait_ms(rl, "192.0.2.1", 0), 0);
	assert_false(rate_limit_fail(rl, "192.0.2.1", 100));
	assert_false(rate_limit_fail(rl, "192.0.2.1", 200));
	assert_int_equal(rate_limit_wait_ms(rl, "192.0.2.1", 200), 0);
	assert_true(rate_limit_fail(rl, "192.0.2.1", 300));
	assert_int_equal(rate_limit_wait_ms(rl, "192.0.2.1", 300), 800);
	assert_int_equal(rate_limit_wait_ms(rl, "192.0.2.2", 300), 0);
	assert_false(rate_limit_fail(rl, "192.0.2.1", 1000)); /* it is out already: nothing grows */
	assert_int_equal(rate_limit_wait_ms(rl, "192.0.2.1", 1099), 1);
	assert_int_equal(rate_limit_wait_ms(rl, "192.0.2.1", 1100), 0);
	assert_false(rate_limit_fail(rl, "192.0.2.1", 1100)); /* a new window */
	assert_false(rate_limit_fail(rl, "192.0.2.1", 1100));
	assert_true(rate_limit_fail(rl, "192.0.2.1", 1100));
	assert_int_equal(rate_limit_wait_ms(rl, "192.0.2.1", 1100), 1000);
}

static void failures_far_apart_do_not_add_up(void **state)
{
	struct rate_limit *rl = *state;

	for (uint64_t now = 0; now < 50000; now += WINDOW / 2) {
		(void)rate_limit_fail(rl, "192.0.2.1", now);
		assert_int_equal(rate_limit_wait_ms(rl, "192.0.2.1", now), 0);
	}
}

static void ports_and_spellings_are_one_peer(void **state)
{
	static const char *const rows[][2] = {
		{ "192.0.2.1:5000", "192.0.2.1" },       { "192.0.2.1", "192.0.2.1:1" },
		{ "[2001:db8::1]:80", "2001:db8::2" }, /* the same /64 */
		{ "2001:db8::1", "[2001:db8::ffff:1]" }, { "::ffff:192.0.2.7", "192.0.2.7:9" },
		{ "[::ffff:192.0.2.7]:1", "192.0.2.7" }, { "fe80::1%eth0", "fe80::2" },
		{ "127.0.0.1:1", "127.0.0.1:2" },        { "unix", "unix" },
	};

	(void)state;
	for (size_t i = 0; i < LEN(rows); i++) {
		struct rate_limit *rl = rate_limit_create(PEERS, 1, WINDOW);

		assert_non_null(rl);
		assert_true(rate_limit_fail(rl, rows[i][0], 0));
		if (rate_limit_wait_ms(rl, rows[i][1], 0) == 0)
			fail_msg("%s and %s", rows[i][0], rows[i][1]);
		rate_limit_free(rl);
	}
}

static void different_peers_are_told_apart(void **state)
{
	static const char *const rows[][2] = {
		{ "192.0.2.1", "192.0.2.2" },
		{ "2001:db8:0:1::1", "2001:db8:0:2::1" },
		{ "unix", "unix2" },
		{ "", "x" },
		{ "1.2.3.4", "102:304::" },
		{ "[unfinished", "unfinished" },
		{ "192.0.2.1", "::192.0.2.1" },
		{ "64.97.98.99", "abc" },
	};

	(void)state;
	for (size_t i = 0; i < LEN(rows); i++) {
		struct rate_limit *rl = rate_limit_create(PEERS, 1, WINDOW);

		assert_non_null(rl);
		assert_true(rate_limit_fail(rl, rows[i][0], 0));
		if (rate_limit_wait_ms(rl, rows[i][1], 0) != 0)
			fail_msg("%s and %s", rows[i][0], rows[i][1]);
		rate_limit_free(rl);
	}
}

static void a_peer_of_any_length_is_counted(void **state)
{
	struct rate_limit *rl = *state;
	char endless[1000];

	memset(endless, 'x', sizeof(endless) - 1);
	endless[sizeof(endless) - 1] = '\0';
	for (int i = 0; i < LIMIT; i++)
		(void)rate_limit_fail(rl, endless, 0);
	assert_int_equal(rate_limit_wait_ms(rl, endless, 0), WINDOW);
}

static void a_full_table_lets_the_oldest_window_go(void **state)
{
	struct rate_limit *rl = *state;
	char peer[32];

	for (int i = 0; i < LIMIT; i++)
		(void)rate_limit_fail(rl, "192.0.2.100", 0);
	for (int i = 0; i < PEERS - 1; i++) {
		assert_int_equal(str_format(peer, sizeof(peer), "192.0.2.%d", i), 0);
		(void)rate_limit_fail(rl, peer, 1);
	}
	assert_true(rate_limit_wait_ms(rl, "192.0.2.100", 1) > 0);
	(void)rate_limit_fail(rl, "192.0.2.200", 2);
	assert_int_equal(rate_limit_wait_ms(rl, "192.0.2.100", 2), 0);
	/* The others are still counted. */
	(void)rate_limit_fail(rl, "192.0.2.1", 3);
	assert_true(rate_limit_fail(rl, "192.0.2.1", 3));
}

static void windows_that_are_over_make_room_first(void **state)
{
	struct rate_limit *rl = *state;
	char peer[32];

	for (int i = 0; i < 1000; i++) { /* a crowd: each comes once */
		assert_int_equal(str_format(peer, sizeof(peer), "10.0.%d.%d", i / 250, i % 250), 0);
		(void)rate_limit_fail(rl, peer, (uint64_t)i);
	}
	for (int i = 0; i < LIMIT; i++)
		(void)rate_limit_fail(rl, "192.0.2.1", 1100);
	(void)rate_limit_fail(rl, "192.0.2.2", 1900); /* all of the crowd's are over */
	(void)rate_limit_fail(rl, "192.0.2.3", 2050);
	assert_true(rate_limit_wait_ms(rl, "192.0.2.1", 2050) > 0);
}

static int use_once(void *arg)
{
	_cleanup_(rate_limit_free_p) struct rate_limit *rl = rate_limit_create(2, 1, 10);

	(void)arg;
	if (!rl)
		return -ENOMEM;
	return rate_limit_fail(rl, "192.0.2.1", 0) ? 0 : -ENOMEM;
}

static void counting_fails_cleanly_without_memory(void **state)
{
	(void)state;
	assert_true(fault_each(use_once, NULL) > 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_last_failure_shuts_a_peer_out_until_the_window_ends),
		TEST(failures_far_apart_do_not_add_up),
		cmocka_unit_test(ports_and_spellings_are_one_peer),
		cmocka_unit_test(different_peers_are_told_apart),
		TEST(a_peer_of_any_length_is_counted),
		TEST(a_full_table_lets_the_oldest_window_go),
		TEST(windows_that_are_over_make_room_first),
		cmocka_unit_test(counting_fails_cleanly_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
