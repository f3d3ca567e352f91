/* Where the database lies: a directory that is ours alone, one process at a time, and a file that
 * stays the same one. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct err;
struct store_options;

struct place {
	char *path;  /* owned: of the database, without symbolic links */
	int lock_fd; /* owned: held as long as the store is open */
	dev_t dev;   /* of the database's file */
	ino_t ino;
	bool was_clean; /* the last process that had it closed it */
};

/* Makes an empty file with mode 0600 when there is none. */
int place_open(const struct store_options *options, struct place *ret, struct err *err);
/* Takes one that is zeroed or half made. */
void place_close(struct place *p);
/* -ESTALE: the path leads to another file now, or to none. */
int place_check(const struct place *p);
