/* Subscriptions to files of sandboxes. A directory is watched itself; of a file its directory is,
 * since whoever saves a file may put another one in its place. All who want something of the same
 * directory share one watch in the box. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "auth/principal.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "loop/loop.h"
#include "mcp/box.h"
#include "mcp/server_impl.h"
#include "sandbox/files.h"

#define SUBS_MAX 4096u /* of all clients */
#define SWEEP_MANY 64u
#define SWEEP_MS 1000u
#define TELL_MS 200u /* a program that writes all the time is told of so often */

struct dir_watch {
	struct list node;   /* in the server's watched_dirs */
	char *path;         /* owned */
	char box[64];       /* whose it is */
	struct file_op *op; /* owned; NULL: it has ended */
	struct mcp_server *server;
	struct list subs; /* struct box_sub; it goes with the last */
	bool is_armed;
};

/* An owner's wish to hear of an address, however many clients have it. */
struct box_sub {
	struct list node; /* in the server's watches */
	struct mcp_server *server;
	char owner[OWNER_MAX + 1];
	struct mcp_box_uri at;
	char *uri;                /* owned */
	struct file_op *look;     /* owned: what it is; NULL: known */
	struct dir_watch *dir;    /* NULL: not known yet */
	struct list dir_node;     /* in its subs */
	const char *name;         /* in at.path: the entry of the directory; NULL: all of it */
	struct list waiting;      /* struct mcp_wait: until it sees what happens */
	struct loop_timer *timer; /* owned */
	bool is_dirty;            /* the timer runs */
	bool is_file;             /* it was looked at: no directory */
};

static bool is_wanted(const struct box_sub *w)
{
	if (!list_is_empty(&w->waiting))
		return true;
	LIST_FOREACH (&w->server->sessions, n, struct mcp_session, node)
		if (strcmp(n->owner, w->owner) == 0 && mcp_session_has(n, w->uri))
			return true;
	/* Also who does not listen yet, but waits for another of its addresses. */
	LIST_FOREACH (&w->server->requests, q, struct mcp_request, node)
		if (strcmp(q->who.owner, w->owner) == 0 && mcp_request_has(q, w->uri))
			return true;
	return false;
}

static void dir_enter(struct dir_watch *d, struct box_sub *w)
{
	w->dir = d;
	list_push_back(&d->subs, &w->dir_node);
}

static void dir_leave(struct box_sub *w)
{
	struct dir_watch *d = w->dir;

	list_remove(&w->dir_node);
	if (!d || !list_is_empty(&d->subs))
		return;
	list_remove(&d->node);
	file_cancel(d->op);
	free(d->path);
	free(d);
}

static struct box_sub *sub_free(struct box_sub *w)
{
	if (!w)
		return NULL;
	list_remove(&w->node);
	file_cancel(w->look);
	dir_leave(w);
	(void)loop_timer_free(w->timer);
	free(w->uri);
	free(w);
	return NULL;
}
CLEANUP_FUNC(struct box_sub *, sub_free)

/* It sees what happens from now on, or cannot. */
static void settle(struct box_sub *w, const struct err *err)
{
	while (!list_is_empty(&w->waiting)) {
		struct mcp_wait *wait = LIST_ENTRY(w->waiting.next, struct mcp_wait, node);

		list_remove(&wait->node);
		mcp_watched(wait, err);
	}
}

/* ---- what happens ---- */

static void tell(void *user)
{
	struct box_sub *w = user;

	w->is_dirty = false;
	if (is_wanted(w))
		mcp_server_updated(w->server, w->owner, w->uri);
	else
		(void)sub_free(w);
}

static void event(void *user, enum guest_event what, const char *path)
{
	const struct dir_watch *d = user;

	LIST_FOREACH (&d->subs, w, struct box_sub, dir_node) {
		if (w->is_dirty ||
		    (w->name && what != EVENT_OVERFLOW && strcmp(path, w->name) != 0))
			continue;
		w->is_dirty = true;
		loop_timer_start(w->timer, TELL_MS, 0);
	}
}

static void armed(void *user)
{
	struct dir_watch *d = user;

	d->is_armed = true;
	LIST_FOREACH (&d->subs, w, struct box_sub, dir_node)
		settle(w, NULL);
}

/* The sandbox has ended, or the directory is gone: whoever reads again learns of it. */
static void watch_failed(void *user, const struct err *err)
{
	struct dir_watch *d = user;
	bool is_last = false;

	d->op = NULL;
	while (!is_last) { /* it goes with the last */
		struct box_sub *w = LIST_ENTRY(d->subs.next, struct box_sub, dir_node);

		is_last = d->subs.next == d->subs.prev;
		if (d->is_armed)
			mcp_server_updated(d->server, w->owner, w->uri);
		settle(w, err);
		(void)sub_free(w);
	}
}

/* ---- the watch ---- */

static struct dir_watch *find_dir(const struct mcp_server *s, const char *box, const char *path)
{
	LIST_FOREACH (&s->watched_dirs, d, struct dir_watch, node)
		if (d->op && strcmp(d->box, box) == 0 && strcmp(d->path, path) == 0)
			return d;
	return NULL;
}

