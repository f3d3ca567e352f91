/* What an execution has written and the client has not yet taken. Sans-I/O: the caller reads into
 * out_space(), says so with out_commit(), sends out_next() and reports with out_sent().
 *
 * At most GUEST_WINDOW bytes are kept, with one bit for each that says which stream it came from:
 * however two streams take turns, what was not credited can be sent again as it was, and the memory
 * is bounded. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest/ring.h"

enum out_stream { OUT_STDOUT, OUT_STDERR, OUT_STREAMS };

struct out {
	struct ring ring;
	uint64_t *marks;  /* owned, with the ring: a bit for each of its bytes, set for stderr */
	uint64_t limit;   /* bytes kept in all; 0: no limit */
	uint64_t kept;    /* of these so far */
	uint64_t written; /* by the process, kept or not */
	uint64_t sent_at; /* ring position behind what was sent */
	uint64_t offset[OUT_STREAMS]; /* bytes of each stream that were sent */
	uint64_t base[OUT_STREAMS];   /* bytes of each stream in front of what is kept */
	bool is_truncated;
	bool is_given_up; /* what was not credited is gone */
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
void out_sent(struct out *o, const struct out_chunk *c);
/* The client has taken n more bytes. -EPROTO when it was not sent that many. */
int out_credit(struct out *o, uint64_t n);
/* All that is still to come is dropped. */
void out_abandon(struct out *o);
/* For a new client nothing has been sent: all that is kept will be sent again. */
void out_rewind(struct out *o);
/* Nothing more will come: no more memory than what is kept needs. */
void out_shrink(struct out *o);
size_t out_memory(const struct out *o);
/* Loses what was not credited, and says so when that was anything. */
void out_give_up(struct out *o);
