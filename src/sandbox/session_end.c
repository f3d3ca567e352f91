/* The end of a session, in three steps: the store knows that it ends; its sandbox is gone; it is
 * forgotten. The first makes the others certain: who stops in between finds it ending, and goes on.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "sandbox/registry.h"
#include "sandbox/session.h"

struct ending {
	struct pending pending;
	struct sandboxes *all;
	char uid[ID_LEN + 1];
	object_cb cb; /* NULL: nobody waits */
	void *user;
};

static void drop(struct pending *p)
{
	free(LIST_ENTRY(p, struct ending, pending));
}

static void finish(struct ending *e, const struct err *err)
{
	list_remove(&e->pending.node);
	if (e->cb)
		e->cb(e->user, NULL, err);
	else if (err)
		log_debug("sandbox", "the end of a session is tried again: %s", err->text);
	free(e);
}

static void on_forgotten(void *user, struct object *o, const struct err *err)
{
	(void)o;
	/* Another who ends it was faster. */
	finish(user, err && (err->code == ENOENT || err->code == EBUSY) ? NULL : err);
}

static void on_gone(void *user, struct sandbox *sb, const struct err *err)
{
	struct ending *e = user;

	(void)sb;
	if (err)
		return finish(e, err);
	objects_remove(sandboxes_objects(e->all, OBJECTS_SESSION), e->uid, on_forgotten, e);
}

static void end_box(struct ending *e)
{
	struct objects *t = sandboxes_objects(e->all, OBJECTS_SESSION);
	const struct object *o = objects_find(t, e->uid, NULL);
	struct sandbox *sb = o ? session_sandbox(e->all, o) : NULL;

	if (sb)
		sandbox_delete(sb, "deleted", on_gone, e);
	else
		on_gone(e, NULL, NULL);
}

static void on_marked(void *user, struct object *o, const struct err *err)
{
	struct ending *e = user;

	(void)o;
	if (err)
		return finish(e, err);
	end_box(e);
}

static struct ending *ending_create(struct sandboxes *all, const char *uid, object_cb cb,
				    void *user)
{
	struct ending *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->pending.drop = drop;
	e->all = all;
	e->cb = cb;
	e->user = user;
	(void)str_copy(e->uid, sizeof(e->uid), uid);
	list_push_back(&all->pending, &e->pending.node);
	return e;
}

void session_end(struct sandboxes *all, const struct object *session, object_cb cb, void *user)
{
	struct ending *e = ending_create(all, session->id, cb, user);

	if (!e) /* NOTE: from inside the call, which without memory cannot be helped. */
		return cb(user, NULL, &(struct err){ ENOMEM, "session" });
	if (session->state == SESSION_ENDING)
		return end_box(e);
	objects_change(sandboxes_objects(all, OBJECTS_SESSION), session->id, SESSION_ENDING,
		       session->text, on_marked, e);
}

struct settle {
	struct sandboxes *all;
	size_t n;
	char uids[64][ID_LEN + 1]; /* more are the next round's */
};

static void add_ending(void *user, struct object *o)
{
	struct settle *s = user;

	if (o->state == SESSION_ENDING && !o->is_writing &&
	    s->n < sizeof(s->uids) / sizeof(s->uids[0]))
		(void)str_copy(s->uids[s->n++], sizeof(s->uids[0]), o->id);
}

/* Ends them apart from the list, which they leave. */
void sessions_settle(struct sandboxes *all)
{
	struct settle s = { .all = all };

	objects_each(sandboxes_objects(all, OBJECTS_SESSION), add_ending, &s);
	for (size_t i = 0; i < s.n; i++) {
		struct ending *e = ending_create(all, s.uids[i], NULL, NULL);

		if (e)
			end_box(e);
	}
}
