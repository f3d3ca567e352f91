#include "telemetry/trace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "check.h"
#include "fault.h"
#include "telemetry/metrics.h"
#include "json/jv.h"

static unsigned told;

static void full(void *user)
{
	(void)user;
	told++;
}

struct rig {
	struct metrics *metrics;
	struct tracer *t;
};

static struct tracer *make(struct rig *rig, double sample)
{
	return tracer_create(&(struct tracer_options){ .service = "boxes \"here\"",
						       .version = "1.2",
						       .sample = sample,
						       .metrics = rig->metrics,
						       .batch = 3,
						       .full = full });
}

static int setup(void **state)
{
	static struct rig rig;

	rig.metrics = metrics_create();
	rig.t = make(&rig, 1);
	told = 0;
	*state = &rig;
	return rig.metrics && rig.t ? 0 : -1;
}

static int teardown(void **state)
{
	struct rig *rig = *state;

	rig->t = tracer_free(rig->t);
	rig->metrics = metrics_free(rig->metrics);
	return 0;
}

static double fate(const struct rig *rig, const char *name)
{
	return metrics_value(rig->metrics, METRIC_TRACE_SPANS, LABELS(name));
}

/* The spans of what is taken; the caller frees the document. */
static struct jv take(struct tracer *t, size_t max, struct jv_doc **ret)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct err err = { 0 };
	size_t n;

	assert_int_equal(tracer_take(t, max, &b, &n), 0);
	assert_int_equal(jv_parse(b.data, b.len, b.len, ret, &err), 0);
	return jv_get(
		jv_at(jv_get(jv_at(jv_get(jv_root(*ret), "resourceSpans"), 0), "scopeSpans"), 0),
		"spans");
}

static const char *text(struct jv v)
{
	const char *s = jv_text(v);

	assert_non_null(s);
	return s;
}

