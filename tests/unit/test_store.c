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

static int open_disk(void **state)
{
	struct store_rig *rig = malloc(sizeof(*rig));

	assert_non_null(rig);
	store_rig_dir(rig);
	store_rig_open(rig);
	*state = rig;
	return 0;
}

static int open_memory(void **state)
{
	struct store_rig *rig = malloc(sizeof(*rig));

	assert_non_null(rig);
	store_rig_open_memory(rig);
	*state = rig;
	return 0;
}

static int end(void **state)
{
	store_rig_end(*state);
	free(*state);
	return 0;
}

static const struct store *store_of(void **state)
{
	struct store_rig *rig = *state;

	return &rig->st;
}

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
}

static void assert_same_sandbox(const struct sandbox_row *a, const struct sandbox_row *b)
{
	assert_string_equal(a->id, b->id);
	assert_string_equal(a->owner, b->owner);
	assert_string_equal(a->name, b->name);
	assert_string_equal(a->box_id, b->box_id);
	assert_string_equal(a->template, b->template);
	assert_string_equal(a->reason, b->reason);
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->level, b->level);
	assert_int_equal(a->is_live, b->is_live);
	assert_int_equal(a->flags, b->flags);
	assert_string_equal(a->spec, b->spec);
	assert_string_equal(a->env, b->env);
	assert_string_equal(a->metadata, b->metadata);
	assert_int_equal(a->created_ms, b->created_ms);
	assert_int_equal(a->updated_ms, b->updated_ms);
	assert_int_equal(a->ended_ms, b->ended_ms);
	assert_int_equal(a->expires_ms, b->expires_ms);
	assert_int_equal(a->remaining_ms, b->remaining_ms);
	assert_int_equal(a->timeout_ms, b->timeout_ms);
	assert_int_equal(a->idle_ms, b->idle_ms);
}

static void assert_same_execution(const struct execution_row *a, const struct execution_row *b)
{
	assert_string_equal(a->id, b->id);
	assert_string_equal(a->sandbox_id, b->sandbox_id);
	assert_string_equal(a->owner, b->owner);
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->is_live, b->is_live);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->guest_id, b->guest_id);
	assert_int_equal(a->exit_code, b->exit_code);
	assert_int_equal(a->signal, b->signal);
	assert_string_equal(a->reason, b->reason);
	assert_int_equal(a->started_ms, b->started_ms);
	assert_int_equal(a->ended_ms, b->ended_ms);
	assert_true(a->wall_us == b->wall_us && a->cpu_us == b->cpu_us);
	assert_true(a->peak_bytes == b->peak_bytes && a->output_bytes == b->output_bytes);
	assert_true(a->output_start == b->output_start);
	assert_string_equal(a->content, b->content);
}

struct seen {
	size_t calls, rows;
	int r;
	bool more;
	struct sandbox_row want; /* of the last row */
	char ids[1024];          /* of all rows: "b a " */
};

static void note_id(struct seen *s, const char *id)
{
	size_t at = strlen(s->ids);

	assert_int_equal(str_format(s->ids + at, sizeof(s->ids) - at, "%s ", id), 0);
	s->rows++;
}

static void see_sandboxes(void *user, int r, const struct sandbox_row *rows, size_t n, bool more)
{
	struct seen *s = user;

	for (size_t i = 0; i < n; i++)
		note_id(s, rows[i].id);
	if (n > 0 && s->want.id)
		assert_same_sandbox(&rows[n - 1], &s->want);
	s->r = r;
	s->more = more;
	s->calls++;
}

static void see_executions(void *user, int r, const struct execution_row *rows, size_t n, bool more)
{
	struct seen *s = user;

	for (size_t i = 0; i < n; i++) {
		note_id(s, rows[i].id);
		assert_null(rows[i].output);
		assert_int_equal(rows[i].output_len, 0);
	}
	s->r = r;
	s->more = more;
	s->calls++;
}

