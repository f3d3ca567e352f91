#include "sandbox/volume_box.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "sandbox/registry.h"
#include "sandbox/volume.h"

#define OPEN_TRIES 4
#define BOX_TIME_MS (24ull * 3600 * 1000)

static bool is_box(const struct sandbox *sb)
{
	return sb->is_internal && sb->volumes.n > 0 && state_is_live(sb->state);
}

static struct sandbox *find_box(struct sandboxes *all, const char *volume_id)
{
	LIST_FOREACH (&all->sandboxes, sb, struct sandbox, node)
		if (is_box(sb) && volume_path(sb, volume_id))
			return sb;
	return NULL;
}

/* ---- opening ---- */

struct opening {
	struct pending pending;
	struct sandboxes *all;
	char volume_id[ID_LEN + 1];
	char template[SANDBOX_TEMPLATE_MAX + 1];
	unsigned tries;
	struct answer *answer; /* owned */
};

static void try_open(struct opening *o);

static void drop_opening(struct pending *p)
{
	struct opening *o = LIST_ENTRY(p, struct opening, pending);

	answer_drop(o->answer);
	free(o);
}

static void finish(struct opening *o, struct sandbox *sb, const struct err *err)
{
	list_remove(&o->pending.node);
	if (sb)
		sandbox_touch(sb);
	answer_give(o->answer, sb, err);
	free(o);
}

static void on_made(void *user, struct sandbox *sb, const struct err *err)
{
	finish(user, err ? NULL : sb, err);
}

static void on_gone(void *user, struct sandbox *sb, const struct err *err)
{
	(void)sb;
	if (err)
		finish(user, NULL, err);
	else
		try_open(user);
}

static void make_box(struct opening *o, const struct object *volume)
{
	static const struct sandbox_pair purpose[] = { { "holt.job", "volume-content" } };
	uint64_t max_ms = o->all->settings.timeout_max_ms;
	struct volume_mounts mounts = { .n = 1 };
	struct sandbox_request req = { .owner = volume->owner,
				       .name = "",
				       .template = o->template,
				       .volumes = &mounts,
				       .timeout_ms = max_ms > 0 ? max_ms : BOX_TIME_MS,
				       .idle_ms = VOLUME_BOX_IDLE_MS,
				       .is_internal = true,
				       .metadata = purpose,
				       .n_metadata = 1 };

	(void)str_copy(mounts.items[0].name, sizeof(mounts.items[0].name), volume->id);
	(void)str_copy(mounts.items[0].path, sizeof(mounts.items[0].path), VOLUME_BOX_PATH);
	sandbox_create(o->all, &req, on_made, o);
}

/* One that gives way, when the owner has as many as may be: the one that has waited longest. */
static struct sandbox *find_spare(struct sandboxes *all, const char *owner, size_t *ret_count)
{
	struct sandbox *spare = NULL;

	*ret_count = 0;
	LIST_FOREACH (&all->sandboxes, sb, struct sandbox, node) {
		if (!is_box(sb) || strcmp(sb->owner, owner) != 0)
			continue;
		++*ret_count;
		if (sb->state == SANDBOX_RUNNING && sb->n_file_ops + sb->n_file_waits == 0 &&
		    (!spare || sb->used_at < spare->used_at))
			spare = sb;
	}
	return spare;
}

static void make_or_wait(struct opening *o, const struct object *volume)
{
	struct err err = { 0 };
	size_t count;
	struct sandbox *spare = find_spare(o->all, volume->owner, &count);

	if (count < VOLUME_BOXES_OWNER_MAX) {
		make_box(o, volume);
	} else if (spare) {
		sandbox_delete(spare, "another volume is asked for", on_gone, o);
	} else {
		(void)err_set(&err, EDQUOT, "%u volumes are being read or written already",
			      VOLUME_BOXES_OWNER_MAX);
		finish(o, NULL, &err);
	}
}

