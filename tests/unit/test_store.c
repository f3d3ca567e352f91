/* What the seam promises, asked of each store behind it. */
#include "store/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "check.h"
#include "store_rig.h"

/* ---- comparing ---- */

static void assert_same_key(const struct key_row *a, const struct key_row *b)
{
	assert_string_equal(a->id, b->id);
	assert_memory_equal(a->hash, b->hash, STORE_HASH_LEN);
	assert_string_equal(a->name, b->name);
	assert_string_equal(a->owner, b->owner);
	assert_int_equal(a->role, b->role);
	assert_int_equal(a->created_ms, b->created_ms);
	assert_int_equal(a->expires_ms, b->expires_ms);
	assert_int_equal(a->revoked_ms, b->revoked_ms);
	assert_int_equal(a->last_used_ms, b->last_used_ms);
	assert_int_equal(a->scopes, b->scopes);
	assert_string_equal(a->sandbox_id, b->sandbox_id);
}

/* ---- round trips ---- */

static void see_key(void *user, const struct key_row *row)
{
	struct store_seen *s = user;
	struct key_row want = store_rig_key(row->id);

	if (strcmp(row->id, "k1") == 0)
		want.last_used_ms = 99;
	assert_same_key(row, &want);
	store_rig_note(s, row->id);
}

static void a_key_comes_back_as_it_was_put(void **state)
{
	const struct store *st = store_rig_of(state);
	struct key_row a = store_rig_key("k1"), b = store_rig_key("k2");
	struct store_results done = { .n = 0 };
	struct store_seen seen = { 0 };
	struct err err = { 0 };

	a.last_used_ms = 0;
	assert_int_equal(store_rig_put_key(st, &a), 0);
	assert_int_equal(store_rig_put_key(st, &b), 0);
	assert_int_equal(store_touch_key(st, "k1", 99, store_rig_done, &done), 0);
	assert_int_equal(store_touch_key(st, "k3", 99, store_rig_done, &done), 0);
	assert_int_equal(store_delete_key(st, "k3", store_rig_done, &done), 0);
	store_rig_wait(st, &done.n, 3);
	assert_int_equal(done.r[0], 0);
	assert_int_equal(done.r[1], -ENOENT);
	assert_int_equal(done.r[2], -ENOENT);
	assert_int_equal(store_load_keys(st, see_key, &seen, &err), 0);
	assert_string_equal(seen.ids, "k1 k2 ");

	done.n = 0;
	assert_int_equal(store_delete_key(st, "k1", store_rig_done, &done), 0);
	store_rig_wait(st, &done.n, 1);
	assert_int_equal(done.r[0], 0);
	seen = (struct store_seen){ 0 };
	assert_int_equal(store_load_keys(st, see_key, &seen, &err), 0);
	assert_string_equal(seen.ids, "k2 ");
}

static void two_keys_never_share_a_hash(void **state)
{
	const struct store *st = store_rig_of(state);
	struct key_row a = store_rig_key("k1"), b = store_rig_key("k1");

	b.id = "k2";
	assert_int_equal(store_rig_put_key(st, &a), 0);
	assert_int_equal(store_rig_put_key(st, &b), -EEXIST);
}

static void a_sandbox_comes_back_as_it_was_put_last(void **state)
{
	const struct store *st = store_rig_of(state);
	struct sandbox_row row = store_rig_sandbox("s1");
	struct store_seen seen = { 0 };

	assert_int_equal(store_rig_put_sandbox(st, &row), 0);
	row.state = 6;
	row.is_live = false;
	row.reason = "time is up \xc3\xa4";
	row.flags = 0;
	row.metadata = "{}";
	assert_int_equal(store_rig_put_sandbox(st, &row), 0);
	seen.want = row;
	assert_int_equal(store_get_sandbox(st, "s1", store_rig_see_sandboxes, &seen), 0);
	store_rig_wait(st, &seen.calls, 1);
	assert_int_equal(seen.r, 0);
	assert_int_equal(seen.rows, 1);
	assert_false(seen.more);
	assert_false(store_rig_has_sandbox(st, "s2"));
}

static void absent_texts_are_empty_and_absent_metadata_is_an_object(void **state)
{
	const struct store *st = store_rig_of(state);
	struct sandbox_row row = { .id = "s1" };
	struct store_seen seen = { 0 };

	assert_int_equal(store_rig_put_sandbox(st, &row), 0);
	seen.want = (struct sandbox_row){ "s1", "", "", "", "", "", "", .spec = "", .env = "" };
	seen.want.metadata = "{}";
	assert_int_equal(store_get_sandbox(st, "s1", store_rig_see_sandboxes, &seen), 0);
	store_rig_wait(st, &seen.calls, 1);
	assert_int_equal(seen.rows, 1);
}

