#include "auth/principal.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"

int principal_check(const struct principal *p, unsigned scopes, struct err *err)
{
	unsigned missing = scopes & ~p->scopes;
	const char *name = scope_name((enum scope)(missing & -missing)); /* the lowest of them */

	if (missing == 0)
		return 0;
	return err_set(err, EPERM, "this key may not do that: it lacks '%s'",
		       name ? name : "an unknown scope");
}

bool principal_owns(const struct principal *p, const char *owner)
{
	if (p->scopes & SCOPE_ADMIN)
		return true;
	return owner && *owner && strcmp(p->owner, owner) == 0;
}

bool principal_may_enter(const struct principal *p, const char *owner, const char *sandbox_id)
{
	if (!principal_owns(p, owner))
		return false;
	return p->sandbox_id[0] == '\0' || strcmp(p->sandbox_id, sandbox_id) == 0;
}
