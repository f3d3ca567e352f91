/* Counters, gauges and histograms, and their Prometheus text. Which metrics there are is one table
 * (metric_table.c); this is the registry of their values. For the loop thread only.
 *
 * Each combination of label values is a series. Their number is bounded: what comes beyond
 * METRIC_SERIES_MAX of a metric is counted in one series whose labels are all "other". Recording
 * never fails: without memory a sample is lost, and holt_metrics_lost_total says so. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "telemetry/metric_table.h"

struct buf;
struct metrics; /* opaque */

#define METRIC_SERIES_MAX 512u
#define METRIC_VALUE_MAX 96u /* bytes of a label's value; more is cut */

/* A label's values, in the table's order. LABELS() for a metric without any. */
struct metric_labels {
	const char *values[METRIC_LABELS_MAX]; /* borrowed; NULL is "" */
};
#define LABELS(...) ((struct metric_labels){ { __VA_ARGS__ } })

struct metrics *metrics_create(void); /* NULL without memory */
struct metrics *metrics_free(struct metrics *m);
CLEANUP_FUNC(struct metrics *, metrics_free)

/* m may be NULL in all of these: nothing is recorded. */
void metrics_add(struct metrics *m, enum metric id, struct metric_labels l, double n);
void metrics_inc(struct metrics *m, enum metric id, struct metric_labels l);
void metrics_set(struct metrics *m, enum metric id, struct metric_labels l, double v);
void metrics_observe(struct metrics *m, enum metric id, struct metric_labels l, double v);
/* Forgets a gauge's series: of what is not there any more. */
void metrics_clear(struct metrics *m, enum metric id);

/* A counter's or gauge's value, a histogram's count; 0 when there is no such series. */
double metrics_value(const struct metrics *m, enum metric id, struct metric_labels l);

#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"
/* Appends the exposition. 0, -ENOMEM, -E2BIG. */
int metrics_render(const struct metrics *m, struct buf *b);
