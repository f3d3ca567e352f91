/* Addresses of one file of one sandbox that need no key: signed with the daemon's secret, for one
 * method and for a time. They end with the sandbox, too. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct secret;

#define SIGNED_FILE_SIZE 65             /* of a signature, with its NUL */
#define SIGNED_FILE_MAX_S (24 * 3600ll) /* the longest that one may be good for */

struct signed_file {
	const char *sandbox_id;
	const char
		*key_id;  /* of who asked for it: it ends with that key; "": with its time alone */
	const char *path; /* absolute, in the box: to the byte */
	bool is_write;    /* PUT; else GET and HEAD */
	int64_t expires;  /* seconds since 1970 */
};

/* 64 hex digits. 0, -EINVAL without a secret, -ENOMEM, -EIO. */
int signed_file_make(const struct secret *secret, const struct signed_file *s,
		     char ret[SIGNED_FILE_SIZE]);
/* In constant time. Whether it is still good is another question. */
bool signed_file_is(const struct secret *secret, const struct signed_file *s, const char *text);
