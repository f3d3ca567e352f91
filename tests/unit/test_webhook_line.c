#include "outbound/webhook_line.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "check.h"
#include "store/store.h"
#include "json/jv.h"
#include "json/jw.h"

#define SECOND 1000ull
#define HOUR (3600 * SECOND)
#define DAY (24 * HOUR)

static const struct line_rules rules = { .retry_ms = SECOND, .give_up_ms = DAY };

static struct journal_row row_of(uint64_t seq)
{
	return (struct journal_row){ .stream = "event",
				     .seq = seq,
				     .at_ms = 1000000 + (int64_t)seq,
				     .owner = "ann",
				     .kind = "sandbox.created",
				     .text = "{\"subject\":\"x\"}" };
}

static void look(struct webhook_line *l, uint64_t seq, bool wanted)
{
	struct journal_row row = row_of(seq);

	assert_int_equal(line_look(l, &row, wanted), 0);
}

/* A clock that the test moves: as an engine would, tries when it is due. */
struct clock {
	uint64_t now_ms;
};

static enum line_state try(struct webhook_line *l, struct clock *c, bool ok, uint32_t random)
{
	struct line_try t = { .ok = ok,
			      .status = ok ? 200 : 500,
			      .took_ms = 5,
			      .error = "answered 500",
			      .now_ms = c->now_ms,
			      .wall_ms = 1700000000000 + (int64_t)c->now_ms,
			      .random = random };

	if (l->due_ms > c->now_ms) {
		t.wall_ms += (int64_t)(l->due_ms - c->now_ms);
		c->now_ms = t.now_ms = l->due_ms;
	}
	return line_tried(l, &rules, &t);
}

static void delays_double_up_to_an_hour_and_are_never_the_same_for_all(void **state)
{
	uint64_t whole = SECOND;

	(void)state;
	for (uint32_t failures = 1; failures < 60; failures++) {
		uint64_t least = UINT64_MAX, most = 0;

		for (uint32_t random = 0; random < 5000; random++) {
			uint64_t ms = line_delay_ms(&rules, failures, random * 2654435761u);

			least = ms < least ? ms : least;
			most = ms > most ? ms : most;
		}
		assert_true(least >= whole / 2 && most <= whole);
		assert_true(most - least > whole / 4); /* those that failed together come apart */
		assert_true(line_delay_ms(&rules, failures, 0) >= whole / 2);
		assert_true(line_delay_ms(&rules, failures, UINT32_MAX) <= whole);
		whole = whole * 2 > LINE_DELAY_MAX_MS ? LINE_DELAY_MAX_MS : whole * 2;
	}
	assert_int_equal(whole, LINE_DELAY_MAX_MS);
}

static void an_event_is_tried_for_a_day_and_then_given_up(void **state)
{
	struct clock clock = { 5 };
	struct webhook_line l;
	unsigned tries = 0;

	(void)state;
	line_init(&l, 10);
	look(&l, 11, true);
	look(&l, 12, true);
	while (try(&l, &clock, false, 77 * tries) == LINE_TRYING) {
		assert_non_null(line_trouble(&l));
		assert_int_equal(line_trouble(&l)->seq, 11);
		assert_true(++tries < 200);
	}
	assert_in_range(clock.now_ms, DAY, DAY + HOUR + SECOND);
	assert_in_range(tries, 24, 60); /* hourly at the end */
	assert_int_equal(l.given_up, 1);
	assert_int_equal(l.missed, 1);
	/* the next one begins at the beginning */
	assert_int_equal(line_head(&l)->seq, 12);
	assert_int_equal(l.due_ms, 0);
	assert_int_equal(line_cursor(&l), 11);
	assert_int_equal(try(&l, &clock, false, 0), LINE_TRYING);
	assert_true(l.due_ms <= clock.now_ms + SECOND);
	assert_int_equal(try(&l, &clock, true, 0), LINE_DELIVERED);
	assert_int_equal(l.missed, 0);
	assert_int_equal(l.missed_total, 1);
	assert_int_equal(l.delivered, 1);
	assert_null(line_head(&l));
	assert_null(line_trouble(&l));
	line_done(&l);
}

static void a_clock_that_jumps_gives_nothing_up_that_was_hardly_tried(void **state)
{
	struct webhook_line l;
	struct line_try t = { .error = "x", .wall_ms = 1000 };

	(void)state;
	line_init(&l, 0);
	look(&l, 1, true);
	for (unsigned i = 0; i + 1 < LINE_TRIES_MIN; i++) {
		assert_int_equal(line_tried(&l, &rules, &t), LINE_TRYING);
		t.wall_ms = 1000 + 10 * (int64_t)DAY;
	}
	assert_int_equal(line_tried(&l, &rules, &t), LINE_GIVEN_UP);
	line_done(&l);
}