static const char *list(const struct store *st, const struct store_sandbox_filter *f,
			struct seen *ret)
{
	*ret = (struct seen){ 0 };
	assert_int_equal(store_list_sandboxes(st, f, NULL, 100, see_sandboxes, ret), 0);
	store_rig_wait(st, &ret->calls, 1);
	assert_int_equal(ret->r, 0);
	return ret->ids;
}

/* ---- round trips ---- */

static void see_key(void *user, const struct key_row *row)
{
	struct seen *s = user;
	struct key_row want = store_rig_key(row->id);

	want.last_used_ms = row->last_used_ms;
	assert_same_key(row, &want);
	note_id(s, row->id);
}

static void a_key_comes_back_as_it_was_put(void **state)
{
	const struct store *st = store_of(state);
	struct key_row a = store_rig_key("k1"), b = store_rig_key("k2");
	struct store_results done = { .n = 0 };
	struct seen seen = { 0 };
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
	seen = (struct seen){ 0 };
	assert_int_equal(store_load_keys(st, see_key, &seen, &err), 0);
	assert_string_equal(seen.ids, "k2 ");
}

static void two_keys_never_share_a_hash(void **state)
{
	const struct store *st = store_of(state);
	struct key_row a = store_rig_key("k1"), b = store_rig_key("k1");

	b.id = "k2";
	assert_int_equal(store_rig_put_key(st, &a), 0);
	assert_int_equal(store_rig_put_key(st, &b), -EEXIST);
}

static void a_sandbox_comes_back_as_it_was_put_last(void **state)
{
	const struct store *st = store_of(state);
	struct sandbox_row row = store_rig_sandbox("s1");
	struct seen seen = { 0 };

	assert_int_equal(store_rig_put_sandbox(st, &row), 0);
	row.state = 6;
	row.is_live = false;
	row.reason = "time is up \xc3\xa4";
	row.flags = 0;
	row.metadata = "{}";
	assert_int_equal(store_rig_put_sandbox(st, &row), 0);
	seen.want = row;
	assert_int_equal(store_get_sandbox(st, "s1", see_sandboxes, &seen), 0);
	store_rig_wait(st, &seen.calls, 1);
	assert_int_equal(seen.r, 0);
	assert_int_equal(seen.rows, 1);
	assert_false(seen.more);
	assert_false(store_rig_has_sandbox(st, "s2"));
}

static void absent_texts_are_empty_and_absent_metadata_is_an_object(void **state)
{
	const struct store *st = store_of(state);
	struct sandbox_row row = { .id = "s1" };
	struct seen seen = { 0 };

	assert_int_equal(store_rig_put_sandbox(st, &row), 0);
	seen.want = (struct sandbox_row){ "s1", "", "", "", "", "", .spec = "", .env = "" };
	seen.want.metadata = "{}";
	assert_int_equal(store_get_sandbox(st, "s1", see_sandboxes, &seen), 0);
	store_rig_wait(st, &seen.calls, 1);
	assert_int_equal(seen.rows, 1);
}

static void see_whole_execution(void *user, int r, const struct execution_row *rows, size_t n,
				bool more)
{
	struct execution_row want = store_rig_execution("x1", "s1");
	struct seen *s = user;

	s->r = r;
	s->calls++;
	assert_false(more);
	if (n == 0)
		return;
	assert_same_execution(rows, &want);
	assert_int_equal(rows->output_len, 3);
	assert_memory_equal(rows->output, "a\0b", 3);
	s->rows++;
}

static void an_execution_comes_back_with_its_output(void **state)
{
	const struct store *st = store_of(state);
	struct sandbox_row sandbox = store_rig_sandbox("s1");
	struct execution_row row = store_rig_execution("x1", "s1");
	struct seen seen = { 0 };

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
	struct seen *s = user;

	s->calls++;
	s->r = r;
	assert_true((text != NULL) == (r == 0));
	if (text)
		note_id(s, text);
}

