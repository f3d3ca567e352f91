/* What an execution has written, as far as it is kept: a bounded ring of chunks, each of one
 * stream. A position is a count of bytes from the beginning of all output, both streams together:
 * the sequence number that clients see. Sans-I/O but for the file that may lie behind it: then the
 * ring outlives this process, and is found again by output_open(). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct buf;
struct err;
struct output; /* opaque */

#define OUTPUT_KEEP_MIN (4u << 10)
#define OUTPUT_KEEP_MAX (64u << 20)

/* What many rings may hold together. Within it each grows as it likes. At its end none grows any
 * more, and a new one has its first OUTPUT_KEEP_MIN bytes only: the newest output is kept, in less
 * room. */
struct output_budget; /* opaque; lives as long as its maker or a ring needs it */
struct output_budget *output_budget_create(uint64_t max);           /* NULL without memory */
struct output_budget *output_budget_unref(struct output_budget *b); /* takes NULL, returns NULL */
uint64_t output_budget_used(const struct output_budget *b);         /* bytes of memory and files */

/* keep: bytes of output held at the most. Memory comes with the first byte, and grows up to it. */
struct output *output_create(size_t keep);
struct output *output_free(struct output *o); /* the file stays; takes NULL, returns NULL */
CLEANUP_FUNC(struct output *, output_free)

/* What it holds and will hold counts there from now on; once. */
void output_limit(struct output *o, struct output_budget *b);

/* Moves the ring into the file `name` below dir_fd, made anew with its full size allocated, so that
 * what is appended from then on survives this process. A budget that has not as much makes `keep`
 * less. -errno leaves the ring as it was. */
int output_persist(struct output *o, int dir_fd, const char *name);
bool output_is_persistent(const struct output *o);
/* A ring that an earlier process left. What lies in the file is not trusted. -ENOENT, -EBADMSG. */
int output_open(int dir_fd, const char *name, struct output **ret, struct err *err);

uint64_t output_begin(const struct output *o); /* position of the oldest byte that is kept */
uint64_t output_end(const struct output *o);   /* behind the newest: all that was ever appended */
/* Bytes of one stream (1 or 2) in all, kept or not. */
uint64_t output_stream_end(const struct output *o, int stream);
/* Room for n more bytes without giving up what lies at or behind `from`. */
bool output_has_room(const struct output *o, size_t n, uint64_t from);
/* Appends; the oldest give way. -ENOMEM: nothing was appended. */
int output_append(struct output *o, int stream, const void *data, size_t n);

struct output_chunk {
	uint64_t seq;     /* position of its first byte */
	int stream;       /* 1 or 2 */
	const char *data; /* borrowed until the next append */
	size_t len;
};
/* The chunk at a position, or from the oldest kept if that is later: *ret_omitted bytes lie
 * between. false: nothing there yet. A chunk may be shorter than what was appended, never mixes
 * streams. */
bool output_read(const struct output *o, uint64_t from, struct output_chunk *ret,
		 uint64_t *ret_omitted);
/* All that is kept of one stream. buf's error. */
int output_collect(const struct output *o, int stream, struct buf *ret);
/* The kept chunks as one opaque text for the store, and back. */
int output_save(const struct output *o, struct buf *ret);
int output_load(const void *data, size_t n, size_t keep, struct output **ret, struct err *err);
