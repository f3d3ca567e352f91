#include "httpc/httpc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "check.h"
#include "http_rig.h"
#include "httpc/problem.h"

#define JSON "Content-Type: application/json\r\n"
#define LEN(a) (sizeof(a) / sizeof((a)[0]))

struct world {
	struct http_rig rig;
	struct httpc *client;
	struct httpc_answer answer;
	struct err err;
};

static void begin(struct world *w, const struct http_step *steps, size_t n)
{
	*w = (struct world){ 0 };
	http_rig_start(&w->rig, steps, n);
	assert_int_equal(httpc_create(&(struct httpc_options){ .url = w->rig.url,
							       .key = "holt_secret",
							       .connect_ms = 2000 },
				      &w->client, &w->err),
			 0);
}

static void end(struct world *w)
{
	buf_done(&w->answer.body);
	w->client = httpc_free(w->client);
	http_rig_done(&w->rig);
}

static int get(struct world *w, const struct httpc_request *req)
{
	struct httpc_request r = *req;

	r.method = r.method ? r.method : "GET";
	r.target = r.target ? r.target : "/x";
	return httpc_request(w->client, &r, &w->answer, &w->err);
}

static void a_request_has_the_key_the_type_and_the_body(void **state)
{
	static const struct http_step steps[] = {
		{ .answer = "HTTP/1.1 201 Created\r\n" JSON "Content-Length: 2\r\n\r\n{}" },
	};
	struct world w;

	(void)state;
	begin(&w, steps, 1);
	assert_int_equal(get(&w, &(struct httpc_request){ .method = "POST",
							  .target = "/api/v1/sandboxes",
							  .accept = "application/json",
							  .type = "application/json",
							  .body = "{\"a\":1}",
							  .body_len = 7 }),
			 0);
	assert_int_equal(w.answer.status, 201);
	assert_string_equal(w.answer.body.data, "{}");
	http_rig_stop(&w.rig);
	assert_non_null(strstr(w.rig.got.data, "POST /api/v1/sandboxes HTTP/1.1\r\n"));
	assert_non_null(strstr(w.rig.got.data, "Authorization: Bearer holt_secret\r\n"));
	assert_non_null(strstr(w.rig.got.data, "Content-Type: application/json\r\n"));
	assert_non_null(strstr(w.rig.got.data, "\r\n\r\n{\"a\":1}"));
	end(&w);
}

static void a_refusal_becomes_its_message(void **state)
{
	static const struct http_step steps[] = {
		{ .answer = "HTTP/1.1 404 Not Found\r\n" JSON "Content-Length: 74\r\n\r\n"
			    "{\"error\":{\"code\":\"not_found\",\"message\":\"no sandbox 'x'\","
			    "\"details\":null}}" },
	};
	struct world w;

	(void)state;
	begin(&w, steps, 1);
	assert_int_equal(get(&w, &(struct httpc_request){ 0 }), -ENOENT);
	assert_int_equal(w.answer.status, 404);
	assert_string_equal(w.err.text, "no sandbox 'x'");
	end(&w);
}

static void a_refusal_that_is_no_json_is_told_by_its_status(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_int_equal(httpc_problem(502, "<html>", 6, &err), -EREMOTEIO);
	assert_string_equal(err.text, "the server answered with status 502");
	assert_int_equal(httpc_problem(429, NULL, 0, &err), -EAGAIN);
	assert_int_equal(httpc_problem(401, "{\"error\":{\"message\":\"\"}}", 24, &err), -EACCES);
	assert_int_equal(httpc_problem(403, "{\"error\":[]}", 12, &err), -EPERM);
	assert_int_equal(httpc_problem(418, "null", 4, &err), -EREMOTEIO);
}

static void a_redirect_is_not_followed(void **state)
{
	static const struct http_step steps[] = {
		{ .answer = "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n"
			    "Content-Length: 0\r\n\r\n" },
	};
	struct world w;

	(void)state;
	begin(&w, steps, 1);
	assert_int_equal(get(&w, &(struct httpc_request){ 0 }), -EXDEV);
	assert_int_equal(w.answer.status, 302);
	end(&w);
}

static void an_answer_of_another_type_is_not_the_api(void **state)
{
	static const struct http_step steps[] = {
		{ .answer = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n"
			    "\r\nhi" },
	};
	struct world w;

	(void)state;
	begin(&w, steps, 1);
	assert_int_equal(get(&w, &(struct httpc_request){ .accept = "application/json" }), -EPROTO);
	assert_non_null(
		strstr(w.err.text, "does not speak Holt's API (it answered with text/html"));
	end(&w);
}

