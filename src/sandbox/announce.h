/* Which changes of what the service keeps are events, and what they say. Their kinds are listed in
 * event_kinds.c. */
#pragma once

#include <stdbool.h>

#include "sandbox/state.h"

struct context;
struct execution;
struct object;
struct port_info;
struct quota_refusal;
struct sandbox;
struct sandboxes;

void announce_created(struct sandbox *sb);
void announce_state(struct sandbox *sb, enum sandbox_state from);
/* Its time is over soon. */
void announce_expiring(struct sandbox *sb);
/* Its new box lacks what its template preloads. */
void announce_preload(struct sandbox *sb, const char *reason);
void announce_start(struct execution *x);
/* The result by its name: "ok", "timed_out", ... Limits that ended it are security events. */
void announce_end(struct execution *x, const char *result);
/* event and verb make the kind: "volume", "created". */
void announce_object(struct sandboxes *all, const char *event, const char *verb,
		     const struct object *o);
void announce_context(struct sandbox *sb, const struct context *c, const char *kind,
		      const char *reason);
void announce_port(struct sandbox *sb, const struct port_info *port, bool is_open);
void announce_quota(struct sandboxes *all, const char *owner, const struct quota_refusal *q);
