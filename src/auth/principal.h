/* Who is asking, as the key told: what a request carries from the door to the domain. */
#pragma once

#include <stdbool.h>

#include "auth/scope.h"
#include "base/id.h"

struct err;

#define OWNER_MAX 63 /* bytes */

struct principal {
	char key_id[ID_LEN + 1];
	char owner[OWNER_MAX + 1];
	enum role role;
	unsigned scopes; /* enum scope, or-ed */
};

/* 0, or -EPERM naming the first scope that is missing. SCOPE_NONE is always granted. */
int principal_check(const struct principal *p, unsigned scopes, struct err *err);
/* Admins own everything. NULL or "" belongs to nobody. */
bool principal_owns(const struct principal *p, const char *owner);
