/* Bytes on their way to an execution's standard input. An execution takes a bounded amount at once:
 * what does not fit waits here, in the order it came, while the process reads on; and so does what
 * its box does not have yet. A feed belongs to
 * nobody's request: a client that leaves does not take back what it has sent. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct api;
struct execution;
struct feed; /* opaque */

#define FEED_MAX (1u << 20)            /* bytes of one */
#define FEED_LINE_MAX 16u              /* that wait for one execution */
#define FEED_SANDBOX_MAX 128u          /* that wait in one sandbox */
#define FEED_SANDBOX_BYTES (16u << 20) /* and what they hold together */

/* Copies. 1: the box has all of it; 0: it waits, and done() comes once, with 0 or an error of
 * exec_stdin(); or, and nothing was taken, such an error, -EAGAIN (the line is full), -E2BIG,
 * -ENOMEM. eof closes the input behind it. done may be NULL. */
int feed_start(struct api *api, struct execution *x, const void *data, size_t n, bool eof,
	       void (*done)(void *user, int r), void *user, struct feed **ret);
/* done() does not come any more; the bytes still go their way. Takes NULL. */
void feed_leave(struct feed *f);
/* Gives up all of them: for api_free(). */
void feed_forget(struct api *api);
