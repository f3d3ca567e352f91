/* Range, If-Range, If-Match and If-None-Match (RFC 9110), as text in and decisions out. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum range_kind {
	RANGE_WHOLE, /* none asked for, or none that we serve: the whole file */
	RANGE_PART,
	RANGE_NOTHING, /* nothing of it is there: 416 */
};

struct range {
	uint64_t first, length; /* of RANGE_PART: length is above 0 */
};

/* header may be NULL. Several ranges at once count as none. */
enum range_kind range_parse(const char *header, uint64_t size, struct range *ret);

#define ETAG_SIZE 64
/* A version of a file, in quotes. */
void etag_format(char dst[ETAG_SIZE], uint64_t inode, uint64_t mtime_ns, uint64_t size);
/* Whether a list of ETags ("*" is any) has this one. weak: W/"x" counts as "x". */
bool etag_in(const char *header, const char *etag, bool weak);

#define HTTP_DATE_SIZE 30
/* "Sun, 06 Nov 1994 08:49:37 GMT" */
void http_date_format(char dst[HTTP_DATE_SIZE], int64_t wall_s);
/* The way back; only this form, which is the one that may be sent. -EINVAL */
int http_date_parse(const char *text, int64_t *ret_wall_s);
