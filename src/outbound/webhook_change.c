/* What owners do to their webhooks: making, changing, removing them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/encode.h"
#include "base/err.h"
#include "base/str.h"
#include "crypto/random.h"
#include "outbound/courier.h"
#include "outbound/webhooks.h"
#include "outbound/webhooks_impl.h"
#include "sandbox/check.h"
#include "sandbox/events.h"

#define SECRET_PREFIX "whsec_"
#define SECRET_BYTES 32
#define SECRET_SIZE (sizeof(SECRET_PREFIX) + 2 * SECRET_BYTES)

struct hook_change {
	struct list node;
	struct webhooks *all; /* NULL: it is gone, and nobody waits */
	char secret[SECRET_SIZE];
	webhook_cb cb;
	object_cb removed; /* of a removal, instead of cb */
	void *user;
	char id[ID_LEN + 1];
};

static struct hook_change *change_create(struct webhooks *w, void *user)
{
	struct hook_change *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->all = w;
	c->user = user;
	list_push_back(&w->changes, &c->node);
	return c;
}

static void change_free(struct hook_change *c)
{
	list_remove(&c->node);
	explicit_bzero(c, sizeof(*c));
	free(c);
}

/* NOTE: the registry goes right behind us and forgets its callbacks without calling them, so what
 * they would have freed is freed here. */
void webhook_changes_drop(struct webhooks *w)
{
	LIST_FOREACH (&w->changes, c, struct hook_change, node)
		change_free(c);
}

static void tell(struct hook_change *c, struct object *o, const struct err *err)
{
	c->cb(c->user, o, !err && c->secret[0] ? c->secret : NULL, err);
	change_free(c);
}

/* ---- what may be asked for ---- */

static int check_url(const struct webhooks *w, const char *url, struct err *err)
{
	bool is_https = strncmp(url, "https://", 8) == 0;

	/* What is sent to the internet is not for those on the way. */
	if (!is_https && !(w->o.allow_private && strncmp(url, "http://", 7) == 0))
		return err_set(err, EINVAL, "url: want https://%s",
			       w->o.allow_private ? " or http://" : "");
	return courier_check_url(url, err);
}

static void make_secret(char ret[SECRET_SIZE])
{
	uint8_t bytes[SECRET_BYTES];

	random_bytes(bytes, sizeof(bytes));
	memcpy(ret, SECRET_PREFIX, strlen(SECRET_PREFIX));
	encode_hex(bytes, sizeof(bytes), ret + strlen(SECRET_PREFIX));
	explicit_bzero(bytes, sizeof(bytes));
}

/* ---- making ---- */

static void on_added(void *user, struct object *o, const struct err *err)
{
	struct hook_change *c = user;
	struct err failed = { 0 };
	struct hook *h = err ? NULL : hook_create(c->all, o);

	if (!err && !h) { /* it is there after the next start */
		(void)err_sys(&failed, ENOMEM, "webhook");
		tell(c, NULL, &failed);
		return;
	}
	tell(c, o, err);
	if (h)
		hook_pump(h);
}

static int check_wish(const struct webhooks *w, const struct webhook_wish *wish, struct err *err)
{
	int r = check_name(wish->name, err);

	if (r == 0)
		r = check_url(w, wish->url, err);
	if (r == 0)
		r = webhook_check_events(&wish->events, err);
	return r == 0 && wish->secret ? webhook_check_secret(wish->secret, err) : r;
}

static void wipe(struct buf *b)
{
	if (b->data)
		explicit_bzero(b->data, b->len);
	buf_done(b);
}

void webhooks_add(struct webhooks *w, const char *owner, const struct webhook_wish *wish,
		  webhook_cb cb, void *user)
{
	_cleanup_(wipe) struct buf b = { 0 };
	struct webhook data = { .url = wish->url,
				.events = wish->events,
				.all_owners = wish->all_owners,
				.after = journal_last(events_journal(w->o.events)) };
	struct hook_change *c = NULL;
	struct err err = { 0 };
	int r = check_wish(w, wish, &err);

	if (r == 0 && !(c = change_create(w, user)))
		r = err_sys(&err, ENOMEM, "webhook");
	if (r < 0 || !c) {
		cb(user, NULL, NULL, &err);
		return;
	}
	c->cb = cb;
	if (!wish->secret)
		make_secret(c->secret);
	data.secret = wish->secret ? wish->secret : c->secret;
	if (webhook_write(&data, &b) < 0) {
		(void)err_sys(&err, ENOMEM, "webhook");
		tell(c, NULL, &err);
		return;
	}
	objects_add(
		w->objects,
		&(struct object_put){ .owner = owner,
				      .name = wish->name,
				      .state = wish->enabled ? WEBHOOK_ENABLED : WEBHOOK_DISABLED,
				      .text = b.data },
		on_added, c);
}

