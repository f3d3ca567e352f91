#include "telemetry/metrics.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "check.h"
#include "fault.h"
#include "telemetry/process.h"

static int setup(void **state)
{
	*state = metrics_create();
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	metrics_free(*state);
	return 0;
}

/* Whether the exposition has this line. */
static bool shows(const struct metrics *m, const char *line)
{
	_cleanup_(buf_done) struct buf b = { 0 }, want = { 0 };

	assert_int_equal(metrics_render(m, &b), 0);
	buf_printf(&want, "\n%s\n", line);
	return strstr(buf_str(&b), buf_str(&want)) != NULL;
}

static void counters_add_up_by_label(void **state)
{
	struct metrics *m = *state;

	metrics_inc(m, METRIC_DENIALS, LABELS("quota"));
	metrics_add(m, METRIC_DENIALS, LABELS("quota"), 2);
	metrics_inc(m, METRIC_DENIALS, LABELS("forbidden"));
	assert_true(metrics_value(m, METRIC_DENIALS, LABELS("quota")) == 3);
	assert_true(metrics_value(m, METRIC_DENIALS, LABELS("other")) == 0);
	assert_true(metrics_value(m, METRIC_EXECUTIONS, LABELS("x")) == 0);
	assert_true(shows(m, "# TYPE holt_denials_total counter\n"
			     "holt_denials_total{reason=\"quota\"} 3\n"
			     "holt_denials_total{reason=\"forbidden\"} 1"));
}

static void gauges_go_up_and_down_and_away(void **state)
{
	struct metrics *m = *state;

	metrics_add(m, METRIC_HTTP_IN_FLIGHT, LABELS(), 2);
	metrics_add(m, METRIC_HTTP_IN_FLIGHT, LABELS(), -1);
	assert_true(shows(m, "holt_http_requests_in_flight 1"));
	metrics_set(m, METRIC_POOL_SIZE, LABELS("python"), 4);
	metrics_set(m, METRIC_POOL_SIZE, LABELS("python"), 3.5);
	assert_true(shows(m, "holt_pool_size{template=\"python\"} 3.5"));
	metrics_clear(m, METRIC_POOL_SIZE);
	assert_true(metrics_value(m, METRIC_POOL_SIZE, LABELS("python")) == 0);
	assert_false(shows(m, "# TYPE holt_pool_size gauge"));
	metrics_set(m, METRIC_POOL_SIZE, LABELS("node"), 1);
	assert_true(shows(m, "holt_pool_size{template=\"node\"} 1"));
}

static void histograms_cumulate(void **state)
{
	struct metrics *m = *state;

	metrics_observe(m, METRIC_STORE_WRITE_SECONDS, LABELS(), 0.0001); /* a bound is inside */
	metrics_observe(m, METRIC_STORE_WRITE_SECONDS, LABELS(), 0.0002);
	metrics_observe(m, METRIC_STORE_WRITE_SECONDS, LABELS(), 0.03);
	metrics_observe(m, METRIC_STORE_WRITE_SECONDS, LABELS(), 99);
	assert_true(metrics_value(m, METRIC_STORE_WRITE_SECONDS, LABELS()) == 4);
	assert_true(shows(m, "# TYPE holt_store_write_seconds histogram\n"
			     "holt_store_write_seconds_bucket{le=\"0.0001\"} 1\n"
			     "holt_store_write_seconds_bucket{le=\"0.0005\"} 2\n"
			     "holt_store_write_seconds_bucket{le=\"0.001\"} 2\n"
			     "holt_store_write_seconds_bucket{le=\"0.0025\"} 2\n"
			     "holt_store_write_seconds_bucket{le=\"0.005\"} 2\n"
			     "holt_store_write_seconds_bucket{le=\"0.01\"} 2\n"
			     "holt_store_write_seconds_bucket{le=\"0.05\"} 3\n"
			     "holt_store_write_seconds_bucket{le=\"0.1\"} 3\n"
			     "holt_store_write_seconds_bucket{le=\"0.5\"} 3\n"
			     "holt_store_write_seconds_bucket{le=\"1\"} 3\n"
			     "holt_store_write_seconds_bucket{le=\"+Inf\"} 4\n"
			     "holt_store_write_seconds_sum 99.0303\n"
			     "holt_store_write_seconds_count 4"));
}

static void several_labels_stand_in_order(void **state)
{
	struct metrics *m = *state;

	metrics_observe(m, METRIC_HTTP_REQUEST_SECONDS, LABELS("/a/:id", "GET", "2xx"), 1);
	metrics_observe(m, METRIC_HTTP_REQUEST_SECONDS, LABELS("/a/:id", "GE", "T2xx"), 1);
	assert_true(shows(m, "holt_http_request_seconds_count{route=\"/a/:id\",method=\"GET\","
			     "status=\"2xx\"} 1"));
	assert_true(shows(m, "holt_http_request_seconds_bucket{route=\"/a/:id\",method=\"GET\","
			     "status=\"2xx\",le=\"+Inf\"} 1"));
	assert_true(shows(m, "holt_http_request_seconds_count{route=\"/a/:id\",method=\"GE\","
			     "status=\"T2xx\"} 1"));
}

