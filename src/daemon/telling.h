/* What the daemon hears from and tells to other servers by itself, and what is kept of what
 * happened: made in one place, because these parts know each other and few others do. */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"

struct guard_nets;
struct resolver;
struct audit_log;
struct config;
struct courier;
struct err;
struct events;
struct jwks_source;
struct loop;
struct metrics;
struct otlp;
struct sandboxes;
struct store;
struct tracer;
struct users;
struct webhooks;

struct telling { /* owned; NULL: not wanted by the configuration */
	struct courier *courier;
	struct jwks_source *jwks;
	struct otlp *otlp;
	struct events *events;
	struct audit_log *audit;
	struct webhooks *webhooks;
	struct users *users; /* borrowed: by webhooks */
};

struct telling_deps { /* borrowed */
	struct loop *loop;
	const struct config *config;
	const struct store *store;
	struct metrics *metrics;
	struct resolver *resolver;       /* of names that others have asked for */
	const struct guard_nets *closed; /* addresses that nothing may go to */
	int dir_fd;                      /* where the audit log's head is kept */
};

/* After a failure telling_close() is still right. */
int telling_open(struct telling *t, const struct telling_deps *deps, struct err *err);
/* What tells others of what the registry keeps: behind it, and ended before it. */
int telling_open_webhooks(struct telling *t, const struct telling_deps *deps,
			  struct sandboxes *sandboxes, struct users *users, struct err *err);
void telling_close_webhooks(struct telling *t);
/* Behind whoever uses it, and before the loop. Also for a zeroed one. */
void telling_close(struct telling *t);

struct tracer *telling_tracer(const struct telling *t); /* NULL: no traces */
/* Sends what is left of traces; done() comes soon, in any case, and not from inside the call.
 * False: there is nothing to be waited for. */
bool telling_flush(struct telling *t, void (*done)(void *user), void *user);
