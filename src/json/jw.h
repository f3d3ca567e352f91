/* Writing JSON into a buffer, as a stream: commas come by themselves. The first failure sticks and
 * jw_end() tells it; nothing else needs a check. Wrong nesting is a bug of ours and asserted.
 *
 *	struct jw w = jw_begin(&buf);
 *	jw_object_begin(&w);
 *	jw_str_field(&w, "id", sb->id);
 *	jw_key(&w, "tags"), jw_array_begin(&w), jw_string(&w, "a"), jw_array_end(&w);
 *	jw_object_end(&w);
 *	return jw_end(&w);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json/jv.h"

struct buf;

#define JW_DEPTH_MAX 64

struct jw {
	struct buf *buf; /* borrowed */
	uint64_t comma;  /* bit n: level n has a member already */
	uint64_t object; /* bit n: level n is an object */
	unsigned depth;
	bool after_key;
	int failed; /* 0, -ENOMEM or -E2BIG */
};

struct jw jw_begin(struct buf *b); /* appends to what is in b */
int jw_end(struct jw *w);          /* 0, -ENOMEM, -E2BIG: the buffer's ceiling was met */

void jw_object_begin(struct jw *w);
void jw_object_end(struct jw *w);
void jw_array_begin(struct jw *w);
void jw_array_end(struct jw *w);
void jw_key(struct jw *w, const char *key);
void jw_key_n(struct jw *w, const char *key, size_t n);

void jw_string(struct jw *w, const char *s); /* NULL becomes null */
/* Invalid UTF-8 becomes U+FFFD; NUL bytes become \u0000. */
void jw_string_n(struct jw *w, const char *s, size_t n);
void jw_int(struct jw *w, int64_t v);
void jw_uint(struct jw *w, uint64_t v);
void jw_double(struct jw *w, double v); /* the shortest that reads back the same; NaN, Inf: null */
void jw_bool(struct jw *w, bool v);
void jw_null(struct jw *w);
void jw_raw(struct jw *w, const char *json, size_t n); /* one value, trusted to be JSON */
void jw_value(struct jw *w, struct jv v);              /* a copy of what was read; absent: null */

/* A key and its value. */
void jw_str_field(struct jw *w, const char *key, const char *v);
void jw_int_field(struct jw *w, const char *key, int64_t v);
void jw_uint_field(struct jw *w, const char *key, uint64_t v);
void jw_double_field(struct jw *w, const char *key, double v);
void jw_bool_field(struct jw *w, const char *key, bool v);
void jw_null_field(struct jw *w, const char *key);
void jw_raw_field(struct jw *w, const char *key, const char *json, size_t n);
void jw_iso_field(struct jw *w, const char *key, int64_t wall_ms); /* 0: null */
