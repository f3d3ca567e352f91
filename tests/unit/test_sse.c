#include "net/sse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "check.h"
#include "net/exchange.h"
#include "net_rig.h"

#define H "Host: a\r\n"

struct test {
	struct net_rig g;
	struct net_client c;
	struct http_request *r;
	struct sse *s;
	bool gone, drained;
	char last[64];
};

static void on_gone(void *user, struct http_request *r)
{
	(void)r;
	((struct test *)user)->gone = true;
}

static void on_drain(void *user, struct http_request *r)
{
	(void)r;
	((struct test *)user)->drained = true;
}

static void handle(void *user, struct http_request *r)
{
	struct test *t = user;
	const char *last = sse_last_id(r);

	(void)str_copy(t->last, sizeof(t->last), last ? last : "none");
	t->r = r;
	http_on_gone(r, on_gone, t);
	http_on_drain(r, 1000, on_drain, t);
	t->s = sse_begin(r);
	assert_non_null(t->s);
}

static int setup(void **state)
{
	struct test *t = calloc(1, sizeof(*t));
	struct http_server_options o = { .handle = handle, .user = t };

	o.limits.linger_ms = 40; /* deadlines are looked at every 10 ms */

	assert_non_null(t);
	net_rig_open(&t->g, &o);
	net_client_open(&t->c, &t->g);
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct test *t = *state;

	net_client_close(&t->c);
	net_rig_close(&t->g);
	free(t);
	return 0;
}

static void begin(struct test *t, const char *target, const char *headers)
{
	net_client_puts(&t->c, "GET ");
	net_client_puts(&t->c, target);
	net_client_puts(&t->c, " HTTP/1.1\r\n" H);
	net_client_puts(&t->c, headers);
	net_client_puts(&t->c, "\r\n");
	net_client_until(&t->c, "\r\n\r\n");
}

/* One event as the client gets it, without its chunk's frame. */
static void check(struct test *t, const char *id, const char *event, const char *data, size_t n,
		  const char *want)
{
	const char *p;

	net_client_forget(&t->c);
	assert_true(sse_event(t->s, id, event, data, n) >= 0);
	net_client_until(&t->c, "\n\n\r\n");
	p = strstr(buf_str(&t->c.got), "\r\n");
	assert_non_null(p);
	assert_int_equal(t->c.got.len - (size_t)(p + 2 - t->c.got.data), strlen(want) + 2);
	assert_memory_equal(p + 2, want, strlen(want));
}

static void the_head_says_what_it_is_and_that_nobody_may_keep_it(void **state)
{
	struct test *t = *state;

	begin(t, "/", "");
	assert_true(net_client_has(&t->c, "HTTP/1.1 200 OK\r\n"));
	assert_true(net_client_has(&t->c, "Content-Type: text/event-stream\r\n"));
	assert_true(net_client_has(&t->c, "Cache-Control: no-store\r\n"));
	assert_true(net_client_has(&t->c, "X-Accel-Buffering: no\r\n"));
	assert_true(net_client_has(&t->c, "Transfer-Encoding: chunked\r\n"));
	assert_string_equal(t->last, "none");
}

static void events_are_lines_whatever_they_contain(void **state)
{
	struct test *t = *state;

	begin(t, "/", "");
	check(t, "7", "output", "hello", 5, "id: 7\nevent: output\ndata: hello\n\n");
	check(t, NULL, NULL, "hello", 5, "data: hello\n\n");
	check(t, NULL, NULL, NULL, 0, "data: \n\n");
	check(t, NULL, NULL, "a\nb", 3, "data: a\ndata: b\n\n");
	check(t, NULL, NULL, "a\r\nb\rc\n", 7, "data: a\ndata: b\ndata: c\ndata: \n\n");
	check(t, NULL, NULL, "\n", 1, "data: \ndata: \n\n");
	check(t, NULL, NULL, "\r\n", 2, "data: \ndata: \n\n");
	check(t, NULL, NULL, "a\n\nid: 9", 8, "data: a\ndata: \ndata: id: 9\n\n");
	check(t, NULL, NULL, "a\n\revent: x", 11, "data: a\ndata: \ndata: event: x\n\n");
	net_client_forget(&t->c);
	assert_true(sse_retry(t->s, 2500) >= 0);
	net_client_until(&t->c, "retry: 2500\n\n");
}

static void an_id_or_event_of_two_lines_is_refused(void **state)
{
	struct test *t = *state;

	begin(t, "/", "");
	assert_int_equal(sse_event(t->s, "1\n2", NULL, "x", 1), -EINVAL);
	assert_int_equal(sse_event(t->s, "1\r2", NULL, "x", 1), -EINVAL);
	assert_int_equal(sse_event(t->s, NULL, "a\ndata: forged", "x", 1), -EINVAL);
	check(t, NULL, NULL, "y", 1, "data: y\n\n"); /* nothing of them was sent */
}

static void what_the_client_saw_last_is_known(void **state)
{
	struct test *t = *state;
	struct net_client other;

	begin(t, "/", "Last-Event-ID: 41\r\n");
	assert_string_equal(t->last, "41");
	net_client_open(&other, &t->g);
	net_client_puts(&other, "GET /?lastEventId=4%32 HTTP/1.1\r\n" H "\r\n");
	net_client_until(&other, "\r\n\r\n");
	assert_string_equal(t->last, "42");
	net_client_close(&other);
}

static void a_stream_ends_and_the_connection_goes_on(void **state)
{
	struct test *t = *state;

	begin(t, "/", "");
	check(t, NULL, NULL, "x", 1, "data: x\n\n");
	sse_end(t->s);
	net_client_until(&t->c, "0\r\n\r\n");
	net_client_forget(&t->c);
	begin(t, "/again", "");
	assert_false(t->gone);
}

static void a_quiet_stream_pings(void **state)
{
	struct test *t = *state;

	begin(t, "/", "");
	net_client_forget(&t->c);
	net_rig_run_ms(&t->g, 60);
	assert_int_equal(t->c.got.len, 0);
	t->r->c.queued_ms -= 15000; /* nothing was written for so long */
	net_client_until(&t->c, ":\n\n");
	net_rig_run_ms(&t->g, 60);
	assert_string_equal(buf_str(&t->c.got), "3\r\n:\n\n\r\n"); /* once */
}

static void a_leaving_client_is_noticed(void **state)
{
	struct test *t = *state;

	begin(t, "/", "");
	net_client_close(&t->c);
	net_rig_until(&t->g, &t->gone);
	net_client_open(&t->c, &t->g);
}

static void a_client_that_does_not_read_is_seen_by_what_is_pending(void **state)
{
	struct test *t = *state;
	char *data = malloc(100000);
	ssize_t n = 0;

	assert_non_null(data);
	memset(data, 'x', 100000);
	begin(t, "/", "");
	net_client_read(&t->c, false);
	for (int i = 0; i < 100 && n < 1 << 20; i++)
		n = sse_event(t->s, NULL, NULL, data, 100000);
	assert_true(n >= 1 << 20);
	net_rig_run_ms(&t->g, 20);
	assert_false(t->drained);
	net_client_read(&t->c, true);
	net_rig_until(&t->g, &t->drained);
	free(data);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_head_says_what_it_is_and_that_nobody_may_keep_it),
		T(events_are_lines_whatever_they_contain),
		T(an_id_or_event_of_two_lines_is_refused),
		T(what_the_client_saw_last_is_known),
		T(a_stream_ends_and_the_connection_goes_on),
		T(a_quiet_stream_pings),
		T(a_leaving_client_is_noticed),
		T(a_client_that_does_not_read_is_seen_by_what_is_pending),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
