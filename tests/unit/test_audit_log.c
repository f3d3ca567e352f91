#include "sandbox/audit_log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/encode.h"
#include "base/err.h"
#include "base/fd.h"
#include "check.h"
#include "loop/loop.h"
#include "sandbox/audit_open.h"
#include "sandbox/journal.h"
#include "store_rig.h"

struct rig {
	struct store_rig store;
	struct loop *loop;
	struct audit_log *log;
	char dir[64];
	int dir_fd;
	unsigned tampered;
	struct audit_chain chain; /* of what was read */
	int bad;
	size_t answers;
	uint64_t retention_ms;
	struct audit_chain cut; /* as its line says */
	char kinds[256];        /* of what was read: the first letter of each */
	char last[256];         /* text */
};

static void tampered(void *user, const char *what)
{
	struct rig *g = user;

	assert_non_null(what);
	g->tampered++;
}

static void open_log(struct rig *g)
{
	struct audit_log_options o = { .loop = g->loop,
				       .store = &g->store.st,
				       .dir_fd = g->dir_fd,
				       .retention_ms = g->retention_ms,
				       .tampered = tampered,
				       .user = g };
	struct err err = { 0 };

	assert_int_equal(audit_log_open(&o, &g->log, &err), 0);
	store_dispatch(&g->store.st);
}

