/* Who is asking, as the key or token told: what a request carries from the door to the domain. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "auth/scope.h"
#include "base/id.h"

struct err;

#define OWNER_MAX 63 /* bytes */

struct principal {
	char key_id[ID_LEN + 1]; /* "": a token of an identity provider, see expires_ms */
	char owner[OWNER_MAX + 1];
	char sandbox_id[ID_LEN + 1]; /* "": any of the owner's; else nothing but this one */
	enum role role;
	unsigned scopes;    /* enum scope, or-ed */
	int64_t expires_ms; /* of a token, wall clock; 0: as long as the key is good */
};

/* 0, or -EPERM naming the first scope that is missing. SCOPE_NONE is always granted. */
int principal_check(const struct principal *p, unsigned scopes, struct err *err);
/* Admins own everything. NULL or "" belongs to nobody. */
bool principal_owns(const struct principal *p, const char *owner);
/* Whether it reaches this owner's sandbox: the owner is theirs, and a token of one sandbox is that
 * sandbox's. The one check of it, whatever protocol asks. */
bool principal_may_enter(const struct principal *p, const char *owner, const char *sandbox_id);
