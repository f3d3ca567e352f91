#include "sandbox/watcher.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/list.h"
#include "sandbox/registry.h"

struct watcher {
	struct list node;   /* in sandbox.watchers */
	struct sandbox *sb; /* borrowed: its sandbox outlives it */
	char id[ID_LEN + 1];
	struct file_op *op;           /* owned; NULL: it has ended */
	struct arena *arena;          /* owned: texts of what waits */
	struct watcher_event *events; /* owned */
	size_t n, cap;
	struct guest_entry *entry; /* arena: of the event that comes next; NULL */
	bool is_lossy;             /* something was lost since the last look */
	void (*ready)(void *user, struct watcher *w, const struct err *err); /* NULL: it is over */
	void *user;
};

static void op_over(struct watcher *w)
{
	if (w->op)
		w->sb->n_watches--;
	w->op = NULL;
}

void watcher_free(struct watcher *w)
{
	struct file_op *op;

	if (!w)
		return;
	op = w->op;
	op_over(w);
	file_cancel(op);
	list_remove(&w->node);
	w->sb->n_watchers--;
	(void)arena_free(w->arena);
	free(w->events);
	free(w);
}

const char *watcher_id(const struct watcher *w)
{
	return w->id;
}

struct watcher *watcher_find(struct sandbox *sb, const char *id)
{
	LIST_FOREACH (&sb->watchers, w, struct watcher, node)
		if (strcmp(w->id, id) == 0 && !w->ready)
			return w;
	return NULL;
}

static void on_armed(void *user)
{
	struct watcher *w = user;
	void (*ready)(void *user, struct watcher *w, const struct err *err) = w->ready;

	w->ready = NULL;
	if (ready)
		ready(w->user, w, NULL);
}

static void on_failed(void *user, const struct err *err)
{
	struct watcher *w = user;
	void (*ready)(void *user, struct watcher *w, const struct err *err) = w->ready;
	void *to = w->user;

	op_over(w);
	if (!ready)
		return; /* what has come is still there to be asked for */
	watcher_free(w);
	ready(to, NULL, err);
}

static void on_entry(void *user, const struct guest_entry *entry)
{
	struct watcher *w = user;

	w->entry = arena_alloc(w->arena, sizeof(*w->entry));
	if (w->entry && file_entry_copy(w->arena, entry, w->entry) < 0)
		w->entry = NULL;
}

static bool grow(struct watcher *w)
{
	size_t cap = w->cap ? 2 * w->cap : 16;
	struct watcher_event *events;

	if (w->n < w->cap)
		return true;
	if (w->n >= WATCHER_EVENTS_MAX)
		return false;
	events = reallocarray(w->events, cap, sizeof(*events));
	if (!events)
		return false;
	w->events = events;
	w->cap = cap;
	return true;
}

static void on_event(void *user, enum guest_event event, const char *path)
{
	struct watcher *w = user;
	const struct guest_entry *entry = w->entry;
	const char *copy = NULL;

	w->entry = NULL;
	if (event != EVENT_OVERFLOW && !w->is_lossy && grow(w))
		copy = arena_strndup(w->arena, path, strlen(path));
	if (copy)
		w->events[w->n++] = (struct watcher_event){ event, copy, entry };
	else
		w->is_lossy = true; /* what comes behind a gap says little */
}

int watcher_take(struct watcher *w, void (*each)(void *user, const struct watcher_event *e),
		 void *user)
{
	if (w->n == 0 && w->is_lossy) {
		w->is_lossy = false;
		return -EOVERFLOW;
	}
	if (w->n == 0 && !w->op) {
		watcher_free(w);
		return -ENOENT;
	}
	for (size_t i = 0; i < w->n; i++)
		each(user, &w->events[i]);
	w->n = 0;
	w->entry = NULL;
	arena_reset(w->arena);
	return 0;
}

int watcher_create(struct sandbox *sb, const struct guest_file *f,
		   void (*ready)(void *user, struct watcher *w, const struct err *err), void *user,
		   struct watcher **ret, struct err *err)
{
	static const struct file_ops ops = {
		.entry = on_entry,
		.event = on_event,
		.armed = on_armed,
		.failed = on_failed,
	};
	struct watcher *w;
	int r;

	if (sb->n_watchers >= WATCHERS_MAX)
		return err_set(err, EAGAIN, "%u watchers are in this sandbox, the limit",
			       WATCHERS_MAX);
	w = calloc(1, sizeof(*w));
	if (w)
		w->arena = arena_create(WATCHER_BYTES_MAX);
	if (!w || !w->arena) {
		free(w);
		return err_sys(err, ENOMEM, "watcher");
	}
	r = file_start(sb, f, &ops, w, &w->op, err);
	if (r < 0) {
		(void)arena_free(w->arena);
		free(w);
		return r;
	}
	id_make(w->id);
	w->sb = sb;
	w->ready = ready;
	w->user = user;
	list_push_back(&sb->watchers, &w->node);
	sb->n_watchers++;
	sb->n_watches++;
	*ret = w;
	return 0;
}

void watchers_drop(struct sandbox *sb)
{
	LIST_FOREACH (&sb->watchers, w, struct watcher, node)
		watcher_free(w);
}
