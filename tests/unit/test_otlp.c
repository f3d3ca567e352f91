#include "outbound/otlp.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "check.h"
#include "http_rig.h"
#include "loop/loop.h"
#include "outbound/courier.h"
#include "telemetry/metrics.h"
#include "telemetry/trace.h"

#define OK "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
#define BUSY "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"
#define LATER "HTTP/1.1 429 Later\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
#define BAD "HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n"
#define PARTLY                                                                            \
	"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 56\r\n\r\n" \
	"{\"partialSuccess\":{\"rejectedSpans\":\"1\",\"message\":\"\"}}    "
#define LIMIT_MS 20000
#define BATCH 20

struct rig {
	struct loop *loop;
	struct metrics *metrics;
	struct courier *courier;
	struct otlp *otlp;
	struct http_rig http;
	struct loop_timer *look;
	const char *fate; /* waited for */
	double want;
	uint64_t until_ms;
	unsigned flushed;
	uint64_t asked_ms;
};

static double fate(const struct rig *g, const char *name)
{
	return metrics_value(g->metrics, METRIC_TRACE_SPANS, LABELS(name));
}

static void look(void *user)
{
	struct rig *g = user;

	if (clock_now_ms() > g->until_ms)
		fail_msg("%s did not become %g", g->fate, g->want);
	if (fate(g, g->fate) >= g->want)
		loop_stop(g->loop);
}

static void wait_for(struct rig *g, const char *name, double n)
{
	g->fate = name;
	g->want = n;
	g->until_ms = clock_now_ms() + LIMIT_MS;
	loop_timer_start(g->look, 1, 5);
	loop_run(g->loop);
	loop_timer_stop(g->look);
	assert_true(fate(g, name) == n);
}

static int setup(void **state)
{
	static struct rig g;

	g = (struct rig){ 0 };
	assert_int_equal(loop_create(&g.loop, NULL), 0);
	g.metrics = metrics_create();
	assert_non_null(g.metrics);
	assert_int_equal(courier_create(g.loop, &g.courier, NULL), 0);
	assert_int_equal(loop_timer_create(g.loop, look, &g, &g.look), 0);
	*state = &g;
	return 0;
}

static int teardown(void **state)
{
	struct rig *g = *state;

	g->courier = courier_free(g->courier);
	g->otlp = otlp_free(g->otlp);
	g->look = loop_timer_free(g->look);
	g->loop = loop_free(g->loop);
	g->metrics = metrics_free(g->metrics);
	return 0;
}

static void open_to(struct rig *g, const char *url, const char *headers)
{
	struct otlp_options o = { .loop = g->loop,
				  .courier = g->courier,
				  .metrics = g->metrics,
				  .endpoint = url,
				  .headers = headers,
				  .service = "s",
				  .version = "v",
				  .sample = 1,
				  .batch = BATCH,
				  .every_ms = 10,
				  .backoff_ms = 10 };

	assert_int_equal(otlp_create(&o, &g->otlp, NULL), 0);
	courier_set_tracer(g->courier, otlp_tracer(g->otlp));
}

static void start(struct rig *g, const struct http_step *steps, size_t n)
{
	http_rig_start(&g->http, steps, n);
	open_to(g, g->http.url, "authorization=Bearer%20abc, x-team = a b ");
}

static void add_spans(struct rig *g, size_t n)
{
	struct trace_context root;

	trace_begin(otlp_tracer(g->otlp), &root);
	for (size_t i = 0; i < n; i++)
		span_end(span_begin(otlp_tracer(g->otlp), &root, SPAN_INTERNAL, "a-span"));
}

static size_t count(const struct buf *b, const char *what)
{
	size_t n = 0;

	for (const char *p = buf_str(b); (p = strstr(p, what)); p += strlen(what))
		n++;
	return n;
}

