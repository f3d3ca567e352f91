/* The dispatcher and what all routes share: keys, scopes, bodies, problems. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/problem.h"
#include "api/routes.h"
#include "api_rig.h"
#include "base/str.h"
#include "fault.h"
#include "telemetry/metrics.h"

/* A path that the pattern matches. */
static void fill_pattern(const char *pattern, char *dst, size_t size)
{
	struct str rest = str_of(pattern), part;
	size_t at = 0;

	while (str_split(&rest, '/', &part)) {
		bool is_param = part.len && (part.data[0] == ':' || part.data[0] == '*');

		if (part.len == 0)
			continue;
		assert_int_equal(str_format(dst + at, size - at, "/%.*s",
					    is_param ? 4 : (int)part.len,
					    is_param ? "none" : part.data),
				 0);
		at += strlen(dst + at);
	}
}

static int status_of(struct api_rig *rig, const struct api_route *row, const char *key)
{
	char path[256], what[300];
	struct rig_answer a;
	int status;

	fill_pattern(row->route.pattern, path, sizeof(path));
	(void)str_format(what, sizeof(what), "%s %s", row->route.method, path);
	rig_ask(rig, key, what, "", NULL, &a);
	status = a.status;
	if (status == 401)
		assert_non_null(rig_header(&a, "WWW-Authenticate"));
	assert_int_equal(strlen(rig_header(&a, "X-Request-Id")), ID_LEN);
	rig_answer_done(&a);
	return status;
}

static void every_route_wants_the_scope_in_its_row(void **state)
{
	size_t n;
	const struct api_route *rows = routes_table(&n);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		struct api_rig rig;
		const struct route *route = &rows[i].route;

		rig_open(&rig);
		const struct {
			const char *key;
			unsigned scopes;
		} roles[] = {
			{ rig.viewer, scope_of_role(ROLE_VIEWER) },
			{ rig.user, scope_of_role(ROLE_USER) },
			{ rig.admin, scope_of_role(ROLE_ADMIN) },
		};
		int status = status_of(&rig, &rows[i], NULL);

		if (route->flags & ROUTE_PUBLIC)
			assert_int_equal(status, 200);
		else if (status != 401)
			fail_msg("%s %s without a key: %d", route->method, route->pattern, status);
		for (size_t k = 0; k < 3; k++) {
			bool may = (roles[k].scopes & route->scope) == route->scope;

			status = status_of(&rig, &rows[i], roles[k].key);
			assert_int_not_equal(status, 401);
			assert_int_not_equal(status, 405);
			if (may == (status == 403))
				fail_msg("%s %s as role %d: %d", route->method, route->pattern,
					 (int)k, status);
		}
		rig_close(&rig);
	}
}

/* A question that is too long for a URL is no change. */
static bool is_question(const struct route *route)
{
	static const char *const ends[] = { "/find", "/grep", "/bundle" };
	const char *end = strrchr(route->pattern, '/');

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (strcmp(route->method, "POST") == 0 && strcmp(end, ends[i]) == 0)
			return true;
	return strcmp(route->method, "GET") == 0 && !(route->flags & ROUTE_SOCKET);
}

/* What the table promises: a route that changes something needs more than a viewer has. */
static void no_viewer_can_change_anything(void **state)
{
	size_t n;
	const struct api_route *rows = routes_table(&n);
	unsigned viewer = scope_of_role(ROLE_VIEWER);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		const struct route *route = &rows[i].route;

		if (!is_question(route))
			assert_int_not_equal(route->scope & ~viewer, 0);
		if (route->flags & ROUTE_PUBLIC &&
		    strcmp(route->pattern, "/api/v1/openapi.json") != 0)
			assert_null(strstr(route->pattern, "/api/"));
		assert_non_null(rows[i].summary);
	}
}