static void a_request_has_the_shape_of_otlp(void **state)
{
	static const struct trace_context parent = { .trace_id = { 0x0a, [15] = 0x9c },
						     .span_id = { 0xb7, [7] = 0x31 },
						     .flags = TRACE_SAMPLED };
	struct rig *rig = *state;
	struct trace_context self = parent;
	_cleanup_(buf_done) struct buf b = { 0 }, want = { 0 };
	struct span *s = span_begin(rig->t, &parent, SPAN_SERVER, "GET /x");
	int64_t base = clock_wall_ns() - (int64_t)clock_now_ns();
	const char *times;
	size_t n = 0;

	memset(self.span_id, 0xee, sizeof(self.span_id));
	span_set_context(s, &self);
	span_set_start(s, 1000000);
	span_str(s, "http.route", "/x\n");
	span_str(s, "nothing", "");
	span_str(s, "nothing", NULL);
	span_int(s, "http.response.status_code", 500);
	span_bool(s, "warm", true);
	span_fail(s, "did \"not\"");
	span_end_at(s, 3000000);
	assert_int_equal(tracer_waiting(rig->t), 1);
	assert_int_equal(tracer_take(rig->t, 10, &b, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(tracer_waiting(rig->t), 0);
	times = strstr(buf_str(&b), "\"startTimeUnixNano\":\"");
	assert_non_null(times);
	buf_printf(&want,
		   "{\"resourceSpans\":[{\"resource\":{\"attributes\":["
		   "{\"key\":\"service.name\",\"value\":{\"stringValue\":\"boxes \\\"here\\\"\"}},"
		   "{\"key\":\"service.version\",\"value\":{\"stringValue\":\"1.2\"}}]},"
		   "\"scopeSpans\":[{\"scope\":{\"name\":\"holt\",\"version\":\"1.2\"},\"spans\":[{"
		   "\"traceId\":\"0a00000000000000000000000000009c\","
		   "\"spanId\":\"eeeeeeeeeeeeeeee\",\"parentSpanId\":\"b700000000000031\","
		   "\"flags\":1,\"name\":\"GET /x\",\"kind\":2,"
		   "%.*s,\"endTimeUnixNano\":\"%.*s\",\"attributes\":["
		   "{\"key\":\"http.route\",\"value\":{\"stringValue\":\"/x\\n\"}},"
		   "{\"key\":\"http.response.status_code\",\"value\":{\"intValue\":\"500\"}},"
		   "{\"key\":\"warm\",\"value\":{\"boolValue\":true}}],"
		   "\"status\":{\"code\":2,\"message\":\"did \\\"not\\\"\"}}]}]}]}",
		   41, times, 19, times + 61);
	assert_string_equal(buf_str(&b), buf_str(&want));
	/* Nanoseconds since 1970, of 19 digits, and 2 ms apart. */
	{
		_free_ char *start = str_dup((struct str){ times + 21, 19 });
		_free_ char *end = str_dup((struct str){ times + 61, 19 });
		long long from, to;

		assert_int_equal(sscanf(start, "%lld", &from), 1);
		assert_int_equal(sscanf(end, "%lld", &to), 1);
		assert_int_equal(to - from, 2000000);
		assert_true(from - (base + 1000000) < 1000000000 &&
			    (base + 1000000) - from < 1000000000);
	}
}

static void children_are_below_their_parents(void **state)
{
	struct rig *rig = *state;
	struct trace_context root;
	struct span *a, *b;
	struct jv_doc *doc = NULL;
	struct jv spans;

	trace_begin(rig->t, &root);
	a = span_begin(rig->t, &root, SPAN_SERVER, "a");
	b = span_begin(rig->t, span_context(a), SPAN_INTERNAL, "b");
	span_end(b);
	span_end(a);
	spans = take(rig->t, 10, &doc);
	assert_int_equal(jv_len(spans), 2);
	assert_string_equal(text(jv_get(jv_at(spans, 0), "name")), "b");
	assert_string_equal(text(jv_get(jv_at(spans, 0), "parentSpanId")),
			    text(jv_get(jv_at(spans, 1), "spanId")));
	assert_string_equal(text(jv_get(jv_at(spans, 0), "traceId")),
			    text(jv_get(jv_at(spans, 1), "traceId")));
	assert_int_equal(jv_kind(jv_get(jv_at(spans, 1), "parentSpanId")),
			 JV_ABSENT); /* the trace began here */
	(void)jv_free(doc);
}

static void without_a_tracer_or_a_trace_there_is_nothing(void **state)
{
	struct rig *rig = *state;
	struct trace_context root, none = { .flags = TRACE_SAMPLED };

	trace_begin(rig->t, &root);
	assert_null(span_begin(NULL, &root, SPAN_INTERNAL, "x"));
	assert_null(span_begin(rig->t, NULL, SPAN_INTERNAL, "x"));
	assert_null(span_begin(rig->t, &none, SPAN_INTERNAL, "x"));
	root.flags = TRACE_RANDOM;
	assert_null(span_begin(rig->t, &root, SPAN_INTERNAL, "x"));
	assert_null(span_context(NULL));
	span_set_context(NULL, &root);
	span_set_start(NULL, 1);
	span_str(NULL, "a", "b");
	span_int(NULL, "a", 1);
	span_bool(NULL, "a", true);
	span_fail(NULL, "a");
	span_end(NULL);
	span_end_at(NULL, 1);
	span_drop(NULL);
	assert_int_equal(tracer_waiting(rig->t), 0);
}

static void a_share_of_the_traces_is_sampled(void **state)
{
	static const struct {
		double share;
		unsigned min, max;
	} table[] = { { 0, 0, 0 }, { 1, 4000, 4000 }, { 0.25, 700, 1300 }, { 7, 4000, 4000 } };
	struct rig *rig = *state;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct tracer *t = make(rig, table[i].share);
		unsigned n = 0;

		for (unsigned k = 0; k < 4000; k++) {
			struct trace_context c;

			trace_begin(t, &c);
			assert_true(trace_is_set(&c));
			n += c.flags & TRACE_SAMPLED;
		}
		assert_in_range(n, table[i].min, table[i].max);
		(void)tracer_free(t);
	}
}

static void the_oldest_give_way_and_are_counted(void **state)
{
	struct rig *rig = *state;
	struct trace_context root;
	struct jv_doc *doc = NULL;
	struct jv spans;
	char name[16];

	trace_begin(rig->t, &root);
	for (unsigned i = 0; i < TRACE_SPANS_MAX + 5; i++) {
		assert_int_equal(str_format(name, sizeof(name), "%u", i), 0);
		span_end(span_begin(rig->t, &root, SPAN_INTERNAL, name));
	}
	assert_int_equal(tracer_waiting(rig->t), TRACE_SPANS_MAX);
	assert_true(fate(rig, "dropped") == 5);
	spans = take(rig->t, 2, &doc);
	assert_int_equal(jv_len(spans), 2);
	assert_string_equal(text(jv_get(jv_at(spans, 0), "name")), "5");
	(void)jv_free(doc);
	assert_int_equal(tracer_waiting(rig->t), TRACE_SPANS_MAX - 2);
}

static void so_many_spans_may_be_open(void **state)
{
	struct rig *rig = *state;
	struct trace_context root;
	struct span *first;

	trace_begin(rig->t, &root);
	first = span_begin(rig->t, &root, SPAN_INTERNAL, "x");
	for (unsigned i = 1; i < TRACE_SPANS_MAX; i++)
		assert_non_null(span_begin(rig->t, &root, SPAN_INTERNAL, "x"));
	assert_null(span_begin(rig->t, &root, SPAN_INTERNAL, "x"));
	assert_true(fate(rig, "dropped") == 1);
	span_drop(first);
	assert_int_equal(tracer_waiting(rig->t), 0);
	assert_non_null(span_begin(rig->t, &root, SPAN_INTERNAL, "x"));
}

static void who_sends_is_told_once_of_a_batch(void **state)
{
	struct rig *rig = *state;
	struct trace_context root;
	struct jv_doc *doc = NULL;

	trace_begin(rig->t, &root);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(told, i >= 3);
		span_end(span_begin(rig->t, &root, SPAN_INTERNAL, "x"));
	}
	(void)take(rig->t, 5, &doc);
	doc = jv_free(doc);
	for (unsigned i = 0; i < 3; i++)
		span_end(span_begin(rig->t, &root, SPAN_INTERNAL, "x"));
	assert_int_equal(told, 2);
}

