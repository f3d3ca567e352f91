/* Contexts of the service that the test plays: there are none, and none can be made. */
#include <errno.h>

#include "sandbox/context.h"
#include "service_impl.h"

void context_create(struct sandbox *sb, const struct context_request *req, context_cb cb,
		    void *user)
{
	struct err err = { EAGAIN, "no room for a context" };

	(void)sb;
	(void)req;
	cb(user, NULL, &err);
}

struct context *context_find(struct sandbox *sb, const char *id_or_name)
{
	(void)sb;
	(void)id_or_name;
	return NULL;
}

size_t context_list(struct sandbox *sb, struct context_info *infos)
{
	(void)sb;
	(void)infos;
	return 0;
}

void context_info(const struct context *c, struct context_info *ret)
{
	(void)c;
	*ret = (struct context_info){ .id = "" };
}

void context_delete(struct context *c)
{
	(void)c;
}

void context_restart(struct context *c, context_cb cb, void *user)
{
	context_create(NULL, NULL, cb, user);
	(void)c;
}

int context_interrupt(struct context *c)
{
	(void)c;
	return -ESRCH;
}

int context_run(struct context *c, const struct context_code *code, context_event_fn event,
		void *user, struct context_run **ret, struct err *err)
{
	(void)c;
	(void)code;
	(void)event;
	(void)user;
	(void)ret;
	return err_set(err, EBUSY, "there is no context");
}

const char *context_run_id(const struct context_run *run)
{
	(void)run;
	return "";
}

void context_run_leave(struct context_run *run, bool cancel)
{
	(void)run;
	(void)cancel;
}
