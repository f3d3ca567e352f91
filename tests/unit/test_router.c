#include "net/router.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "check.h"
#include "fault.h"

/* A row of ours: what the router does not know stands behind what it does. */
struct row {
	struct route route;
	const char *name;
};

static const struct row rows[] = {
	{ { "GET", "/", 0, 0 }, "root" },
	{ { "GET", "/healthz", 0, 0 }, "health" },
	{ { "GET", "/api/v1/sandboxes", 1, 0 }, "list" },
	{ { "POST", "/api/v1/sandboxes", 2, 0 }, "create" },
	{ { "GET", "/api/v1/sandboxes/:id", 3, 4 }, "get" },
	{ { "DELETE", "/api/v1/sandboxes/:id", 0, 0 }, "delete" },
	{ { "POST", "/api/v1/sandboxes/batch", 0, 0 }, "batch" },
	{ { "GET", "/api/v1/sandboxes/:sid/files/*path", 0, 0 }, "file" },
	{ { "HEAD", "/api/v1/sandboxes/:sid/files/*path", 0, 0 }, "file head" },
	{ { "GET", "/api/v1/sandboxes/:sid/files/special", 0, 0 }, "special" },
	{ { "GET", "/api/v1/:kind/:id/exec/:exec", 0, 0 }, "exec" },
	{ { "GET", "/slash/", 0, 0 }, "slash" },
	{ { "POST", "/rest/*all", 0, 0 }, "rest" },
};

static struct router *make(void)
{
	struct router *t = NULL;
	struct err err = { 0 };

	if (router_create(&rows[0].route, sizeof(rows) / sizeof(rows[0]), sizeof(rows[0]), &t,
			  &err) < 0)
		fail_msg("%s", err.text);
	return t;
}

/* "name a=1 b=2", or "404", "405 GET, HEAD", "400". */
static const char *find(const struct router *t, struct arena *a, const char *method,
			const char *path)
{
	static char text[512];
	struct router_match m;
	size_t n;
	int r = router_find(t, method, path, a, &m);

	if (r == -ENOENT)
		return "404";
	if (r == -EINVAL)
		return "400";
	if (r == -ENOTSUP) {
		(void)snprintf(text, sizeof(text), "405 %s", m.allow);
		return text;
	}
	assert_int_equal(r, 0);
	n = (size_t)snprintf(text, sizeof(text), "%s", ((const struct row *)m.route)->name);
	for (unsigned i = 0; i < m.count; i++) {
		assert_ptr_equal(router_param(&m, m.params[i].name), m.params[i].value);
		n += (size_t)snprintf(text + n, sizeof(text) - n, " %s=%s", m.params[i].name,
				      m.params[i].value);
	}
	assert_null(router_param(&m, "none"));
	return text;
}

#define S "/api/v1/sandboxes"

static void paths_find_their_rows(void **state)
{
	static const struct {
		const char *method, *path, *want;
	} cases[] = {
		{ "GET", "/", "root" },
		{ "GET", "/healthz", "health" },
		{ "HEAD", "/healthz", "health" },
		{ "GET", S, "list" },
		{ "POST", S, "create" },
		{ "GET", S "/abc", "get id=abc" },
		{ "DELETE", S "/abc", "delete id=abc" },
		{ "POST", S "/batch", "batch" },
		/* The fixed row has no GET; the other one has. */
		{ "GET", S "/batch", "get id=batch" },
		{ "GET", S "/x/files/a/b.txt", "file sid=x path=a/b.txt" },
		{ "HEAD", S "/x/files/a", "file head sid=x path=a" },
		{ "GET", S "/x/files/", "file sid=x path=" },
		{ "GET", S "/x/files", "file sid=x path=" },
		{ "GET", S "/x/files/special", "special sid=x" },
		{ "GET", S "/x/files/special/b", "file sid=x path=special/b" },
		{ "GET", S "/x/exec/7", "exec kind=sandboxes id=x exec=7" },
		{ "GET", "/api/v1/boxes/x/exec/7", "exec kind=boxes id=x exec=7" },
		{ "GET", "/slash/", "slash" },
		{ "POST", "/rest", "rest all=" },
		{ "POST", "/rest/", "rest all=" },
		{ "POST", "/rest/a", "rest all=a" },
	};
	struct router *t = make();
	struct arena *a = arena_create(1 << 20);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(find(t, a, cases[i].method, cases[i].path), cases[i].want);
	a = arena_free(a);
	t = router_free(t);
}

static void what_is_not_there_differs_from_what_may_not_be_done(void **state)
{
	struct router *t = make();
	struct arena *a = arena_create(1 << 20);

	(void)state;
	assert_string_equal(find(t, a, "GET", "/none"), "404");
	assert_string_equal(find(t, a, "GET", "/healthz/"), "404");
	assert_string_equal(find(t, a, "GET", "/slash"), "404");
	assert_string_equal(find(t, a, "GET", "/healthzz"), "404");
	assert_string_equal(find(t, a, "GET", "/health"), "404");
	assert_string_equal(find(t, a, "GET", "/Healthz"), "404");
	assert_string_equal(find(t, a, "OPTIONS", "*"), "404");
	assert_string_equal(find(t, a, "GET", ""), "404");
	assert_string_equal(find(t, a, "PUT", "/healthz"), "405 GET, HEAD");
	assert_string_equal(find(t, a, "get", "/healthz"), "405 GET, HEAD");
	assert_string_equal(find(t, a, "GET", "/rest/a"), "405 POST");
	/* All that could be done there, also by the row with the parameter. */
	assert_string_equal(find(t, a, "PUT", S "/batch"), "405 POST, DELETE, GET, HEAD");
	a = arena_free(a);
	t = router_free(t);
}

