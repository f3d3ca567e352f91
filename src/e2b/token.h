/* The tokens of a sandbox, and addresses that are signed with one. They are made of the daemon's
 * secret and the sandbox's id, so they are as good after a restart, and nothing is kept. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"

struct secret;

#define E2B_TOKEN_MAC_LEN 20
#define E2B_TOKEN_SIZE (ID_LEN + 2 * E2B_TOKEN_MAC_LEN + 1) /* with its NUL */

enum e2b_token {
	E2B_TOKEN_ENVD,    /* files, processes and code */
	E2B_TOKEN_TRAFFIC, /* ports that are not public */
	E2B_TOKEN_VOLUME,  /* what is in a volume; its id is that of the volume */
};

/* The id, then 40 hex digits. 0, -EINVAL without a secret, -ENOMEM, -EIO. */
int e2b_token_make(const struct secret *secret, enum e2b_token kind, const char *sandbox_id,
		   char ret[E2B_TOKEN_SIZE]);
/* In constant time: whether text is the token of this sandbox. */
bool e2b_token_is(const struct secret *secret, enum e2b_token kind, const char *sandbox_id,
		  const char *text);
/* Whose it says that it is; false: it has not the form of one. */
bool e2b_token_names(const char *text, char ret_id[ID_LEN + 1]);

#define E2B_SIGNATURE_SIZE 64 /* with its NUL */

struct e2b_signed {       /* what a signature is about */
	const char *path; /* as in the query */
	bool is_write;
	const char *user; /* "": none */
	int64_t expires;  /* seconds since 1970; 0: never */
};
/* "v1_..." under a sandbox's token of envd. */
int e2b_signature_make(const char *token, const struct e2b_signed *s, char ret[E2B_SIGNATURE_SIZE]);
