/* The execution that a path names. */
#pragma once

struct api_call;
struct exec_info;
struct execution;
struct output;

/* x: while it is in memory, running or not yet recorded; else NULL. All borrowed for the call;
 * output may be NULL. */
typedef void exec_look_fn(struct api_call *c, struct execution *x, const struct exec_info *info,
			  const struct output *output);

/* Calls found(), maybe at once, or answers: 404. */
void exec_look(struct api_call *c, exec_look_fn *found);
/* The same for one that the query names; id is in the arena. */
void exec_look_id(struct api_call *c, const char *id, exec_look_fn *found);