static void see_whole_execution(void *user, int r, const struct execution_row *rows, size_t n,
				bool more)
{
	struct execution_row want = store_rig_execution("x1", "s1");
	struct store_seen *s = user;

	s->r = r;
	s->calls++;
	assert_false(more);
	if (n == 0)
		return;
	store_rig_same_execution(rows, &want);
	assert_int_equal(rows->output_len, 3);
	assert_memory_equal(rows->output, "a\0b", 3);
	s->rows++;
}

static void an_execution_comes_back_with_its_output(void **state)
{
	const struct store *st = store_rig_of(state);
	struct sandbox_row sandbox = store_rig_sandbox("s1");
	struct execution_row row = store_rig_execution("x1", "s1");
	struct store_seen seen = { 0 };

	assert_int_equal(store_rig_put_execution(st, &row), -ENOENT); /* no such sandbox */
	assert_int_equal(store_rig_put_sandbox(st, &sandbox), 0);
	row.output_len = 0;
	assert_int_equal(store_rig_put_execution(st, &row), 0);
	row.output_len = 3;
	assert_int_equal(store_rig_put_execution(st, &row), 0);
	assert_int_equal(store_get_execution(st, "x1", see_whole_execution, &seen), 0);
	assert_int_equal(store_get_execution(st, "x2", see_whole_execution, &seen), 0);
	store_rig_wait(st, &seen.calls, 2);
	assert_int_equal(seen.rows, 1);
	assert_int_equal(seen.r, -ENOENT);
}

static void see_text(void *user, int r, const char *text)
{
	struct store_seen *s = user;

	s->calls++;
	s->r = r;
	assert_true((text != NULL) == (r == 0));
	if (text)
		store_rig_note(s, text);
}

static void a_named_text_is_kept(void **state)
{
	const struct store *st = store_rig_of(state);
	struct store_results done = { .n = 0 };
	struct store_seen seen = { 0 };

	assert_int_equal(store_put_meta(st, "colour", "red", store_rig_done, &done), 0);
	assert_int_equal(store_put_meta(st, "colour", "blue", store_rig_done, &done), 0);
	store_rig_wait(st, &done.n, 2);
	assert_int_equal(store_get_meta(st, "colour", see_text, &seen), 0);
	assert_int_equal(store_get_meta(st, "sound", see_text, &seen), 0);
	store_rig_wait(st, &seen.calls, 2);
	assert_string_equal(seen.ids, "blue ");
	assert_int_equal(seen.r, -ENOENT);
}

/* ---- what is refused ---- */

static void a_live_name_is_its_owners_once(void **state)
{
	const struct store *st = store_rig_of(state);
	struct sandbox_row a = store_rig_sandbox("s1"), b = store_rig_sandbox("s2");

	a.name = b.name = "web";
	assert_int_equal(store_rig_put_sandbox(st, &a), 0);
	assert_int_equal(store_rig_put_sandbox(st, &a), 0);
	assert_int_equal(store_rig_put_sandbox(st, &b), -EEXIST);
	assert_false(store_rig_has_sandbox(st, "s2"));
	b.owner = "eve";
	assert_int_equal(store_rig_put_sandbox(st, &b), 0);
	a.is_live = false;
	assert_int_equal(store_rig_put_sandbox(st, &a), 0);
	b.owner = "ada"; /* the name is free again */
	assert_int_equal(store_rig_put_sandbox(st, &b), 0);
	a.is_live = true;
	assert_int_equal(store_rig_put_sandbox(st, &a), -EEXIST);
}

static void metadata_that_is_no_object_is_refused(void **state)
{
	static const char *const bad[] = { "[]", "\"a\"", "1", "null", "{", "{\"a\":}", "x" };
	const struct store *st = store_rig_of(state);
	struct sandbox_row row = store_rig_sandbox("s1");

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		row.metadata = bad[i];
		assert_int_equal(store_rig_put_sandbox(st, &row), -EINVAL);
	}
	assert_false(store_rig_has_sandbox(st, "s1"));
}