static int make_dir(struct box_sub *w, const char *path, struct err *err)
{
	static const struct file_ops ops = { .event = event,
					     .armed = armed,
					     .failed = watch_failed };
	struct sandbox *sb = sandboxes_find(w->server->deps.sandboxes, w->at.id, NULL);
	struct guest_file f = { .op = FILE_WATCH, .user = "", .path = path, .target = "" };
	struct dir_watch *d = sb ? calloc(1, sizeof(*d)) : NULL;

	if (!d)
		return err_set(err, sb ? ENOMEM : ENOENT, "the sandbox has ended");
	list_init(&d->node);
	list_init(&d->subs);
	d->server = w->server;
	dir_enter(d, w);
	d->path = str_dup(str_of(path));
	(void)str_copy(d->box, sizeof(d->box), w->at.id);
	if (!d->path)
		return err_sys(err, ENOMEM, "watch");
	list_push_back(&w->server->watched_dirs, &d->node);
	return file_start(sb, &f, &ops, d, &d->op, err);
}

static void join(struct box_sub *w)
{
	char path[sizeof(w->at.path)];
	struct err err = { 0 };
	struct dir_watch *d;
	size_t n;

	(void)str_copy(path, sizeof(path), w->at.path);
	if (w->is_file) {
		w->name = strrchr(w->at.path, '/') + 1;
		n = (size_t)(w->name - w->at.path);
		path[n > 1 ? n - 1 : 1] = '\0';
	}
	d = find_dir(w->server, w->at.id, path);
	if (d) {
		dir_enter(d, w);
		if (d->is_armed)
			settle(w, NULL);
	} else if (make_dir(w, path, &err) < 0) {
		settle(w, &err);
		(void)sub_free(w);
	}
}

/* ---- what it is ---- */

static void looked(void *user, const struct guest_entry *e)
{
	struct box_sub *w = user;

	w->is_file = e->type != ENTRY_DIR;
}

static void look_done(void *user, uint64_t count)
{
	struct box_sub *w = user;

	(void)count;
	w->look = NULL;
	join(w);
}

/* Not there yet: its directory tells when it comes. */
static void look_failed(void *user, const struct err *err)
{
	struct box_sub *w = user;

	w->look = NULL;
	w->is_file = true;
	if (err->code == ENOENT)
		return join(w);
	settle(w, err);
	(void)sub_free(w);
}

/* ---- who wants it ---- */

/* Those that nobody wants any more are let go; of many now and then, since it is much to look at.
 */
static void sweep(struct mcp_server *s)
{
	uint64_t now = clock_now_ms();
	size_t n = 0;

	LIST_FOREACH (&s->watches, w, struct box_sub, node)
		n++;
	if (n > SWEEP_MANY && now - s->swept_ms < SWEEP_MS)
		return;
	s->swept_ms = now;
	LIST_FOREACH (&s->watches, w, struct box_sub, node)
		if (!is_wanted(w))
			(void)sub_free(w);
}

/* The same owner's, if there is one. */
static struct box_sub *find_sub(struct mcp_server *s, const char *owner, const char *uri,
				size_t *ret_count)
{
	struct box_sub *found = NULL;

	*ret_count = 0;
	LIST_FOREACH (&s->watches, w, struct box_sub, node) {
		++*ret_count;
		if (strcmp(w->owner, owner) == 0 && strcmp(w->uri, uri) == 0)
			found = w;
	}
	return found;
}

static int make_sub(struct mcp_request *q, struct sandbox *sb, const struct mcp_box_uri *at,
		    struct mcp_wait *wait, struct err *err)
{
	static const struct file_ops ops = { .entry = looked,
					     .done = look_done,
					     .failed = look_failed };
	_cleanup_(sub_free_p) struct box_sub *w = calloc(1, sizeof(*w));
	struct guest_file f = { .op = FILE_STAT, .user = "", .target = "" };
	int r;

	if (!w)
		return err_sys(err, ENOMEM, "watch");
	list_init(&w->node);
	list_init(&w->dir_node);
	list_init(&w->waiting);
	w->server = q->server;
	w->at = *at;
	w->uri = str_dup(str_of(wait->uri));
	r = w->uri ? loop_timer_create(q->server->deps.loop, tell, w, &w->timer) : -ENOMEM;
	if (r < 0 || str_copy(w->owner, sizeof(w->owner), q->who.owner) < 0)
		return err_sys(err, r < 0 ? r : E2BIG, "watch");
	(void)str_copy(w->at.id, sizeof(w->at.id), sandbox_id(sb));
	f.path = w->at.path;
	r = file_start(sb, &f, &ops, w, &w->look, err);
	if (r < 0)
		return r;
	list_push_back(&w->waiting, &wait->node);
	list_push_back(&q->server->watches, &w->node);
	(void)TAKE(w);
	return 1;
}

int mcp_box_watch(struct mcp_request *q, const char *uri, struct mcp_wait *wait, struct err *err)
{
	struct mcp_box_uri at;
	struct sandbox *sb = NULL;
	struct box_sub *w;
	size_t count;
	int r = principal_check(&q->who, SCOPE_FILE_READ, err);

	if (r < 0)
		return r;
	/* Who may not see the sandbox learns nothing of what others of its owner's hear. */
	if (mcp_box_uri_read(uri, &at) == 0)
		sb = mcp_box_find(q->server, &q->who, q->box_id, at.id);
	if (!sb)
		return err_set(err, ENOENT, "there is no such sandbox");
	sweep(q->server);
	w = find_sub(q->server, q->who.owner, uri, &count);
	if (!w && count >= SUBS_MAX)
		return err_set(err, EAGAIN, "too much is watched");
	if (!w)
		return make_sub(q, sb, &at, wait, err);
	if (w->dir && w->dir->is_armed)
		return 0;
	list_push_back(&w->waiting, &wait->node);
	return 1;
}

void mcp_box_watches_end(struct mcp_server *s)
{
	while (!list_is_empty(&s->watches))
		(void)sub_free(LIST_ENTRY(s->watches.next, struct box_sub, node));
}