static void another_owners_sandbox_is_not_found(void **state)
{
	static const struct {
		const char *method, *rest;
	} paths[] = {
		{ "GET", "" },
		{ "GET", "/status" },
		{ "DELETE", "" },
		{ "POST", "/pause" },
		{ "POST", "/resume" },
		{ "GET", "/executions" },
		{ "GET", "/executions/x" },
		{ "GET", "/executions/x/output" },
		{ "GET", "/executions/x/wait" },
		{ "POST", "/executions/x/stdin" },
		{ "POST", "/executions/x/cancel" },
		{ "GET", "/files" },
		{ "GET", "/files/a" },
		{ "PUT", "/files/a" },
		{ "DELETE", "/files/a" },
		{ "GET", "/watch" },
		{ "GET", "/archive" },
		{ "PUT", "/archive" },
		{ "GET", "/stream" },
	};
	struct api_rig *rig = *state;
	char what[128];

	(void)service_add(&rig->service, "sandboxofanns0000000", "ann", "box");
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		for (int by_name = 0; by_name < 2; by_name++) {
			struct rig_answer theirs, none;
			const char *id = by_name ? "box" : "sandboxofanns0000000";

			(void)str_format(what, sizeof(what), "%s /api/v1/sandboxes/%s%s",
					 paths[i].method, id, paths[i].rest);
			rig_ask(rig, rig->other, what, "", NULL, &theirs);
			assert_int_equal(theirs.status, 404);
			/* Not a word differs from one that does not exist. */
			(void)str_format(what, sizeof(what), "%s /api/v1/sandboxes/nope%s",
					 paths[i].method, paths[i].rest);
			rig_ask(rig, rig->other, what, "", NULL, &none);
			assert_int_equal(none.status, 404);
			rig_answer_done(&theirs);
			rig_answer_done(&none);
		}
	}
	rig_expect(rig, rig->user, "GET /api/v1/sandboxes/box", NULL, 200, "\"owner\":\"ann\"");
	rig_expect(rig, rig->admin, "GET /api/v1/sandboxes/box", NULL, 200, "\"owner\":\"ann\"");
	rig_expect(rig, rig->other, "GET /api/v1/sandboxes", NULL, 200, "\"items\":[]");
	rig_expect(rig, rig->admin, "GET /api/v1/sandboxes", NULL, 200, "sandboxofanns0000000");
}

static void what_is_not_there_is_404_and_what_cannot_be_done_405(void **state)
{
	struct api_rig *rig = *state;
	struct rig_answer a;

	rig_expect(rig, rig->admin, "GET /nope", NULL, 404, "\"code\":\"not_found\"");
	rig_expect(rig, NULL, "GET /api/v1/nope", NULL, 404, "\"details\":null");
	rig_expect(rig, rig->admin, "GET /api/v1/sandboxes/%zz", NULL, 400, "invalid_request");
	rig_ask(rig, rig->admin, "PUT /api/v1/sandboxes", "", NULL, &a);
	assert_int_equal(a.status, 405);
	assert_non_null(strstr(rig_header(&a, "Allow"), "POST"));
	rig_answer_done(&a);
}

static void bodies_are_read_strictly(void **state)
{
	static const struct {
		const char *body;
		int status;
		const char *piece;
	} rows[] = {
		{ "{\"nope\":1}", 400, "\"field\":\"nope\"" },
		{ "{\"resources\":{\"memory\":\"a lot\"}}", 400, "\"field\":\"resources.memory\"" },
		{ "{\"resources\":{\"memory\":1}}", 400, "\"field\":\"resources.memory\"" },
		{ "{\"resources\":{\"gpu\":1}}", 400, "\"field\":\"resources.gpu\"" },
		{ "{\"timeout\":0}", 400, "\"field\":\"timeout\"" },
		{ "{\"timeout\":\"25h\"}", 400, "\"field\":\"timeout\"" },
		{ "{\"idleTimeout\":\"25h\"}", 400, "\"field\":\"idleTimeout\"" },
		{ "{\"template\":\"cobol\"}", 400, "\"field\":\"template\"" },
		{ "{\"runtime\":\"cobol\"}", 400, "\"field\":\"runtime\"" },
		{ "{\"runtime\":\"node\",\"template\":\"python\"}", 400, "\"field\":\"runtime\"" },
		{ "{\"getOrCreate\":true}", 400, "\"field\":\"name\"" },
		{ "{\"securityLevel\":\"high\"}", 400, "gVisor" },
		{ "{\"securityLevel\":\"low\"}", 400, "\"field\":\"securityLevel\"" },
		{ "{\"networkAccess\":\"full\"}", 400, "\"field\":\"networkAccess\"" },
		{ "{\"networkAccess\":{\"egress\":[]}}", 400, "\"field\":\"networkAccess\"" },
		{ "{\"env\":{\"A\":1}}", 400, "\"field\":\"env" },
		{ "{\"name\":\"a\",\"name\":\"b\"}", 400, "invalid_request" },
		{ "{\"name\":\"a\"} x", 400, "invalid_request" },
		{ "[]", 400, "invalid_request" },
		{ "{", 400, "invalid_request" },
		{ "{\"networkAccess\":\"none\",\"securityLevel\":\"standard\"}", 201, "\"id\"" },
		{ "{}", 201, "\"id\"" },
	};
	struct api_rig *rig = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		rig_expect(rig, rig->user, "POST /api/v1/sandboxes", rows[i].body, rows[i].status,
			   rows[i].piece);
	assert_int_equal(rig->service.creates, 2);
}

