/* What a COPY step copies: a file or directory of the context as an archive in a file of its own,
 * and its sum. The same files make the same sum, whenever they were written. */
#pragma once

#include <stdint.h>

#include "base/buf.h"

struct err;

struct build_archive {
	int fd; /* owned: a file that has no name; at its beginning */
	uint64_t bytes;
	char hash[65];
	struct buf dir; /* owned: where the archive is to be unpacked */
};
void build_archive_done(struct build_archive *a);

/* from: below the directory context, and nothing that leads out of it. to: as cp takes it, a
 * directory, or the name of a file unless it ends with a slash. A directory's contents go to `to`.
 * -EINVAL, -ENOENT, ... */
int build_pack(const char *context, const char *from, const char *to, struct build_archive *ret,
	       struct err *err);
