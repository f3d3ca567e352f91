/* The first start makes an admin key: shown once, or written to a file for scripts. */
#pragma once

#include <stddef.h>

struct auth_keys;
struct err;
struct store;

/* Where it will be written. */
struct first_key_file {
	int fd;           /* owned; -1: nowhere */
	int data_fd;      /* borrowed: the state directory's data */
	const char *path; /* borrowed */
};

/* Opened while we still may: before privilege is dropped. Made only when the directory has no
 * database yet. path may be NULL. -EEXIST when the file holds the key of another state directory.
 */
int first_key_open(const char *path, int data_fd, struct first_key_file *ret, struct err *err);
/* Makes one if there is none, stores its hash, and writes the text to the file, if there is one.
 * ret: the text, to be shown once, or "" when there were keys or a file took it. */
int first_key_make(const struct store *store, struct auth_keys *keys,
		   const struct first_key_file *file, char *ret, size_t size, struct err *err);
