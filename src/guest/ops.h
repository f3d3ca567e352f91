/* The file operations themselves. Each returns 0 and leaves in op->count what G_DONE shall say, or
 * -errno with a message in err; frames before the last go out on the way. */
#pragma once

#include <stdint.h>
#include <sys/stat.h>

#include "guest/chan.h"
#include "guest/details.h"

struct err;
struct path_spot;
struct temp;

struct fileop {
	struct chan chan;
	const struct guest_file *f; /* borrowed */
	int root_fd;                /* borrowed */
	int lock_fd;                /* borrowed: held where a file takes its name; -1: none */
	uint64_t count;
	struct details details;
};

int files_stat(struct fileop *op, struct err *err);
int files_list(struct fileop *op, struct err *err);
int files_read(struct fileop *op, struct err *err);
int files_mkdir(struct fileop *op, struct err *err);
int files_chmod(struct fileop *op, struct err *err);
int files_write(struct fileop *op, struct err *err);
int files_rename(struct fileop *op, struct err *err);
int files_remove(struct fileop *op, struct err *err);
int files_tar_get(struct fileop *op, struct err *err);
int files_tar_put(struct fileop *op, struct err *err);
int files_watch(struct fileop *op, struct err *err);
int files_find(struct fileop *op, struct err *err);
int files_grep(struct fileop *op, struct err *err);
int files_replace(struct fileop *op, struct err *err);
int files_ports(struct fileop *op, struct err *err);
int files_compose(struct fileop *op, struct err *err);

/* All bytes of one file behind those of another; op's count grows. -errno, no message. */
int files_copy_bytes(struct fileop *op, int from, int to);
/* Takes away what has the name in the directory, with all that is below it. 0: nothing had it. */
int files_remove_at(struct fileop *op, int dir_fd, const char *name, struct err *err);
int files_empty_at(struct fileop *op, int dir_fd, struct err *err); /* all that is in it */
/* Opens op's path, which must be a regular file: nothing else is opened for more than a look. */
int files_open_regular(struct fileop *op, int flags, struct stat *ret, struct err *err);
/* What both stat and list tell about a file. link: its target, or "". */
struct guest_entry files_entry(const struct stat *st, const char *path, const char *link);
/* Sends one; with FILE_DETAILS all of it. fd: as details_fill()'s. below: where it is below op's
 * path, "" for that itself. */
int files_send_entry(struct fileop *op, int fd, const struct stat *st, const char *below,
		     const char *link);
/* With FILE_DETAILS, what has the name now. */
int files_send_made(struct fileop *op, int dir_fd, const char *name, const char *path);
/* EPERM for a set-user-id or set-group-id bit, EINVAL for bits that are no permissions. */
int files_check_mode(uint32_t mode, struct err *err);
/* 0 for a regular file; EISDIR or EINVAL for anything else. */
int files_want_regular(const struct stat *st, const char *path, struct err *err);
/* Between the two no other operation of this box gives a file a name or takes one. -errno. */
int files_lock(const struct fileop *op);
void files_unlock(const struct fileop *op);
/* Whether what has the name may be replaced by a file; *mode becomes that of what is there. */
int files_check_old(const struct fileop *op, const struct path_spot *spot, mode_t *mode,
		    struct err *err);
/* Gives a whole temp its name. No other operation comes between the look at what is there and its
 * end: another version than this one ("": any) is ESTALE. */
int files_commit(struct fileop *op, struct temp *temp, const struct path_spot *spot,
		 const char *version, struct err *err);
