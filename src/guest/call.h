/* `holt-call`: this same program under another name. It calls a tool outside the box over the box's
 * socket (spec/guest.h) and prints what came of it; no interpreter is needed. */
#pragma once

#include <stdbool.h>

struct buf;

bool call_is_name(const char *argv0);
int call_main(int argc, char **argv);

enum call_answer {
	CALL_DONE,   /* text: what to print */
	CALL_FAILED, /* text: what to say */
	CALL_BROKEN  /* it is no answer of ours */
};
/* Reads one line of an answer. is_raw: text is the result as JSON. Foreign bytes inside strings,
 * but the frame around them is always written in the same way. */
enum call_answer call_read(const char *line, bool is_raw, struct buf *text);
