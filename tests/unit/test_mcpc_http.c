#include "mcpc/http.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "check.h"
#include "http_rig.h"
#include "loop/loop.h"
#include "outbound/courier.h"

#define JSON "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
#define STREAM                                                               \
	"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: " \
	"close\r\n\r\n"
#define ACCEPTED "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
#define ANSWER "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"

struct rig {
	struct mcpc_auth auth; /* first */
	struct loop *loop;
	struct courier *courier;
	struct loop_timer *limit;
	struct mcpc_transport *t;
	struct http_rig server;
	struct buf heard;
	unsigned n_messages, n_failed, wanted;
	int status;
	struct err err;
	char failed_id[32], body[256];
	bool closes; /* in the middle of an event */
	const char *token;
	unsigned n_refused;
	char challenge[128];
	void (*auth_done)(void *user, const struct err *err);
	void *auth_user;
	struct loop_task auth_task;
};

static void stop_at(struct rig *g)
{
	if (g->n_messages + g->n_failed >= g->wanted)
		loop_stop(g->loop);
}

static void on_message(void *user, const char *text, size_t n)
{
	struct rig *g = user;

	g->n_messages++;
	(void)buf_append(&g->heard, text, n);
	assert_int_equal(buf_putc(&g->heard, ';'), 0);
	if (g->closes)
		g->t->ops->close(TAKE(g->t));
	stop_at(g);
}

static void on_failed(void *user, const char *id, int status, const char *body, size_t n,
		      const struct err *err)
{
	struct rig *g = user;

	g->n_failed++;
	g->status = status;
	g->err = *err;
	(void)str_copy(g->failed_id, sizeof(g->failed_id), id);
	(void)str_format(g->body, sizeof(g->body), "%.*s", (int)n, body);
	stop_at(g);
}

static const struct mcpc_transport_events events = { .message = on_message, .failed = on_failed };

static const char *token(struct mcpc_auth *a, uint64_t *ret_number)
{
	struct rig *g = (struct rig *)a;

	*ret_number = g->n_refused;
	return g->token;
}

static void tell_auth(void *user)
{
	struct rig *g = user;

	g->auth_done(g->auth_user, NULL);
}

static int refused(struct mcpc_auth *a, uint64_t number, int status, const char *challenge,
		   void (*done)(void *user, const struct err *err), void *user)
{
	struct rig *g = (struct rig *)a;

	assert_int_equal(number, g->n_refused); /* the one that was sent */
	g->n_refused++;
	g->status = status;
	(void)str_copy(g->challenge, sizeof(g->challenge), challenge ? challenge : "");
	g->token = g->n_refused == 1 ? "first" : "second";
	g->auth_done = done;
	g->auth_user = user;
	loop_task_post(g->loop, &g->auth_task);
	return 0;
}

static void forget(struct mcpc_auth *a, void *user)
{
	struct rig *g = (struct rig *)a;

	if (g->auth_user == user)
		loop_task_cancel(&g->auth_task);
}

static const struct mcpc_auth_ops auth_ops = { .token = token,
					       .refused = refused,
					       .forget = forget };

static void too_long(void *user)
{
	(void)user;
	fail_msg("nothing came");
}

static int setup(void **state)
{
	struct rig *g = calloc(1, sizeof(*g));

	assert_non_null(g);
	g->auth.ops = &auth_ops;
	assert_int_equal(loop_create(&g->loop, NULL), 0);
	assert_int_equal(courier_create(g->loop, &g->courier, NULL), 0);
	assert_int_equal(loop_timer_create(g->loop, too_long, g, &g->limit), 0);
	loop_task_init(&g->auth_task, tell_auth, g);
	*state = g;
	return 0;
}

static int teardown(void **state)
{
	struct rig *g = *state;

	if (g->t)
		g->t->ops->close(g->t);
	g->courier = courier_free(g->courier);
	g->limit = loop_timer_free(g->limit);
	g->loop = loop_free(g->loop);
	http_rig_done(&g->server);
	buf_done(&g->heard);
	free(g);
	return 0;
}