static void texts_have_limits(void **state)
{
	const struct store *st = store_rig_of(state);
	struct sandbox_row row = store_rig_sandbox("s1");
	_free_ char *name = store_rig_text(STORE_NAME_MAX + 1),
		    *text = store_rig_text(STORE_TEXT_MAX + 1);

	row.id = name;
	assert_int_equal(store_put_sandbox(st, &row, NULL, NULL), -E2BIG);
	assert_int_equal(store_get_sandbox(st, name, store_rig_see_sandboxes, NULL), -E2BIG);
	name[STORE_NAME_MAX] = '\0';
	row.env = text;
	assert_int_equal(store_put_sandbox(st, &row, NULL, NULL), -E2BIG);
	text[STORE_TEXT_MAX] = '\0';
	assert_int_equal(store_rig_put_sandbox(st, &row), 0);
	assert_true(store_rig_has_sandbox(st, name));
	row.id = "";
	assert_int_equal(store_put_sandbox(st, &row, NULL, NULL), -EINVAL);
	row.id = NULL;
	assert_int_equal(store_put_sandbox(st, &row, NULL, NULL), -EINVAL);
	assert_int_equal(store_delete_sandbox(st, "", NULL, NULL), -EINVAL);
}

static void output_has_a_limit(void **state)
{
	const struct store *st = store_rig_of(state);
	struct sandbox_row sandbox = store_rig_sandbox("s1");
	struct execution_row row = store_rig_execution("x1", "s1");
	_free_ char *text = store_rig_text(STORE_OUTPUT_MAX + 1);

	assert_int_equal(store_rig_put_sandbox(st, &sandbox), 0);
	row.output = text;
	row.output_len = STORE_OUTPUT_MAX + 1;
	assert_int_equal(store_put_execution(st, &row, NULL, NULL), -E2BIG);
	row.output = NULL;
	row.output_len = 1;
	assert_int_equal(store_put_execution(st, &row, NULL, NULL), -EINVAL);
	row.output = text;
	row.output_len = STORE_OUTPUT_MAX;
	assert_int_equal(store_rig_put_execution(st, &row), 0);
}

static void pages_and_filters_have_limits(void **state)
{
	const struct store *st = store_rig_of(state);
	struct store_pair pairs[STORE_FILTER_PAIRS_MAX + 1];
	struct store_sandbox_filter f = { .metadata = pairs };
	struct store_seen seen = { 0 };

	for (size_t i = 0; i <= STORE_FILTER_PAIRS_MAX; i++)
		pairs[i] = (struct store_pair){ "a", "b" };
	assert_int_equal(store_list_sandboxes(st, &f, NULL, 0, store_rig_see_sandboxes, &seen),
			 -EINVAL);
	assert_int_equal(store_list_sandboxes(st, &f, NULL, STORE_PAGE_MAX + 1,
					      store_rig_see_sandboxes, &seen),
			 -EINVAL);
	assert_int_equal(store_list_executions(st, "s", NULL, 0, store_rig_see_executions, &seen),
			 -EINVAL);
	f.n_metadata = STORE_FILTER_PAIRS_MAX + 1;
	assert_int_equal(store_list_sandboxes(st, &f, NULL, 1, store_rig_see_sandboxes, &seen),
			 -E2BIG);
	f.n_metadata = STORE_FILTER_PAIRS_MAX;
	f.owner = f.name = f.template = "x";
	f.states = 1;
	f.live = STORE_ENDED;
	assert_int_equal(store_list_sandboxes(st, &f, &(struct store_cursor){ 1, "a" },
					      STORE_PAGE_MAX, store_rig_see_sandboxes, &seen),
			 0);
	store_rig_wait(st, &seen.calls, 1);
	assert_int_equal(seen.r, 0);
	assert_int_equal(store_delete_old(st, 1, 0, NULL, NULL), -EINVAL);
	assert_int_equal(store_delete_old(st, 1, STORE_DELETE_MAX + 1, NULL, NULL), -EINVAL);
}

/* ---- callbacks ---- */

static void writes_are_called_back_in_order_each_with_its_own_result(void **state)
{
	const struct store *st = store_rig_of(state);
	struct store_results done = { .n = 0 };

	for (int i = 0; i < 300; i++) {
		struct sandbox_row row = store_rig_sandbox("s");
		char id[8];

		assert_int_equal(str_format(id, sizeof(id), "s%d", i), 0);
		row.id = id;
		row.name = i % 10 == 0 ? "web" : "";
		row.metadata = i % 7 == 3 ? "[]" : "{}";
		assert_int_equal(store_put_sandbox(st, &row, store_rig_done, &done), 0);
	}
	assert_int_equal(done.n, 0); /* never from inside the call */
	store_rig_wait(st, &done.n, 300);
	for (int i = 0; i < 300; i++) {
		int want = i % 10 == 0 && i > 0 ? -EEXIST : 0;

		if (i % 7 == 3) /* a check comes before an index */
			want = -EINVAL;
		assert_int_equal(done.r[i], want);
	}
	assert_true(store_rig_has_sandbox(st, "s299"));
	assert_false(store_rig_has_sandbox(st, "s290"));
}

