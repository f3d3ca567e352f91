/* Contexts as clients see them, and the one way to run something in one. */
#pragma once

struct api_call;
struct body_exec;
struct context_info;
struct err;
struct jw;

void context_json(struct jw *w, const struct context_info *info);
/* As problem_reply(), but that too much at once is the sandbox's own matter. */
void context_problem(struct api_call *c, const struct err *err);
/* POST /execute with a contextId: answers as an execution does. */
void context_execute(struct api_call *c, const struct body_exec *body);
