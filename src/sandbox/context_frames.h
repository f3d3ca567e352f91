/* What a context's driver says between the bytes that programs write: frames in the same stream,
 * recognised by a token that only this run's request has told. Sans-I/O.
 *
 *	0x1e, the token (ID_LEN characters), a kind, 4 hexadecimal digits n, n bytes
 *
 * A frame is written at once and is not longer than what a pipe takes whole, so nothing that others
 * write at the same time lies inside it. A message is any number of FRAME_PART frames and one of
 * another kind. Bytes that are not such a frame are the programs' own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/id.h"

#define FRAME_START 0x1e
#define FRAME_HEAD (1 + ID_LEN + 1 + 4)
#define FRAME_BODY_MAX (4096 - FRAME_HEAD)

enum frame_kind {
	FRAME_PART = 'p',
	FRAME_RESULT = 'r',
	FRAME_DISPLAY = 'd',
	FRAME_ERROR = 'x',
	FRAME_END = 'e',
	FRAME_MARK = 'm',
};

struct context_sink {
	void (*bytes)(void *user, const char *data, size_t n);
	/* data is NULL when the message was longer than the reader's limit; else NUL-terminated. It
	 * may set the reader's token anew. */
	void (*message)(void *user, enum frame_kind kind, const char *data, size_t n);
	void *user;
};

struct context_frames { /* zero-initialised is valid: no token, all bytes are the programs' */
	char token[ID_LEN + 1];
	char head[FRAME_HEAD];
	size_t n_head;
	size_t body_left;
	struct buf message; /* owned */
	size_t message_max; /* bytes; 0: none at all */
	bool is_too_long;
};

/* Begins anew; what was incomplete is forgotten. token "": none. */
void context_frames_begin(struct context_frames *f, const char *token, size_t message_max);
void context_frames_done(struct context_frames *f);
void context_frames_feed(struct context_frames *f, const char *data, size_t n,
			 const struct context_sink *sink);
/* Nothing more comes: bytes that might have become a frame are the program's after all. */
void context_frames_flush(struct context_frames *f, const struct context_sink *sink);