/* ---- changing ---- */

static void on_changed(void *user, struct object *o, const struct err *err)
{
	struct hook_change *c = user;
	struct hook *h = err ? NULL : hook_find(c->all, o->id);

	tell(c, o, err);
	if (h)
		hook_renew(h);
}

static int check_patch(const struct webhooks *w, const struct webhook_patch *patch, struct err *err)
{
	int r = patch->url ? check_url(w, patch->url, err) : 0;

	if (r == 0 && patch->events.len != SIZE_MAX)
		r = webhook_check_events(&patch->events, err);
	if (r == 0 && patch->secret && patch->rotate)
		r = err_set(err, EINVAL, "secret: want this or rotateSecret");
	return r == 0 && patch->secret ? webhook_check_secret(patch->secret, err) : r;
}

/* What it will be; its texts are those of the object, the patch and the change. */
static struct webhook patched(const struct object *o, const struct webhook_patch *patch,
			      const struct hook_change *c)
{
	struct webhook data = *(const struct webhook *)o->data;

	if (patch->url)
		data.url = patch->url;
	if (patch->events.len != SIZE_MAX)
		data.events = patch->events;
	if (patch->secret || patch->rotate)
		data.secret = patch->rotate ? c->secret : patch->secret;
	return data;
}

void webhooks_change(struct webhooks *w, const char *id, const struct webhook_patch *patch,
		     webhook_cb cb, void *user)
{
	_cleanup_(wipe) struct buf b = { 0 };
	const struct object *o = objects_find(w->objects, id, NULL);
	struct hook_change *c = NULL;
	struct webhook data;
	uint32_t state;
	struct err err = { 0 };
	int r = o ? check_patch(w, patch, &err)
		  : err_set(&err, ENOENT, "there is no webhook '%.64s'", id);

	if (r == 0 && !(c = change_create(w, user)))
		r = err_sys(&err, ENOMEM, "webhook");
	if (r < 0 || !c || !o) {
		cb(user, NULL, NULL, &err);
		return;
	}
	c->cb = cb;
	if (patch->rotate)
		make_secret(c->secret);
	data = patched(o, patch, c);
	state = o->state;
	if (patch->enabled.said != WEBHOOK_UNSAID)
		state = patch->enabled.on ? WEBHOOK_ENABLED : WEBHOOK_DISABLED;
	if (webhook_write(&data, &b) < 0) {
		(void)err_sys(&err, ENOMEM, "webhook");
		tell(c, NULL, &err);
		return;
	}
	objects_change(w->objects, id, state, b.data, on_changed, c);
}

/* ---- removing ---- */

static void on_removed(void *user, struct object *o, const struct err *err)
{
	struct hook_change *c = user;
	struct hook *h = err ? NULL : hook_find(c->all, c->id);

	if (h)
		hook_forget(h);
	if (c->removed)
		c->removed(c->user, o, err);
	change_free(c);
}

void webhooks_remove(struct webhooks *w, const char *id, object_cb cb, void *user)
{
	struct hook_change *c = change_create(w, user);

	if (!c) {
		if (cb)
			cb(user, NULL, &(struct err){ ENOMEM, "out of memory" });
		return;
	}
	c->removed = cb;
	(void)str_copy(c->id, sizeof(c->id), id); /* a longer one is nobody's */
	objects_remove(w->objects, id, on_removed, c);
}

struct owned {
	struct webhooks *w;
	const char *owner;
};

static void remove_owned(void *user, struct object *o)
{
	struct owned *q = user;

	if (strcmp(o->owner, q->owner) == 0)
		webhooks_remove(q->w, o->id, NULL, NULL);
}

void webhooks_end_owner(struct webhooks *w, const char *owner)
{
	objects_each(w->objects, remove_owned, &(struct owned){ w, owner });
}
