/* Sessions of agents for tests of the api: there are none of them. */
#include <errno.h>

#include "base/err.h"
#include "sandbox/session.h"

struct object *session_find(struct sandboxes *all, const char *owner, const char *id)
{
	(void)all, (void)owner, (void)id;
	return NULL;
}

struct object *session_find_any(struct sandboxes *all, const char *uid)
{
	(void)all, (void)uid;
	return NULL;
}

struct sandbox *session_sandbox(struct sandboxes *all, const struct object *session)
{
	(void)all, (void)session;
	return NULL;
}

void session_add(struct sandboxes *all, const char *owner, const struct session_wish *wish,
		 object_cb cb, void *user)
{
	(void)all, (void)owner, (void)wish;
	cb(user, NULL, &(struct err){ EDQUOT, "there is no room for sessions here" });
}

void session_provision(struct sandboxes *all, const struct object *session, const char *key_id,
		       uint64_t wait_ms, sandbox_cb cb, void *user)
{
	(void)all, (void)session, (void)key_id, (void)wait_ms;
	cb(user, NULL, &(struct err){ ENOENT, "there is no session here" });
}

void session_end(struct sandboxes *all, const struct object *session, object_cb cb, void *user)
{
	(void)all, (void)session;
	cb(user, NULL, &(struct err){ ENOENT, "there is no session here" });
}
