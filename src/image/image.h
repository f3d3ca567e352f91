/* An image on this machine: a directory, a tar or an OCI archive, as one clean tar stream that
 * FILE_TAR_PUT with FILE_LAYERS unpacks. Everything in it is taken as hostile. All calls wait for
 * disks: they belong on a thread of the pool, one at a time for one image. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "image/config.h"
#include "image/filter.h"

struct err;
struct image; /* opaque */

enum image_kind { IMAGE_DIR, IMAGE_TAR, IMAGE_OCI, IMAGE_KIND_COUNT };

struct image_wish {       /* borrowed for the call */
	const char *dir;  /* the operator's directory of images */
	const char *path; /* below it: no link is followed, nothing leads out */
	enum image_kind kind;
	struct filter_limits limits;
};

/* Opens it and reads what it says about itself. -ENOENT, -ENOTDIR, -EINVAL, -EBADMSG, -ENOTSUP,
 * -E2BIG ... */
int image_open(const struct image_wish *wish, struct image **ret, struct err *err);
struct image *image_free(struct image *i);
CLEANUP_FUNC(struct image *, image_free)

/* First all of it is looked at, a piece at each call: 1 while there is more, 0 then. -EBADMSG for
 * layers that are not what the image says, -EFBIG for more than the limits. */
int image_check(struct image *i, struct err *err);
/* Then it is read: bytes put into dst, 0 at the end. */
ssize_t image_read(struct image *i, void *dst, size_t n, struct err *err);

struct image_stats {
	size_t layer, n_layers; /* in progress, from 0; in all */
	uint64_t bytes;         /* of its files, as far as they were looked at or read */
	uint32_t entries;
	uint64_t skipped;
};
void image_stats(const struct image *i, struct image_stats *ret);
const struct image_config *image_config(const struct image *i); /* NULL: it has none */
