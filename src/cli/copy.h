/* The two directions of `cp`. */
#pragma once

#include "cli/client.h"

/* ID:/path */
struct place {
	const char *sandbox;
	const char *path; /* absolute */
};

enum place_kind { PLACE_NONE, PLACE_FILE, PLACE_DIR, PLACE_OTHER };

/* What is there; symbolic links are followed. For PLACE_NONE err says what is not there. ret_mode
 * (may be NULL) gets a file's permission bits.
 */
int place_look(struct client *c, const struct place *p, enum place_kind *ret, uint32_t *ret_mode,
	       struct err *err);
/* Its last name; NULL for a path that ends with none ("/", "/a/."). ".." is refused: -EINVAL. */
int place_name(const char *path, const char **ret, struct err *err);
/* The target of a request about the place's contents: "files" or "archive". */
int place_target(const struct place *p, const char *what, struct buf *b);

/* "-" is standard input, and standard output. */
int copy_in(struct client *c, const char *from, const struct place *to, struct err *err);
int copy_out(struct client *c, const struct place *from, const char *to, struct err *err);
