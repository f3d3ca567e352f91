/* Lists, loading at start, and what becomes of the old; asked of each store behind the seam. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "check.h"
#include "store/store.h"
#include "store_rig.h"

static const char *list(const struct store *st, const struct store_sandbox_filter *f,
			struct store_seen *ret)
{
	*ret = (struct store_seen){ 0 };
	assert_int_equal(store_list_sandboxes(st, f, NULL, 100, store_rig_see_sandboxes, ret), 0);
	store_rig_wait(st, &ret->calls, 1);
	assert_int_equal(ret->r, 0);
	return ret->ids;
}

/* ---- lists ---- */

static void put_some(const struct store *st)
{
	static const struct {
		const char *id, *owner, *name, *template, *metadata;
		uint8_t state;
		bool is_live;
		int64_t created_ms;
	} some[] = {
		{ "a", "ada", "", "python", "{\"team\":\"red\"}", 1, true, 10 },
		{ "b", "ada", "web", "node", "{\"team\":\"red\",\"env\":\"it's\"}", 3, true, 20 },
		{ "c", "eve", "", "python", "{\"team\":\"blue\",\"n\":5}", 6, false, 20 },
		{ "d", "eve", "web", "node", "{\"te\\\"am\":\"$.x\"}", 1, true, 30 },
		{ "e", "ada", "web", "python", "{}", 31, false, 40 },
	};

	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		struct sandbox_row row = store_rig_sandbox(some[i].id);

		row.owner = some[i].owner;
		row.name = some[i].name;
		row.template = some[i].template;
		row.metadata = some[i].metadata;
		row.state = some[i].state;
		row.is_live = some[i].is_live;
		row.created_ms = some[i].created_ms;
		row.ended_ms = some[i].is_live ? 0 : some[i].created_ms;
		assert_int_equal(store_rig_put_sandbox(st, &row), 0);
	}
}

static const char *with_metadata(const struct store *st, const char *name, const char *value,
				 struct store_seen *ret)
{
	struct store_pair pair = { name, value };

	return list(st, &(struct store_sandbox_filter){ .metadata = &pair, .n_metadata = 1 }, ret);
}

static void a_list_is_what_all_filters_let_through(void **state)
{
	const struct store *st = store_rig_of(state);
	struct store_pair both[] = { { "team", "red" }, { "env", "it's" } };
	struct store_sandbox_filter f = { 0 };
	struct store_seen seen;

	put_some(st);
	assert_string_equal(list(st, &f, &seen), "e d c b a ");
	f.owner = "ada";
	assert_string_equal(list(st, &f, &seen), "e b a ");
	f.live = STORE_LIVE;
	assert_string_equal(list(st, &f, &seen), "b a ");
	f.template = "node";
	assert_string_equal(list(st, &f, &seen), "b ");
	f = (struct store_sandbox_filter){ .live = STORE_ENDED };
	assert_string_equal(list(st, &f, &seen), "e c ");
	f = (struct store_sandbox_filter){ .states = 1u << 1 | 1u << 31 };
	assert_string_equal(list(st, &f, &seen), "e d a ");
	f = (struct store_sandbox_filter){ .name = "web", .owner = "ada" };
	assert_string_equal(list(st, &f, &seen), "e b ");
	f = (struct store_sandbox_filter){ .name = "" };
	assert_string_equal(list(st, &f, &seen), "c a ");
	f = (struct store_sandbox_filter){ .metadata = both, .n_metadata = 2 };
	assert_string_equal(list(st, &f, &seen), "b ");
}

static void metadata_is_compared_as_text_and_never_as_a_path(void **state)
{
	const struct store *st = store_rig_of(state);
	struct store_seen seen;

	put_some(st);
	assert_string_equal(with_metadata(st, "team", "red", &seen), "b a ");
	assert_string_equal(with_metadata(st, "team", "re", &seen), "");
	assert_string_equal(with_metadata(st, "te\"am", "$.x", &seen), "d ");
	assert_string_equal(with_metadata(st, "$.team", "red", &seen), "");
	assert_string_equal(with_metadata(st, "n", "5", &seen), "");
	assert_string_equal(with_metadata(st, "team' OR 1 --", "red", &seen), "");
}

