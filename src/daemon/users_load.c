#include "daemon/users_load.h"

#include <errno.h>

#include "auth/users.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "store/store.h"

/* Who cannot be known is not let in, until an admin writes the record anew. */
static void add(void *user, const struct object_row *row)
{
	struct user u = { 0 };
	struct err err = { 0 };
	int r = user_read(row, &u, &err);

	if (r < 0) {
		log_error("daemon", "user %s is shut out: %s", row->id, err.text);
		u = (struct user){ .role = ROLE_VIEWER, .is_disabled = true };
		r = str_copy(u.name, sizeof(u.name), row->id);
	}
	if (r < 0 || users_put(user, &u) < 0)
		log_error("daemon", "user %s has no place in the table", row->id);
}

int users_load(const struct store *st, struct users **ret, struct err *err)
{
	_cleanup_(users_free_p) struct users *users = users_create(USERS_MAX);
	int r;

	if (!users)
		return err_sys(err, ENOMEM, "users");
	r = store_load_objects(st, USERS_KIND, add, users, err);
	if (r == 0)
		*ret = TAKE(users);
	return r;
}