static void segments_are_decoded_strictly(void **state)
{
	struct router *t = make();
	struct arena *a = arena_create(1 << 20);

	(void)state;
	assert_string_equal(find(t, a, "GET", S "/a%20b"), "get id=a b");
	assert_string_equal(find(t, a, "GET", S "/a+b"), "get id=a+b"); /* no form */
	assert_string_equal(find(t, a, "GET", S "/a%2fb"), "get id=a/b");
	assert_string_equal(find(t, a, "GET", "/%68ealthz"), "health");
	assert_string_equal(find(t, a, "GET", S "/x/files/a%2Fb/%c3%a4"),
			    "file sid=x path=a/b/\xc3\xa4");
	assert_string_equal(find(t, a, "GET", S "/%"), "400");
	assert_string_equal(find(t, a, "GET", S "/%4"), "400");
	assert_string_equal(find(t, a, "GET", S "/%4g"), "400");
	assert_string_equal(find(t, a, "GET", S "/a%00b"), "400");
	assert_string_equal(find(t, a, "GET", "/none/%zz"), "400");
	a = arena_free(a);
	t = router_free(t);
}

static void dots_and_double_slashes_are_left_alone(void **state)
{
	struct router *t = make();
	struct arena *a = arena_create(1 << 20);

	(void)state;
	assert_string_equal(find(t, a, "GET", S "/x/files/../../etc"), "file sid=x path=../../etc");
	assert_string_equal(find(t, a, "GET", S "/x/files//a//b/."), "file sid=x path=/a//b/.");
	assert_string_equal(find(t, a, "GET", S "/.."), "404");
	assert_string_equal(find(t, a, "GET", S "/."), "404");
	assert_string_equal(find(t, a, "GET", S "/%2e%2e"), "404");
	assert_string_equal(find(t, a, "GET", S "/%2E"), "404");
	assert_string_equal(find(t, a, "GET", S "/..."), "get id=...");
	assert_string_equal(find(t, a, "GET", S "/"), "404");
	assert_string_equal(find(t, a, "GET", "//healthz"), "404");
	assert_string_equal(find(t, a, "GET", "/healthz/../healthz"), "404");
	assert_string_equal(find(t, a, "GET", "/api//v1/sandboxes"), "404");
	a = arena_free(a);
	t = router_free(t);
}

static void bad_tables_are_refused(void **state)
{
	static const struct route bad[][2] = {
		{ { "GET", "no-slash", 0, 0 }, { "GET", "/a", 0, 0 } },
		{ { "", "/a", 0, 0 }, { "GET", "/b", 0, 0 } },
		{ { "GET", "/a/:", 0, 0 }, { "GET", "/b", 0, 0 } },
		{ { "GET", "/a/*", 0, 0 }, { "GET", "/b", 0, 0 } },
		{ { "GET", "/a/*all/b", 0, 0 }, { "GET", "/b", 0, 0 } },
		{ { "GET", "/:a/:b/:c/:d/:e/:f/:g/:h/:i", 0, 0 }, { "GET", "/b", 0, 0 } },
		{ { "GET", "/a", 0, 0 }, { "GET", "/a", 0, 0 } },
		{ { "GET", "/a/:x", 0, 0 }, { "GET", "/a/:y", 0, 0 } },
		{ { "GET", "/a/*x", 0, 0 }, { "GET", "/a/*y", 0, 0 } },
	};
	struct router *t = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct err err = { 0 };
		int r = router_create(bad[i], 2, sizeof(struct route), &t, &err);

		assert_true(r == -EINVAL || r == -EEXIST);
		assert_true(strncmp(err.text, "route ", 6) == 0);
		assert_null(t);
	}
}

static void an_empty_table_finds_nothing(void **state)
{
	struct router *t = NULL;
	struct arena *a = arena_create(1000);

	(void)state;
	assert_int_equal(router_create(&rows[0].route, 0, sizeof(rows[0]), &t, NULL), 0);
	assert_string_equal(find(t, a, "GET", "/"), "404");
	t = router_free(t);
	assert_null(router_free(NULL));
	a = arena_free(a);
}

static void a_full_arena_is_told(void **state)
{
	struct router *t = make();
	struct arena *a = arena_create(0);
	struct router_match m;

	(void)state;
	assert_int_equal(router_find(t, "GET", S "/abc", a, &m), -ENOMEM);
	assert_int_equal(router_find(t, "GET", S "/%41", a, &m), -ENOMEM);
	assert_int_equal(router_find(t, "PUT", "/healthz", a, &m), -ENOMEM);
	a = arena_free(a);
	t = router_free(t);
}

static int make_one(void *arg)
{
	struct router *t = NULL;
	int r = router_create(&rows[0].route, sizeof(rows) / sizeof(rows[0]), sizeof(rows[0]), &t,
			      NULL);

	(void)arg;
	t = router_free(t);
	return r;
}

static void a_router_is_not_made_without_memory(void **state)
{
	(void)state;
	assert_true(fault_each(make_one, NULL) >= 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_find_their_rows),
		cmocka_unit_test(what_is_not_there_differs_from_what_may_not_be_done),
		cmocka_unit_test(segments_are_decoded_strictly),
		cmocka_unit_test(dots_and_double_slashes_are_left_alone),
		cmocka_unit_test(bad_tables_are_refused),
		cmocka_unit_test(an_empty_table_finds_nothing),
		cmocka_unit_test(a_full_arena_is_told),
		cmocka_unit_test(a_router_is_not_made_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
