/* Modes and times that directories get when all is in them: the mode may forbid that, the time
 * would not last. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#define NOTES_MAX 65536u

struct note {
	char *path; /* owned; below the top */
	size_t at;  /* its place in the order of notes */
	mode_t mode;
	struct timespec mtime;
};

struct notes {
	struct note *items; /* owned */
	size_t count, room;
};

/* -E2BIG, -ENOMEM. */
int notes_add(struct notes *n, const char *path, mode_t mode, struct timespec mtime);
/* What is below a directory before the directory; of several notes for one path the last. Before
 * each change become(owner, group) is called, if there is one. What is not there any more is passed
 * over; -errno when one that is could not be changed. The notes are used up. */
int notes_apply(struct notes *n, int top, void (*become)(uint32_t uid, uint32_t gid));
void notes_done(struct notes *n);
