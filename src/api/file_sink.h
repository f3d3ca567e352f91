/* Bytes on their way into a file operation: what the box does not take yet waits, and so does
 * whoever sends. */
#pragma once

#include "api/file_job.h"
#include "base/buf.h"

struct file_sink {           /* in the request's arena */
	struct file_job job; /* first; its call is set by the caller */
	/* The caller's. All that was put is taken; not after file_sink_end(). */
	void (*room)(struct file_sink *s);
	/* The caller's: once, the operation is over. An entry that came is in the job. */
	void (*finished)(struct file_sink *s, uint64_t count, const struct err *err);
	struct buf rest; /* owned: what the box has not taken yet */
	bool is_ended;
};

/* As file_job_try(). Whoever starts one also hears of a client that goes: file_sink_done(). */
int file_sink_start(struct file_sink *s, const struct guest_file *f, struct err *err);
/* Copies. 1: the box has it all; 0: room() comes; -ENOMEM. */
int file_sink_put(struct file_sink *s, const void *data, size_t n);
void file_sink_end(struct file_sink *s);  /* that was all: finished() comes */
void file_sink_done(struct file_sink *s); /* cancels what is under way, and frees */
