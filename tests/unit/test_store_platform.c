/* Objects, logs and usage, asked of each store behind the seam; and that pages of them are found by
 * an index. */
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "check.h"
#include "store/db.h"
#include "store/job.h"
#include "store/migrate.h"
#include "store/read.h"
#include "store/store.h"
#include "store_rig.h"

static int wait_for(const struct store *st, struct store_results *done, int r)
{
	assert_int_equal(r, 0);
	store_rig_wait(st, &done->n, 1);
	return done->r[0];
}

/* ---- objects ---- */

static struct object_row object(const char *kind, const char *id)
{
	return (struct object_row){ kind, id, "ada", "", 7, "{\"a\":1}", 10, 20 };
}

static int put_object(const struct store *st, const struct object_row *row)
{
	struct store_results done = { .n = 0 };

	return wait_for(st, &done, store_put_object(st, row, store_rig_done, &done));
}

static int delete_object(const struct store *st, const char *kind, const char *id)
{
	struct store_results done = { .n = 0 };

	return wait_for(st, &done, store_delete_object(st, kind, id, store_rig_done, &done));
}

static void see_objects(void *user, int r, const struct object_row *rows, size_t n, bool more)
{
	struct store_seen *s = user;

	s->r = r;
	s->more = more;
	s->rows += n;
	for (size_t i = 0; i < n; i++)
		store_rig_note(s, rows[i].id);
	s->calls++;
}

static const char *list_objects(const struct store *st, const struct store_object_filter *f,
				const struct store_cursor *c, uint32_t limit,
				struct store_seen *ret)
{
	*ret = (struct store_seen){ 0 };
	assert_int_equal(store_list_objects(st, f, c, limit, see_objects, ret), 0);
	store_rig_wait(st, &ret->calls, 1);
	assert_int_equal(ret->r, 0);
	return ret->ids;
}

static void see_the_object(void *user, int r, const struct object_row *rows, size_t n, bool more)
{
	struct store_seen *s = user;

	s->r = r;
	s->calls++;
	assert_false(more);
	if (r < 0)
		return;
	assert_int_equal(n, 1);
	assert_string_equal(rows->kind, "template");
	assert_string_equal(rows->id, "t1");
	assert_string_equal(rows->owner, "ada");
	assert_string_equal(rows->name, "web");
	assert_int_equal(rows->state, UINT32_MAX);
	assert_string_equal(rows->text, "{\"a\":2}");
	assert_int_equal(rows->created_ms, 10);
	assert_int_equal(rows->updated_ms, 30);
}

static int get_object(const struct store *st, const char *kind, const char *id)
{
	struct store_seen seen = { 0 };

	assert_int_equal(store_get_object(st, kind, id, see_the_object, &seen), 0);
	store_rig_wait(st, &seen.calls, 1);
	return seen.r;
}

static void an_object_comes_back_as_it_was_put_last(void **state)
{
	const struct store *st = store_rig_of(state);
	struct object_row row = object("template", "t1");

	assert_int_equal(put_object(st, &row), 0);
	row.name = "web";
	row.state = UINT32_MAX;
	row.text = "{\"a\":2}";
	row.updated_ms = 30;
	assert_int_equal(put_object(st, &row), 0);
	assert_int_equal(get_object(st, "template", "t1"), 0);
	assert_int_equal(get_object(st, "template", "t2"), -ENOENT);
	assert_int_equal(get_object(st, "snapshot", "t1"), -ENOENT);
	assert_int_equal(delete_object(st, "snapshot", "t1"), -ENOENT);
	assert_int_equal(delete_object(st, "template", "t1"), 0);
	assert_int_equal(get_object(st, "template", "t1"), -ENOENT);
}

static void a_name_is_the_owners_once_in_a_kind(void **state)
{
	const struct store *st = store_rig_of(state);
	struct object_row a = object("template", "a"), b = object("template", "b");

	a.name = b.name = "web";
	assert_int_equal(put_object(st, &a), 0);
	assert_int_equal(put_object(st, &a), 0); /* itself */
	assert_int_equal(put_object(st, &b), -EEXIST);
	b.owner = "eve";
	assert_int_equal(put_object(st, &b), 0);
	b.id = "c";
	b.kind = "volume";
	assert_int_equal(put_object(st, &b), 0);
	a.id = "d";
	a.name = "";
	assert_int_equal(put_object(st, &a), 0);
	a.id = "e";
	assert_int_equal(put_object(st, &a), 0);
}