static void pages_follow_each_other_without_gap_or_repeat(void **state)
{
	const struct store *st = store_rig_of(state);
	struct store_sandbox_filter f = { 0 };
	struct store_cursor c = { 0 };
	struct store_seen seen = { 0 };

	put_some(st);
	assert_int_equal(store_list_sandboxes(st, &f, &c, 2, store_rig_see_sandboxes, &seen), 0);
	store_rig_wait(st, &seen.calls, 1);
	assert_true(seen.more);
	c = (struct store_cursor){ 30, "d" };
	assert_int_equal(store_list_sandboxes(st, &f, &c, 1, store_rig_see_sandboxes, &seen), 0);
	store_rig_wait(st, &seen.calls, 2);
	assert_true(seen.more);
	c = (struct store_cursor){ 20, "c" }; /* b has the same time */
	assert_int_equal(store_list_sandboxes(st, &f, &c, 2, store_rig_see_sandboxes, &seen), 0);
	store_rig_wait(st, &seen.calls, 3);
	assert_false(seen.more);
	assert_string_equal(seen.ids, "e d c b a ");
	c = (struct store_cursor){ 10, "a" };
	assert_int_equal(store_list_sandboxes(st, &f, &c, 2, store_rig_see_sandboxes, &seen), 0);
	store_rig_wait(st, &seen.calls, 4);
	assert_int_equal(seen.rows, 5);
	assert_false(seen.more);
}

static void a_page_of_large_rows_ends_early(void **state)
{
	const struct store *st = store_rig_of(state);
	struct sandbox_row row = store_rig_sandbox("s");
	_free_ char *text = store_rig_text(STORE_TEXT_MAX - 1);
	static const char *const ids[] = { "a", "b", "c", "d" };
	struct store_seen seen;

	row.env = text;
	for (size_t i = 0; i < 4; i++) {
		row.id = ids[i];
		assert_int_equal(store_rig_put_sandbox(st, &row), 0);
	}
	assert_string_equal(list(st, &(struct store_sandbox_filter){ 0 }, &seen), "d c ");
	assert_true(seen.more);
}

static void executions_are_listed_by_sandbox_newest_first(void **state)
{
	const struct store *st = store_rig_of(state);
	struct sandbox_row s1 = store_rig_sandbox("s1"), s2 = store_rig_sandbox("s2");
	static const char *const ids[] = { "x1", "x2", "x3" };
	struct store_seen seen = { 0 };

	assert_int_equal(store_rig_put_sandbox(st, &s1), 0);
	assert_int_equal(store_rig_put_sandbox(st, &s2), 0);
	for (int i = 0; i < 3; i++) {
		struct execution_row row = store_rig_execution(ids[i], "s1");

		row.started_ms = 10 + i;
		assert_int_equal(store_rig_put_execution(st, &row), 0);
	}
	assert_int_equal(store_list_executions(st, "s1", NULL, 2, store_rig_see_executions, &seen),
			 0);
	store_rig_wait(st, &seen.calls, 1);
	assert_string_equal(seen.ids, "x3 x2 ");
	assert_true(seen.more);
	assert_int_equal(store_list_executions(st, "s1", &(struct store_cursor){ 11, "x2" }, 2,
					       store_rig_see_executions, &seen),
			 0);
	store_rig_wait(st, &seen.calls, 2);
	assert_string_equal(seen.ids, "x3 x2 x1 ");
	assert_int_equal(store_list_executions(st, "s2", NULL, 2, store_rig_see_executions, &seen),
			 0);
	store_rig_wait(st, &seen.calls, 3);
	assert_int_equal(seen.r, 0);
	assert_int_equal(seen.rows, 3);
}

/* ---- loading and retention ---- */

static void see_loaded_sandbox(void *user, const struct sandbox_row *row)
{
	assert_true(row->is_live);
	store_rig_note(user, row->id);
}

static void see_loaded_execution(void *user, const struct execution_row *row)
{
	struct execution_row want = store_rig_execution(row->id, "s1");

	store_rig_same_execution(row, &want);
	assert_null(row->output);
	store_rig_note(user, row->id);
}

