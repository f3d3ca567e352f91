/* Takes from the daemon all that it does not need once it serves, so that whoever takes it over has
 * the files of its state directory, a few of the machine's, and the system calls of a server. For
 * good, and for every thread: before the first is started. What needs more than that, other
 * processes do: the keeper starts launchers (provider/keeper.h), and the starter the tool servers
 * of this machine (daemon/starter.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct config;
struct err;

#define CONFINE_FILES_MAX 255u

struct confinement {            /* lists are ended by NULL */
	const char *data_dir;   /* borrowed: the daemon's own, where everything is allowed */
	const char *listens_at; /* borrowed: a Unix socket's path; NULL: none */
	char *trees[3];         /* owned: directories that are read while it serves */
	/* Owned: files that are read again, and may be replaced meanwhile. */
	char *files[CONFINE_FILES_MAX + 1];
	size_t n_files;
};

/* What the settings and the configuration of tool servers (may be empty) name. -ENOMEM, -E2BIG,
 * -EINVAL: a directory that is shared.
 * Makes the folder of skills where that is ours, so that there is something to allow. */
int confinement_init(struct confinement *c, const struct config *config, const char *data_dir,
		     const struct buf *servers_json, struct err *err);
/* Is it a directory that holds anything and everything: one of the system's, a home, or what a home
 * lies in? Then none of it is opened for the sake of one purpose. One that is not there is not. */
bool confinement_is_shared(const char *dir);
/* -EINVAL for a setting that names such a directory; NULL is fine. */
int confinement_check(const char *setting, const char *dir, struct err *err);
bool confinement_is_beneath(const char *path, const char *dir); /* or the same */
bool confinement_has_unix(const struct config *config);         /* listens it on a Unix socket? */
void confinement_done(struct confinement *c);

/* Namespaces of its own, in which nothing can be written but data_dir and beside the socket. While
 * it is still root. -EPERM where not even root may. */
int confine_apart(const struct confinement *c, struct err *err);
/* The rest. no-new-privs is set. An error of a means that the kernel has is an error; a kernel
 * without Landlock is told of in the log. */
int confine_self(const struct confinement *c, struct err *err);

/* Of a daemon that listens on a Unix socket, once it does: no others any more. */
int confine_unix(struct err *err);

/* Of it, the filter of system calls. is_sanitized: also what a sanitizer's run time needs, which
 * traces its own threads in the end. */
int confine_calls(bool is_sanitized, bool has_unix_sockets, struct err *err);
