/* A stranger's tar becomes one of ours: names that lead nowhere but down, no devices, bounded in
 * number and size. Bytes in, bytes out.
 *
 * Whiteouts of a layer have to be known before its files: the first reading of a layer collects
 * them, the second one puts them in front. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/tar.h"

struct err;

#define FILTER_DEPTH_MAX 256u /* directories above a file */
#define FILTER_ID_MAX 4094u   /* largest id of a box, but for nobody's */
#define FILTER_NOBODY 65534u

struct filter_limits {
	uint64_t bytes;   /* of all files together */
	uint32_t entries; /* of everything */
};

struct filter_count {
	uint64_t bytes, stream; /* of files; of the tars themselves */
	uint32_t entries;
	uint64_t skipped; /* devices, pipes, and names that mean something else in images */
};

struct filter {
	struct tar_reader tar;
	const struct filter_limits *limits; /* borrowed */
	struct filter_count *count;         /* borrowed: of all layers together */
	struct buf *white;                  /* borrowed: whiteouts, each with its NUL; NULL: none */
	struct buf *out;                    /* borrowed; NULL: nothing is written */
	bool is_kept;                       /* the member in progress */
};

/* white and out: see struct filter. With both, what is in white is written first and nothing added
 * to it. */
int filter_init(struct filter *f, const struct filter_limits *limits, struct filter_count *count,
		struct buf *white, struct buf *out);
void filter_done(struct filter *f);
/* -EINVAL (a name), -EFBIG (more than the limits), and tar_read()'s. */
int filter_take(struct filter *f, const void *data, size_t n, struct err *err);
int filter_finish(const struct filter *f, struct err *err);
