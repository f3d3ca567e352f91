#include "telemetry/metric_table.h"

#include <assert.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

/* A warm start takes about a millisecond, a cold one tens of them. */
static const double start_s[] = { 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02,
				  0.05,   0.1,   0.25,  0.5,   1,    5 };
static const double run_s[] = { 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 3600 };
static const double request_s[] = { 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
				    0.1,    0.25,  0.5,    1,     5,    30 };
static const double write_s[] = { 0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1 };

#define COUNTER(name_, help_, ...)                                                              \
	{                                                                                       \
		.name = name_, .help = help_, .type = METRIC_COUNTER, .labels = { __VA_ARGS__ } \
	}
#define GAUGE(name_, help_, ...)                                                              \
	{                                                                                     \
		.name = name_, .help = help_, .type = METRIC_GAUGE, .labels = { __VA_ARGS__ } \
	}
#define HISTOGRAM(name_, help_, buckets_, ...)                                               \
	{                                                                                    \
		.name = name_, .help = help_, .type = METRIC_HISTOGRAM, .buckets = buckets_, \
		.bucket_count = LEN(buckets_), .labels = {                                   \
			__VA_ARGS__                                                          \
		}                                                                            \
	}

/* Those of the process have the names that every exporter gives them. */
static const struct metric_def table[METRIC_COUNT] = {
	[METRIC_BUILD_INFO] =
		GAUGE("holt_build_info", "Always 1; the labels say what runs.", "version"),
	[METRIC_START_TIME_SECONDS] =
		GAUGE("process_start_time_seconds", "When the process started, since 1970.", NULL),
	[METRIC_RESIDENT_MEMORY_BYTES] =
		GAUGE("process_resident_memory_bytes", "Memory of the daemon.", NULL),
	[METRIC_OPEN_FDS] = GAUGE("process_open_fds", "Open file descriptors of the daemon.", NULL),
	[METRIC_CPU_SECONDS_TOTAL] =
		COUNTER("process_cpu_seconds_total", "Processor time of the daemon.", NULL),
	[METRIC_SANDBOXES] = GAUGE("holt_sandboxes", "Sandboxes there are.", "state"),
	[METRIC_SANDBOX_CREATE_SECONDS] = HISTOGRAM(
		"holt_sandbox_create_seconds", "Time to make a sandbox ready.", start_s, "start"),
	[METRIC_SANDBOX_CREATE_FAILURES] = COUNTER("holt_sandbox_create_failures_total",
						   "Sandboxes that could not be made.", "reason"),
	[METRIC_SANDBOX_ENDS] =
		COUNTER("holt_sandbox_ends_total", "Sandboxes that ended.", "reason"),
	[METRIC_POOL_SIZE] = GAUGE("holt_pool_size", "Finished boxes that wait.", "template"),
	[METRIC_POOL_TARGET] =
		GAUGE("holt_pool_target", "Finished boxes that should wait.", "template"),
	[METRIC_POOL_HITS] =
		COUNTER("holt_pool_hits_total", "Sandboxes that got a waiting box.", "template"),
	[METRIC_POOL_MISSES] = COUNTER("holt_pool_misses_total",
				       "Sandboxes that found no box waiting.", "template"),
	[METRIC_EXECUTIONS] = COUNTER("holt_executions_total", "Executions that ended.", "result"),
	[METRIC_EXECUTIONS_RUNNING] =
		GAUGE("holt_executions_running", "Executions that run now.", NULL),
	[METRIC_EXECUTION_SECONDS] =
		HISTOGRAM("holt_execution_seconds", "Time executions took.", run_s, NULL),
	[METRIC_HTTP_REQUEST_SECONDS] =
		HISTOGRAM("holt_http_request_seconds", "Time requests took.", request_s, "route",
			  "method", "status"),
	[METRIC_HTTP_IN_FLIGHT] =
		GAUGE("holt_http_requests_in_flight", "Requests being handled.", NULL),
	[METRIC_HTTP_CONNECTIONS] = GAUGE("holt_http_connections", "Open connections.", NULL),
	[METRIC_STREAM_SUBSCRIBERS] =
		GAUGE("holt_stream_subscribers", "Clients that follow a stream.", "kind"),
	[METRIC_STORE_WRITE_SECONDS] = HISTOGRAM(
		"holt_store_write_seconds", "From a write's call to its commit.", write_s, NULL),
	[METRIC_STORE_ERRORS] = COUNTER("holt_store_errors_total",
					"Operations of the store that failed.", "operation"),
	[METRIC_LAUNCHER_RESTARTS] =
		COUNTER("holt_launcher_restarts_total", "Launchers started again.", NULL),
	[METRIC_BUILDS_GIVEN_UP] = COUNTER("holt_box_builds_given_up_total",
					   "Boxes that were not built in time.", NULL),
	[METRIC_BUILDS_STUCK] =
		GAUGE("holt_box_builds_stuck",
		      "Processes of boxes that were given up and have not ended.", NULL),
	[METRIC_ENDS_LATE] = GAUGE("holt_box_ends_late",
				   "Boxes that were told to end and take too long to.", NULL),
	[METRIC_LOCKS_UNCOUNTED] =
		GAUGE("holt_locks_uncounted",
		      "Times in a row that file locks of boxes were not counted.", NULL),
	[METRIC_DENIALS] = COUNTER("holt_denials_total", "Requests that were refused.", "reason"),
	[METRIC_SIGNATURE_CHECKS] =
		COUNTER("holt_signature_checks_total",
			"Sandboxes' tokens that signatures of addresses were compared with.", NULL),
	[METRIC_SECURITY_EVENTS] = COUNTER("holt_security_events_total",
					   "Refusals, kills by limits, and the like.", "kind"),
	[METRIC_EVENTS_LOST] =
		COUNTER("holt_events_lost_total", "Events that could not be written down.", NULL),
	[METRIC_TRACE_SPANS] = COUNTER("holt_trace_spans_total",
				       "Spans of traces, and what became of them.", "result"),
	[METRIC_WEBHOOK_DELIVERIES] = COUNTER("holt_webhook_deliveries_total",
					      "Attempts to send an event to a webhook.", "result"),
	[METRIC_WEBHOOK_MISSED] =
		COUNTER("holt_webhook_missed_total",
			"Events that were forgotten before a webhook could get them.", NULL),
	[METRIC_WEBHOOK_AGE] =
		GAUGE("holt_webhook_queue_age_seconds",
		      "Age of the oldest event that a webhook is still to get.", NULL),
	[METRIC_TOOL_CALLS] = COUNTER("holt_tool_calls_total", "Calls of MCP servers' tools.",
				      "server", "outcome"),
	[METRIC_METRICS_LOST] =
		COUNTER("holt_metrics_lost_total", "Samples lost for lack of memory.", NULL),
};

const struct metric_def *metric_def(enum metric id)
{
	assert((unsigned)id < METRIC_COUNT); /* a bug of ours, never input */
	return &table[id];
}