static void what_lacks_its_key_is_refused(void **state)
{
	const struct store *st = store_rig_of(state);
	struct object_row row = object("", "a");
	struct journal_row line = { .stream = "" };

	assert_int_equal(store_put_object(st, &row, NULL, NULL), -EINVAL);
	row = object("template", NULL);
	assert_int_equal(store_put_object(st, &row, NULL, NULL), -EINVAL);
	assert_int_equal(store_delete_object(st, "", "a", NULL, NULL), -EINVAL);
	assert_int_equal(store_delete_object(st, "template", "", NULL, NULL), -EINVAL);
	assert_int_equal(store_append(st, &line, NULL, NULL), -EINVAL);
	line = (struct journal_row){ .stream = "audit", .seq = UINT64_MAX };
	assert_int_equal(store_append(st, &line, NULL, NULL), -EINVAL);
	assert_int_equal(store_put_usage(st, &(struct usage_row){ .day = 1 }, NULL, NULL), -EINVAL);
	assert_int_equal(store_trim_journal(st, "audit", 1, 0, NULL, NULL), -EINVAL);
	assert_int_equal(store_trim_usage(st, 1, STORE_DELETE_MAX + 1, NULL, NULL), -EINVAL);
}

static void objects_are_listed_by_kind_owner_and_name_newest_first(void **state)
{
	const struct store *st = store_rig_of(state);
	static const char *const owners[] = { "ada", "eve", "ada", "ada" };
	struct store_object_filter f = { .kind = "template" };
	struct store_seen seen;

	for (int i = 0; i < 4; i++) {
		char id[2] = { (char)('a' + i), '\0' };
		struct object_row row = object("template", id);

		row.owner = owners[i];
		row.name = i < 2 ? "web" : "";
		row.created_ms = i == 3 ? 12 : 10 + i; /* c and d at one time */
		assert_int_equal(put_object(st, &row), 0);
	}
	assert_int_equal(put_object(st, &(struct object_row){ .kind = "pool", .id = "p" }), 0);
	assert_string_equal(list_objects(st, &f, NULL, 10, &seen), "d c b a ");
	assert_string_equal(list_objects(st, &f, NULL, 2, &seen), "d c ");
	assert_true(seen.more);
	assert_string_equal(list_objects(st, &f, &(struct store_cursor){ 12, "d" }, 2, &seen),
			    "c b ");
	assert_string_equal(list_objects(st, &f, &(struct store_cursor){ 11, "b" }, 2, &seen),
			    "a ");
	assert_false(seen.more);
	f.name = "web";
	assert_string_equal(list_objects(st, &f, NULL, 10, &seen), "b a ");
	f.owner = "eve";
	assert_string_equal(list_objects(st, &f, NULL, 10, &seen), "b ");
	f = (struct store_object_filter){ "template", "ada", "" };
	assert_string_equal(list_objects(st, &f, NULL, 10, &seen), "d c ");
	f = (struct store_object_filter){ .kind = "tem%" };
	assert_string_equal(list_objects(st, &f, NULL, 10, &seen), "");
}

static void note_object(void *user, const struct object_row *row)
{
	store_rig_note(user, row->id);
}

static void objects_of_one_kind_are_loaded_oldest_first(void **state)
{
	const struct store *st = store_rig_of(state);
	struct object_row a = object("user", "a"), b = object("user", "b"), c = object("pool", "c");
	struct store_seen seen = { 0 };
	struct err err = { 0 };

	a.created_ms = 50;
	assert_int_equal(put_object(st, &a), 0);
	assert_int_equal(put_object(st, &b), 0);
	assert_int_equal(put_object(st, &c), 0);
	assert_int_equal(store_load_objects(st, "user", note_object, &seen, &err), 0);
	assert_string_equal(seen.ids, "b a ");
}

/* ---- logs ---- */

static int append(const struct store *st, const char *stream, uint64_t seq, int64_t at_ms)
{
	struct store_results done = { .n = 0 };
	struct journal_row row = { stream, seq, at_ms, seq % 2 ? "ada" : "eve", "k", "{}", { 1 } };

	row.hash[31] = (uint8_t)seq;
	return wait_for(st, &done, store_append(st, &row, store_rig_done, &done));
}

