/* A file under a name that nobody looks for, until it is whole: then it takes its real name in one
 * step. Dropped before that, it leaves nothing behind. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#define TEMP_NAME 32

struct temp {
	int dir; /* borrowed */
	int fd;  /* owned, write-only; -1 for what is not a regular file */
	char name[TEMP_NAME];
};
#define TEMP_NONE          \
	{                  \
		-1, -1, "" \
	}

/* A new regular file in dir, mode 0600. */
int temp_open(struct temp *t, int dir);
/* Only a free name: the caller makes something of it (a link) before temp_commit(). */
void temp_name(struct temp *t, int dir);
/* Gives it its name, replacing what is there unless excl (-EEXIST). */
int temp_commit(struct temp *t, const char *name, bool excl);
void temp_done(struct temp *t);
bool temp_is_name(const char *name); /* whether it is such a name */

/* rename(); with excl nothing is replaced (-EEXIST). */
int temp_rename(int from_dir, const char *from, int to_dir, const char *to, bool excl);
