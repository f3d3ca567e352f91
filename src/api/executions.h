/* Executions that other handlers start. */
#pragma once

#include <stdbool.h>

struct api_call;
struct exec_request;
struct execution;
struct sandbox;

/* Starts it and answers the call as POST .../executions does: at its end, or as events. began() is
 * called once, before the answer; x is NULL when it did not start. */
void executions_run(struct api_call *c, struct sandbox *sb, const struct exec_request *req,
		    bool stream, void (*began)(void *user, struct execution *x), void *user);
