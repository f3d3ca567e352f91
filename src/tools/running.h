/* An execution that a call waits for: its end is the call's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct exec_request;
struct sandbox;
struct tool_call;

/* Ends the call, whatever happens. */
void running_start(struct tool_call *t, struct sandbox *sb, struct exec_request *req);
/* Whether such a time may be asked for; false after tool_fail(). 0: the default. */
bool running_times(struct tool_call *t, uint64_t timeout_ms);
