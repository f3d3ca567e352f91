/* What find, grep and replace share: the way through the tree, what is wanted of it, and bounds on
 * the work. A process that searches has GUEST_SEARCH_CPU_MS of processor time (or what the request
 * says, if that is less) and little memory: patterns and trees come from strangers, and no library
 * promises how long a regular expression takes. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "base/walk.h"
#include "guest/ops.h"
#include "guest/path.h"

struct err;

struct search {
	struct fileop *op;     /* borrowed */
	struct walk *walk;     /* owned; NULL: the path is no directory */
	struct path_spot spot; /* owned: then it is this */
	bool is_over;          /* of the one file */
	dev_t dev;             /* a file system that may be entered */
	unsigned seen;
	/* Of the time limit. Its signal comes at any point: these are all that it looks at. */
	timer_t timer;
	bool has_timer;
	volatile sig_atomic_t holds_file; /* something would be left behind: do not end now */
	volatile sig_atomic_t is_late;
	uint8_t last_words[128];
	size_t last_len;
};

/* Begins zeroed. search_done() also after a failure. */
int search_begin(struct search *s, struct fileop *op, struct err *err);
void search_done(struct search *s);
/* 1 with the next entry below the path (not what is excluded, nor the inside of a kernel's file
 * system), 0 at the end. */
int search_next(struct search *s, struct walk_entry *ret, struct err *err);
/* Whether the request's name, size and times fit. */
bool search_wants(const struct search *s, const struct walk_entry *e);
/* Opens an entry that is a regular file, to read. Descriptor, or -errno: -EINVAL for all others. */
int search_open(const struct walk_entry *e, struct stat *ret);
/* Between the two the time limit waits. */
void search_hold(struct search *s);
int search_release(struct search *s, struct err *err); /* -ETIMEDOUT: it has waited */
/* One more was found. 1: there are enough, and the answer says that there would be more. */
int search_count(struct search *s);
int search_tell(struct search *s, const struct guest_found *f);
int search_skip(struct search *s, const char *path, const char *why);