static void an_answer_above_its_bound_is_refused(void **state)
{
	static const struct http_step steps[] = {
		{ .answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345" },
		{ .answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345" },
	};
	struct world w;

	(void)state;
	begin(&w, steps, 2);
	assert_int_equal(get(&w, &(struct httpc_request){ .max = 5 }), 0);
	buf_done(&w.answer.body);
	assert_int_equal(get(&w, &(struct httpc_request){ .max = 4 }), -EFBIG);
	assert_non_null(strstr(w.err.text, "more than 4 bytes"));
	end(&w);
}

static void an_answer_that_breaks_off_is_not_a_success(void **state)
{
	static const struct http_step steps[] = {
		{ .answer = "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf" },
		{ .answer = "" },
		{ .answer = "SSH-2.0-OpenSSH_9.2\r\n\r\n" },
	};
	struct world w;

	(void)state;
	begin(&w, steps, 3);
	assert_int_equal(get(&w, &(struct httpc_request){ 0 }), -ECONNRESET);
	assert_int_equal(get(&w, &(struct httpc_request){ 0 }), -ECONNRESET);
	assert_int_equal(w.answer.status, 0);
	assert_int_equal(get(&w, &(struct httpc_request){ 0 }), -EPROTO);
	end(&w);
}

static void a_server_that_says_nothing_is_given_up(void **state)
{
	static const struct http_step steps[] = { { .answer = "", .after_ms = 1500 } };
	struct world w;

	(void)state;
	begin(&w, steps, 1);
	assert_int_equal(get(&w, &(struct httpc_request){ .timeout_ms = 100 }), -ETIMEDOUT);
	end(&w);
}

static void an_address_without_a_server_is_refused(void **state)
{
	struct http_rig rig;
	struct httpc *c = NULL;
	struct err err = { 0 };

	(void)state;
	http_rig_start(&rig, NULL, 0);
	http_rig_stop(&rig); /* the port was free a moment ago */
	assert_int_equal(httpc_create(&(struct httpc_options){ .url = rig.url }, &c, &err), 0);
	assert_int_equal(httpc_request(c, &(struct httpc_request){ .method = "GET", .target = "/" },
				       NULL, &err),
			 -ECONNREFUSED);
	c = httpc_free(c);
	assert_int_equal(
		httpc_create(&(struct httpc_options){ .url = "unix:/nonexistent/s" }, &c, &err), 0);
	assert_int_equal(httpc_request(c, &(struct httpc_request){ .method = "GET", .target = "/" },
				       NULL, &err),
			 -ECONNREFUSED);
	assert_int_equal(err.code, ECONNREFUSED);
	c = httpc_free(c);
	http_rig_done(&rig);
}

static void a_key_that_would_break_the_header_is_refused(void **state)
{
	static const char *const bad[] = { "", "a\r\nX: y", "a b", "\x7f", "caf\xc3\xa9" };
	struct httpc *c = NULL;
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < LEN(bad); i++)
		assert_int_equal(httpc_create(&(struct httpc_options){ .url = "http://127.0.0.1:1",
								       .key = bad[i] },
					      &c, &err),
				 -EINVAL);
	assert_null(c);
}

struct taker {
	struct httpc_call *call;
	struct buf got;
	int holds, fail;
};

static int take(void *user, const void *data, size_t n)
{
	struct taker *t = user;

	if (t->holds > 0) {
		t->holds--;
		return HTTPC_HOLD;
	}
	return t->fail ? t->fail : buf_append(&t->got, data, n);
}

static void bytes_that_are_held_come_again(void **state)
{
	static const struct http_step steps[] = {
		{ .answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345" },
	};
	struct taker t = { .holds = 2 };
	struct world w;

	(void)state;
	begin(&w, steps, 1);
	assert_int_equal(
		httpc_begin(w.client,
			    &(struct httpc_request){
				    .method = "GET", .target = "/", .data = take, .user = &t },
			    &t.call, &w.err),
		0);
	for (int i = 0; i < 200 && !httpc_is_over(t.call); i++) {
		bool was_held = t.holds < 2;

		assert_int_equal(httpc_turn(w.client, NULL, 0, 50, &w.err), 0);
		assert_true(t.holds == 0 || t.got.len == 0);
		if (was_held)
			httpc_resume(t.call);
	}
	assert_int_equal(httpc_result(t.call, NULL, &w.err), 0);
	assert_int_equal(t.holds, 0);
	assert_string_equal(t.got.data, "12345");
	t.call = httpc_call_free(t.call);
	buf_done(&t.got);
	end(&w);
}

/* Otherwise a caller who has just got something to write would not be asked where. */
static void a_turn_that_brought_bytes_does_not_wait_for_more(void **state)
{
	static const struct http_step steps[] = {
		{ .answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n1",
		  .after_ms = 300,
		  .more = "2",
		  .more_after_ms = 3000 },
	};
	struct taker t = { 0 };
	uint64_t began;
	struct world w;

	(void)state;
	begin(&w, steps, 1);
	began = clock_now_ms();
	assert_int_equal(
		httpc_begin(w.client,
			    &(struct httpc_request){
				    .method = "GET", .target = "/", .data = take, .user = &t },
			    &t.call, &w.err),
		0);
	while (clock_now_ms() - began < 200) /* until it has been sent */
		assert_int_equal(httpc_turn(w.client, NULL, 0, 20, &w.err), 0);
	(void)usleep(600000); /* the answer comes while nobody waits */
	assert_int_equal(t.got.len, 0);
	assert_int_equal(httpc_turn(w.client, NULL, 0, -1, &w.err), 0);
	assert_int_equal(t.got.len, 1);
	assert_true(clock_now_ms() - began < 1600);
	t.call = httpc_call_free(t.call);
	buf_done(&t.got);
	end(&w);
}

static void what_a_callback_returns_is_the_result(void **state)
{
	static const struct http_step steps[] = {
		{ .answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345" },
	};
	struct taker t = { .fail = -ENOSPC };
	struct world w;

	(void)state;
	begin(&w, steps, 1);
	assert_int_equal(get(&w, &(struct httpc_request){ .data = take, .user = &t }), -ENOSPC);
	end(&w);
}

static ssize_t three_times(void *user, void *dst, size_t n)
{
	int *left = user;

	assert_true(n >= 4);
	if (*left == 0)
		return 0;
	(*left)--;
	memcpy(dst, "abc,", 4);
	return 4;
}

static void a_body_can_come_piece_by_piece(void **state)
{
	static const struct http_step steps[] = {
		{ .answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" },
		{ .answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" },
	};
	struct httpc_request req = { .method = "PUT", .read = three_times, .read_size = 12 };
	int left = 3;
	struct world w;

	(void)state;
	begin(&w, steps, 2);
	req.user = &left;
	assert_int_equal(get(&w, &req), 0);
	left = 2;
	req.read_size = -1;
	req.headers = (const char *const[]){ "Expect:", NULL };
	assert_int_equal(get(&w, &req), 0);
	http_rig_stop(&w.rig);
	assert_non_null(strstr(w.rig.got.data, "Content-Length: 12\r\n"));
	assert_non_null(strstr(w.rig.got.data, "\r\n\r\nabc,abc,abc,"));
	assert_non_null(strstr(w.rig.got.data, "Transfer-Encoding: chunked\r\n"));
	end(&w);
}

static void our_own_descriptors_are_waited_for_too(void **state)
{
	static const struct http_step steps[] = {
		{ .answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", .after_ms = 1000 },
	};
	struct httpc_call *call = NULL;
	struct pollfd fds[2] = { { .fd = -1 }, { .events = POLLIN } };
	uint64_t began = clock_now_ms();
	struct world w;
	int p[2];

	(void)state;
	begin(&w, steps, 1);
	assert_int_equal(pipe(p), 0);
	(void)close(p[1]); /* an end of input is POLLHUP alone */
	fds[1].fd = p[0];
	assert_int_equal(httpc_begin(w.client,
				     &(struct httpc_request){ .method = "GET", .target = "/" },
				     &call, &w.err),
			 0);
	while (fds[1].revents == 0 && clock_now_ms() - began < 900)
		assert_int_equal(httpc_turn(w.client, fds, 2, 900, &w.err), 0);
	assert_true(fds[1].revents & POLLHUP);
	assert_int_equal(fds[0].revents, 0);
	call = httpc_call_free(call); /* in the middle */
	(void)close(p[0]);
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_has_the_key_the_type_and_the_body),
		cmocka_unit_test(a_refusal_becomes_its_message),
		cmocka_unit_test(a_refusal_that_is_no_json_is_told_by_its_status),
		cmocka_unit_test(a_redirect_is_not_followed),
		cmocka_unit_test(an_answer_of_another_type_is_not_the_api),
		cmocka_unit_test(an_answer_above_its_bound_is_refused),
		cmocka_unit_test(an_answer_that_breaks_off_is_not_a_success),
		cmocka_unit_test(a_server_that_says_nothing_is_given_up),
		cmocka_unit_test(an_address_without_a_server_is_refused),
		cmocka_unit_test(a_key_that_would_break_the_header_is_refused),
		cmocka_unit_test(bytes_that_are_held_come_again),
		cmocka_unit_test(a_turn_that_brought_bytes_does_not_wait_for_more),
		cmocka_unit_test(what_a_callback_returns_is_the_result),
		cmocka_unit_test(a_body_can_come_piece_by_piece),
		cmocka_unit_test(our_own_descriptors_are_waited_for_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