static void a_named_text_is_kept(void **state)
{
	const struct store *st = store_of(state);
	struct store_results done = { .n = 0 };
	struct seen seen = { 0 };

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
	const struct store *st = store_of(state);
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
	const struct store *st = store_of(state);
	struct sandbox_row row = store_rig_sandbox("s1");

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		row.metadata = bad[i];
		assert_int_equal(store_rig_put_sandbox(st, &row), -EINVAL);
	}
	assert_false(store_rig_has_sandbox(st, "s1"));
}

static char *text_of(size_t n)
{
	char *text = malloc(n + 1);

	assert_non_null(text);
	memset(text, 'x', n);
	text[n] = '\0';
	return text;
}

static void texts_have_limits(void **state)
{
	const struct store *st = store_of(state);
	struct sandbox_row row = store_rig_sandbox("s1");
	_free_ char *name = text_of(STORE_NAME_MAX + 1), *text = text_of(STORE_TEXT_MAX + 1);

	row.id = name;
	assert_int_equal(store_put_sandbox(st, &row, NULL, NULL), -E2BIG);
	assert_int_equal(store_get_sandbox(st, name, see_sandboxes, NULL), -E2BIG);
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
	const struct store *st = store_of(state);
	struct sandbox_row sandbox = store_rig_sandbox("s1");
	struct execution_row row = store_rig_execution("x1", "s1");
	_free_ char *text = text_of(STORE_OUTPUT_MAX + 1);

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
	const struct store *st = store_of(state);
	struct store_pair pairs[STORE_FILTER_PAIRS_MAX + 1];
	struct store_sandbox_filter f = { .metadata = pairs };
	struct seen seen = { 0 };

	for (size_t i = 0; i <= STORE_FILTER_PAIRS_MAX; i++)
		pairs[i] = (struct store_pair){ "a", "b" };
	assert_int_equal(store_list_sandboxes(st, &f, NULL, 0, see_sandboxes, &seen), -EINVAL);
	assert_int_equal(
		store_list_sandboxes(st, &f, NULL, STORE_PAGE_MAX + 1, see_sandboxes, &seen),
		-EINVAL);
	assert_int_equal(store_list_executions(st, "s", NULL, 0, see_executions, &seen), -EINVAL);
	f.n_metadata = STORE_FILTER_PAIRS_MAX + 1;
	assert_int_equal(store_list_sandboxes(st, &f, NULL, 1, see_sandboxes, &seen), -E2BIG);
	f.n_metadata = STORE_FILTER_PAIRS_MAX;
	f.owner = f.name = f.template = "x";
	f.states = 1;
	f.live = STORE_ENDED;
	assert_int_equal(store_list_sandboxes(st, &f, &(struct store_cursor){ 1, "a" },
					      STORE_PAGE_MAX, see_sandboxes, &seen),
			 0);
	store_rig_wait(st, &seen.calls, 1);
	assert_int_equal(seen.r, 0);
	assert_int_equal(store_delete_old(st, 1, 0, NULL, NULL), -EINVAL);
	assert_int_equal(store_delete_old(st, 1, STORE_DELETE_MAX + 1, NULL, NULL), -EINVAL);
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
				 struct seen *ret)
{
	struct store_pair pair = { name, value };

	return list(st, &(struct store_sandbox_filter){ .metadata = &pair, .n_metadata = 1 }, ret);
}

