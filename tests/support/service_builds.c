/* Builds of templates for tests of the api: there are none of them. */
#include <errno.h>
#include <string.h>

#include "sandbox/build.h"
#include "sandbox/build_cache.h"
#include "sandbox/build_files.h"

bool build_hash_is_valid(const char *hash)
{
	return strlen(hash) == BUILD_HASH_LEN;
}

int build_upload_begin(struct sandboxes *all, const char *owner, const char *hash,
		       struct build_upload **ret, struct err *err)
{
	(void)all;
	(void)owner;
	(void)hash;
	(void)ret;
	return err_set(err, EOPNOTSUPP, "there is no place for files here");
}

int build_upload_write(struct build_upload *u, const void *data, size_t n, struct err *err)
{
	(void)u;
	(void)data;
	(void)n;
	return err_set(err, EIO, "there is no upload");
}

void build_upload_finish(struct build_upload *u, object_cb cb, void *user)
{
	(void)u;
	cb(user, NULL, &(struct err){ EIO, "there is no upload" });
}

void build_upload_abort(struct build_upload *u)
{
	(void)u;
}

struct object *build_file_find(struct sandboxes *all, const char *owner, const char *hash)
{
	(void)all;
	(void)owner;
	(void)hash;
	return NULL;
}

void build_create(struct sandboxes *all, const struct build_wish *wish, object_cb cb, void *user)
{
	(void)all;
	(void)wish;
	cb(user, NULL, &(struct err){ ENOENT, "there is no such object here" });
}

void build_delete(struct sandboxes *all, const char *id, object_cb cb, void *user)
{
	(void)all;
	(void)id;
	cb(user, NULL, &(struct err){ ENOENT, "there is no such object here" });
}

bool build_follow(struct sandboxes *all, const char *id, struct build_follower *f)
{
	(void)all;
	(void)id;
	list_init(&f->node);
	return false;
}

void build_unfollow(struct build_follower *f)
{
	list_remove(&f->node);
}

void builds_set_network(struct sandboxes *all, const struct build_network *network)
{
	(void)all;
	(void)network;
}

void build_cache_clear(struct sandboxes *all, const char *owner, object_cb cb, void *user)
{
	(void)all;
	(void)owner;
	cb(user, NULL, NULL);
}
