/* What lies where in a tar that holds an image: names, and the places of their bytes. Bytes in,
 * places out; whoever reads the file skips what need not be read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct archive; /* opaque */
struct err;

#define ARCHIVE_PARTS_MAX 4096u
#define ARCHIVE_NAME_MAX 255u /* longer names are of nobody's interest */

struct archive_part {
	uint64_t offset, size;
};

struct archive *archive_create(void); /* NULL without memory */
struct archive *archive_free(struct archive *a);
CLEANUP_FUNC(struct archive *, archive_free)

/* Where to read on. */
uint64_t archive_next(const struct archive *a);
bool archive_is_whole(const struct archive *a); /* its end mark was seen */
/* The bytes from archive_next() on, any number but 0. -EBADMSG and others for what is no tar,
 * -E2BIG. */
int archive_take(struct archive *a, const void *data, size_t n, struct err *err);

/* A file by its name; links between members are followed, a few. -ENOENT. */
int archive_find(const struct archive *a, const char *name, struct archive_part *ret);