static void begin(struct rig *g, const struct http_step *steps, size_t n)
{
	static const char *const headers[] = { "X-Team: red", NULL };
	struct mcpc_http_options o = { .loop = g->loop,
				       .courier = g->courier,
				       .url = "/mcp",
				       .headers = headers,
				       .auth = &g->auth };

	http_rig_start(&g->server, steps, n);
	o.server = g->server.url;
	assert_int_equal(mcpc_http_create(&o, &g->t, NULL), 0);
	g->t->events = &events;
	g->t->user = g;
}

static void send_it(struct rig *g, const struct mcpc_send *m)
{
	struct mcpc_send whole = *m;

	if (!whole.text)
		whole.text = "{\"a\":1}";
	whole.len = strlen(whole.text);
	assert_int_equal(g->t->ops->send(g->t, &whole, NULL), 0);
}

static void wait_for(struct rig *g, unsigned events_wanted)
{
	g->wanted = events_wanted;
	loop_timer_start(g->limit, 60000, 0);
	if (g->n_messages + g->n_failed < events_wanted)
		loop_run(g->loop);
	loop_timer_stop(g->limit);
	assert_int_equal(g->n_messages + g->n_failed, events_wanted);
}

/* Until the courier has nothing to do any more. */
static void look(void *user)
{
	struct rig *g = user;

	if (courier_count(g->courier) == 0)
		loop_stop(g->loop);
}

static void drain(struct rig *g)
{
	struct loop_timer *t = NULL;

	assert_int_equal(loop_timer_create(g->loop, look, g, &t), 0);
	loop_timer_start(t, 1, 1);
	loop_timer_start(g->limit, 60000, 0);
	loop_run(g->loop);
	loop_timer_stop(g->limit);
	t = loop_timer_free(t);
}

static const char *got(struct rig *g)
{
	if (g->server.pid > 0)
		http_rig_stop(&g->server);
	return buf_str(&g->server.got);
}

static void a_modern_request_says_in_its_head_what_it_is(void **state)
{
	static const char *const params[] = { "Mcp-Param-Region: west", "Mcp-Param-Empty;", NULL };
	const struct http_step step = { .answer = JSON "\r\n" ANSWER };
	struct rig *g = *state;

	begin(g, &step, 1);
	send_it(g, &(struct mcpc_send){ .id = "1",
					.method = "tools/call",
					.name = "caf\xc3\xa9",
					.headers = params,
					.is_modern = true,
					.version = "2026-07-28" });
	wait_for(g, 2); /* its end is told, too: whoever has its answer passes over that */
	assert_string_equal(buf_str(&g->heard), ANSWER ";");
	assert_non_null(strstr(got(g), "POST /mcp HTTP/1.1\r\n"));
	assert_non_null(strstr(got(g), "\r\nAccept: application/json, text/event-stream\r\n"));
	assert_non_null(strstr(got(g), "\r\nContent-Type: application/json\r\n"));
	assert_non_null(strstr(got(g), "\r\nX-Team: red\r\n"));
	assert_non_null(strstr(got(g), "\r\nMCP-Protocol-Version: 2026-07-28\r\n"));
	assert_non_null(strstr(got(g), "\r\nMcp-Method: tools/call\r\n"));
	assert_non_null(strstr(got(g), "\r\nMcp-Name: =?base64?Y2Fmw6k=?=\r\n"));
	assert_non_null(strstr(got(g), "\r\nMcp-Param-Region: west\r\n"));
	assert_non_null(strstr(got(g), "\r\nMcp-Param-Empty:"));
	assert_null(strstr(got(g), "Authorization"));
	assert_null(strstr(got(g), "Mcp-Session-Id"));
	assert_non_null(strstr(got(g), "\r\n\r\n{\"a\":1}"));
}

static void a_stream_brings_messages_as_they_come(void **state)
{
	const struct http_step step = { .answer = STREAM ": hello\n\ndata: {\"n\":1}\n\n",
					.more = "event: other\ndata: x\n\ndata: " ANSWER "\n\n",
					.more_after_ms = 5 };
	struct rig *g = *state;

	begin(g, &step, 1);
	send_it(g, &(struct mcpc_send){ .id = "1", .method = "a", .is_modern = true });
	wait_for(g, 3);
	assert_string_equal(buf_str(&g->heard), "{\"n\":1};" ANSWER ";");
	assert_int_equal(g->n_failed, 1);
}

