/* The first start makes an admin key: shown once, or written to a file for scripts. */
#pragma once

#include <stddef.h>

#define FIRST_KEY_OWNER "admin"

struct auth_keys;
struct err;
struct store;

/* Where it will be written, opened while we still may: before privilege is dropped. Made only when
 * the directory has no database yet. -1: nowhere. path may be NULL. */
int first_key_open(const char *path, int data_fd, int *ret_fd, struct err *err);
/* Makes one if there is none, stores its hash, and writes the text to fd, if there is one. ret: the
 * text, to be shown once, or "" when there were keys or a file took it. */
int first_key_make(const struct store *store, struct auth_keys *keys, int fd, char *ret,
		   size_t size, struct err *err);
