/* Services of named objects for tests of the api: there are none of them. */
#include <errno.h>

#include "sandbox/objects.h"
#include "sandbox/pool.h"
#include "sandbox/snapshot.h"
#include "sandbox/template_alias.h"
#include "sandbox/template_own.h"
#include "sandbox/volume.h"

struct objects *sandboxes_objects(struct sandboxes *all, enum object_set set)
{
	(void)all;
	(void)set;
	return NULL;
}

struct object *objects_find(struct objects *t, const char *id_or_name, const char *owner)
{
	(void)t;
	(void)id_or_name;
	(void)owner;
	return NULL;
}

size_t objects_list(const struct objects *t, const struct object_filter *f, struct object **ret,
		    size_t cap, bool *ret_more)
{
	(void)t;
	(void)f;
	(void)ret;
	(void)cap;
	*ret_more = false;
	return 0;
}

static void refuse(object_cb cb, void *user)
{
	struct err err = { 0 };

	(void)err_set(&err, ENOENT, "there is no such object here");
	cb(user, NULL, &err);
}

struct object *pool_find(struct sandboxes *all, const char *id_or_name)
{
	(void)all;
	(void)id_or_name;
	return NULL;
}

void pool_create(struct sandboxes *all, const struct pool_wish *wish, object_cb cb, void *user)
{
	(void)all;
	(void)wish;
	refuse(cb, user);
}

void pool_change(struct sandboxes *all, const char *id, const struct pool_patch *patch,
		 object_cb cb, void *user)
{
	(void)all;
	(void)id;
	(void)patch;
	refuse(cb, user);
}

void pool_delete(struct sandboxes *all, const char *id, object_cb cb, void *user)
{
	(void)all;
	(void)id;
	refuse(cb, user);
}

void objects_remove(struct objects *t, const char *id, object_cb cb, void *user)
{
	(void)t;
	(void)id;
	refuse(cb, user);
}

void snapshot_create(struct sandbox *sb, const char *name, object_cb cb, void *user)
{
	(void)sb;
	(void)name;
	refuse(cb, user);
}

void sandbox_fork(struct sandbox *sb, const struct fork_request *req, fork_cb cb, void *user)
{
	(void)sb;
	(void)req;
	cb(user, NULL, 0, &(struct err){ ENOENT, "there is no such object here" });
}

void sandbox_suspend(struct sandbox *sb, sandbox_cb cb, void *user)
{
	sandbox_pause(sb, cb, user);
}

void sandbox_start(struct sandbox *sb, sandbox_cb cb, void *user)
{
	sandbox_resume(sb, cb, user);
}

void volume_create(struct sandboxes *all, const char *owner, const char *name, uint64_t bytes,
		   object_cb cb, void *user)
{
	(void)all;
	(void)owner;
	(void)name;
	(void)bytes;
	refuse(cb, user);
}

void volume_delete(struct sandboxes *all, const char *id, object_cb cb, void *user)
{
	(void)all;
	(void)id;
	refuse(cb, user);
}

struct object *template_own_find(struct sandboxes *all, const char *owner, const char *name)
{
	(void)all;
	(void)owner;
	(void)name;
	return NULL;
}

void template_create(struct sandboxes *all, const struct template_wish *wish, object_cb cb,
		     void *user)
{
	(void)all;
	(void)wish;
	refuse(cb, user);
}

void template_delete(struct sandboxes *all, const char *id, object_cb cb, void *user)
{
	(void)all;
	(void)id;
	refuse(cb, user);
}

void alias_put(struct sandboxes *all, const char *owner, const char *name, const char *alias,
	       uint64_t version, object_cb cb, void *user)
{
	(void)all;
	(void)owner;
	(void)name;
	(void)alias;
	(void)version;
	refuse(cb, user);
}

struct object *alias_find(struct sandboxes *all, const char *owner, const char *full)
{
	(void)all;
	(void)owner;
	(void)full;
	return NULL;
}

void objects_each(struct objects *t, void (*each)(void *user, struct object *o), void *user)
{
	(void)t;
	(void)each;
	(void)user;
}

void pool_state(struct sandboxes *all, const struct pool *p, pool_state_cb cb, void *user)
{
	(void)all;
	(void)p;
	cb(user, NULL, &(struct err){ ENOENT, "there is no such object here" });
}