static void a_batch_reaches_the_collector(void **state)
{
	static const struct http_step steps[] = { { .answer = OK } };
	struct rig *g = *state;

	start(g, steps, 1);
	add_spans(g, 3);
	wait_for(g, "sent", 3);
	http_rig_stop(&g->http);
	assert_non_null(strstr(buf_str(&g->http.got), "POST /v1/traces HTTP/1.1\r\n"));
	assert_non_null(strstr(buf_str(&g->http.got), "authorization: Bearer abc\r\n"));
	assert_non_null(strstr(buf_str(&g->http.got), "x-team: a b\r\n"));
	assert_non_null(strstr(buf_str(&g->http.got), "Content-Type: application/json\r\n"));
	assert_int_equal(count(&g->http.got, "\"a-span\""), 3);
	assert_null(strstr(buf_str(&g->http.got), "traceparent")); /* of itself it tells nothing */
	http_rig_done(&g->http);
}

static void many_spans_are_several_batches(void **state)
{
	static const struct http_step steps[] = { { .answer = OK }, { .answer = OK } };
	struct rig *g = *state;

	start(g, steps, 2);
	add_spans(g, BATCH + 1);
	wait_for(g, "sent", BATCH + 1);
	http_rig_stop(&g->http);
	assert_int_equal(count(&g->http.got, "POST /v1/traces"), 2);
	http_rig_done(&g->http);
}

static void a_collector_that_is_busy_is_asked_again(void **state)
{
	static const struct http_step steps[] = { { .answer = BUSY },
						  { .answer = LATER },
						  { .answer = OK } };
	struct rig *g = *state;
	uint64_t began = clock_now_ms();

	start(g, steps, 3);
	add_spans(g, 2);
	wait_for(g, "sent", 2);
	assert_true(clock_now_ms() - began >= 1000); /* as the second answer said */
	http_rig_stop(&g->http);
	assert_int_equal(count(&g->http.got, "\"a-span\""), 6);
	http_rig_done(&g->http);
	assert_true(fate(g, "refused") == 0 && fate(g, "unsent") == 0);
}

static void what_a_collector_refuses_is_not_sent_again(void **state)
{
	static const struct http_step steps[] = { { .answer = BAD }, { .answer = PARTLY } };
	struct rig *g = *state;

	start(g, steps, 2);
	add_spans(g, 2);
	wait_for(g, "refused", 2);
	add_spans(g, 4);
	wait_for(g, "sent", 3);
	assert_true(fate(g, "refused") == 3);
	http_rig_stop(&g->http);
	http_rig_done(&g->http);
}

static void a_dead_collector_costs_only_the_spans(void **state)
{
	struct rig *g = *state;

	open_to(g, "http://127.0.0.1:1/prefix/", NULL); /* nobody is there */
	add_spans(g, 2);
	wait_for(g, "unsent", 2);
	add_spans(g, 2 * TRACE_SPANS_MAX);
	assert_true(fate(g, "dropped") == TRACE_SPANS_MAX);
	assert_int_equal(tracer_waiting(otlp_tracer(g->otlp)), TRACE_SPANS_MAX);
}

static void flushed(void *user)
{
	struct rig *g = user;

	g->flushed++;
	loop_stop(g->loop);
}

static void flush(struct rig *g, uint64_t max_ms)
{
	otlp_flush(g->otlp, max_ms, flushed, g);
	assert_int_equal(g->flushed, 0);
	loop_run(g->loop);
	assert_int_equal(g->flushed, 1);
}

static void what_is_left_is_sent_at_the_end(void **state)
{
	static const struct http_step steps[] = { { .answer = OK }, { .answer = OK } };
	struct rig *g = *state;

	http_rig_start(&g->http, steps, 2);
	open_to(g, g->http.url, "");
	add_spans(g, BATCH + 5);
	flush(g, LIMIT_MS);
	assert_true(fate(g, "sent") == BATCH + 5);
	http_rig_stop(&g->http);
	http_rig_done(&g->http);
}