static void what_the_log_has_forgotten_is_missed(void **state)
{
	struct clock clock = { 0 };
	struct webhook_line l;

	(void)state;
	line_init(&l, 10);
	look(&l, 11, false);
	look(&l, 20, true); /* 12 to 19 are gone */
	assert_int_equal(l.missed, 8);
	line_look_past(&l, 25);
	assert_int_equal(l.missed, 13);
	line_look_past(&l, 25);
	line_look_past(&l, 3);
	assert_int_equal(l.missed, 13);
	assert_int_equal(l.looked, 25);
	assert_int_equal(line_cursor(&l), 19);
	assert_int_equal(try(&l, &clock, true, 0), LINE_DELIVERED);
	assert_int_equal(line_cursor(&l), 25);
	assert_int_equal(l.missed, 0); /* it was said */
	assert_int_equal(l.missed_total, 13);
	line_done(&l);
}

static void a_line_is_bounded_but_for_its_first(void **state)
{
	struct webhook_line l;
	struct journal_row row = row_of(1);
	char *big = malloc(LINE_BYTES_MAX + 2);

	(void)state;
	assert_non_null(big);
	memset(big, 'x', LINE_BYTES_MAX + 1);
	big[LINE_BYTES_MAX + 1] = '\0';
	row.text = big;
	line_init(&l, 0);
	assert_true(line_has_room(&l));
	assert_int_equal(line_look(&l, &row, true), 0);
	assert_false(line_has_room(&l));
	line_rewind(&l);
	assert_int_equal(l.looked, 0);
	assert_true(line_has_room(&l));
	for (uint64_t seq = 1; line_has_room(&l); seq++)
		look(&l, seq, true);
	assert_int_equal(l.n, LINE_EVENTS_MAX);
	assert_int_equal(line_cursor(&l), 0);
	line_done(&l);
	assert_int_equal(l.bytes, 0);
	free(big);
}

static void read_again(struct webhook_line *to, const char *text)
{
	struct jv_doc *doc = NULL;

	assert_int_equal(jv_parse(text, strlen(text), 1 << 20, &doc, NULL), 0);
	assert_int_equal(line_read(to, jv_root(doc)), 0);
	(void)jv_free(doc);
}

static void what_lasts_is_read_back_as_it_was_written(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct clock clock = { 0 };
	struct webhook_line l, again;
	struct jw w = jw_begin(&b);

	(void)state;
	line_init(&l, 100);
	for (uint64_t seq = 101; seq < 101 + LINE_DELIVERIES_MAX + 3; seq++) {
		look(&l, seq, true);
		(void)try(&l, &clock, true, 0);
	}
	look(&l, 200, true);
	(void)try(&l, &clock, false, 0);
	(void)try(&l, &clock, false, 0);
	assert_int_equal(l.n_deliveries, LINE_DELIVERIES_MAX);
	jw_object_begin(&w);
	line_write(&l, &w);
	jw_object_end(&w);
	assert_int_equal(jw_end(&w), 0);
	line_init(&again, 0);
	read_again(&again, b.data);
	/* the one that is tried comes again from the log, and its tries go on being counted */
	assert_int_equal(again.looked, 199);
	assert_null(line_head(&again));
	assert_int_equal(again.delivered, l.delivered);
	assert_int_equal(again.failed, 2);
	assert_int_equal(again.missed_total, l.missed_total);
	assert_int_equal(again.n_deliveries, LINE_DELIVERIES_MAX);
	for (size_t i = 0; i < again.n_deliveries; i++) {
		assert_int_equal(again.deliveries[i].seq, l.deliveries[i].seq);
		assert_int_equal(again.deliveries[i].state, l.deliveries[i].state);
		assert_int_equal(again.deliveries[i].first_ms, l.deliveries[i].first_ms);
		assert_string_equal(again.deliveries[i].error, l.deliveries[i].error);
	}
	look(&again, 200, true);
	(void)try(&again, &clock, false, 0);
	assert_int_equal(line_trouble(&again)->tries, 3);
	assert_int_equal(line_trouble(&again)->first_ms, line_trouble(&l)->first_ms);
	line_done(&l);
	line_done(&again);
}

static void a_damaged_record_leaves_the_line_as_it_was(void **state)
{
	static const char *const bad[] = { "{}", "[]", "{\"cursor\":-1}", "{\"cursor\":\"1\"}" };
	struct webhook_line l;

	(void)state;
	line_init(&l, 7);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct jv_doc *doc = NULL;

		assert_int_equal(jv_parse(bad[i], strlen(bad[i]), 1000, &doc, NULL), 0);
		assert_true(line_read(&l, jv_root(doc)) < 0);
		(void)jv_free(doc);
		assert_int_equal(l.looked, 7);
	}
	read_again(&l, "{\"cursor\":9,\"deliveries\":[{},{\"seq\":1},7]}");
	assert_int_equal(l.looked, 9);
	assert_int_equal(l.n_deliveries, 0);
	line_done(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(delays_double_up_to_an_hour_and_are_never_the_same_for_all),
		cmocka_unit_test(an_event_is_tried_for_a_day_and_then_given_up),
		cmocka_unit_test(a_clock_that_jumps_gives_nothing_up_that_was_hardly_tried),
		cmocka_unit_test(what_the_log_has_forgotten_is_missed),
		cmocka_unit_test(a_line_is_bounded_but_for_its_first),
		cmocka_unit_test(what_lasts_is_read_back_as_it_was_written),
		cmocka_unit_test(a_damaged_record_leaves_the_line_as_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