static int setup(void **state)
{
	static struct rig g;

	g = (struct rig){ .dir = "/tmp/holt-audit-XXXXXX" };
	assert_non_null(mkdtemp(g.dir));
	g.dir_fd = open(g.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(loop_create(&g.loop, NULL), 0);
	store_rig_open_memory(&g.store);
	open_log(&g);
	*state = &g;
	return 0;
}

static int teardown(void **state)
{
	struct rig *g = *state;

	g->log = audit_log_free(g->log);
	store_rig_end(&g->store);
	g->loop = loop_free(g->loop);
	(void)unlinkat(g->dir_fd, AUDIT_HEAD_FILE, 0);
	(void)unlinkat(g->dir_fd, AUDIT_OPEN_FILE, 0);
	g->dir_fd = fd_close(g->dir_fd);
	return rmdir(g->dir);
}

static void append(struct rig *g, unsigned n)
{
	while (n-- > 0)
		audit_log_append(g->log, "anna", "call", "{\"status\":201}");
	store_dispatch(&g->store.st);
}

static void again(struct rig *g)
{
	g->log = audit_log_free(g->log);
	open_log(g);
}

static void got_page(void *user, int r, const struct journal_row *rows, size_t n, bool more)
{
	struct rig *g = user;

	assert_int_equal(r, 0);
	assert_false(more);
	for (size_t i = 0; i < n && g->bad == 0; i++) {
		struct audit_record rec = { rows[i].seq, rows[i].at_ms, rows[i].owner, rows[i].kind,
					    rows[i].text };

		if (i == 0 && rec.seq > 1 &&
		    g->cut.seq > 0) { /* it was cut, and a line says where */
			assert_int_equal(rec.seq, g->cut.seq + 1);
			g->chain = g->cut;
		}
		g->bad = audit_check(&g->chain, &rec, rows[i].hash, NULL);
		g->kinds[i % 255] = rows[i].kind[0];
		(void)snprintf(g->last, sizeof(g->last), "%s", rows[i].text);
	}
	g->answers++;
}

/* 0: all lines are good, to the head. */
static int verify(struct rig *g)
{
	struct store_journal_filter all = { 0 };
	struct audit_chain head;

	g->chain = (struct audit_chain){ 0 };
	memset(g->kinds, 0, sizeof(g->kinds));
	g->bad = 0;
	g->answers = 0;
	assert_int_equal(store_list_journal(&g->store.st, AUDIT_STREAM, &all, 1000, got_page, g),
			 0);
	store_rig_wait(&g->store.st, &g->answers, 1);
	audit_log_head(g->log, &head);
	if (g->bad == 0 &&
	    (head.seq != g->chain.seq || memcmp(head.hash, g->chain.hash, HASH_LEN) != 0))
		return -ENODATA;
	return g->bad;
}

static void lines_are_chained_over_starts(void **state)
{
	struct rig *g = *state;

	append(g, 3);
	assert_int_equal(verify(g), 0);
	again(g);
	append(g, 2);
	assert_int_equal(verify(g), 0);
	assert_int_equal(g->chain.seq, 5);
	assert_int_equal(g->tampered, 0);
	assert_true(audit_log_is_intact(g->log));
}

static void trim(struct rig *g, const char *stream)
{
	struct store_results results = { 0 };

	assert_int_equal(
		store_trim_journal(&g->store.st, stream, INT64_MAX, 1000, store_rig_done, &results),
		0);
	store_rig_wait(&g->store.st, &results.n, 1);
}

static void a_log_whose_end_was_cut_off_is_told_and_never_heals(void **state)
{
	struct rig *g = *state;

	append(g, 4);
	g->log = audit_log_free(g->log);
	trim(g, AUDIT_STREAM); /* all of it: the end is missing */
	open_log(g);
	assert_int_equal(g->tampered, 1);
	assert_false(audit_log_is_intact(g->log));
	append(g, 1);
	assert_int_equal(verify(g), -EBADMSG); /* line 5 stands where line 1 should */
}

static void a_head_that_is_gone_is_told(void **state)
{
	struct rig *g = *state;

	append(g, 2);
	g->log = audit_log_free(g->log);
	assert_int_equal(unlinkat(g->dir_fd, AUDIT_HEAD_FILE, 0), 0);
	open_log(g);
	assert_int_equal(g->tampered, 1);
}

static void a_head_that_names_another_line_is_told(void **state)
{
	struct rig *g = *state;
	char text[AUDIT_HEAD_SIZE];
	struct audit_chain other = { .seq = 2 };

	append(g, 3);
	g->log = audit_log_free(g->log);
	audit_head_format(&other, text);
	assert_int_equal(fd_write_file_at(g->dir_fd, AUDIT_HEAD_FILE, text), 0);
	open_log(g);
	store_dispatch(&g->store.st);
	assert_int_equal(g->tampered, 1);
}

static void a_head_behind_the_log_is_no_reason_to_worry(void **state)
{
	struct rig *g = *state;
	struct audit_chain second;
	char text[AUDIT_HEAD_SIZE];

	append(g, 2);
	audit_log_head(g->log, &second);
	append(g, 3);
	g->log = audit_log_free(g->log);
	audit_head_format(&second, text); /* as a killed daemon leaves it */
	(void)unlinkat(g->dir_fd, AUDIT_HEAD_FILE, 0);
	(void)fd_close(openat(g->dir_fd, AUDIT_HEAD_FILE, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(fd_write_file_at(g->dir_fd, AUDIT_HEAD_FILE, text), 0);
	open_log(g);
	store_dispatch(&g->store.st);
	assert_int_equal(g->tampered, 0);
	append(g, 1);
	assert_int_equal(verify(g), 0);
	assert_int_equal(g->chain.seq, 6);
}

static void stop(void *user)
{
	loop_stop(user);
}

static void run_for(struct rig *g, uint64_t ms)
{
	struct loop_timer *t = NULL;

	assert_int_equal(loop_timer_create(g->loop, stop, g->loop, &t), 0);
	loop_timer_start(t, ms, 0);
	loop_run(g->loop);
	(void)loop_timer_free(t);
	store_dispatch(&g->store.st);
}

static void what_a_full_store_refuses_is_kept_and_written_later_in_order(void **state)
{
	struct rig *g = *state;
	struct audit_chain head;

	append(g, 1);
	g->store.faults =
		(struct store_faults){ .fail_in = 1, .fail_with = ENOSPC, .fail_on = true };
	append(g, 5);
	audit_log_head(g->log, &head);
	assert_int_equal(head.seq, 1);
	assert_true(audit_log_is_writable(g->log));
	append(g, 3);
	g->store.faults = (struct store_faults){ 0 };
	run_for(g, JOURNAL_RETRY_MS + 200);
	assert_int_equal(verify(g), 0);
	assert_int_equal(g->chain.seq, 9);
}

static void nothing_may_be_changed_when_too_much_waits(void **state)
{
	struct rig *g = *state;

	g->store.faults =
		(struct store_faults){ .fail_in = 1, .fail_with = EROFS, .fail_on = true };
	append(g, JOURNAL_WAITING_MAX / 4 * 3 - 1);
	assert_true(audit_log_is_writable(g->log));
	append(g, 1);
	assert_false(audit_log_is_writable(g->log));
	append(g, JOURNAL_WAITING_MAX); /* what there is no room for is lost, and the chain knows */
	g->store.faults = (struct store_faults){ 0 };
	run_for(g, JOURNAL_RETRY_MS + 200);
	assert_true(audit_log_is_writable(g->log));
}

/* ---- calls under way ---- */

static void a_call_whose_end_nobody_saw_is_told_after_a_kill(void **state)
{
	struct rig *g = *state;

	append(g, 1);
	assert_true(audit_log_begin(g->log, "anna", "{\"route\":\"/a\"}") >= 0);
	again(g);
	store_dispatch(&g->store.st);
	assert_int_equal(verify(g), 0);
	assert_string_equal(g->kinds, "ci"); /* call, interrupted */
	assert_string_equal(g->last, "{\"route\":\"/a\"}");
	again(g);
	assert_int_equal(verify(g), 0);
	assert_string_equal(g->kinds, "ci"); /* once */
}

static void end_one(struct rig *g, int place, const char *text)
{
	audit_log_end(g->log, place, "anna", "call", text);
}

static void a_line_that_the_store_had_not_taken_is_written_by_the_next_start(void **state)
{
	struct rig *g = *state;
	int a, b;

	append(g, 1);
	g->store.faults =
		(struct store_faults){ .fail_in = 1, .fail_with = ENOSPC, .fail_on = true };
	a = audit_log_begin(g->log, "anna", "{}");
	b = audit_log_begin(g->log, "anna", "{}");
	(void)audit_log_begin(g->log, "anna", "{\"n\":3}");
	end_one(g, b, "{\"n\":1}");
	end_one(g, a, "{\"n\":2}");
	store_dispatch(&g->store.st);
	g->store.faults = (struct store_faults){ 0 };
	again(g);
	store_dispatch(&g->store.st);
	assert_int_equal(verify(g), 0);
	assert_string_equal(g->kinds, "ccci"); /* in their order, and behind them what was open */
	assert_string_equal(g->last, "{\"n\":3}");
}

static void a_line_that_is_in_the_store_is_not_written_again(void **state)
{
	struct rig *g = *state;

	end_one(g, audit_log_begin(g->log, "anna", "{}"), "{}"); /* written, and nobody told us */
	again(g);
	store_dispatch(&g->store.st);
	assert_int_equal(verify(g), 0);
	assert_string_equal(g->kinds, "c");
}

static void places_are_used_again_and_again(void **state)
{
	struct rig *g = *state;

	for (int i = 0; i < 2 * AUDIT_OPEN_SLOTS; i++) {
		int place = audit_log_begin(g->log, "anna", "{}");

		assert_true(place >= 0);
		end_one(g, place, "{}");
		store_dispatch(&g->store.st);
	}
}

static void more_calls_than_places_have_a_line_when_they_begin(void **state)
{
	struct rig *g = *state;
	char *long_text = test_malloc(AUDIT_OPEN_TEXT_MAX + 3);

	memset(long_text, ' ', AUDIT_OPEN_TEXT_MAX + 2);
	long_text[0] = '{';
	long_text[AUDIT_OPEN_TEXT_MAX + 1] = '}';
	long_text[AUDIT_OPEN_TEXT_MAX + 2] = '\0';
	assert_int_equal(audit_log_begin(g->log, "anna", long_text), -1);
	test_free(long_text);
	for (int i = 0; i < AUDIT_OPEN_SLOTS; i++)
		assert_true(audit_log_begin(g->log, "anna", "{}") >= 0);
	assert_true(audit_log_is_writable(g->log));
	assert_int_equal(audit_log_begin(g->log, "anna", "{}"), -1);
	store_dispatch(&g->store.st);
	assert_int_equal(verify(g), 0);
	assert_string_equal(g->kinds, "bb"); /* began */
}

static void while_the_store_is_full_only_what_has_a_place_may_begin(void **state)
{
	struct rig *g = *state;

	g->store.faults =
		(struct store_faults){ .fail_in = 1, .fail_with = ENOSPC, .fail_on = true };
	for (int i = 0; i < AUDIT_OPEN_SLOTS; i++) {
		assert_true(audit_log_is_writable(g->log));
		end_one(g, audit_log_begin(g->log, "anna", "{}"), "{}");
		store_dispatch(&g->store.st);
	}
	assert_false(audit_log_is_writable(g->log));
	g->store.faults = (struct store_faults){ 0 };
	again(g); /* killed before there was room: nothing is lost */
	store_dispatch(&g->store.st);
	assert_int_equal(verify(g), 0);
	assert_int_equal(g->chain.seq, AUDIT_OPEN_SLOTS);
	assert_true(audit_log_is_writable(g->log));
}

static void a_file_of_another_making_is_not_read(void **state)
{
	struct rig *g = *state;
	int fd;

	g->log = audit_log_free(g->log);
	fd = openat(g->dir_fd, AUDIT_OPEN_FILE, O_RDWR | O_CLOEXEC);
	for (off_t at = 0; at < 3 << 20; at += 4096)
		assert_int_equal(pwrite(fd, "\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1", 16, at), 16);
	(void)fd_close(fd);
	open_log(g);
	append(g, 1);
	assert_int_equal(verify(g), 0);
	assert_string_equal(g->kinds, "c");
}

/* ---- what is old ---- */

static void saw_cut(void *user, int r, const struct journal_row *rows, size_t n, bool more)
{
	struct rig *g = user;
	const char *hash;

	(void)more;
	g->answers++;
	if (r < 0 || n == 0)
		return;
	assert_int_equal(sscanf(rows[0].text, "{\"seq\":%" SCNu64, &g->cut.seq), 1);
	hash = strstr(rows[0].text, "\"hash\":\"");
	assert_non_null(hash);
	assert_int_equal(decode_hex(hash + 8, 2 * HASH_LEN, g->cut.hash, HASH_LEN), HASH_LEN);
}

static void read_cut(struct rig *g)
{
	struct store_journal_filter f = { .kind = AUDIT_CUT_KIND, .newest_first = true };

	g->answers = 0;
	assert_int_equal(store_list_journal(&g->store.st, AUDIT_STREAM, &f, 1, saw_cut, g), 0);
	store_rig_wait(&g->store.st, &g->answers, 1);
}

static void grow_old(void)
{
	int64_t now = clock_wall_ms();

	while (clock_wall_ms() < now + 3)
		;
}

static void old_lines_go_and_the_rest_can_still_be_checked(void **state)
{
	struct rig *g = *state;

	g->retention_ms = 1;
	again(g);
	append(g, 3 * AUDIT_TRIM_LINES / 2);
	grow_old();
	append(g, 1);
	audit_log_trim(g->log);
	for (int i = 0; i < 20; i++) /* in two steps, each with a line of its own before it */
		store_dispatch(&g->store.st);
	read_cut(g);
	assert_true(g->cut.seq >= 3 * AUDIT_TRIM_LINES / 2);
	assert_int_equal(verify(g), 0);
	assert_int_equal(g->tampered, 0);
	g->retention_ms = 0;
	again(g);
	store_dispatch(&g->store.st);
	append(g, 1);
	assert_int_equal(verify(g), 0);
	assert_true(audit_log_is_intact(g->log));
}

static void what_could_not_be_said_is_not_cut(void **state)
{
	struct rig *g = *state;

	g->retention_ms = 1;
	again(g);
	append(g, 5);
	grow_old();
	g->store.faults =
		(struct store_faults){ .fail_in = 1, .fail_with = ENOSPC, .fail_on = true };
	audit_log_trim(g->log);
	for (int i = 0; i < 5; i++)
		store_dispatch(&g->store.st);
	g->store.faults = (struct store_faults){ 0 };
	g->log = audit_log_free(g->log); /* with a cut under way */
	g->retention_ms = 0;
	open_log(g);
	assert_int_equal(verify(g), 0);
	assert_int_equal(g->chain.seq, 5);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lines_are_chained_over_starts),
		TEST(a_call_whose_end_nobody_saw_is_told_after_a_kill),
		TEST(a_line_that_the_store_had_not_taken_is_written_by_the_next_start),
		TEST(a_line_that_is_in_the_store_is_not_written_again),
		TEST(places_are_used_again_and_again),
		TEST(more_calls_than_places_have_a_line_when_they_begin),
		TEST(while_the_store_is_full_only_what_has_a_place_may_begin),
		TEST(a_file_of_another_making_is_not_read),
		TEST(old_lines_go_and_the_rest_can_still_be_checked),
		TEST(what_could_not_be_said_is_not_cut),
		TEST(a_log_whose_end_was_cut_off_is_told_and_never_heals),
		TEST(a_head_that_is_gone_is_told),
		TEST(a_head_that_names_another_line_is_told),
		TEST(a_head_behind_the_log_is_no_reason_to_worry),
		TEST(what_a_full_store_refuses_is_kept_and_written_later_in_order),
		TEST(nothing_may_be_changed_when_too_much_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