static void see_journal(void *user, int r, const struct journal_row *rows, size_t n, bool more)
{
	struct store_seen *s = user;
	char seq[24];

	s->r = r;
	s->more = more;
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(rows[i].hash[31], rows[i].seq);
		assert_string_equal(rows[i].text, "{}");
		assert_int_equal(str_format(seq, sizeof(seq), "%d", (int)rows[i].seq), 0);
		store_rig_note(s, seq);
	}
	s->calls++;
}

static const char *list_journal(const struct store *st, const struct store_journal_filter *f,
				struct store_seen *ret)
{
	*ret = (struct store_seen){ 0 };
	assert_int_equal(store_list_journal(st, "audit", f, 3, see_journal, ret), 0);
	store_rig_wait(st, &ret->calls, 1);
	assert_int_equal(ret->r, 0);
	return ret->ids;
}

static void a_log_takes_each_place_once(void **state)
{
	const struct store *st = store_rig_of(state);

	assert_int_equal(append(st, "audit", 1, 10), 0);
	assert_int_equal(append(st, "audit", 1, 20), -EEXIST);
	assert_int_equal(append(st, "event", 1, 10), 0);
	assert_int_equal(append(st, "audit", INT64_MAX, 10), 0);
}

static void a_log_is_read_in_order_between_places_and_times(void **state)
{
	const struct store *st = store_rig_of(state);
	struct store_seen seen;

	for (uint64_t i = 1; i <= 6; i++)
		assert_int_equal(append(st, "audit", i, (int64_t)(i == 4 ? 30 : i * 10)), 0);
	assert_int_equal(append(st, "event", 7, 10), 0);
#define LIST(...) list_journal(st, &(struct store_journal_filter){ __VA_ARGS__ }, &seen)
	assert_string_equal(LIST(0), "1 2 3 ");
	assert_true(seen.more);
	assert_string_equal(LIST(.after_seq = 3), "4 5 6 ");
	assert_false(seen.more);
	assert_string_equal(LIST(.after_seq = 1, .before_seq = 3), "2 ");
	assert_string_equal(LIST(.newest_first = true), "6 5 4 ");
	assert_string_equal(LIST(.newest_first = true, .before_seq = 4), "3 2 1 ");
	assert_string_equal(LIST(.owner = "eve"), "2 4 6 ");
	assert_string_equal(LIST(.kind = "other"), "");
	assert_string_equal(LIST(.from_ms = 30), "3 4 5 ");
	assert_string_equal(LIST(.from_ms = 31), "5 6 ");
	assert_string_equal(LIST(.from_ms = 61), "");
	assert_string_equal(LIST(.from_ms = 20, .to_ms = 30), "2 ");
	assert_string_equal(LIST(.to_ms = 10), "");
	assert_string_equal(LIST(.to_ms = 99, .after_seq = 4), "5 6 ");
#undef LIST
}

static void note_line(void *user, const struct journal_row *row)
{
	see_journal(user, 0, row, 1, false);
}

static void a_log_is_cut_at_its_beginning_and_goes_on_at_its_end(void **state)
{
	const struct store *st = store_rig_of(state);
	struct store_results done = { .n = 0 };
	struct store_seen seen = { 0 };
	struct err err = { 0 };

	assert_int_equal(store_last_journal(st, "audit", note_line, &seen, &err), 0);
	assert_int_equal(seen.calls, 0);
	for (uint64_t i = 1; i <= 5; i++)
		assert_int_equal(append(st, "audit", i, (int64_t)i * 10), 0);
	assert_int_equal(append(st, "event", 9, 1), 0);
	assert_int_equal(store_last_journal(st, "audit", note_line, &seen, &err), 0);
	assert_string_equal(seen.ids, "5 ");
	assert_int_equal(store_trim_journal(st, "audit", 40, 2, store_rig_done, &done), 0);
	assert_int_equal(store_trim_journal(st, "audit", 40, 2, store_rig_done, &done), 0);
	assert_int_equal(store_trim_journal(st, "audit", 40, 2, store_rig_done, &done), 0);
	store_rig_wait(st, &done.n, 3);
	assert_int_equal(done.r[0], 2);
	assert_int_equal(done.r[1], 1);
	assert_int_equal(done.r[2], 0);
	assert_string_equal(list_journal(st, &(struct store_journal_filter){ 0 }, &seen), "4 5 ");
	seen = (struct store_seen){ 0 };
	assert_int_equal(store_last_journal(st, "event", note_line, &seen, &err), 0);
	assert_string_equal(seen.ids, "9 ");
}

