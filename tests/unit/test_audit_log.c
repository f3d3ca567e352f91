#include "sandbox/audit_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "check.h"
#include "loop/loop.h"
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

		g->bad = audit_check(&g->chain, &rec, rows[i].hash, NULL);
	}
	g->answers++;
}

/* 0: all lines are good, to the head. */
static int verify(struct rig *g)
{
	struct store_journal_filter all = { 0 };
	struct audit_chain head;

	g->chain = (struct audit_chain){ 0 };
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

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lines_are_chained_over_starts),
		TEST(a_log_whose_end_was_cut_off_is_told_and_never_heals),
		TEST(a_head_that_is_gone_is_told),
		TEST(a_head_that_names_another_line_is_told),
		TEST(a_head_behind_the_log_is_no_reason_to_worry),
		TEST(what_a_full_store_refuses_is_kept_and_written_later_in_order),
		TEST(nothing_may_be_changed_when_too_much_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
