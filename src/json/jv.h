/* Reading JSON: a document from foreign bytes, and light handles into it. RFC 8259 to the letter:
 * no comments, no NaN, no commas at the end, valid UTF-8, and each key of an object once only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct err;

#define JV_DEPTH_MAX 32

struct jv_doc; /* opaque; all handles into it die with it */

/* A value, or {NULL}: absent. Every function takes an absent one and answers as for a wrong kind.
 */
struct jv {
	void *val; /* borrowed from the document */
};

enum jv_kind { JV_ABSENT, JV_NULL, JV_BOOL, JV_NUMBER, JV_STRING, JV_ARRAY, JV_OBJECT };

/* data is copied. -EINVAL (the text says where), -E2BIG above max bytes or JV_DEPTH_MAX, -ENOMEM.
 */
int jv_parse(const void *data, size_t n, size_t max, struct jv_doc **ret, struct err *err);
struct jv_doc *jv_free(struct jv_doc *doc); /* takes NULL, returns NULL */
struct jv jv_root(const struct jv_doc *doc);

enum jv_kind jv_kind(struct jv v);
const char *jv_kind_name(enum jv_kind kind); /* "a string" */
struct jv jv_get(struct jv object, const char *key);
struct jv jv_at(struct jv array, size_t index);
size_t jv_len(struct jv v); /* members of an array or object, bytes of a string; else 0 */

/* 0, or -EINVAL for another kind; -ERANGE when the number does not fit. 1.0 is an integer, 1.5 not.
 */
int jv_str(struct jv v, struct str *ret); /* may hold NUL bytes */
int jv_i64(struct jv v, int64_t *ret);
int jv_u64(struct jv v, uint64_t *ret);
int jv_double(struct jv v, double *ret);
int jv_bool(struct jv v, bool *ret);
/* The string, NUL-terminated; NULL for another kind or when it holds a NUL byte. */
const char *jv_text(struct jv v);

/* Walks an array or an object in the document's order. */
struct jv_iter {
	struct jv of;
	void *next;     /* the element or key to come */
	size_t index;   /* of the current one */
	struct str key; /* of the current one; NULL data in an array */
	struct jv value;
};
struct jv_iter jv_iter(struct jv v);
bool jv_next(struct jv_iter *it);
#define JV_FOREACH(v, it) for (struct jv_iter it = jv_iter(v); jv_next(&it);)