/* ---- usage ---- */

static int put_usage(const struct store *st, const struct usage_row *row)
{
	struct store_results done = { .n = 0 };

	return wait_for(st, &done, store_put_usage(st, row, store_rig_done, &done));
}

struct sums {
	size_t calls, n;
	bool more;
	char text[512];
};

static void see_usage(void *user, int r, const struct usage_sum_row *rows, size_t n, bool more)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct sums *s = user;

	assert_int_equal(r, 0);
	s->calls++;
	s->n = n;
	s->more = more;
	for (size_t i = 0; i < n; i++)
		(void)buf_printf(&b, "%d/%s/%s/%s:%llu,%llu ", rows[i].day, rows[i].owner,
				 rows[i].key_id, rows[i].sandbox_id,
				 (unsigned long long)rows[i].executions,
				 (unsigned long long)rows[i].memory_mib_ms);
	assert_int_equal(str_format(s->text, sizeof(s->text), "%s", buf_str(&b)), 0);
}

static const char *sum(const struct store *st, const struct store_usage_filter *f, struct sums *ret)
{
	*ret = (struct sums){ 0 };
	assert_int_equal(store_list_usage(st, f, 4, see_usage, ret), 0);
	store_rig_wait(st, &ret->calls, 1);
	return ret->text;
}

static void put_days(const struct store *st)
{
	static const struct {
		int32_t day;
		const char *owner, *key, *sandbox;
	} rows[] = { { 10, "ada", "k1", "s1" },
		     { 11, "ada", "k1", "s1" },
		     { 11, "ada", "k2", "s2" },
		     { 11, "eve", "k3", "s3" } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct usage_row row = { rows[i].day,     rows[i].owner,
					 rows[i].key,     rows[i].sandbox,
					 .executions = 5, .memory_byte_ms = 1536 << 10 };

		assert_int_equal(put_usage(st, &row), 0);
		row.executions = 1u << i; /* what is put again replaces, and is not added */
		assert_int_equal(put_usage(st, &row), 0);
	}
}

static void usage_is_summed_by_what_it_is_grouped_by(void **state)
{
	const struct store *st = store_rig_of(state);
	struct sums s;

	put_days(st);
#define SUM(...) sum(st, &(struct store_usage_filter){ __VA_ARGS__ }, &s)
	assert_string_equal(SUM(0), "0///:15,6 "); /* four times a MiB and a half */
	assert_string_equal(SUM(.group = STORE_BY_DAY), "10///:1,1 11///:14,4 ");
	assert_string_equal(SUM(.group = STORE_BY_OWNER), "0/ada//:7,4 0/eve//:8,1 ");
	assert_string_equal(SUM(.group = STORE_BY_KEY, .owner = "ada"), "0//k1/:3,3 0//k2/:4,1 ");
	assert_string_equal(SUM(.group = STORE_BY_SANDBOX, .key_id = "k3"), "0///s3:8,1 ");
	assert_string_equal(SUM(.from_day = 11, .owner = "ada"), "0///:6,3 ");
	assert_string_equal(SUM(.to_day = 11), "0///:1,1 ");
	assert_string_equal(SUM(.from_day = 12), "");
	assert_string_equal(SUM(.group = STORE_BY_DAY | STORE_BY_OWNER, .offset = 1),
			    "11/ada//:6,3 11/eve//:8,1 ");
	assert_int_equal(s.n, 2);
	assert_false(s.more);
#undef SUM
}

static void large_usage_is_summed_exactly(void **state)
{
	const struct store *st = store_rig_of(state);
	struct sums s;

	/* Together more than 64 bits hold in bytes. */
	for (int i = 0; i < 40; i++) {
		char id[8];
		struct usage_row row = { 1, "ada", "k", id, .memory_byte_ms = INT64_MAX - 7 };

		assert_int_equal(str_format(id, sizeof(id), "s%d", i), 0);
		assert_int_equal(put_usage(st, &row), 0);
	}
	/* 40 * (2^63 - 8) / 2^20, rounded down */
	assert_string_equal(sum(st, &(struct store_usage_filter){ 0 }, &s),
			    "0///:0,351843720888319 ");
}

static void note_usage(void *user, const struct usage_row *row)
{
	struct store_seen *s = user;

	s->calls += row->executions;
	store_rig_note(s, row->sandbox_id);
}