static void a_body_of_another_type_is_415_and_one_too_long_413(void **state)
{
	struct api_rig *rig = *state;
	struct rig_answer a;
	struct rig_conn c;

	rig_ask(rig, rig->user, "POST /api/v1/sandboxes", "Content-Type: text/plain\r\n", "{}", &a);
	assert_int_equal(a.status, 415);
	rig_answer_done(&a);
	rig_ask(rig, rig->user, "POST /api/v1/sandboxes",
		"Content-Type: application/json; charset=utf-8\r\n", "{}", &a);
	assert_int_equal(a.status, 201);
	rig_answer_done(&a);
	rig_connect(rig, &c);
	rig_request(&c, rig->user, "POST /api/v1/sandboxes", "Content-Type: application/json\r\n",
		    (64 << 10) + 1);
	rig_until(&c, "HTTP/1.1 413");
	rig_disconnect(&c);
	/* No body at all: fine where all fields have defaults, else not. */
	rig_expect(rig, rig->user, "POST /api/v1/sandboxes", NULL, 201, NULL);
	rig_expect(rig, rig->user, "POST /api/v1/sandboxes/x/execute", NULL, 400, "body");
}

static void keys_are_taken_from_either_header_and_must_agree(void **state)
{
	struct api_rig *rig = *state;
	struct rig_answer a;
	char header[128];

	(void)str_format(header, sizeof(header), "X-API-Key: %s\r\n", rig->user);
	rig_ask(rig, NULL, "GET /api/v1/user", header, NULL, &a);
	assert_int_equal(a.status, 200);
	assert_non_null(strstr(buf_str(&a.body), "\"owner\":\"ann\""));
	rig_answer_done(&a);
	rig_ask(rig, rig->user, "GET /api/v1/user", header, NULL, &a);
	assert_int_equal(a.status, 200);
	rig_answer_done(&a);
	rig_ask(rig, rig->other, "GET /api/v1/user", header, NULL, &a);
	assert_int_equal(a.status, 401);
	rig_answer_done(&a);
	/* A token in the address is for WebSockets only: addresses end up in logs. */
	(void)str_format(header, sizeof(header), "GET /api/v1/user?token=%s", rig->user);
	rig_expect(rig, NULL, header, NULL, 401, "unauthorized");
	(void)str_format(header, sizeof(header), "GET /api/v1/sandboxes/none/stream?token=%s",
			 rig->user);
	rig_expect(rig, NULL, header, NULL, 404, "not_found");
}

static void too_many_bad_keys_are_held_back_but_a_good_one_is_not(void **state)
{
	struct api_rig *rig = *state;
	struct rig_answer a;

	for (int i = 0; i < 20; i++)
		rig_expect(rig, "holt_0000000000000000000000000000000000000000", "GET /api/v1/user",
			   NULL, 401, "unauthorized");
	rig_ask(rig, NULL, "GET /api/v1/user", "", NULL, &a);
	assert_int_equal(a.status, 429);
	assert_non_null(rig_header(&a, "Retry-After"));
	assert_non_null(strstr(buf_str(&a.body), "rate_limited"));
	rig_answer_done(&a);
	rig_expect(rig, rig->user, "GET /api/v1/user", NULL, 200, NULL);
	rig_expect(rig, NULL, "GET /healthz", NULL, 200, NULL);
	assert_true(metrics_value(rig->metrics, METRIC_DENIALS, LABELS("unauthenticated")) == 20);
	assert_true(metrics_value(rig->metrics, METRIC_DENIALS, LABELS("rate_limited")) == 1);
}