static void a_list_is_what_all_filters_let_through(void **state)
{
	const struct store *st = store_of(state);
	struct store_pair both[] = { { "team", "red" }, { "env", "it's" } };
	struct store_sandbox_filter f = { 0 };
	struct seen seen;

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
	const struct store *st = store_of(state);
	struct seen seen;

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
	const struct store *st = store_of(state);
	struct store_sandbox_filter f = { 0 };
	struct store_cursor c = { 0 };
	struct seen seen = { 0 };

	put_some(st);
	assert_int_equal(store_list_sandboxes(st, &f, &c, 2, see_sandboxes, &seen), 0);
	store_rig_wait(st, &seen.calls, 1);
	assert_true(seen.more);
	c = (struct store_cursor){ 30, "d" };
	assert_int_equal(store_list_sandboxes(st, &f, &c, 1, see_sandboxes, &seen), 0);
	store_rig_wait(st, &seen.calls, 2);
	assert_true(seen.more);
	c = (struct store_cursor){ 20, "c" }; /* b has the same time */
	assert_int_equal(store_list_sandboxes(st, &f, &c, 2, see_sandboxes, &seen), 0);
	store_rig_wait(st, &seen.calls, 3);
	assert_false(seen.more);
	assert_string_equal(seen.ids, "e d c b a ");
	c = (struct store_cursor){ 10, "a" };
	assert_int_equal(store_list_sandboxes(st, &f, &c, 2, see_sandboxes, &seen), 0);
	store_rig_wait(st, &seen.calls, 4);
	assert_int_equal(seen.rows, 5);
	assert_false(seen.more);
}

static void a_page_of_large_rows_ends_early(void **state)
{
	const struct store *st = store_of(state);
	struct sandbox_row row = store_rig_sandbox("s");
	_free_ char *text = text_of(STORE_TEXT_MAX - 1);
	static const char *const ids[] = { "a", "b", "c", "d" };
	struct seen seen;

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
	const struct store *st = store_of(state);
	struct sandbox_row s1 = store_rig_sandbox("s1"), s2 = store_rig_sandbox("s2");
	static const char *const ids[] = { "x1", "x2", "x3" };
	struct seen seen = { 0 };

	assert_int_equal(store_rig_put_sandbox(st, &s1), 0);
	assert_int_equal(store_rig_put_sandbox(st, &s2), 0);
	for (int i = 0; i < 3; i++) {
		struct execution_row row = store_rig_execution(ids[i], "s1");

		row.started_ms = 10 + i;
		assert_int_equal(store_rig_put_execution(st, &row), 0);
	}
	assert_int_equal(store_list_executions(st, "s1", NULL, 2, see_executions, &seen), 0);
	store_rig_wait(st, &seen.calls, 1);
	assert_string_equal(seen.ids, "x3 x2 ");
	assert_true(seen.more);
	assert_int_equal(store_list_executions(st, "s1", &(struct store_cursor){ 11, "x2" }, 2,
					       see_executions, &seen),
			 0);
	store_rig_wait(st, &seen.calls, 2);
	assert_string_equal(seen.ids, "x3 x2 x1 ");
	assert_int_equal(store_list_executions(st, "s2", NULL, 2, see_executions, &seen), 0);
	store_rig_wait(st, &seen.calls, 3);
	assert_int_equal(seen.r, 0);
	assert_int_equal(seen.rows, 3);
}

/* ---- loading and retention ---- */

static void see_loaded_sandbox(void *user, const struct sandbox_row *row)
{
	assert_true(row->is_live);
	note_id(user, row->id);
}

static void see_loaded_execution(void *user, const struct execution_row *row)
{
	struct execution_row want = store_rig_execution(row->id, "s1");

	assert_same_execution(row, &want);
	assert_null(row->output);
	note_id(user, row->id);
}

