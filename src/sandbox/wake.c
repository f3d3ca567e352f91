/* Sandboxes that stand still, for whoever wants something of them. */
#include <errno.h>
#include <stdlib.h>

#include "sandbox/registry.h"

struct waking {
	struct pending pending;
	struct sandbox *sb; /* owned reference */
	sandbox_cb cb;
	void *user;
};

static void drop_waking(struct pending *p)
{
	free(LIST_ENTRY(p, struct waking, pending)); /* sandboxes go with the registry */
}

static void finish(struct waking *w, const struct err *err)
{
	list_remove(&w->pending.node);
	w->cb(w->user, err ? NULL : w->sb, err);
	sandbox_unref(w->sb);
	free(w);
}

static void on_awake(void *user, struct sandbox *sb, const struct err *err)
{
	(void)sb;
	finish(user, err);
}

static void step(struct waking *w);

/* It stands still, or does not: either way it is looked at anew. */
static void on_still(void *user, struct sandbox *sb, const struct err *err)
{
	struct waking *w = user;

	(void)sb;
	if (err && w->sb->state != SANDBOX_RUNNING)
		finish(w, err);
	else
		step(w);
}

static void step(struct waking *w)
{
	switch (w->sb->state) {
	case SANDBOX_PAUSING:
		return sandbox_pause(w->sb, on_still, w);
	case SANDBOX_SUSPENDING:
		return sandbox_suspend(w->sb, on_still, w);
	case SANDBOX_SUSPENDED:
	case SANDBOX_STARTING:
		return sandbox_start(w->sb, on_awake, w);
	default: /* also one that is ending: it says so */
		return sandbox_resume(w->sb, on_awake, w);
	}
}

void sandbox_wake(struct sandbox *sb, sandbox_cb cb, void *user)
{
	struct waking *w = calloc(1, sizeof(*w));

	if (!w) { /* NOTE: from inside the call, which without memory cannot be helped. */
		cb(user, NULL, &(struct err){ ENOMEM, "out of memory" });
		return;
	}
	*w = (struct waking){ .sb = sandbox_ref(sb), .cb = cb, .user = user };
	w->pending.drop = drop_waking;
	list_push_back(&sb->all->pending, &w->pending.node);
	step(w);
}

bool sandbox_wakes(const struct sandbox *sb)
{
	return sb->life.auto_resume && sb->state != SANDBOX_RUNNING &&
	       sb->state != SANDBOX_CREATING && sb->state != SANDBOX_STOPPING &&
	       state_is_live(sb->state);
}
