/* The bytes of a layer: part of a file, unpacked if it is gzip, with the SHA-256 of both sides. In
 * a thread that may wait for a disk. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "crypto/hash.h"

struct err;
struct stream; /* opaque */

/* fd is borrowed. */
int stream_create(int fd, uint64_t offset, uint64_t size, struct stream **ret, struct err *err);
struct stream *stream_free(struct stream *s);
CLEANUP_FUNC(struct stream *, stream_free)
/* Bytes put into dst, at least 1; 0 at the end. -EBADMSG (damaged, cut off), -ENOTSUP (zstd and
 * others), -EIO ... */
ssize_t stream_read(struct stream *s, void *dst, size_t n, struct err *err);
/* After the end: of the bytes in the file, and of those that were read here. */
int stream_sums(struct stream *s, uint8_t ret_file[HASH_LEN], uint8_t ret_plain[HASH_LEN]);