static void an_errno_becomes_one_answer(void **state)
{
	static const struct {
		int code, status;
		const char *name;
		bool is_told;
	} rows[] = {
		{ EINVAL, 400, "invalid_request", true },
		{ E2BIG, 400, "invalid_request", true },
		{ EPERM, 403, "forbidden", true },
		{ ENOENT, 404, "not_found", true },
		{ EEXIST, 409, "conflict", true },
		{ EBUSY, 409, "conflict", true },
		{ EDQUOT, 429, "rate_limited", true },
		{ EAGAIN, 503, "service_unavailable", false },
		{ EPIPE, 503, "service_unavailable", false },
		{ ENOSPC, 503, "service_unavailable", false },
		{ EROFS, 503, "service_unavailable", false },
		{ EIO, 503, "service_unavailable", false },
		{ ENOMEM, 503, "service_unavailable", false },
		{ ERANGE, 400, "invalid_request", true },
		{ EREMOTEIO, 503, "service_unavailable", true },
		{ EFAULT, 500, "internal_error", false },
		{ EOPNOTSUPP, 409, "conflict", true },
	};
	struct api_rig *rig = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rig_answer a;
		bool is_told;

		rig->service.fail_with = rows[i].code;
		(void)str_copy(rig->service.fail_text, sizeof(rig->service.fail_text),
			       "/secret/path");
		rig_ask(rig, rig->user, "POST /api/v1/sandboxes", "", "{}", &a);
		assert_int_equal(a.status, rows[i].status);
		assert_non_null(strstr(buf_str(&a.body), rows[i].name));
		is_told = strstr(buf_str(&a.body), "/secret/path") != NULL;
		assert_int_equal(is_told, rows[i].is_told);
		if (a.status == 503 || a.status == 429)
			assert_non_null(rig_header(&a, "Retry-After"));
		rig_answer_done(&a);
	}
	/* Inside a box the same number means something else. */
	assert_int_equal(problem_find(ENOSPC, PROBLEM_IN_BOX)->status, 409);
	assert_int_equal(problem_find(EACCES, PROBLEM_IN_BOX)->status, 403);
	assert_int_equal(problem_find(EACCES, PROBLEM_HERE)->status, 401);
	assert_int_equal(problem_find(EFAULT, PROBLEM_IN_BOX)->status, 500);
}

static void a_bad_value_that_the_service_finds_is_named_too(void **state)
{
	struct api_rig *rig = *state;

	rig->service.fail_with = EINVAL;
	(void)str_copy(rig->service.fail_text, sizeof(rig->service.fail_text),
		       "name: want [a-z0-9]");
	rig_expect(rig, rig->user, "POST /api/v1/sandboxes", "{\"name\":\"A\"}", 400,
		   "\"details\":{\"field\":\"name\"}");
	rig->service.fail_with = EINVAL;
	(void)str_copy(rig->service.fail_text, sizeof(rig->service.fail_text), "nonsense");
	rig_expect(rig, rig->user, "POST /api/v1/sandboxes", "{}", 400, "\"details\":null");
}

static void health_needs_no_key_and_readiness_says_why_not(void **state)
{
	struct api_rig *rig = *state;
	struct rig_answer a;

	rig_expect(rig, NULL, "GET /healthz", NULL, 200, "{\"status\":\"ok\"");
	rig->service.is_ready = false;
	rig_ask(rig, NULL, "GET /readyz", "", NULL, &a);
	assert_int_equal(a.status, 503);
	assert_non_null(rig_header(&a, "Retry-After"));
	assert_non_null(strstr(buf_str(&a.body), "\"launcher\":\"not ready\",\"store\":\"ok\""));
	rig_answer_done(&a);
	rig->service.is_ready = true;
	rig_expect(rig, NULL, "GET /readyz", NULL, 200, "\"launcher\":\"ok\",\"store\":\"ok\"");
	rig_expect(rig, NULL, "GET /health", NULL, 200, "\"version\":");
}

static void readiness_asks_the_store_once_for_many(void **state)
{
	struct api_rig *rig = *state;
	struct rig_conn conns[8];
	unsigned writes = rig->faults.writes;

	rig->faults.fail_in = 1;
	rig->faults.fail_with = ENOSPC;
	for (int i = 0; i < 8; i++) {
		rig_connect(rig, &conns[i]);
		rig_request(&conns[i], NULL, "GET /readyz", "", -1);
	}
	for (int i = 0; i < 8; i++) {
		rig_until(&conns[i], "the store has no space left");
		assert_true(rig_has(&conns[i], "HTTP/1.1 503"));
		rig_disconnect(&conns[i]);
	}
	assert_int_equal(rig->faults.writes - writes, 1);
}