static void a_session_is_kept_and_ended(void **state)
{
	const struct http_step steps[] = {
		{ .answer = JSON "Mcp-Session-Id: s-1\r\n\r\n" ANSWER },
		{ .answer = ACCEPTED },
		{ .answer = JSON "\r\n" ANSWER },
		{ .answer = ACCEPTED },
	};
	struct rig *g = *state;
	const char *at;

	begin(g, steps, 4);
	send_it(g, &(struct mcpc_send){ .id = "1", .method = "initialize" });
	send_it(g, &(struct mcpc_send){ .method = "notifications/initialized",
					.version = "2025-11-25" });
	/* Each waits for the one before: a server may refuse what comes too early. */
	send_it(g, &(struct mcpc_send){ .id = "2",
					.method = "ping",
					.version = "2025-11-25",
					.text = "{\"b\":2}" });
	wait_for(g, 4);
	g->t->ops->close(TAKE(g->t));
	drain(g);
	at = strstr(got(g), "{\"a\":1}"); /* of the first, which has none yet */
	assert_non_null(at);
	assert_null(memmem(got(g), (size_t)(at - got(g)), "Mcp-Session-Id", 14));
	at = strstr(at + 1, "\r\nMcp-Session-Id: s-1\r\n");
	assert_non_null(at);
	at = strstr(at, "\r\nMcp-Session-Id: s-1\r\n");
	assert_non_null(at);
	assert_non_null(strstr(at, "{\"b\":2}"));
	at = strstr(at, "DELETE /mcp HTTP/1.1\r\n");
	assert_non_null(at);
	assert_non_null(strstr(at, "\r\nMcp-Session-Id: s-1\r\n"));
}

static void a_stream_that_breaks_off_is_taken_up_again(void **state)
{
	const struct http_step steps[] = {
		{ .answer = STREAM "id: e-7\nretry: 30\ndata: \n\nid: e-8\ndata: cut o" },
		{ .answer = STREAM "id: e-9\ndata: " ANSWER "\n\n" },
	};
	struct rig *g = *state;
	uint64_t before;

	begin(g, steps, 2);
	before = loop_now_ms(g->loop);
	send_it(g, &(struct mcpc_send){ .id = "1", .method = "a", .version = "2025-11-25" });
	wait_for(g, 1);
	assert_true(loop_now_ms(g->loop) - before >= 30);
	assert_string_equal(buf_str(&g->heard), ANSWER ";");
	drain(g);
	assert_int_equal(g->n_failed, 0);
	assert_non_null(strstr(got(g), "GET /mcp HTTP/1.1\r\n"));
	assert_non_null(strstr(got(g), "\r\nAccept: text/event-stream\r\n"));
	assert_non_null(strstr(got(g), "\r\nLast-Event-ID: e-7\r\n")); /* 8 was not all there */
}

#define BROKEN "HTTP/1.1 503 Later\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

static void a_stream_that_cannot_be_taken_up_again_is_given_up(void **state)
{
	const struct http_step steps[] = {
		{ .answer = STREAM "id: e-7\nretry: 0\ndata: \n\n" },
		{ .answer = BROKEN },
		{ .answer = BROKEN },
		{ .answer = STREAM },
		{ .answer = BROKEN },
		{ .answer = BROKEN },
	};
	struct rig *g = *state;

	begin(g, steps, 6);
	send_it(g, &(struct mcpc_send){ .id = "1", .method = "a", .version = "2025-11-25" });
	wait_for(g, 1);
	assert_int_equal(g->err.code, ECONNRESET);
	assert_string_equal(g->failed_id, "1");
}

static void a_modern_stream_that_breaks_off_is_over(void **state)
{
	const struct http_step step = { .answer = STREAM "id: e-7\nretry: 1\ndata: {}\n\n" };
	struct rig *g = *state;

	begin(g, &step, 1);
	send_it(g, &(struct mcpc_send){ .id = "1", .method = "a", .is_modern = true });
	wait_for(g, 2);
	assert_int_equal(g->n_failed, 1);
	assert_int_equal(g->err.code, ECONNRESET);
}