/* It is there, in whatever state. */
static void use_box(struct opening *o, struct sandbox *box)
{
	struct answer *a;

	if (box->state == SANDBOX_RUNNING) {
		finish(o, box, NULL);
	} else if (box->state != SANDBOX_CREATING) {
		sandbox_delete(box, "its volume is asked for", on_gone, o);
	} else {
		a = answer_create(o->all, on_made, o);
		if (a)
			(void)sandbox_wait(box, WAIT_CREATE, a);
	}
}

static void try_open(struct opening *o)
{
	const struct object *volume =
		objects_find(o->all->objects[OBJECTS_VOLUME], o->volume_id, NULL);
	const char *id = volume ? volume_holder(o->all, volume->id) : NULL;
	struct sandbox *holder = id ? sandboxes_find(o->all, id, NULL) : NULL;
	struct sandbox *box = find_box(o->all, o->volume_id);
	struct err err = { 0 };

	if (!volume || volume->state != VOLUME_READY)
		(void)err_set(&err, ENOENT, "there is no volume '%.64s'", o->volume_id);
	else if (holder && holder->state != SANDBOX_RUNNING)
		(void)err_set(&err, EBUSY, "the volume is in use by sandbox %s, which is %s",
			      holder->id, state_name(holder->state));
	else if (o->tries++ >= OPEN_TRIES)
		(void)err_set(&err, EBUSY, "the volume is wanted elsewhere");
	if (err.code)
		finish(o, NULL, &err);
	else if (holder)
		finish(o, holder, NULL);
	else if (box)
		use_box(o, box);
	else
		make_or_wait(o, volume);
}

void volume_open(struct sandboxes *all, const char *volume_id, const char *template, sandbox_cb cb,
		 void *user)
{
	struct answer *a = answer_create(all, cb, user);
	struct opening *o = a ? calloc(1, sizeof(*o)) : NULL;

	if (!a)
		return;
	if (!o) {
		answer_give(a, NULL, &(struct err){ ENOMEM, "volume" });
		return;
	}
	o->all = all;
	o->answer = a;
	o->pending.drop = drop_opening;
	list_push_back(&all->pending, &o->pending.node);
	if (str_copy(o->volume_id, sizeof(o->volume_id), volume_id) < 0 ||
	    str_copy(o->template, sizeof(o->template), template) < 0)
		return finish(o, NULL, &(struct err){ EINVAL, "volume: no such id" });
	try_open(o);
}

/* ---- giving way ---- */

struct ending {
	struct pending pending;
	unsigned left; /* boxes, and one while they are being counted */
	void (*then)(void *user);
	void *user;
};

static void drop_ending(struct pending *p)
{
	free(LIST_ENTRY(p, struct ending, pending));
}

static void one_ended(struct ending *e)
{
	if (--e->left > 0)
		return;
	list_remove(&e->pending.node);
	e->then(e->user);
	free(e);
}

static void on_ended(void *user, struct sandbox *sb, const struct err *err)
{
	(void)sb;
	(void)err; /* who wants the volume is told so by the launcher, which has it in use */
	one_ended(user);
}

bool volume_boxes_end(struct sandboxes *all, const struct volume_mounts *m,
		      const struct sandbox *but, void (*then)(void *user), void *user)
{
	struct ending *e = NULL;

	for (size_t i = 0; i < m->n; i++) {
		struct sandbox *sb = find_box(all, m->items[i].id);

		if (!sb || sb == but)
			continue;
		if (!e) {
			e = calloc(1, sizeof(*e));
			if (!e)
				return false;
			*e = (struct ending){ .left = 1, .then = then, .user = user };
			e->pending.drop = drop_ending;
			list_push_back(&all->pending, &e->pending.node);
		}
		e->left++;
		sandbox_delete(sb, "a sandbox wants its volume", on_ended, e);
	}
	if (e)
		one_ended(e);
	return e != NULL;
}
