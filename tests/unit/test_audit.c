#include "telemetry/audit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "check.h"

#define LINES 8

struct line {
	struct audit_record rec;
	uint8_t hash[HASH_LEN];
};

struct log {
	struct line lines[LINES + 1];
	size_t n;
	struct audit_chain head;
};

static const char *const owners[] = { "anna", "bob", "" };
static const char *const texts[] = { "{\"status\":201}", "{}", "{\"a\":\"\\u0000\"}" };

static int setup(void **state)
{
	static struct log g;
	uint8_t prev[HASH_LEN] = { 0 };

	g = (struct log){ .n = LINES };
	for (size_t i = 0; i < LINES; i++) {
		struct line *l = &g.lines[i];

		l->rec = (struct audit_record){ .seq = i + 1,
						.at_ms = 1000 + (int64_t)i / 2,
						.owner = owners[i % 3],
						.kind = i % 2 ? "call" : "denied",
						.text = texts[i % 3] };
		if (audit_hash(prev, &l->rec, l->hash) < 0)
			return -1;
		memcpy(prev, l->hash, HASH_LEN);
	}
	g.head.seq = LINES;
	memcpy(g.head.hash, prev, HASH_LEN);
	*state = &g;
	return 0;
}

/* The number of the first line that is not good; 0: all are, to the head. */
static uint64_t first_bad(const struct log *g)
{
	struct audit_chain chain = { 0 };
	struct err err = { 0 };

	for (size_t i = 0; i < g->n; i++)
		if (audit_check(&chain, &g->lines[i].rec, g->lines[i].hash, &err) < 0) {
			assert_int_equal(err.code, EBADMSG);
			return g->lines[i].rec.seq;
		}
	return chain.seq == g->head.seq && memcmp(chain.hash, g->head.hash, HASH_LEN) == 0
		       ? 0
		       : chain.seq + 1;
}

static void a_log_as_it_was_written_is_good(void **state)
{
	assert_int_equal(first_bad(*state), 0);
}

static void any_changed_field_of_any_line_is_found_at_that_line(void **state)
{
	struct log *g = *state;

	for (size_t i = 0; i < LINES; i++) {
		struct line was = g->lines[i];

		g->lines[i].rec.at_ms += i == LINES - 1;
		g->lines[i].rec.owner = "eve";
		assert_int_equal(first_bad(g), i + 1);
		g->lines[i] = was;
		g->lines[i].rec.kind = "Call";
		assert_int_equal(first_bad(g), i + 1);
		g->lines[i] = was;
		g->lines[i].rec.text = "{\"status\":200}";
		assert_int_equal(first_bad(g), i + 1);
		g->lines[i] = was;
		g->lines[i].hash[31] ^= 1;
		assert_int_equal(first_bad(g), i + 1);
		g->lines[i] = was;
	}
	g->lines[LINES - 1].rec.at_ms++;
	assert_int_equal(first_bad(g), LINES);
}

static void bytes_moved_from_one_field_to_the_next_are_found(void **state)
{
	struct log *g = *state;

	g->lines[0].rec.owner = "annad";
	g->lines[0].rec.kind = "enied";
	assert_int_equal(first_bad(g), 1);
}

static void a_deleted_line_is_found(void **state)
{
	struct log *g = *state;

	memmove(&g->lines[3], &g->lines[4], 4 * sizeof(g->lines[0]));
	g->n--;
	assert_int_equal(first_bad(g), 5);
}

static void a_deleted_line_is_found_when_the_others_are_numbered_again(void **state)
{
	struct log *g = *state;

	memmove(&g->lines[3], &g->lines[4], 4 * sizeof(g->lines[0]));
	g->n--;
	for (size_t i = 3; i < g->n; i++)
		g->lines[i].rec.seq--;
	assert_int_equal(first_bad(g), 4);
}

static void an_inserted_line_is_found_though_its_own_hash_is_right(void **state)
{
	struct log *g = *state;

	memmove(&g->lines[4], &g->lines[3], 5 * sizeof(g->lines[0]));
	g->n++;
	g->lines[3].rec.text = "{\"by\":\"eve\"}";
	assert_int_equal(audit_hash(g->lines[2].hash, &g->lines[3].rec, g->lines[3].hash), 0);
	for (size_t i = 4; i < g->n; i++)
		g->lines[i].rec.seq++;
	assert_int_equal(first_bad(g), 5);
}

static void two_lines_in_another_order_are_found(void **state)
{
	struct log *g = *state;
	struct line a = g->lines[2];

	g->lines[2] = g->lines[3];
	g->lines[3] = a;
	g->lines[2].rec.seq = 3;
	g->lines[3].rec.seq = 4;
	assert_int_equal(first_bad(g), 3);
}

static void a_cut_end_is_found_by_the_head(void **state)
{
	struct log *g = *state;

	g->n = LINES - 2;
	assert_int_equal(first_bad(g), LINES - 1);
}

static void a_log_written_anew_from_some_line_on_is_found_by_the_head(void **state)
{
	struct log *g = *state;

	g->lines[5].rec.text = "{}";
	for (size_t i = 5; i < g->n; i++)
		assert_int_equal(
			audit_hash(g->lines[i - 1].hash, &g->lines[i].rec, g->lines[i].hash), 0);
	assert_int_equal(first_bad(g), LINES + 1);
}

static void time_that_goes_back_is_found(void **state)
{
	struct log *g = *state;

	g->lines[4].rec.at_ms = 1;
	assert_int_equal(audit_hash(g->lines[3].hash, &g->lines[4].rec, g->lines[4].hash), 0);
	assert_int_equal(first_bad(g), 5);
}

static void a_head_reads_back_as_it_was_written_and_nothing_else_does(void **state)
{
	static const char *const bad[] = { "", ":", "1:", "x:00", "1:zz", "-1:" };
	struct log *g = *state;
	struct audit_chain again = { 0 };
	char text[AUDIT_HEAD_SIZE], long_text[AUDIT_HEAD_SIZE + 4];

	audit_head_format(&g->head, text);
	assert_int_equal(audit_head_parse(text, &again), 0);
	assert_int_equal(again.seq, g->head.seq);
	assert_memory_equal(again.hash, g->head.hash, HASH_LEN);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(audit_head_parse(bad[i], &again), -EINVAL);
	memcpy(long_text, text, strlen(text));
	memcpy(long_text + strlen(text), "0", 2);
	assert_int_equal(audit_head_parse(long_text, &again), -EINVAL);
	g->head.seq = INT64_MAX;
	audit_head_format(&g->head, text);
	assert_int_equal(audit_head_parse(text, &again), 0);
}

#define TEST(fn) cmocka_unit_test_setup(fn, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_log_as_it_was_written_is_good),
		TEST(any_changed_field_of_any_line_is_found_at_that_line),
		TEST(bytes_moved_from_one_field_to_the_next_are_found),
		TEST(a_deleted_line_is_found),
		TEST(a_deleted_line_is_found_when_the_others_are_numbered_again),
		TEST(an_inserted_line_is_found_though_its_own_hash_is_right),
		TEST(two_lines_in_another_order_are_found),
		TEST(a_cut_end_is_found_by_the_head),
		TEST(a_log_written_anew_from_some_line_on_is_found_by_the_head),
		TEST(time_that_goes_back_is_found),
		TEST(a_head_reads_back_as_it_was_written_and_nothing_else_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
