/* A file as an answer: the whole, a part, or that it has not changed. */
#pragma once

#include "api/download.h"
#include "api/range.h"

struct file_get {                 /* in the request's arena */
	struct download download; /* first: the job is the get */
	/* The caller's, and of the download its job's call, content_type, failed and is_packed: */
	const char *path, *user;
	const char *root; /* of FILE_BELOW; NULL: none */
	uint32_t flags;   /* of the operations: enum guest_file_flag */
	/* May be NULL: further headers of a good answer. */
	void (*add_headers)(struct file_get *g, const struct guest_entry *e);
	/* Its own: */
	struct guest_file file;
	char etag[ETAG_SIZE];
	enum range_kind kind;
	struct range range;
	unsigned tries;
};

/* Answers the call, whatever happens. What cannot be read is EISDIR or ENXIO to
 * failed(). */
void file_get_start(struct file_get *g);