static void hostile_values_cannot_forge_a_line(void **state)
{
	struct metrics *m = *state;

	metrics_inc(m, METRIC_DENIALS, LABELS("a\"} 9\nevil 1\\"));
	metrics_inc(m, METRIC_DENIALS, LABELS("\xff ok \xe2\x82\xac"));
	metrics_inc(m, METRIC_DENIALS, LABELS(NULL));
	assert_true(shows(m, "holt_denials_total{reason=\"a\\\"} 9\\nevil 1\\\\\"} 1"));
	assert_true(shows(m, "holt_denials_total{reason=\"\xef\xbf\xbd ok \xe2\x82\xac\"} 1"));
	assert_true(shows(m, "holt_denials_total{reason=\"\"} 1"));
}

static void long_values_are_cut_between_characters(void **state)
{
	struct metrics *m = *state;
	char value[200], want[300];

	memset(value, 'x', sizeof(value));
	memcpy(value + METRIC_VALUE_MAX - 1, "\xc3\xa4", 2); /* across the limit */
	value[199] = '\0';
	metrics_inc(m, METRIC_DENIALS, LABELS(value));
	value[METRIC_VALUE_MAX - 1] = '\0';
	assert_true(metrics_value(m, METRIC_DENIALS, LABELS(value)) == 1);
	assert_int_equal(
		str_format(want, sizeof(want), "holt_denials_total{reason=\"%s\"} 1", value), 0);
	assert_true(shows(m, want));
}

static void series_are_bounded_and_the_rest_is_other(void **state)
{
	struct metrics *m = *state;
	char name[32];

	for (unsigned i = 0; i < METRIC_SERIES_MAX + 100; i++) {
		assert_int_equal(str_format(name, sizeof(name), "r%u", i), 0);
		metrics_inc(m, METRIC_DENIALS, LABELS(name));
	}
	assert_true(metrics_value(m, METRIC_DENIALS, LABELS("r511")) == 1);
	assert_true(metrics_value(m, METRIC_DENIALS, LABELS("r512")) == 0);
	assert_true(metrics_value(m, METRIC_DENIALS, LABELS("other")) == 100);
	metrics_inc(m, METRIC_DENIALS, LABELS("r5")); /* those that are there go on */
	assert_true(metrics_value(m, METRIC_DENIALS, LABELS("r5")) == 2);
	for (unsigned i = 0; i < METRIC_SERIES_MAX + 1; i++) {
		assert_int_equal(str_format(name, sizeof(name), "r%u", i), 0);
		metrics_observe(m, METRIC_HTTP_REQUEST_SECONDS, LABELS(name, "GET", "2xx"), 1);
	}
	assert_true(shows(m, "holt_http_request_seconds_count{route=\"other\",method=\"other\","
			     "status=\"other\"} 1"));
}

static void numbers_read_back_the_same(void **state)
{
	struct metrics *m = *state;

	metrics_set(m, METRIC_HTTP_IN_FLIGHT, LABELS(), 0.1);
	assert_true(shows(m, "holt_http_requests_in_flight 0.1"));
	metrics_set(m, METRIC_HTTP_IN_FLIGHT, LABELS(), 1.0 / 3);
	assert_true(shows(m, "holt_http_requests_in_flight 0.3333333333333333"));
	metrics_set(m, METRIC_HTTP_IN_FLIGHT, LABELS(), 123456789012345.0);
	assert_true(shows(m, "holt_http_requests_in_flight 123456789012345"));
	metrics_set(m, METRIC_HTTP_IN_FLIGHT, LABELS(), NAN);
	assert_true(shows(m, "holt_http_requests_in_flight NaN"));
	metrics_set(m, METRIC_HTTP_IN_FLIGHT, LABELS(), -INFINITY);
	assert_true(shows(m, "holt_http_requests_in_flight -Inf"));
}

static void nothing_is_recorded_without_a_registry(void **state)
{
	(void)state;
	metrics_inc(NULL, METRIC_DENIALS, LABELS("x"));
	metrics_set(NULL, METRIC_POOL_SIZE, LABELS("x"), 1);
	metrics_observe(NULL, METRIC_EXECUTION_SECONDS, LABELS(), 1);
	metrics_clear(NULL, METRIC_POOL_SIZE);
	assert_true(metrics_value(NULL, METRIC_DENIALS, LABELS("x")) == 0);
	assert_null(metrics_free(NULL));
}

