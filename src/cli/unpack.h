/* A tar stream from a sandbox into a directory of this machine. The stream is not trusted: nothing
 * is written outside of the directory, no symbolic link is followed on the way, links that point
 * out of it are left out, and no member gets more than permission bits. */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"

struct err;
struct unpack; /* opaque */

/* Makes the directory when it is not there (its parent must be). */
int unpack_create(const char *dir, struct unpack **ret, struct err *err);
struct unpack *unpack_free(struct unpack *u);
CLEANUP_FUNC(struct unpack *, unpack_free)
int unpack_feed(struct unpack *u, const void *data, size_t n, struct err *err);
/* At the stream's end: says when it was cut off; gives directories their modes. */
int unpack_finish(struct unpack *u, struct err *err);
