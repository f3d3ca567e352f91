/* From root to an ordinary account, for good. */
#pragma once

#include <sys/types.h>

struct err;

struct account {
	char name[64];
	uid_t uid;
	gid_t gid;
};

/* The named account; NULL or "": `holt` when it exists, else `nobody`. -ENOENT; -EINVAL when it is
 * root's. */
int privilege_find_account(const char *name, struct account *ret, struct err *err);

/* Gives up what an ordinary account may have of privilege, and the ways to more: capabilities,
 * set-user-ID programs, being traced or dumped by its own account. Before any thread is started. */
int privilege_seal(struct err *err);

/* Becomes that account: no groups, no capabilities (nor a way to any: bounding set, no-new-privs),
 * not dumpable. Before any thread is started. An error is returned while nothing has changed; what
 * fails later ends the process with a message: it never goes on half-done. */
int privilege_drop(const struct account *a, struct err *err);
