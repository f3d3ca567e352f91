/* Bytes from a client to a box, one holding back the other. */
#pragma once

#include "api/file_job.h"
#include "base/buf.h"

struct upload {              /* in the request's arena */
	struct file_job job; /* first; its call is set by the caller */
	void (*finished)(struct upload *u, uint64_t count, const struct err *err); /* caller's */
	struct buf rest; /* owned: what the box has not taken yet */
	uint64_t total;
	bool is_ended; /* the client has sent all */
};

/* The body of the request goes to the operation; finished() comes once, unless the client leaves or
 * sends too much. Otherwise the call is answered here. */
void upload_start(struct upload *u, const struct guest_file *f);
