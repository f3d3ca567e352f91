/* A position in a list of things ordered by time and id, as clients see it: opaque text. */
#pragma once

#include <stdint.h>

#define CURSOR_ID_MAX 64
#define CURSOR_SIZE 128 /* of the text, with its NUL */

struct cursor {
	int64_t before_ms;
	char before_id[CURSOR_ID_MAX + 1];
};

int cursor_parse(const char *text, struct cursor *ret); /* -EINVAL */
/* -EINVAL for a position that no list has: a time of 0, an id that is empty or too long. */
int cursor_format(int64_t before_ms, const char *before_id, char dst[CURSOR_SIZE]);
