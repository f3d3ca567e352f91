/* Who a program runs as: a look-up in the box's own passwd and group files. What is in them was
 * written by whoever fills the box, so every line is taken as hostile: one that is not well-formed
 * does not exist. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/str.h"

struct buf;
struct err;

#define USER_DEFAULT 1000u /* the box's user and group: what "" means */
#define USER_NAME_MAX 64
#define USER_PATH_MAX 256
#define USER_GROUPS_MAX 64
#define USER_FILE_MAX (1u << 20) /* bytes of a passwd or group file that are looked at */

struct user {
	uint32_t uid, gid;
	size_t ngroups;
	uint32_t groups[USER_GROUPS_MAX]; /* supplementary; gid is not among them */
	char name[USER_NAME_MAX];         /* "" when the passwd file does not know the id */
	char home[USER_PATH_MAX];         /* "/" then */
	char shell[USER_PATH_MAX];        /* "/bin/sh" then */
};

/* Finds `who` (a name, a number, or "") in the texts of a passwd and a group file. A number, and
 * the box's user, need not be known there. With a reason otherwise: -EINVAL for what is no id,
 * -ESRCH for a name that nobody has. */
int user_find(struct str passwd, struct str group, const char *who, struct user *ret,
	      struct err *err);
/* The same with /etc/passwd and /etc/group; a file that is missing, or is not a plain
 * file, counts as empty. */
int user_load(const char *who, struct user *ret, struct err *err);
/* Who has an id, by the texts of these files; false: nobody. */
bool user_name(struct str passwd, uint32_t uid, char ret[USER_NAME_MAX]);
bool user_group_name(struct str group, uint32_t gid, char ret[USER_NAME_MAX]);
/* The texts themselves, as user_load() takes them. -ENOMEM */
int user_read_files(struct buf *passwd, struct buf *group);
/* The box's user as it was last read, and what the files looked like. Zeroes: not yet. */
struct user_memory {
	struct user user;
	struct stat passwd, group;
	bool is_known;
	bool is_fixed; /* nobody can write to the files */
};
/* The same; "" is read again only when a file has changed. Reading two files is a good part of what
 * a short run costs; looking at them is not. */
int user_load_again(struct user_memory *m, const char *who, struct user *ret, struct err *err);
/* Takes the user's ids and gives up every capability, but for root of a box that has one. Plain
 * system calls, so it may run in a child that shares our memory; -1 with errno. */
int user_become(const struct user *u);
/* His ids for files that are made, and root's rights over all that are there: in a box whose root
 * is one (TEMPLATE_SUDO). Elsewhere as user_become(). */
int user_become_with_root(const struct user *u);
/* His ids alone: a process of root's keeps what holt-init may, which is to become somebody else. */
int user_take_ids(const struct user *u);
