/* Entries of a directory or a search, gathered up to a bound: for an answer that tells all at once.
 */
#pragma once

#include "api/file_job.h"

struct file_listing {        /* in the request's arena */
	struct file_job job; /* first: the job is the listing */
	const char *path;
	struct arena *arena;         /* owned: the entries' texts */
	struct guest_entry *entries; /* owned; a directory before what is in it */
	size_t n, cap, bytes;
	size_t limit;      /* of entries */
	bool is_truncated; /* there are more */
	/* Once, with the entries or an error; file_listing_done() before the answer. */
	void (*then)(struct file_listing *l, const struct err *err);
};

#define FILE_LIST_MAX 10000u

/* An error of the start comes by then(), too. */
void file_listing_start(struct api_call *c, const struct guest_file *f, size_t limit,
			void (*then)(struct file_listing *l, const struct err *err));
void file_listing_done(struct file_listing *l);
