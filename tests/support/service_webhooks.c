/* The service of webhooks for tests of the api: there are none of them. */
#include <errno.h>

#include "base/err.h"
#include "outbound/webhooks.h"

void webhooks_add(struct webhooks *w, const char *owner, const struct webhook_wish *wish,
		  webhook_cb cb, void *user)
{
	(void)w;
	(void)owner;
	(void)wish;
	cb(user, NULL, NULL, &(struct err){ ENOENT, "there are no webhooks here" });
}

void webhooks_change(struct webhooks *w, const char *id, const struct webhook_patch *patch,
		     webhook_cb cb, void *user)
{
	(void)id;
	(void)patch;
	webhooks_add(w, NULL, NULL, cb, user);
}

void webhooks_remove(struct webhooks *w, const char *id, object_cb cb, void *user)
{
	(void)w;
	(void)id;
	cb(user, NULL, &(struct err){ ENOENT, "there are no webhooks here" });
}

void webhooks_end_owner(struct webhooks *w, const char *owner)
{
	(void)w;
	(void)owner;
}

void webhooks_test(struct webhooks *w, const char *id, webhook_test_cb cb, void *user)
{
	(void)w;
	(void)id;
	cb(user, NULL, &(struct err){ ENOENT, "there are no webhooks here" });
}