static void usage_of_a_day_is_loaded_and_that_of_before_goes(void **state)
{
	const struct store *st = store_rig_of(state);
	struct store_results done = { .n = 0 };
	struct store_seen seen = { 0 };
	struct err err = { 0 };

	put_days(st);
	assert_int_equal(store_load_usage(st, 11, note_usage, &seen, &err), 0);
	assert_string_equal(seen.ids, "s1 s2 s3 ");
	assert_int_equal(seen.calls, 14);
	assert_int_equal(store_trim_usage(st, 11, 10, store_rig_done, &done), 0);
	store_rig_wait(st, &done.n, 1);
	assert_int_equal(done.r[0], 1);
	seen = (struct store_seen){ 0 };
	assert_int_equal(store_load_usage(st, 0, note_usage, &seen, &err), 0);
	assert_string_equal(seen.ids, "s1 s2 s3 ");
}

static void the_last_usage_is_that_of_live_sandboxes_and_of_what_is_kept(void **state)
{
	const struct store *st = store_rig_of(state);
	struct sandbox_row sb = { .id = "s1", .owner = "ada", .is_live = true, .created_ms = 1 };
	struct usage_row kept = { 3, "ada", "", STORE_KEPT, .disk_byte_ms = 1, .until_ms = 7 };
	struct store_results done = { .n = 0 };
	struct store_seen seen = { 0 };
	struct err err = { 0 };

	put_days(st);
	assert_int_equal(wait_for(st, &done, store_put_sandbox(st, &sb, store_rig_done, &done)), 0);
	sb = (struct sandbox_row){ .id = "s2", .owner = "ada", .created_ms = 2 };
	done.n = 0;
	assert_int_equal(wait_for(st, &done, store_put_sandbox(st, &sb, store_rig_done, &done)), 0);
	assert_int_equal(put_usage(st, &kept), 0);
	kept.owner = "eve"; /* another's, on the same day */
	assert_int_equal(put_usage(st, &kept), 0);
	assert_int_equal(store_load_last_usage(st, note_usage, &seen, &err), 0);
	assert_string_equal(seen.ids, "kept kept s1 ");
	assert_int_equal(seen.calls, 2); /* of its second day alone */
}

static void an_execution_and_what_it_used_are_one_write(void **state)
{
	const struct store *st = store_rig_of(state);
	struct execution_row x = { .id = "x1", .sandbox_id = "gone", .owner = "ada" };
	struct usage_row used = { 10, "ada", "k", "gone", .executions = 3 };
	struct store_results done = { .n = 0 };
	struct sums s;

	/* A sandbox that is gone has used it all the same. */
	assert_int_equal(store_end_execution(st, &x, &used, store_rig_done, &done), 0);
	store_rig_wait(st, &done.n, 1);
	assert_int_equal(done.r[0], -ENOENT);
	assert_string_equal(sum(st, &(struct store_usage_filter){ 0 }, &s), "0///:3,0 ");
	used.sandbox_id = "";
	assert_int_equal(store_end_execution(st, &x, &used, NULL, NULL), -EINVAL);
}

/* ---- plans ---- */

/* The statement that a job becomes, with its values in it. */
static int note_sql(unsigned what, void *user, void *stmt, void *text)
{
	char *sql = sqlite3_expanded_sql(stmt);

	(void)what;
	(void)text;
	assert_non_null(sql);
	assert_int_equal(str_format(user, 2048, "EXPLAIN QUERY PLAN %s", sql), 0);
	sqlite3_free(sql);
	return 0;
}

/* "SEARCH ... USING INDEX ..." and no sorting. */
static void assert_uses(struct db *c, struct store_job *job, const char *index)
{
	_cleanup_(job_free_p) struct store_job *owned = job;
	_cleanup_(db_finalize_p) sqlite3_stmt *stmt = NULL;
	char sql[2048] = "";
	bool found = false;

	assert_int_equal(sqlite3_trace_v2(c->db, SQLITE_TRACE_STMT, note_sql, sql), SQLITE_OK);
	assert_int_equal(read_query(c, owned), 0);
	assert_int_equal(sqlite3_trace_v2(c->db, 0, NULL, NULL), SQLITE_OK);
	assert_int_equal(db_prepare(c, sql, &stmt), 0);
	while (sqlite3_step(stmt) == SQLITE_ROW) {
		const char *step = (const char *)sqlite3_column_text(stmt, 3);

		if (strstr(step, "SCAN") || strstr(step, "TEMP B-TREE FOR ORDER"))
			fail_msg("%s: %s", sql, step);
		if (strstr(step, index) && strstr(step, "SEARCH"))
			found = true;
	}
	if (!found)
		fail_msg("%s: not by %s", sql, index);
}

