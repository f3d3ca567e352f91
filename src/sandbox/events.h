/* What happened, as two logs: events (states of sandboxes, executions, ...) and security events
 * (kinds that begin with "security."). Emitting never fails and never waits; an event is told to
 * listeners when it is in the store. For the loop's thread. */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"

struct err;
struct events; /* opaque */
struct journal;
struct loop;
struct metrics;
struct store;

#define EVENT_STREAM "event"
#define SECURITY_STREAM "security"
#define SECURITY_PREFIX "security."

struct event {
	const char *kind;    /* "sandbox.created" */
	const char *owner;   /* "": nobody's; admins see it */
	const char *subject; /* id of what it is about */
	const char *text;    /* JSON object, or NULL */
};

struct events_options { /* borrowed */
	struct loop *loop;
	const struct store *store;
	struct metrics *metrics;
	uint64_t retention_ms;
};

int events_open(const struct events_options *o, struct events **ret, struct err *err); /* blocks */
struct events *events_free(struct events *e); /* takes NULL, returns NULL */
CLEANUP_FUNC(struct events *, events_free)

void events_emit(struct events *e, const struct event *ev); /* e may be NULL: nobody listens */
struct journal *events_journal(struct events *e);
struct journal *events_security(struct events *e);