static void what_the_server_says_by_itself_is_heard(void **state)
{
	const struct http_step steps[] = {
		{ .answer = ACCEPTED },
		{ .answer = STREAM "id: 4\nretry: 1\ndata: {\"n\":1}\n\n" },
		{ .answer = STREAM "data: {\"n\":2}\n\n", .read_more = 1 },
	};
	struct rig *g = *state;

	begin(g, steps, 3);
	send_it(g, &(struct mcpc_send){ .method = "notifications/initialized" });
	g->t->ops->agreed(g->t, "2025-06-18");
	wait_for(g, 2);
	assert_string_equal(buf_str(&g->heard), "{\"n\":1};{\"n\":2};");
	g->t->ops->close(TAKE(g->t));
	assert_non_null(strstr(got(g), "\r\nMCP-Protocol-Version: 2025-06-18\r\n"));
	assert_non_null(strstr(got(g), "\r\nLast-Event-ID: 4\r\n"));
}

static void a_refusal_is_told_with_what_it_says(void **state)
{
	static const struct {
		const char *head;
		int status;
	} rows[] = {
		{ "HTTP/1.1 404 No\r\n", 404 },
		{ "HTTP/1.1 400 No\r\n", 400 },
		{ "HTTP/1.1 307 There\r\nLocation: http://127.0.0.1:1/\r\n", 307 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		_cleanup_(buf_done) struct buf answer = { 0 };
		struct http_step step = { 0 };
		struct rig *g;

		assert_int_equal(setup((void **)&g), 0);
		(void)buf_puts(&answer, rows[i].head);
		assert_int_equal(buf_puts(&answer, "Content-Length: 4\r\nConnection: close\r\n\r\n"
						   "why?"),
				 0);
		step.answer = answer.data;
		begin(g, &step, 1);
		send_it(g, &(struct mcpc_send){ .id = "1", .method = "a" });
		wait_for(g, 1);
		assert_int_equal(g->n_failed, 1);
		assert_int_equal(g->status, rows[i].status);
		assert_string_equal(g->failed_id, "1");
		assert_string_equal(g->body, "why?");
		assert_int_equal(teardown((void **)&g), 0);
	}
}

#define REFUSED                                                                            \
	"HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer scope=\"a\"\r\nContent-Length: 0\r\n" \
	"Connection: close\r\n\r\n"

static void a_refused_request_is_sent_again_with_another_token(void **state)
{
	const struct http_step steps[] = { { .answer = REFUSED },
					   { .answer = JSON "\r\n" ANSWER } };
	struct rig *g = *state;

	begin(g, steps, 2);
	send_it(g, &(struct mcpc_send){ .id = "1", .method = "a", .is_modern = true });
	wait_for(g, 2);
	assert_int_equal(g->n_refused, 1);
	assert_string_equal(g->challenge, "Bearer scope=\"a\"");
	assert_string_equal(buf_str(&g->heard), ANSWER ";");
	assert_non_null(strstr(got(g), "\r\nAuthorization: Bearer first\r\n"));
}

static void a_request_that_is_always_refused_is_given_up(void **state)
{
	const struct http_step steps[] = { { .answer = REFUSED },
					   { .answer = REFUSED },
					   { .answer = REFUSED } };
	struct rig *g = *state;

	begin(g, steps, 3);
	send_it(g, &(struct mcpc_send){ .id = "1", .method = "a", .is_modern = true });
	wait_for(g, 1);
	assert_int_equal(g->n_refused, 2);
	assert_int_equal(g->n_failed, 1);
	assert_int_equal(g->status, 401);
}

static void a_message_that_is_too_large_is_an_error(void **state)
{
	static const char *const heads[] = { JSON "\r\n", STREAM "data: " };
	const size_t n = MCPC_MESSAGE_MAX + 1;
	char *bytes = malloc(n);

	(void)state;
	assert_non_null(bytes);
	memset(bytes, 'x', n);
	for (size_t i = 0; i < 2; i++) {
		struct http_step step = { .answer = heads[i], .more = bytes, .more_len = n };
		struct rig *g;

		assert_int_equal(setup((void **)&g), 0);
		begin(g, &step, 1);
		send_it(g, &(struct mcpc_send){ .id = "1", .method = "a", .is_modern = true });
		wait_for(g, 1);
		assert_int_equal(g->n_failed, 1);
		assert_int_equal(g->err.code, EMSGSIZE);
		assert_int_equal(teardown((void **)&g), 0);
	}
	free(bytes);
}

static void a_request_that_is_given_up_closes_its_stream(void **state)
{
	const struct http_step step = { .answer = STREAM "data: {}\n\n", .read_more = 1 };
	struct rig *g = *state;

	begin(g, &step, 1);
	send_it(g, &(struct mcpc_send){ .id = "1", .method = "a", .is_modern = true });
	wait_for(g, 1);
	g->t->ops->forget(g->t, "1");
	drain(g);
	(void)got(g); /* the server has seen us leave */
	assert_int_equal(g->n_failed, 0);
}

static void it_may_be_closed_from_within_what_it_tells(void **state)
{
	const struct http_step step = { .answer = STREAM "data: {}\n\ndata: {}\n\n" };
	struct rig *g = *state;

	g->closes = true;
	begin(g, &step, 1);
	send_it(g, &(struct mcpc_send){ .id = "1", .method = "a", .is_modern = true });
	wait_for(g, 1);
	drain(g);
	assert_int_equal(g->n_messages, 1);
	assert_int_equal(g->n_failed, 0);
}

#define NOT_ALLOWED "HTTP/1.1 405 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

static void an_old_server_that_wants_messages_elsewhere_gets_none(void **state)
{
	static const char *const places[] = { "http://127.0.0.1:1/x", "https://example.com/",
					      "//x/y", "http://" };

	(void)state;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		_cleanup_(buf_done) struct buf stream = { 0 };
		struct http_step steps[] = { { .answer = NOT_ALLOWED }, { .answer = NULL } };
		struct rig *g;

		assert_int_equal(
			buf_printf(&stream, STREAM "event: endpoint\ndata: %s\n\n", places[i]), 0);
		steps[1].answer = stream.data;
		assert_int_equal(setup((void **)&g), 0);
		begin(g, steps, 2);
		send_it(g, &(struct mcpc_send){ .id = "1", .method = "initialize" });
		wait_for(g, 1);
		assert_int_equal(g->err.code, EXDEV);
		drain(g);
		assert_int_equal(g->n_failed, 1);
		assert_int_equal(teardown((void **)&g), 0);
	}
}

