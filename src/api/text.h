/* Bytes as text, piece by piece: a UTF-8 sequence that is cut at the end of one piece is held for
 * the next. What is invalid is replaced later, where JSON is written. */
#pragma once

#include <stddef.h>

struct buf;

struct text_tail {
	char data[4];
	size_t len; /* bytes held */
};

/* Appends what is whole: the bytes held, then data without a cut sequence at its end, which is held
 * instead. buf's error: then nothing has changed. */
int text_feed(struct text_tail *t, const char *data, size_t n, struct buf *ret);
/* Nothing follows: appends what is held. */
int text_end(struct text_tail *t, struct buf *ret);