static void the_table_follows_the_rules_of_names(void **state)
{
	(void)state;
	for (int i = 0; i < METRIC_COUNT; i++) {
		const struct metric_def *def = metric_def((enum metric)i);
		size_t n = strlen(def->name);
		bool total = n > 6 && strcmp(def->name + n - 6, "_total") == 0;

		assert_true(strncmp(def->name, "holt_", 5) == 0 ||
			    strncmp(def->name, "process_", 8) == 0);
		assert_int_equal(strspn(def->name, "abcdefghijklmnopqrstuvwxyz_"), n);
		assert_true(total == (def->type == METRIC_COUNTER));
		assert_true((def->type == METRIC_HISTOGRAM) == (def->bucket_count > 0));
		assert_true(def->help[strlen(def->help) - 1] == '.' && !strchr(def->help, '\\'));
		for (size_t k = 1; k < def->bucket_count; k++)
			assert_true(def->buckets[k] > def->buckets[k - 1]);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(def->name, metric_def((enum metric)k)->name);
	}
}

/* Each line is a comment or `name{labels} value`, and each name is introduced once. */
static void the_exposition_is_well_formed(void **state)
{
	struct metrics *m = *state;
	_cleanup_(buf_done) struct buf b = { 0 };
	struct str rest, line;
	size_t helps = 0, lines = 0;

	process_sample(m);
	metrics_observe(m, METRIC_HTTP_REQUEST_SECONDS, LABELS("/", "GET", "2xx"), 1);
	assert_int_equal(metrics_render(m, &b), 0);
	assert_int_equal(b.data[b.len - 1], '\n');
	rest = (struct str){ b.data, b.len };
	while (str_split(&rest, '\n', &line)) {
		assert_true(line.len > 0);
		helps += str_starts(line, "# HELP ");
		if (line.data[0] == '#')
			continue;
		lines++;
		assert_true(islower(line.data[0]));
		assert_non_null(memchr(line.data, ' ', line.len));
	}
	assert_int_equal(helps, 7); /* five of the process, one of requests, one of losses */
	assert_int_equal(lines, 5 + (13 + 3) + 1);
}

static void the_process_is_measured(void **state)
{
	struct metrics *m = *state;
	double fds, now = (double)clock_wall_ms() / 1e3, started;
	int fd;

	process_sample(m);
	fds = metrics_value(m, METRIC_OPEN_FDS, LABELS());
	assert_true(fds >= 3);
	assert_true(metrics_value(m, METRIC_RESIDENT_MEMORY_BYTES, LABELS()) > 500000);
	started = metrics_value(m, METRIC_START_TIME_SECONDS, LABELS());
	assert_true(started > now - 600 && started <= now + 1);
	assert_true(metrics_value(m, METRIC_BUILD_INFO, LABELS(HOLT_VERSION)) == 1);
	fd = dup(STDERR_FILENO);
	process_sample(m);
	assert_true(metrics_value(m, METRIC_OPEN_FDS, LABELS()) == fds + 1);
	assert_true(metrics_value(m, METRIC_START_TIME_SECONDS, LABELS()) == started);
	assert_true(metrics_value(m, METRIC_CPU_SECONDS_TOTAL, LABELS()) > 0);
	(void)close(fd);
	process_sample(NULL);
}

static int record_once(void *arg)
{
	_cleanup_(metrics_free_p) struct metrics *m = metrics_create();
	_cleanup_(buf_done) struct buf b = { 0 };

	(void)arg;
	if (!m)
		return -ENOMEM;
	metrics_observe(m, METRIC_EXECUTION_SECONDS, LABELS(), 1);
	if (metrics_value(m, METRIC_METRICS_LOST, LABELS()) > 0) {
		fault_arm(0);
		assert_true(shows(m, "holt_metrics_lost_total 1"));
		metrics_observe(m, METRIC_EXECUTION_SECONDS, LABELS(), 1);
		assert_true(metrics_value(m, METRIC_EXECUTION_SECONDS, LABELS()) == 1);
		return -ENOMEM;
	}
	return metrics_render(m, &b);
}

/* fault_each() by hand: the run itself disarms. */
static void a_lack_of_memory_loses_samples_and_is_counted(void **state)
{
	size_t n = 1;

	(void)state;
	for (;; n++) {
		int r;

		fault_arm(n);
		r = record_once(NULL);
		(void)fault_disarm();
		if (r == 0)
			break;
		assert_int_equal(r, -ENOMEM);
		assert_true(n < 100);
	}
	assert_true(n > 5);
}

static void the_exposition_has_a_ceiling(void **state)
{
	struct metrics *m = *state;
	_cleanup_(buf_done) struct buf b = { .max = 100 };

	process_sample(m);
	assert_int_equal(metrics_render(m, &b), -E2BIG);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(counters_add_up_by_label),
		TEST(gauges_go_up_and_down_and_away),
		TEST(histograms_cumulate),
		TEST(several_labels_stand_in_order),
		TEST(hostile_values_cannot_forge_a_line),
		TEST(long_values_are_cut_between_characters),
		TEST(series_are_bounded_and_the_rest_is_other),
		TEST(numbers_read_back_the_same),
		cmocka_unit_test(nothing_is_recorded_without_a_registry),
		cmocka_unit_test(the_table_follows_the_rules_of_names),
		TEST(the_exposition_is_well_formed),
		TEST(the_process_is_measured),
		cmocka_unit_test(a_lack_of_memory_loses_samples_and_is_counted),
		TEST(the_exposition_has_a_ceiling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