struct chain {
	const struct store *st;
	size_t left, calls;
};

static void put_next(void *user, int r)
{
	struct sandbox_row row = store_rig_sandbox("s");
	struct chain *c = user;

	assert_int_equal(r, 0);
	c->calls++;
	if (c->left-- > 0)
		assert_int_equal(store_put_sandbox(c->st, &row, put_next, c), 0);
}

static void a_callback_may_ask_for_more(void **state)
{
	struct chain c = { .st = store_rig_of(state), .left = 20 };

	put_next(&c, 0);
	store_rig_wait(c.st, &c.calls, 21);
}

static void put_in_vain(void *user, int r)
{
	struct sandbox_row row = store_rig_sandbox("s");
	struct chain *c = user;

	assert_int_equal(r, 0);
	c->calls++;
	assert_int_equal(store_put_sandbox(c->st, &row, put_in_vain, c), -ECANCELED);
	assert_int_equal(store_get_sandbox(c->st, "s", NULL, NULL), -ECANCELED);
}

static void a_store_that_is_being_closed_takes_nothing_more(void **state)
{
	struct store_rig *rig = *state;
	struct sandbox_row row = store_rig_sandbox("s");
	struct chain c = { .st = &rig->st };

	assert_int_equal(store_put_sandbox(&rig->st, &row, put_in_vain, &c), 0);
	store_close(&rig->st);
	assert_int_equal(c.calls, 1);
}

static void nobody_need_be_called_back(void **state)
{
	const struct store *st = store_rig_of(state);
	struct sandbox_row row = store_rig_sandbox("s1");

	assert_int_equal(store_put_sandbox(st, &row, NULL, NULL), 0);
	assert_int_equal(store_get_sandbox(st, "s1", NULL, NULL), 0);
	assert_int_equal(store_flush(st), 0);
	assert_true(store_rig_has_sandbox(st, "s1"));
}

static void a_store_that_can_be_written_to_says_so(void **state)
{
	assert_int_equal(store_rig_probe(store_rig_of(state)), 0);
	assert_int_equal(store_rig_probe(store_rig_of(state)), 0);
}

static void closing_calls_everybody_back(void **state)
{
	struct store_rig *rig = *state;
	struct sandbox_row row = store_rig_sandbox("s1");
	struct store_results done = { .n = 0 };
	struct store_seen seen = { 0 };

	for (int i = 0; i < 50; i++) {
		assert_int_equal(store_put_sandbox(&rig->st, &row, store_rig_done, &done), 0);
		assert_int_equal(
			store_get_execution(&rig->st, "x", store_rig_see_executions, &seen), 0);
	}
	store_close(&rig->st);
	assert_int_equal(done.n, 50);
	assert_int_equal(done.r[49], 0);
	assert_int_equal(seen.calls, 50);
	assert_true(seen.r == -ECANCELED || seen.r == -ENOENT);
	store_close(&rig->st);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_RIG_ON_BOTH(a_key_comes_back_as_it_was_put),
		STORE_RIG_ON_BOTH(two_keys_never_share_a_hash),
		STORE_RIG_ON_BOTH(a_sandbox_comes_back_as_it_was_put_last),
		STORE_RIG_ON_BOTH(absent_texts_are_empty_and_absent_metadata_is_an_object),
		STORE_RIG_ON_BOTH(an_execution_comes_back_with_its_output),
		STORE_RIG_ON_BOTH(a_named_text_is_kept),
		STORE_RIG_ON_BOTH(a_live_name_is_its_owners_once),
		STORE_RIG_ON_BOTH(metadata_that_is_no_object_is_refused),
		STORE_RIG_ON_BOTH(texts_have_limits),
		STORE_RIG_ON_BOTH(output_has_a_limit),
		STORE_RIG_ON_BOTH(pages_and_filters_have_limits),
		STORE_RIG_ON_BOTH(writes_are_called_back_in_order_each_with_its_own_result),
		STORE_RIG_ON_BOTH(a_callback_may_ask_for_more),
		STORE_RIG_ON_BOTH(nobody_need_be_called_back),
		STORE_RIG_ON_BOTH(a_store_that_is_being_closed_takes_nothing_more),
		STORE_RIG_ON_BOTH(a_store_that_can_be_written_to_says_so),
		STORE_RIG_ON_BOTH(closing_calls_everybody_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