static void readiness_does_not_wait_for_a_store_that_hangs(void **state)
{
	struct api_rig *rig = *state;
	struct rig_conn c, d;

	rig->faults.is_held = true;
	rig_connect(rig, &c);
	rig_request(&c, NULL, "GET /readyz", "", -1);
	rig_until(&c, "HTTP/1.1 503");
	rig_connect(rig, &d);
	rig_request(&d, NULL, "GET /readyz", "", -1);
	rig_until(&d, "HTTP/1.1 503");
	rig->faults.is_held = false;
	rig_disconnect(&c);
	rig_disconnect(&d);
}

static void metrics_need_their_scope_unless_made_public(void **state)
{
	struct api_rig *rig = *state;
	struct rig_answer a;

	rig_expect(rig, NULL, "GET /metrics", NULL, 401, NULL);
	rig->config.metrics_public = true;
	rig_ask(rig, NULL, "GET /metrics", "", NULL, &a);
	assert_int_equal(a.status, 200);
	assert_non_null(strstr(rig_header(&a, "Content-Type"), "text/plain"));
	assert_non_null(strstr(buf_str(&a.body), "holt_"));
	assert_non_null(strstr(buf_str(&a.body), "route=\"/metrics\""));
	rig_answer_done(&a);
	/* Routes, not paths: their number is bounded. */
	rig_expect(rig, rig->user, "GET /api/v1/sandboxes/abc", NULL, 404, NULL);
	assert_true(metrics_value(rig->metrics, METRIC_HTTP_REQUEST_SECONDS,
				  LABELS("/api/v1/sandboxes/:id", "GET", "4xx")) == 1);
	assert_true(metrics_value(rig->metrics, METRIC_HTTP_IN_FLIGHT, LABELS()) == 0);
}

static void the_pools_are_shown_to_admins(void **state)
{
	struct api_rig *rig = *state;

	rig_expect(rig, rig->user, "GET /api/v1/pool", NULL, 403, "forbidden");
	rig_expect(
		rig, rig->admin, "GET /api/v1/pool", NULL, 200,
		"\"ready\":2,\"building\":0,\"claimed\":0,\"target\":3,\"hits\":10,\"misses\":0");
}

static void a_server_that_stops_lets_go_of_waiting_requests(void **state)
{
	struct api_rig *rig = *state;
	struct rig_conn c, d;

	rig->faults.is_held = true;
	rig_connect(rig, &c);
	rig_request(&c, NULL, "GET /readyz", "", -1);
	rig_connect(rig, &d);
	rig_request(&d, rig->user, "POST /api/v1/keys", "Content-Type: application/json\r\n", 12);
	rig_send(&d, "{\"name\":\"x\"}", 12);
	rig_settle(rig);
	rig->faults.is_held = false; /* the store's answers come while it closes */
	rig_disconnect(&c);
	rig_disconnect(&d);
}

static int build(void *arg)
{
	struct api_rig *rig = arg;
	struct api *api = NULL;
	struct err err = { 0 };
	int r = api_create(&(struct api_deps){ .loop = rig->loop,
					       .config = &rig->config,
					       .sandboxes = &rig->service,
					       .store = &rig->store,
					       .keys = rig->keys,
					       .metrics = rig->metrics },
			   &api, &err);

	(void)api_free(api);
	return r;
}

static void an_api_that_finds_no_memory_leaves_nothing_behind(void **state)
{
	assert_true(fault_each(build, *state) > 5);
}

#define RIG_TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_route_wants_the_scope_in_its_row),
		cmocka_unit_test(no_viewer_can_change_anything),
		RIG_TEST(another_owners_sandbox_is_not_found),
		RIG_TEST(what_is_not_there_is_404_and_what_cannot_be_done_405),
		RIG_TEST(bodies_are_read_strictly),
		RIG_TEST(a_body_of_another_type_is_415_and_one_too_long_413),
		RIG_TEST(keys_are_taken_from_either_header_and_must_agree),
		RIG_TEST(too_many_bad_keys_are_held_back_but_a_good_one_is_not),
		RIG_TEST(an_errno_becomes_one_answer),
		RIG_TEST(a_bad_value_that_the_service_finds_is_named_too),
		RIG_TEST(health_needs_no_key_and_readiness_says_why_not),
		RIG_TEST(readiness_asks_the_store_once_for_many),
		RIG_TEST(readiness_does_not_wait_for_a_store_that_hangs),
		RIG_TEST(metrics_need_their_scope_unless_made_public),
		RIG_TEST(the_pools_are_shown_to_admins),
		RIG_TEST(a_server_that_stops_lets_go_of_waiting_requests),
		RIG_TEST(an_api_that_finds_no_memory_leaves_nothing_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
