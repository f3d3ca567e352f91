/* Text from outside on its way to a terminal: what would move the cursor, change colours, reorder
 * or hide is shown as \xNN. */
#pragma once

#include <stddef.h>

struct buf;

/* Appends s; 0 or buf's error. */
int escape_text(struct buf *b, const char *s, size_t n);
