/* Sends the spans of traces to a collector: OTLP over HTTP with JSON bodies. In batches, one on its
 * way at a time; what a collector cannot take now is tried again, for a while; what waits is
 * bounded by the tracer. A collector that is dead costs its spans, which are counted, and nothing
 * else. */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"

struct courier;
struct err;
struct loop;
struct metrics;
struct otlp; /* opaque */
struct tracer;

#define OTLP_BATCH 512u          /* spans of one request */
#define OTLP_TRIES 6u            /* of one batch: about a minute */
#define OTLP_WAIT_MAX_MS 300000u /* however long the collector wants us to wait */
#define OTLP_PATH "/v1/traces"   /* added to an address that does not end in it */

struct otlp_options {
	struct loop *loop; /* borrowed, as the next two */
	struct courier *courier;
	struct metrics *metrics; /* may be NULL */
	const char *endpoint;    /* copied, as all that follows */
	const char *headers;     /* "name=value,...", values may have %XX; NULL: none */
	const char *service, *version;
	double sample;       /* see trace.h */
	uint32_t batch;      /* spans of one request; 0: OTLP_BATCH */
	uint32_t every_ms;   /* a batch that is not full; 0: 2 s */
	uint32_t backoff_ms; /* before the second try, twice as long before the third; 0: 1 s */
};

/* -EINVAL says what is wrong with the address or the headers. */
int otlp_create(const struct otlp_options *o, struct otlp **ret, struct err *err);
/* Behind the courier, which calls nobody back any more. Takes NULL, returns NULL. */
struct otlp *otlp_free(struct otlp *o);
CLEANUP_FUNC(struct otlp *, otlp_free)

struct tracer *otlp_tracer(struct otlp *o); /* its own; NULL for NULL */
/* Sends what there is, without further tries, and says when that is done, at the latest after
 * max_ms. Not from inside the call. Once. */
void otlp_flush(struct otlp *o, uint64_t max_ms, void (*done)(void *user), void *user);
