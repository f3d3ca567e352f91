/* What the client has sent for a process's standard input and the process has not yet taken.
 * Sans-I/O: the caller writes in_next() and reports with in_took(). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "guest/ring.h"

struct in {
	struct ring ring;
	bool is_terminal; /* its end of file is a key press: more may follow */
	bool is_ended;
	uint64_t end_at; /* ring position of the end of file */
	char last;       /* the last byte taken: a terminal's end of file depends on it */
};

void in_init(struct in *in, bool is_terminal);
void in_done(struct in *in);
/* No bytes mean the end of file. -EPROTO when the client sends more than its window or goes on
 * behind a pipe's end, -ENOMEM. */
int in_push(struct in *in, const void *data, size_t n);
const char *in_next(const struct in *in, size_t *ret_n); /* *ret_n 0: nothing to write */
void in_took(struct in *in, size_t n);
/* Everything in front of the end of file has been taken. */
bool in_is_at_end(const struct in *in);
void in_reopen(struct in *in); /* of a terminal: its end of file has been delivered */