static void a_server_of_no_way_at_all_has_refused_the_first(void **state)
{
	const struct http_step steps[] = { { .answer = NOT_ALLOWED },
					   { .answer = "HTTP/1.1 404 No\r\nContent-Length: 0\r\n"
						       "Connection: close\r\n\r\n" } };
	struct rig *g = *state;

	begin(g, steps, 2);
	send_it(g, &(struct mcpc_send){ .id = "1", .method = "initialize" });
	wait_for(g, 1);
	assert_int_equal(g->status, 405);
	assert_non_null(strstr(got(g), "GET /mcp HTTP/1.1\r\n"));
}

static void headers_that_are_none_are_refused(void **state)
{
	static const char *const bad[] = { "no colon", ": x", "A b: c", "A: b\r\nC: d" };
	struct rig *g = *state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const char *const headers[] = { bad[i], NULL };
		struct mcpc_http_options o = { .loop = g->loop,
					       .courier = g->courier,
					       .url = "http://127.0.0.1:1/mcp",
					       .headers = headers };

		assert_int_equal(mcpc_http_create(&o, &g->t, NULL), -EINVAL);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_modern_request_says_in_its_head_what_it_is),
		TEST(a_stream_brings_messages_as_they_come),
		TEST(a_session_is_kept_and_ended),
		TEST(a_stream_that_breaks_off_is_taken_up_again),
		TEST(a_stream_that_cannot_be_taken_up_again_is_given_up),
		TEST(a_modern_stream_that_breaks_off_is_over),
		TEST(what_the_server_says_by_itself_is_heard),
		cmocka_unit_test(a_refusal_is_told_with_what_it_says),
		TEST(a_refused_request_is_sent_again_with_another_token),
		TEST(a_request_that_is_always_refused_is_given_up),
		cmocka_unit_test(a_message_that_is_too_large_is_an_error),
		TEST(a_request_that_is_given_up_closes_its_stream),
		TEST(it_may_be_closed_from_within_what_it_tells),
		cmocka_unit_test(an_old_server_that_wants_messages_elsewhere_gets_none),
		TEST(a_server_of_no_way_at_all_has_refused_the_first),
		TEST(headers_that_are_none_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
