/* Who is asking, as the key or token told: what a request carries from the door to the domain. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "auth/scope.h"
#include "base/id.h"

struct err;

#define OWNER_MAX 63 /* bytes */

/* Owners that an identity provider names live in a space of their own: OWNER_SPACE_LEN hex digits
 * of the SHA-256 of the issuer, this mark, and the name. No local name has the mark. */
#define OWNER_SPACE_LEN 8
#define OWNER_SPACE_MARK '~'
#define OWNER_FOREIGN_MAX (OWNER_MAX - OWNER_SPACE_LEN - 1)

struct principal {
	char key_id[ID_LEN + 1]; /* "": a token: it is good until expires_ms */
	char owner[OWNER_MAX + 1];
	char sandbox_id[ID_LEN + 1]; /* "": any of the owner's; else nothing but this one */
	enum role role;
	unsigned scopes;    /* enum scope, or-ed */
	int64_t expires_ms; /* wall clock; 0: as long as the key is good */
};

/* 0, or -EPERM naming the first scope that is missing. SCOPE_NONE is always granted. */
int principal_check(const struct principal *p, unsigned scopes, struct err *err);
/* Admins own everything. NULL or "" belongs to nobody. */
bool principal_owns(const struct principal *p, const char *owner);
/* Whether it reaches this owner's sandbox: the owner is theirs, and a token of one sandbox is that
 * sandbox's. The one check of it, whatever protocol asks. */
bool principal_may_enter(const struct principal *p, const char *owner, const char *sandbox_id);
