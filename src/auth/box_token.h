/* The tokens of a sandbox. They are made of the daemon's secret and the sandbox's id, so they are
 * as good after a restart, nothing is kept, and they end with the sandbox. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"

struct secret;

#define BOX_TOKEN_MAC_LEN 20
#define BOX_TOKEN_SIZE (ID_LEN + 2 * BOX_TOKEN_MAC_LEN + 1) /* with its NUL */

enum box_token {
	BOX_TOKEN_ENVD,    /* of E2B: files, processes and code */
	BOX_TOKEN_TRAFFIC, /* of E2B: ports that are not public */
	BOX_TOKEN_VOLUME,  /* of E2B: what is in a volume; the id is that of the volume */
	BOX_TOKEN_SESSION, /* of a session's sandbox: what is in it, by any door */
};

/* What it opens (enum scope, or-ed): it is given only to who holds all of these. */
unsigned box_token_scopes(enum box_token kind);
/* The id, then 40 hex digits. 0, -EINVAL without a secret, -ENOMEM, -EIO. */
int box_token_make(const struct secret *secret, enum box_token kind, const char *id,
		   char ret[BOX_TOKEN_SIZE]);
/* A session's token says also what it ends with, besides its sandbox: the key that asked for it, or
 * ("": a token of an identity provider asked) a time. The id, 20 characters, 40 hex digits. */
struct box_maker {
	char key_id[ID_LEN + 1];
	int64_t until_ms;
};
#define BOX_SESSION_SIZE (BOX_TOKEN_SIZE + ID_LEN)
int box_session_make(const struct secret *secret, const char *id, const struct box_maker *by,
		     char ret[BOX_SESSION_SIZE]);
/* Whose it is and what it ends with; false: we have not made it. */
bool box_session_read(const struct secret *secret, const char *text, char ret_id[ID_LEN + 1],
		      struct box_maker *ret_by);
/* In constant time: whether text is the token of this sandbox. */
bool box_token_is(const struct secret *secret, enum box_token kind, const char *id,
		  const char *text);
/* Whose it says that it is; false: it has not the form of one. */
bool box_token_names(const char *text, char ret_id[ID_LEN + 1]);
