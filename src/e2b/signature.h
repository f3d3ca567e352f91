/* Addresses of files that are signed with a sandbox's token of envd (auth/box_token.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define E2B_SIGNATURE_SIZE 64 /* with its NUL */

struct e2b_signed {       /* what a signature is about */
	const char *path; /* as in the query */
	bool is_write;
	const char *user; /* "": none */
	int64_t expires;  /* seconds since 1970; 0: never */
};
/* "v1_..." under a sandbox's token of envd. */
int e2b_signature_make(const char *token, const struct e2b_signed *s, char ret[E2B_SIGNATURE_SIZE]);
