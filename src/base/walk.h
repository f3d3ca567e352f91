/* A tree, entry by entry, a directory before what is in it. Never follows a link. Memory and open
 * descriptors stay bounded however deep the tree is. */
#pragma once

#include <stdint.h>
#include <sys/stat.h>

#include "base/cleanup.h"

struct err;
struct walk; /* opaque */

#define WALK_LINK 4096 /* longest target of a link, with its NUL */

struct walk_entry {
	const char *path; /* borrowed until the next call; relative to the top */
	const char *name; /* its last part */
	int dir_fd;       /* borrowed; the directory that holds it */
	struct stat st;   /* of the entry itself */
	int failed;       /* an errno: this directory was given before, and cannot be entered */
};

/* Takes dir_fd (readable), also when it fails. levels: how deep to go; 1 is the directory alone. */
int walk_create(int dir_fd, uint32_t levels, struct walk **ret, struct err *err);
struct walk *walk_free(struct walk *w);
CLEANUP_FUNC(struct walk *, walk_free)
/* 1 with an entry, 0 at the end. -ESTALE when a directory was moved away while we were below it. */
int walk_next(struct walk *w, struct walk_entry *ret, struct err *err);
/* Does not go into the directory that walk_next() gave last. */
void walk_prune(struct walk *w);
/* The target of an entry that is a symbolic link, else "". */
void walk_link(const struct walk_entry *e, char ret[WALK_LINK]);

/* The raw directory stream, for callers with their own order. */
struct dents {
	size_t at, len;
	char data[8192] __attribute__((aligned(8)));
};
struct dent {
	const char *name; /* borrowed from the dents */
	uint8_t type;     /* DT_... */
	int64_t next;     /* where the stream goes on behind it */
};
/* 1 with an entry ("." and ".." are left out), 0 at the end, -errno. Start with a zeroed dents. */
int dents_next(struct dents *d, int dir_fd, struct dent *ret);
