/* A directory of this machine as a tar stream, pulled piece by piece. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/cleanup.h"

struct err;
struct pack; /* opaque */

/* What is below `dir`, not the directory itself. Symbolic links stay links. */
int pack_create(const char *dir, struct pack **ret, struct err *err);
/* The same, in the order of names and with one time for all: the same files are the same bytes. */
#define PACK_STABLE_TIME 946684800 /* the year 2000: every format has it */
int pack_create_stable(const char *dir, struct pack **ret, struct err *err);
struct pack *pack_free(struct pack *p);
CLEANUP_FUNC(struct pack *, pack_free)
/* Bytes put into dst; 0 at the end; -errno with err filled. Sockets, pipes and devices are left out
 * and said so. */
ssize_t pack_read(struct pack *p, void *dst, size_t n, struct err *err);
