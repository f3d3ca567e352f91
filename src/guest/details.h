/* What else is to be told of a file: whose it is by name, where it leads, which attributes it has.
 * Nothing of it is worth an error: what cannot be found out is left out. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "guest/path.h"
#include "guest/user.h"
#include "spec/guest.h"

struct fileop;

#define DETAILS_NAMES 16384 /* bytes of the names of a file's attributes; with more, none is */

struct details {
	struct buf passwd, group; /* the box's files, once they were wanted */
	bool is_loaded;
	uint32_t uid, gid; /* whose names these are */
	char owner[USER_NAME_MAX], owners_group[USER_NAME_MAX];
	char path[PATH_BYTES + PATH_NAME];
	char target[PATH_BYTES];
	char attrs[GUEST_ATTRS_BYTES];
	char names[DETAILS_NAMES]; /* of attributes, ours or not */
};

void details_done(struct details *d);
/* Where something is that lies below op's path ("": it is that one), as a whole path; borrowed
 * until the next call. */
const char *details_path(struct details *d, const struct fileop *op, const char *below);
/* Fills in the rest of an entry, whose path is a whole one. fd: the file itself, O_PATH will do;
 * -1: it could not be opened. The texts are borrowed until the next call. */
void details_fill(struct details *d, const struct fileop *op, int fd, const struct stat *st,
		  struct guest_entry *e);

/* Gives a file these attributes, of which it has none yet. EOPNOTSUPP: its file system has none. */
int details_set_attrs(int fd, const char *attrs, size_t len);
