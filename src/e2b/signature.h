/* Addresses of files that are signed with a sandbox's token of envd (auth/box_token.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/id.h"

struct secret;

#define E2B_SIGNATURE_SIZE 64 /* with its NUL */

struct e2b_signed {       /* what a signature is about */
	const char *path; /* as in the query */
	bool is_write;
	const char *user; /* "": none */
	int64_t expires;  /* seconds since 1970; 0: never */
};
/* Which of these sandboxes' tokens of envd has made it: the place of its id, or -ENOENT; -ENOMEM,
 * -EIO. What has not the form of a signature costs nothing, and a path, which may be long, is
 * hashed once however many there are. */
ssize_t e2b_signature_find(const struct secret *secret, const struct e2b_signed *s,
			   const char *signature, const char (*ids)[ID_LEN + 1], size_t n);
/* "v1_..." under a sandbox's token of envd. */
int e2b_signature_make(const char *token, const struct e2b_signed *s, char ret[E2B_SIGNATURE_SIZE]);
