/* Server-sent events as bytes: a stream in whatever pieces goes in, events come out. Knows no
 * sockets. Lines end with LF, CR or CRLF; comments and unknown fields are passed over. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define SSE_NAME_MAX 64u /* bytes of an event's name */
#define SSE_ID_MAX 512u  /* bytes of an id */

struct sse_event {
	const char *event; /* "message" when it has no name */
	const char *id;    /* the last that was seen, of this event or of an earlier one; "" */
	const char *data;  /* NUL-terminated, may hold NUL bytes */
	size_t len;
};

/* Strings are for the call only. Anything but 0 ends the feeding and is passed on. */
typedef int (*sse_event_fn)(void *user, const struct sse_event *e);

struct sse_reader {
	struct buf line; /* begun and not ended */
	struct buf data; /* of the event that is coming, each line with its LF */
	char name[SSE_NAME_MAX + 1];
	char id[SSE_ID_MAX + 1];
	char last_id[SSE_ID_MAX + 1]; /* of what has ended: where to go on when the stream breaks */
	int64_t retry_ms; /* what the server asks for before the next connection; -1: nothing */
	size_t bom;       /* bytes of the byte order mark that were seen */
	bool begun;       /* what comes cannot be the mark any more */
	bool after_cr;
};

/* max: bytes of one line, and of one event's data. */
void sse_reader_init(struct sse_reader *r, size_t max);
void sse_reader_done(struct sse_reader *r);
/* 0; -E2BIG for a line, event, name or id that is too long, -ENOMEM, or what fn returned. After a
 * failure the reader is of no use. */
int sse_reader_feed(struct sse_reader *r, const void *data, size_t n, sse_event_fn fn, void *user);
