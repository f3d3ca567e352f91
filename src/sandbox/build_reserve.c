/* Builds whose name and size are known before what they do is: clients of other protocols ask for
 * one, send files for it, and only then say its steps. */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "sandbox/build_impl.h"
#include "sandbox/template_alias.h"

#define RESERVED_OWNER_MAX 32u

static struct objects *table(struct sandboxes *all)
{
	return all->objects[OBJECTS_BUILD];
}

int build_reserved(struct sandboxes *all, const char *owner, const char *id, struct err *err)
{
	const struct object *o = objects_find(table(all), id, NULL);
	const struct build *b = o ? o->data : NULL;

	if (!b || strcmp(o->owner, owner) != 0)
		return err_set(err, ENOENT, "there is no build '%.64s'", id);
	if (!b->is_reserved || o->is_writing || build_is_over((enum build_status)b->status))
		return err_set(err, EBUSY, "the build '%s' has begun already", id);
	return 0;
}

static bool is_reserved(const struct build *b)
{
	return b->is_reserved;
}

static int check(const struct build_reservation *r, struct err *err)
{
	int e = template_check_name(r->name, err);

	if (e == 0 && r->tags.len > BUILD_TAGS_MAX)
		e = err_set(err, EINVAL, "tags: at most %d", BUILD_TAGS_MAX);
	for (size_t i = 0; e == 0 && i < r->tags.len; i++)
		e = alias_check_name(r->tags.items[i], err);
	return e;
}

void build_reserve(struct sandboxes *all, const struct build_reservation *r, object_cb cb,
		   void *user)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct err err = { 0 };
	int e = check(r, &err);

	if (e == 0 && (e = build_write(&(struct build){ .status = BUILD_WAITING,
							.owner = r->owner,
							.name = r->name,
							.from = "",
							.is_reserved = true,
							.tags = r->tags,
							.limits = r->limits },
				       &b)) < 0)
		(void)err_sys(&err, e, "build");
	if (e < 0) {
		cb(user, NULL, &err);
		return;
	}
	build_forget_oldest(all, r->owner, is_reserved, RESERVED_OWNER_MAX - 1);
	objects_add(table(all),
		    &(struct object_put){
			    .owner = r->owner, .name = "", .state = BUILD_WAITING, .text = b.data },
		    cb, user);
}
