/* Bytes from a client to a box, one holding back the other. */
#pragma once

#include "api/file_sink.h"

struct upload {                /* in the request's arena */
	struct file_sink sink; /* first; its job's call is set by the caller */
	void (*finished)(struct upload *u, uint64_t count, const struct err *err); /* caller's */
	uint64_t total;
};

/* The body of the request goes to the operation; finished() comes once, unless the client leaves or
 * sends too much. Otherwise the call is answered here. */
void upload_start(struct upload *u, const struct guest_file *f);
/* 413: what was sent is more than the configuration takes. */
void upload_refuse_size(struct api_call *c);
