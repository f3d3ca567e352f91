/* Processes of E2B's envd: executions of ours under other names. Shared by the files of its calls.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json/jv_decode.h"

struct api_call;
struct exec_info;
struct execution;
struct output;

#define PROCESS_ARG_MAX (128u << 10) /* bytes of one argument or variable: as the kernel has it */

/* Rows and columns of {"size":{"cols":80,"rows":24}}; what is 0 or not there is as usual. false:
 * more than there can be. */
bool process_size(struct jv pty, uint16_t *ret_rows, uint16_t *ret_cols);

/* ---- which (process_find.c) ---- */

struct process_selector {
	uint32_t pid;
	const char *tag; /* NULL: by its number */
};

#define PROCESS_SELECTOR_COUNT 2
extern const struct jv_field process_selector_fields[PROCESS_SELECTOR_COUNT];

/* As exec_look_fn: x is NULL for one that is remembered only. */
typedef void process_found_fn(struct api_call *c, struct execution *x, const struct exec_info *info,
			      const struct output *output);

/* The newest that runs, or not_found. NULL: answered. */
struct execution *process_running(struct api_call *c, const struct process_selector *s);
/* The newest of any; calls found(), maybe at once, or answers: not_found. */
void process_find(struct api_call *c, const struct process_selector *s, process_found_fn *found);

/* ---- its events (process_stream.c) ---- */

/* Each answers the call, whatever happens. is_new: nobody else knows of it. */
void process_follow(struct api_call *c, struct execution *x, bool is_new);
void process_follow_past(struct api_call *c, const struct exec_info *info,
			 const struct output *output);
