/* What a program wrote and how it ended, as a model is told: head and tail of much, with a file in
 * the box that has the rest, and a sentence for everything that is not as usual. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "tools/file_work.h"
#include "json/jv_decode.h"
#include "json/jw.h"

struct exec_info;
struct output;
struct tool_call;

#define RESULT_NOTES_MAX 8u

struct result {                /* arena */
	struct file_work file; /* first: what was left out goes there; data: what it is to have */
	struct tool_call *call;
	struct jw w; /* writes call->structured: members go between begin and end */
	const char *notes[RESULT_NOTES_MAX]; /* arena */
	size_t n_notes;
	bool is_cut;      /* some of a text was left out */
	const char *name; /* arena: of the file */
};

/* NULL after tool_fail(). */
struct result *result_begin(struct tool_call *t);
void result_note(struct result *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A text of a box as a member. */
void result_text(struct result *r, const char *key, const char *data, size_t n);
/* Ends the call. If something was cut, what the caller has put into r->file.data goes to a file of
 * the box first, named after r->name. */
void result_end(struct result *r);

/* All of it, of an execution. */
void result_tell(struct tool_call *t, const struct exec_info *info, const struct output *output);
/* What an execution's result may hold, for a tool's .out. */
#define RESULT_FIELDS 10u
extern const struct jv_field result_fields[RESULT_FIELDS];
