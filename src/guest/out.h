/* What an execution has written and the client has not yet taken. Sans-I/O: the caller reads into
 * out_space(), says so with out_commit(), sends out_next() and reports with out_sent().
 *
 * One read is one frame: while it is unsent there is no space, so nothing is read. At most
 * GUEST_WINDOW bytes are kept; they stay until the client credits them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest/ring.h"

enum out_stream { OUT_STDOUT, OUT_STDERR, OUT_STREAMS };

struct out {
	struct ring ring;
	uint64_t limit;                /* bytes kept in all; 0: no limit */
	uint64_t kept;                 /* of these so far */
	uint64_t written;              /* by the process, kept or not */
	uint64_t sent_at;              /* ring position behind what was sent */
	uint64_t offset[OUT_STREAMS];  /* bytes of each stream that were sent */
	enum out_stream unsent_stream; /* whose bytes lie behind sent_at */
	bool is_truncated;
};

/* The chunk to send: which stream, where in it, which bytes. */
struct out_chunk {
	enum out_stream stream;
	uint64_t offset;
	const char *data;
	size_t len;
};

void out_init(struct out *o, uint64_t limit);
void out_done(struct out *o);
/* True when a read would not be kept: the limit is reached, and the process may go on at once. */
bool out_is_dropping(const struct out *o);
/* Where the next bytes may be read to. 0 in *ret_n: not now. NULL without memory. */
char *out_space(struct out *o, size_t *ret_n);
/* n bytes of the stream were read into out_space(), or anywhere while dropping. */
void out_commit(struct out *o, enum out_stream stream, size_t n);
bool out_has_unsent(const struct out *o);
struct out_chunk out_next(const struct out *o); /* only with out_has_unsent() */
void out_sent(struct out *o);
/* The client has taken n more bytes. -EPROTO when it was not sent that many. */
int out_credit(struct out *o, uint64_t n);
/* Gives up what could not be sent, and all that is still to come. */
void out_abandon(struct out *o);