static void only_what_lives_is_loaded(void **state)
{
	const struct store *st = store_rig_of(state);
	struct sandbox_row s1 = store_rig_sandbox("s1");
	struct execution_row x1 = store_rig_execution("x1", "s1");
	struct execution_row x2 = store_rig_execution("x2", "s1");
	struct store_seen seen = { 0 };
	struct err err = { 0 };

	put_some(st);
	assert_int_equal(store_rig_put_sandbox(st, &s1), 0);
	x2.is_live = false;
	assert_int_equal(store_rig_put_execution(st, &x1), 0);
	assert_int_equal(store_rig_put_execution(st, &x2), 0);
	assert_int_equal(store_load_live_sandboxes(st, see_loaded_sandbox, &seen, &err), 0);
	assert_string_equal(seen.ids, "a b d s1 ");
	assert_int_equal(store_load_live_executions(st, see_loaded_execution, &seen, &err), 0);
	assert_string_equal(seen.ids, "a b d s1 x1 ");
}

static void a_deleted_sandbox_takes_its_executions_with_it(void **state)
{
	const struct store *st = store_rig_of(state);
	struct sandbox_row s1 = store_rig_sandbox("s1");
	struct execution_row x1 = store_rig_execution("x1", "s1");
	struct store_results done = { .n = 0 };
	struct store_seen seen = { 0 };

	assert_int_equal(store_rig_put_sandbox(st, &s1), 0);
	assert_int_equal(store_rig_put_execution(st, &x1), 0);
	assert_int_equal(store_delete_sandbox(st, "s1", store_rig_done, &done), 0);
	assert_int_equal(store_delete_sandbox(st, "s1", store_rig_done, &done), 0);
	store_rig_wait(st, &done.n, 2);
	assert_int_equal(done.r[0], 0);
	assert_int_equal(done.r[1], -ENOENT);
	assert_int_equal(store_get_execution(st, "x1", store_rig_see_executions, &seen), 0);
	store_rig_wait(st, &seen.calls, 1);
	assert_int_equal(seen.r, -ENOENT);
}

static int delete_old(const struct store *st, int64_t cut_ms, uint32_t max)
{
	struct store_results done = { .n = 0 };

	assert_int_equal(store_delete_old(st, cut_ms, max, store_rig_done, &done), 0);
	store_rig_wait(st, &done.n, 1);
	return done.r[0];
}

static void the_old_go_a_few_at_a_time_and_the_living_stay(void **state)
{
	const struct store *st = store_rig_of(state);
	static const char *const ids[] = { "x1", "x2", "x3", "x4" };
	struct store_seen seen;

	put_some(st); /* c and e have ended, at 20 and 40 */
	for (int i = 0; i < 4; i++) {
		struct execution_row row = store_rig_execution(ids[i], i < 3 ? "c" : "a");

		row.is_live = i == 3;
		row.ended_ms = i == 3 ? 0 : 5;
		assert_int_equal(store_rig_put_execution(st, &row), 0);
	}
	assert_int_equal(delete_old(st, 5, 10), 0);
	assert_int_equal(delete_old(st, 21, 2), 2); /* executions go first */
	assert_string_equal(list(st, &(struct store_sandbox_filter){ 0 }, &seen), "e d c b a ");
	assert_int_equal(delete_old(st, 21, 2), 2); /* x3 and c */
	assert_string_equal(list(st, &(struct store_sandbox_filter){ 0 }, &seen), "e d b a ");
	assert_int_equal(delete_old(st, 21, 2), 0);
	assert_int_equal(delete_old(st, INT64_MAX, 100), 1); /* e */
	assert_string_equal(list(st, &(struct store_sandbox_filter){ 0 }, &seen), "d b a ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_RIG_ON_BOTH(a_list_is_what_all_filters_let_through),
		STORE_RIG_ON_BOTH(metadata_is_compared_as_text_and_never_as_a_path),
		STORE_RIG_ON_BOTH(pages_follow_each_other_without_gap_or_repeat),
		STORE_RIG_ON_BOTH(a_page_of_large_rows_ends_early),
		STORE_RIG_ON_BOTH(executions_are_listed_by_sandbox_newest_first),
		STORE_RIG_ON_BOTH(only_what_lives_is_loaded),
		STORE_RIG_ON_BOTH(a_deleted_sandbox_takes_its_executions_with_it),
		STORE_RIG_ON_BOTH(the_old_go_a_few_at_a_time_and_the_living_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