static void an_end_does_not_wait_for_a_dead_collector(void **state)
{
	struct rig *g = *state;

	open_to(g, "http://127.0.0.1:1", NULL);
	add_spans(g, 5);
	flush(g, LIMIT_MS);
	assert_true(fate(g, "unsent") == 5);
}

static void an_end_does_not_wait_for_a_silent_collector(void **state)
{
	static const struct http_step steps[] = { { .answer = OK, .after_ms = 60000 } };
	struct rig *g = *state;
	uint64_t began = clock_now_ms();

	http_rig_start(&g->http, steps, 1);
	open_to(g, g->http.url, NULL);
	add_spans(g, 5);
	flush(g, 50);
	assert_true(clock_now_ms() - began < LIMIT_MS);
	(void)kill(g->http.pid, SIGKILL);
	http_rig_done(&g->http);
}

static void an_end_with_nothing_to_say_is_quick(void **state)
{
	struct rig *g = *state;

	open_to(g, "http://127.0.0.1:1", NULL);
	flush(g, LIMIT_MS);
	assert_true(fate(g, "unsent") == 0);
}

static void asked(void *user, const struct courier_answer *a)
{
	struct rig *g = user;

	assert_int_equal(a->status, 200);
	loop_stop(g->loop);
}

static void other_requests_are_spans_and_say_so(void **state)
{
	static const struct http_step steps[] = { { .answer = OK }, { .answer = OK } };
	struct rig *g = *state;
	struct courier_request req = { .method = "GET", .max = 100, .timeout_ms = LIMIT_MS };
	char url[100];

	http_rig_start(&g->http, steps, 2);
	open_to(g, g->http.url, NULL);
	assert_true(snprintf(url, sizeof(url), "%s/keys?secret=1", g->http.url) > 0);
	req.url = url;
	assert_int_equal(courier_send(g->courier, &req, asked, g), 0);
	loop_run(g->loop);
	wait_for(g, "sent", 1);
	http_rig_stop(&g->http);
	assert_int_equal(count(&g->http.got, "\r\ntraceparent: 00-"), 1);
	assert_int_equal(count(&g->http.got, "\"kind\":3"), 1);
	assert_int_equal(count(&g->http.got, "secret"), 1); /* in the request itself only */
	http_rig_done(&g->http);
}

static void bad_addresses_and_headers_are_refused(void **state)
{
	static const struct {
		const char *url, *headers;
	} bad[] = {
		{ "ftp://x", NULL },
		{ "collector:4318", NULL },
		{ "http://", NULL },
		{ "http://x", "token" },
		{ "http://x", "=v" },
		{ "http://x", "a b=v" },
		{ "http://x", "a=%0d%0aB:x" },
		{ "http://x", "a=%4" },
		{ "http://x", "a=%zz" },
		{ "http://x", "1=1,2=2,3=3,4=4,5=5,6=6,7=7,8=8,9=9" },
	};
	struct rig *g = *state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct otlp_options o = { .loop = g->loop,
					  .courier = g->courier,
					  .endpoint = bad[i].url,
					  .headers = bad[i].headers,
					  .service = "s",
					  .version = "v" };
		struct err err = { 0 };

		assert_int_equal(otlp_create(&o, &g->otlp, &err), -EINVAL);
		assert_int_equal(err.code, EINVAL);
		assert_null(strstr(err.text, "token"));
	}
	assert_null(otlp_tracer(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(a_batch_reaches_the_collector),
		TEST(many_spans_are_several_batches),
		TEST(a_collector_that_is_busy_is_asked_again),
		TEST(what_a_collector_refuses_is_not_sent_again),
		TEST(a_dead_collector_costs_only_the_spans),
		TEST(what_is_left_is_sent_at_the_end),
		TEST(an_end_does_not_wait_for_a_dead_collector),
		TEST(an_end_does_not_wait_for_a_silent_collector),
		TEST(an_end_with_nothing_to_say_is_quick),
		TEST(other_requests_are_spans_and_say_so),
		TEST(bad_addresses_and_headers_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
