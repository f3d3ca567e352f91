/* Every metric of the program: its name, what it means, its labels. */
#pragma once

#include <stddef.h>

#define METRIC_LABELS_MAX 3

enum metric {
	METRIC_BUILD_INFO,              /* version; 1 */
	METRIC_START_TIME_SECONDS,      /* of the process */
	METRIC_RESIDENT_MEMORY_BYTES,   /* of the process */
	METRIC_OPEN_FDS,                /* of the process */
	METRIC_CPU_SECONDS_TOTAL,       /* of the process */
	METRIC_SANDBOXES,               /* state */
	METRIC_SANDBOX_CREATE_SECONDS,  /* start: warm, cold */
	METRIC_SANDBOX_CREATE_FAILURES, /* reason */
	METRIC_SANDBOX_ENDS,            /* reason */
	METRIC_POOL_SIZE,               /* template */
	METRIC_POOL_TARGET,             /* template */
	METRIC_POOL_HITS,               /* template */
	METRIC_POOL_MISSES,             /* template */
	METRIC_EXECUTIONS,              /* result */
	METRIC_EXECUTIONS_RUNNING,
	METRIC_EXECUTION_SECONDS,
	METRIC_HTTP_REQUEST_SECONDS, /* route, method, status: 2xx... */
	METRIC_HTTP_IN_FLIGHT,
	METRIC_HTTP_CONNECTIONS,
	METRIC_STREAM_SUBSCRIBERS, /* kind: sse, ws */
	METRIC_STORE_WRITE_SECONDS,
	METRIC_STORE_ERRORS, /* operation */
	METRIC_LAUNCHER_RESTARTS,
	METRIC_BUILDS_GIVEN_UP,
	METRIC_BUILDS_STUCK,
	METRIC_ENDS_LATE,
	METRIC_LOCKS_UNCOUNTED,
	METRIC_DENIALS, /* reason: unauthenticated, forbidden, rate_limited, quota ... */
	METRIC_SIGNATURE_CHECKS,
	METRIC_SECURITY_EVENTS, /* kind: auth_failed, denied, oom ... */
	METRIC_EVENTS_LOST,
	METRIC_TRACE_SPANS,        /* result: sent, dropped, refused, unsent */
	METRIC_WEBHOOK_DELIVERIES, /* result: delivered, failed, given_up */
	METRIC_WEBHOOK_MISSED,
	METRIC_WEBHOOK_AGE,
	METRIC_TOOL_CALLS, /* server; outcome: ok, tool_error, denied, timed_out, lost ... */
	METRIC_METRICS_LOST,
	METRIC_COUNT
};

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metric_def {
	const char *name, *help;
	enum metric_type type;
	const char *labels[METRIC_LABELS_MAX]; /* NULL behind the last */
	const double *buckets;                 /* of a histogram: ascending upper bounds */
	size_t bucket_count;
};

const struct metric_def *metric_def(enum metric id);
