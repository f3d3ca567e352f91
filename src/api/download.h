/* Bytes from a box to a client, one holding back the other. A source that fails on the way cuts the
 * connection: a clean end is the whole of it. */
#pragma once

#include "api/file_job.h"

struct gzip;

struct download { /* in the request's arena; the first four are the caller's */
	struct file_job job;
	const char *content_type;
	int status;
	int64_t length; /* how many bytes there will be; -1: not known */
	uint64_t sent;
	bool begun;
	bool is_packed;    /* the caller's, before the first byte: as gzip, where there is any */
	struct gzip *gzip; /* owned */
	/* May be NULL. Before the first byte: with the entry, when one came. False: it has
	 * answered, or has begun something else; the operation is over. */
	bool (*opened)(struct download *d, const struct guest_entry *entry);
	/* May be NULL: problem_reply_box(). It has failed before the first byte: answers. */
	void (*failed)(struct api_call *c, const struct err *err);
};

/* Answers the call, whatever happens. */
void download_start(struct download *d, const struct guest_file *f);
