/* What the control plane reads of foreign texts: versions, filters, and what is remembered. */
#include "check.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "e2b/client.h"
#include "e2b/filter.h"
#include "e2b/note.h"
#include "sandbox/lifecycle.h"
#include "json/jw.h"

/* ---- versions ---- */

static void generations_that_are_known_pass_and_others_are_named(void **state)
{
	static const struct {
		const char *agent, *package, *named; /* named NULL: it passes */
	} rows[] = {
		{ "e2b-js-sdk/2.51.0", NULL, NULL },
		{ "e2b-js-sdk/1.13.2", "1.13.2", NULL },
		{ "e2b-js-sdk/2.49.0 e2b-cli/9.19.0", NULL, NULL },
		{ "e2b-python-sdk/2.34.0", NULL, NULL },
		{ "curl/8.0", NULL, NULL },
		{ NULL, NULL, NULL },
		{ "", "", NULL },
		{ "node", "2.8.4", NULL },
		{ "e2b-js-sdk/3.0.0", NULL, "3.0.0" },
		{ "e2b-js-sdk/10.2.1 e2b-cli/2.0.0", NULL, "10.2.1" },
		{ "e2b-python-sdk/0.17.2", NULL, "0.17.2" },
		{ "node", "0.16.1", "0.16.1" },
		{ "e2b-js-sdk/3", NULL, "3" },
		{ "e2b-js-sdk/", NULL, NULL },
		{ "e2b-js-sdk/next", NULL, NULL },
		{ "e2b-js-sdk/99999999999999999999.1", NULL, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err err = { 0 };
		int r = client_check(rows[i].agent, rows[i].package, &err);

		assert_int_equal(r, rows[i].named ? -EPROTONOSUPPORT : 0);
		if (rows[i].named)
			assert_non_null(strstr(err.text, rows[i].named));
	}
}

/* ---- filters ---- */

static int filter(const char *text, struct arena *a, struct sandbox_pair *pairs, size_t *n)
{
	*n = 99;
	return filter_pairs(text, a, pairs, n);
}

static void pairs_are_decoded_twice(void **state)
{
	struct sandbox_pair pairs[FILTER_PAIRS_MAX];
	struct arena *a = arena_create(1 << 20);
	size_t n;

	(void)state;
	assert_int_equal(filter("a%2520b=c%2526d%253De&x=", a, pairs, &n), 0);
	assert_int_equal(n, 2);
	assert_string_equal(pairs[0].name, "a b");
	assert_string_equal(pairs[0].value, "c&d=e");
	assert_string_equal(pairs[1].name, "x");
	assert_string_equal(pairs[1].value, "");
	assert_int_equal(filter("team=red", a, pairs, &n), 0);
	assert_string_equal(pairs[0].value, "red");
	assert_int_equal(filter("", a, pairs, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(filter("&&a=1&", a, pairs, &n), 0);
	assert_int_equal(n, 1);
	(void)arena_free(a);
}

static void what_is_no_filter_is_refused(void **state)
{
	static const char *const bad[] = { "a", "=b", "a=1&b", "%", "%zz=1", "a=%25", "a%2500=b" };
	struct sandbox_pair pairs[FILTER_PAIRS_MAX];
	struct arena *a = arena_create(1 << 20), *small = arena_create(8);
	struct buf many = { 0 };
	size_t n;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(filter(bad[i], a, pairs, &n), -EINVAL);
	for (unsigned i = 0; i < FILTER_PAIRS_MAX; i++)
		assert_int_equal(buf_printf(&many, "k%u=v&", i), 0);
	assert_int_equal(filter(buf_str(&many), a, pairs, &n), 0);
	assert_int_equal(n, FILTER_PAIRS_MAX);
	assert_int_equal(buf_puts(&many, "one=more"), 0);
	assert_int_equal(filter(buf_str(&many), a, pairs, &n), -E2BIG);
	assert_int_equal(filter("a-long-name=value", small, pairs, &n), -ENOMEM);
	buf_done(&many);
	(void)arena_free(a);
	(void)arena_free(small);
}

/* ---- what is remembered ---- */

struct noted {
	struct arena *arena;
	struct buf note;
	struct err err;
};

static struct noted note_of(const char *network, int internet)
{
	struct noted n = { .arena = arena_create(1 << 20) };
	struct note note = { .template = "base", .internet = internet };
	struct jv_doc *doc = NULL;

	assert_int_equal(jv_parse(network, strlen(network), 1 << 20, &doc, NULL), 0);
	note.network = jv_root(doc);
	(void)note_write(&note, n.arena, &n.note, &n.err);
	(void)jv_free(doc);
	return n;
}

static void noted_done(struct noted *n)
{
	buf_done(&n->note);
	(void)arena_free(n->arena);
}

static void assert_network(const char *note, const char *want)
{
	struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	jw_object_begin(&w);
	note_write_network(&w, note, true);
	jw_object_end(&w);
	assert_int_equal(jw_end(&w), 0);
	assert_string_equal(buf_str(&b), want);
	buf_done(&b);
}

static void what_was_said_is_told_again(void **state)
{
	_cleanup_(noted_done) struct noted n = note_of(
		"{\"allowOut\":[\"a.test\"],\"unknown\":1,\"allowPublicTraffic\":false}", 1);

	(void)state;
	assert_int_equal(n.err.code, 0);
	assert_network(buf_str(&n.note),
		       "{\"allowInternetAccess\":true,\"network\":{\"allowOut\":[\"a.test\"],"
		       "\"allowPublicTraffic\":false}}");
	assert_true(note_is_of(buf_str(&n.note), "e2b", "base"));
	assert_false(note_is_of(buf_str(&n.note), "e2b", "e2b"));
	assert_true(note_is_of("", "python", "python"));
}

static void what_is_no_network_is_named(void **state)
{
	static const char *const bad[][2] = {
		{ "[]", "network" },
		{ "{\"allowOut\":\"x\"}", "network.allowOut" },
		{ "{\"denyOut\":[1]}", "network.denyOut" },
		{ "{\"allowPublicTraffic\":\"no\"}", "network.allowPublicTraffic" },
		{ "{\"allowOut\":[\"a b\"]}", "network: 'a b'" },
		{ "{\"denyOut\":[\"a.test\"]}", "network: 'a.test'" },
		{ "{\"maskRequestHost\":1}", "network.maskRequestHost" },
		{ "{\"rules\":[]}", "network.rules" },
		{ "{\"rules\":{\"a.test\":[{\"transform\":{\"headers\":{\"x\":"
		  "\"Bearer \\u0024{e2b.secrets.key}\"}}}]}}",
		  "network.rules: this server changes no requests" },
		{ "{\"egressProxy\":\"p\"}", "network.egressProxy" },
		{ "{\"egressProxy\":{\"address\":\"p:1\"}}", "network.egressProxy: this" },
		{ "{\"httpsPorts\":443}", "network.httpsPorts" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		_cleanup_(noted_done) struct noted n = note_of(bad[i][0], -1);

		assert_int_equal(n.err.code, EINVAL);
		assert_memory_equal(n.err.text, bad[i][1], strlen(bad[i][1]));
	}
}

static void a_network_has_its_limit(void **state)
{
	struct buf text = { 0 };
	struct noted n;

	(void)state;
	assert_int_equal(buf_puts(&text, "{\"allowOut\":["), 0);
	for (int i = 0; i < 200; i++)
		assert_int_equal(buf_printf(&text, "%s\"%0100d\"", i ? "," : "", i), 0);
	assert_int_equal(buf_puts(&text, "]}"), 0);
	n = note_of(buf_str(&text), -1);
	assert_int_equal(n.err.code, EINVAL);
	assert_non_null(strstr(n.err.text, "limit 16384"));
	noted_done(&n);
	buf_done(&text);
}

static void an_update_clears_what_goes_out_and_leaves_what_comes_in(void **state)
{
	_cleanup_(noted_done) struct noted n =
		note_of("{\"allowOut\":[\"a\"],\"denyOut\":[\"192.0.2.0/"
			"24\"],\"maskRequestHost\":\"h:${PORT}\"}",
			1);
	static const char update[] = "{\"denyOut\":[\"192.0.2.7\"],\"maskRequestHost\":\"other\"}";
	struct jv_doc *doc = NULL;
	struct buf b = { 0 };
	struct note_traffic t;

	(void)state;
	assert_int_equal(jv_parse(update, strlen(update), 1 << 20, &doc, NULL), 0);
	assert_int_equal(note_update(buf_str(&n.note), jv_root(doc), n.arena, &b, &n.err), 0);
	assert_network(buf_str(&b),
		       "{\"allowInternetAccess\":true,\"network\":{\"denyOut\":[\"192.0.2.7\"],"
		       "\"maskRequestHost\":\"h:${PORT}\"}}");
	note_traffic(buf_str(&b), &t);
	assert_true(t.is_public);
	assert_string_equal(t.mask_host, "h:${PORT}");
	assert_true(note_is_of(buf_str(&b), "e2b", "base"));
	buf_done(&b);
	(void)jv_free(doc);
}

static void a_note_that_is_damaged_opens_nothing(void **state)
{
	static const char *const notes[] = { "", "{", "[]", "7", "{\"network\":5}" };
	struct note_traffic t;

	(void)state;
	for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++) {
		note_traffic(notes[i], &t);
		assert_false(t.is_public);
		assert_string_equal(t.mask_host, "");
		assert_true(note_is_of(notes[i], "python", "python"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(generations_that_are_known_pass_and_others_are_named),
		cmocka_unit_test(pairs_are_decoded_twice),
		cmocka_unit_test(what_is_no_filter_is_refused),
		cmocka_unit_test(what_was_said_is_told_again),
		cmocka_unit_test(what_is_no_network_is_named),
		cmocka_unit_test(a_network_has_its_limit),
		cmocka_unit_test(an_update_clears_what_goes_out_and_leaves_what_comes_in),
		cmocka_unit_test(a_note_that_is_damaged_opens_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
