/* Which changes of sandboxes and executions are events, and what they say. */
#pragma once

#include "sandbox/state.h"

struct execution;
struct sandbox;

void announce_created(struct sandbox *sb);
void announce_state(struct sandbox *sb, enum sandbox_state from);
void announce_start(struct execution *x);
/* The result by its name: "ok", "timed_out", ... Limits that ended it are security events. */
void announce_end(struct execution *x, const char *result);
