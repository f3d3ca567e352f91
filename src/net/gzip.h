/* gzip as a content coding, a piece at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct gzip; /* opaque */

enum gzip_way { GZIP_PACK, GZIP_UNPACK };

struct gzip *gzip_create(enum gzip_way way); /* NULL without memory */
struct gzip *gzip_free(struct gzip *g);      /* takes NULL, returns NULL */
/* Takes from the front of what *data and *n are, and puts at most room bytes into dst. How many;
 * when that is less than room, all was taken. is_last (packing): nothing comes behind. -EBADMSG:
 * what is unpacked is damaged, or goes on behind its end. */
ssize_t gzip_run(struct gzip *g, const char **data, size_t *n, bool is_last, char *dst,
		 size_t room);
bool gzip_is_whole(const struct gzip *g); /* its end has come */
