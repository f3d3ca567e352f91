/* multipart/form-data (RFC 7578) as it comes in: bytes in, parts out, nothing gathered but a part's
 * headers. Sans-I/O. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct err;

#define MULTIPART_BOUNDARY_MAX 70u /* as the standard says */
#define MULTIPART_HEAD_MAX 8192u   /* bytes of a part's headers */
#define MULTIPART_NAME_MAX 256u    /* with its NUL */
#define MULTIPART_FILE_MAX 4096u   /* of a file's name, with its NUL */
#define MULTIPART_LOST_MAX 65536u  /* bytes before the first part */
#define MULTIPART_PARTS_MAX 1024u

enum multipart_event {
	MULTIPART_MORE,     /* all was taken */
	MULTIPART_PART,     /* one begins: name, file */
	MULTIPART_DATA,     /* of it: data, len; borrowed until the next call */
	MULTIPART_PART_END, /* it is whole */
	MULTIPART_END,      /* that was the last; what follows is passed over */
};

struct multipart {
	char name[MULTIPART_NAME_MAX]; /* "" when it has none */
	char file[MULTIPART_FILE_MAX]; /* the file's name as it was sent; "" when it has none */
	const char *data;
	size_t len;
	/* Its own: */
	int state;
	char line[4 + MULTIPART_BOUNDARY_MAX +
		  1]; /* what ends a part: CRLF, "--" and the boundary */
	size_t line_len;
	size_t match; /* bytes of it that were seen last */
	char head[MULTIPART_HEAD_MAX];
	size_t head_len;
	size_t lost;
	unsigned parts;
};

/* From a Content-Type. -EINVAL: it is another, or names no good boundary. */
int multipart_init(struct multipart *m, const char *content_type, struct err *err);
/* The next event; takes from the front of what *data and *n are. -EBADMSG, -E2BIG (a limit above).
 */
int multipart_read(struct multipart *m, const char **data, size_t *n, struct err *err);
/* At the end of the bytes: -EBADMSG when the last part has not come. */
int multipart_finish(const struct multipart *m, struct err *err);