static struct store_job *page(enum job_kind kind, const struct store_cursor *c)
{
	struct store_job *job = job_create(kind, (union job_cb){ NULL }, NULL);

	assert_non_null(job);
	assert_int_equal(job_set_page(job, c, 100), 0);
	return job;
}

static struct store_job *objects(const char *owner, const char *name, const struct store_cursor *c)
{
	struct store_job *job = page(JOB_LIST_OBJECTS, c);

	assert_int_equal(
		job_set_objects(job, &(struct store_object_filter){ "template", owner, name }), 0);
	return job;
}

static struct store_job *lines(const struct store_journal_filter *f)
{
	struct store_job *job = page(JOB_LIST_JOURNAL, NULL);

	assert_int_equal(job_set_space(job, "audit"), 0);
	assert_int_equal(job_set_log(job, f), 0);
	return job;
}

static void pages_are_found_by_an_index_and_never_sorted(void **state)
{
	const struct store_cursor at = { 10, "x" };
	_cleanup_(db_close_p) struct db *c = NULL;
	const struct migration *list;
	struct store_job *job;
	struct err err = { 0 };
	size_t n;

	(void)state;
	assert_int_equal(db_open(NULL, CONN_MEMORY, &c, &err), 0);
	list = migrate_list(&n);
	assert_int_equal(migrate_run(c, list, n, &err), 0);
	assert_uses(c, objects(NULL, NULL, NULL), "objects_by_time");
	assert_uses(c, objects(NULL, NULL, &at), "objects_by_time");
	assert_uses(c, objects("ada", NULL, NULL), "objects_by_owner");
	assert_uses(c, objects("ada", NULL, &at), "objects_by_owner");
	assert_uses(c, lines(&(struct store_journal_filter){ 0 }), "PRIMARY KEY");
	assert_uses(c, lines(&(struct store_journal_filter){ .after_seq = 9 }), "PRIMARY KEY");
	assert_uses(c, lines(&(struct store_journal_filter){ .from_ms = 9, .to_ms = 20 }),
		    "journal_by_time");
	assert_uses(c, lines(&(struct store_journal_filter){ .owner = "ada", .before_seq = 9 }),
		    "journal_by_owner");
	job = page(JOB_LIST_EXECUTIONS, &at);
	assert_int_equal(job_set_id(job, "s1"), 0);
	assert_uses(c, job, "executions_by_sandbox");
	job = page(JOB_LIST_SANDBOXES, &at);
	assert_int_equal(job_set_filter(job, &(struct store_sandbox_filter){ .owner = "ada" }), 0);
	assert_uses(c, job, "sandboxes_by_owner");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_RIG_ON_BOTH(an_object_comes_back_as_it_was_put_last),
		STORE_RIG_ON_BOTH(a_name_is_the_owners_once_in_a_kind),
		STORE_RIG_ON_BOTH(what_lacks_its_key_is_refused),
		STORE_RIG_ON_BOTH(objects_are_listed_by_kind_owner_and_name_newest_first),
		STORE_RIG_ON_BOTH(objects_of_one_kind_are_loaded_oldest_first),
		STORE_RIG_ON_BOTH(a_log_takes_each_place_once),
		STORE_RIG_ON_BOTH(a_log_is_read_in_order_between_places_and_times),
		STORE_RIG_ON_BOTH(a_log_is_cut_at_its_beginning_and_goes_on_at_its_end),
		STORE_RIG_ON_BOTH(usage_is_summed_by_what_it_is_grouped_by),
		STORE_RIG_ON_BOTH(large_usage_is_summed_exactly),
		STORE_RIG_ON_BOTH(usage_of_a_day_is_loaded_and_that_of_before_goes),
		STORE_RIG_ON_BOTH(the_last_usage_is_that_of_live_sandboxes_and_of_what_is_kept),
		STORE_RIG_ON_BOTH(an_execution_and_what_it_used_are_one_write),
		cmocka_unit_test(pages_are_found_by_an_index_and_never_sorted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