static void what_is_too_much_is_left_out_or_cut(void **state)
{
	struct rig *rig = *state;
	struct trace_context root;
	char huge[2 * SPAN_TEXT_MAX];
	struct jv_doc *doc = NULL;
	struct jv span;
	struct span *s;
	uint64_t lost = 0;

	memset(huge, 'h', sizeof(huge) - 1);
	huge[sizeof(huge) - 1] = '\0';
	memcpy(huge + SPAN_TEXT_MAX - 2, "\xc3\xa4", 2);
	trace_begin(rig->t, &root);
	s = span_begin(rig->t, &root, SPAN_INTERNAL, huge);
	for (unsigned i = 0; i < SPAN_ATTRS_MAX + 3; i++)
		span_str(s, "k", huge);
	span_fail(s, huge);
	span_end(s);
	span = jv_at(take(rig->t, 1, &doc), 0);
	assert_int_equal(jv_len(jv_get(span, "attributes")), SPAN_ATTRS_MAX);
	assert_int_equal(jv_u64(jv_get(span, "droppedAttributesCount"), &lost), 0);
	assert_int_equal(lost, 3);
	assert_true(strlen(text(jv_get(span, "name"))) < 128);
	s = span_begin(rig->t, &root, SPAN_INTERNAL, "x");
	span_str(s, "k", huge);
	span_end(s);
	doc = jv_free(doc);
	span = jv_at(take(rig->t, 1, &doc), 0);
	assert_int_equal(strlen(text(jv_get(jv_get(jv_at(jv_get(span, "attributes"), 0), "value"),
					    "stringValue"))),
			 SPAN_TEXT_MAX - 2); /* no half of a character */
	(void)jv_free(doc);
}

static int run_all(void *arg)
{
	struct rig *rig = arg;
	_cleanup_(buf_done) struct buf b = { 0 };
	struct trace_context root;
	struct span *s;
	struct tracer *t = make(rig, 1);
	size_t n;
	int r;

	if (!t)
		return -ENOMEM;
	trace_begin(t, &root);
	s = span_begin(t, &root, SPAN_INTERNAL, "x");
	span_end(s);
	r = s ? tracer_take(t, 1, &b, &n) : -ENOMEM;
	(void)tracer_free(t);
	return r;
}

static void without_memory_a_span_is_lost_and_nothing_else(void **state)
{
	struct rig *rig = *state;

	tracer_count(rig->t, TRACE_DROPPED,
		     1); /* the series exists: metrics may fail by themselves */
	assert_true(fault_each(run_all, rig) >= 4);
	assert_true(fate(rig, "dropped") >= 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_request_has_the_shape_of_otlp, setup, teardown),
		cmocka_unit_test_setup_teardown(children_are_below_their_parents, setup, teardown),
		cmocka_unit_test_setup_teardown(without_a_tracer_or_a_trace_there_is_nothing, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_share_of_the_traces_is_sampled, setup, teardown),
		cmocka_unit_test_setup_teardown(the_oldest_give_way_and_are_counted, setup,
						teardown),
		cmocka_unit_test_setup_teardown(so_many_spans_may_be_open, setup, teardown),
		cmocka_unit_test_setup_teardown(who_sends_is_told_once_of_a_batch, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_too_much_is_left_out_or_cut, setup,
						teardown),
		cmocka_unit_test_setup_teardown(without_memory_a_span_is_lost_and_nothing_else,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
