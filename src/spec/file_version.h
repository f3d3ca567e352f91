/* A version of a file: what tells its content from any other that the name has had. The API's ETags
 * are made of it, and the target of a FILE_WRITE may name the one version that it replaces ("":
 * what is there); another one, or none, is ESTALE. */
#pragma once

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#define FILE_VERSION_SIZE 56

static inline void file_version(char dst[FILE_VERSION_SIZE], uint64_t inode, uint64_t mtime_ns,
				uint64_t size)
{
	(void)snprintf(dst, FILE_VERSION_SIZE, "%" PRIx64 "-%" PRIx64 "-%" PRIx64, inode, mtime_ns,
		       size);
}