static void only_what_lives_is_loaded(void **state)
{
	const struct store *st = store_of(state);
	struct sandbox_row s1 = store_rig_sandbox("s1");
	struct execution_row x1 = store_rig_execution("x1", "s1");
	struct execution_row x2 = store_rig_execution("x2", "s1");
	struct seen seen = { 0 };
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
	const struct store *st = store_of(state);
	struct sandbox_row s1 = store_rig_sandbox("s1");
	struct execution_row x1 = store_rig_execution("x1", "s1");
	struct store_results done = { .n = 0 };
	struct seen seen = { 0 };

	assert_int_equal(store_rig_put_sandbox(st, &s1), 0);
	assert_int_equal(store_rig_put_execution(st, &x1), 0);
	assert_int_equal(store_delete_sandbox(st, "s1", store_rig_done, &done), 0);
	assert_int_equal(store_delete_sandbox(st, "s1", store_rig_done, &done), 0);
	store_rig_wait(st, &done.n, 2);
	assert_int_equal(done.r[0], 0);
	assert_int_equal(done.r[1], -ENOENT);
	assert_int_equal(store_get_execution(st, "x1", see_whole_execution, &seen), 0);
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
	const struct store *st = store_of(state);
	static const char *const ids[] = { "x1", "x2", "x3", "x4" };
	struct seen seen;

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

/* ---- callbacks ---- */

static void writes_are_called_back_in_order_each_with_its_own_result(void **state)
{
	const struct store *st = store_of(state);
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
	struct chain c = { .st = store_of(state), .left = 20 };

	put_next(&c, 0);
	store_rig_wait(c.st, &c.calls, 21);
}

static void nobody_need_be_called_back(void **state)
{
	const struct store *st = store_of(state);
	struct sandbox_row row = store_rig_sandbox("s1");

	assert_int_equal(store_put_sandbox(st, &row, NULL, NULL), 0);
	assert_int_equal(store_get_sandbox(st, "s1", NULL, NULL), 0);
	assert_int_equal(store_flush(st), 0);
	assert_true(store_rig_has_sandbox(st, "s1"));
}

static void a_store_that_can_be_written_to_says_so(void **state)
{
	assert_int_equal(store_rig_probe(store_of(state)), 0);
	assert_int_equal(store_rig_probe(store_of(state)), 0);
}

static void closing_calls_everybody_back(void **state)
{
	struct store_rig *rig = *state;
	struct sandbox_row row = store_rig_sandbox("s1");
	struct store_results done = { .n = 0 };
	struct seen seen = { 0 };

	for (int i = 0; i < 50; i++) {
		assert_int_equal(store_put_sandbox(&rig->st, &row, store_rig_done, &done), 0);
		assert_int_equal(store_get_execution(&rig->st, "x", see_executions, &seen), 0);
	}
	store_close(&rig->st);
	assert_int_equal(done.n, 50);
	assert_int_equal(done.r[49], 0);
	assert_int_equal(seen.calls, 50);
	assert_true(seen.r == -ECANCELED || seen.r == -ENOENT);
	store_close(&rig->st);
}

#define ON(where, test)                                              \
	{                                                            \
#test " (" #where ")", test, open_##where, end, NULL \
	}
#define ON_BOTH(test) ON(disk, test), ON(memory, test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(a_key_comes_back_as_it_was_put),
		ON_BOTH(two_keys_never_share_a_hash),
		ON_BOTH(a_sandbox_comes_back_as_it_was_put_last),
		ON_BOTH(absent_texts_are_empty_and_absent_metadata_is_an_object),
		ON_BOTH(an_execution_comes_back_with_its_output),
		ON_BOTH(a_named_text_is_kept),
		ON_BOTH(a_live_name_is_its_owners_once),
		ON_BOTH(metadata_that_is_no_object_is_refused),
		ON_BOTH(texts_have_limits),
		ON_BOTH(output_has_a_limit),
		ON_BOTH(pages_and_filters_have_limits),
		ON_BOTH(a_list_is_what_all_filters_let_through),
		ON_BOTH(metadata_is_compared_as_text_and_never_as_a_path),
		ON_BOTH(pages_follow_each_other_without_gap_or_repeat),
		ON_BOTH(a_page_of_large_rows_ends_early),
		ON_BOTH(executions_are_listed_by_sandbox_newest_first),
		ON_BOTH(only_what_lives_is_loaded),
		ON_BOTH(a_deleted_sandbox_takes_its_executions_with_it),
		ON_BOTH(the_old_go_a_few_at_a_time_and_the_living_stay),
		ON_BOTH(writes_are_called_back_in_order_each_with_its_own_result),
		ON_BOTH(a_callback_may_ask_for_more),
		ON_BOTH(nobody_need_be_called_back),
		ON_BOTH(a_store_that_can_be_written_to_says_so),
		ON_BOTH(closing_calls_everybody_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
