/* Subscriptions to files of sandboxes: one watch in the box for all of an owner's clients who want
 * the same address. A directory is watched itself; of a file its directory is, since whoever saves
 * a file may put another one in its place. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "auth/principal.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "loop/loop.h"
#include "mcp/box.h"
#include "mcp/server_impl.h"
#include "sandbox/files.h"

#define WATCHES_MAX 1024u /* of all clients */
#define TELL_MS 200u      /* a program that writes all the time is told of so often */

struct box_watch {
	struct list node; /* in its server */
	struct mcp_server *server;
	char owner[OWNER_MAX + 1];
	struct mcp_box_uri at;
	char *uri;          /* owned */
	const char *name;   /* in at.path: what is watched in its directory; NULL: all of it */
	struct file_op *op; /* owned; NULL: none */
	struct loop_timer *timer; /* owned */
	bool is_dirty;            /* the timer runs */
};

static bool has_text(struct jv array, const char *value)
{
	JV_FOREACH (array, it) {
		const char *text = jv_text(it.value);

		if (text && strcmp(text, value) == 0)
			return true;
	}
	return false;
}

static bool is_wanted(const struct box_watch *w)
{
	LIST_FOREACH (&w->server->sessions, n, struct mcp_session, node)
		if (strcmp(n->owner, w->owner) == 0 && mcp_session_has(n, w->uri))
			return true;
	LIST_FOREACH (&w->server->requests, q, struct mcp_request, node) {
		struct jv filter = jv_get(q->params, "notifications");

		if (q->is_listening && strcmp(q->who.owner, w->owner) == 0 &&
		    has_text(jv_get(filter, "resourceSubscriptions"), w->uri))
			return true;
	}
	return false;
}

static struct box_watch *watch_free(struct box_watch *w)
{
	if (!w)
		return NULL;
	list_remove(&w->node);
	file_cancel(w->op);
	(void)loop_timer_free(w->timer);
	free(w->uri);
	free(w);
	return NULL;
}
CLEANUP_FUNC(struct box_watch *, watch_free)

static void tell(void *user)
{
	struct box_watch *w = user;

	w->is_dirty = false;
	if (!is_wanted(w)) {
		(void)watch_free(w);
		return;
	}
	mcp_server_updated(w->server, w->owner, w->uri);
}

static void event(void *user, enum guest_event what, const char *path)
{
	struct box_watch *w = user;

	if (w->name && what != EVENT_OVERFLOW && strcmp(path, w->name) != 0)
		return;
	if (w->is_dirty)
		return;
	w->is_dirty = true;
	loop_timer_start(w->timer, TELL_MS, 0);
}

/* The sandbox has ended, or what was watched is gone: whoever reads it again learns of it. */
static void watch_failed(void *user, const struct err *err)
{
	struct box_watch *w = user;

	(void)err;
	w->op = NULL;
	if (is_wanted(w))
		mcp_server_updated(w->server, w->owner, w->uri);
	(void)watch_free(w);
}

static void start_watch(struct box_watch *w, struct sandbox *sb)
{
	static const struct file_ops ops = { .event = event, .failed = watch_failed };
	struct guest_file f = { .op = FILE_WATCH, .user = "", .path = w->at.path, .target = "" };
	struct err err = { 0 };
	char dir[sizeof(w->at.path)];

	if (w->name) {
		size_t n = (size_t)(w->name - w->at.path);

		(void)str_format(dir, sizeof(dir), "%.*s", (int)(n > 1 ? n - 1 : n), w->at.path);
		f.path = dir;
	}
	if (file_start(sb, &f, &ops, w, &w->op, &err) < 0)
		(void)watch_free(w);
}

/* ---- what it is ---- */

static void go_on(struct box_watch *w, bool is_dir)
{
	struct sandbox *sb = sandboxes_find(w->server->deps.sandboxes, w->at.id, NULL);

	w->op = NULL;
	if (!sb) {
		(void)watch_free(w);
		return;
	}
	if (!is_dir)
		w->name = strrchr(w->at.path, '/') + 1;
	start_watch(w, sb);
}

static void looked(void *user, const struct guest_entry *e)
{
	struct box_watch *w = user;

	if (e->type != ENTRY_DIR)
		w->name = w->at.path; /* for a moment: done() asks */
}

static void look_done(void *user, uint64_t count)
{
	struct box_watch *w = user;
	bool is_dir = !w->name;

	(void)count;
	w->name = NULL;
	go_on(w, is_dir);
}

/* Not there yet: its directory tells when it comes. */
static void look_failed(void *user, const struct err *err)
{
	struct box_watch *w = user;

	w->op = NULL;
	if (err->code == ENOENT)
		go_on(w, false);
	else
		(void)watch_free(w);
}

static bool is_known(const struct mcp_server *s, const char *owner, const char *uri,
		     size_t *ret_count)
{
	*ret_count = 0;
	LIST_FOREACH (&s->watches, w, struct box_watch, node) {
		++*ret_count;
		if (strcmp(w->owner, owner) == 0 && strcmp(w->uri, uri) == 0)
			return true;
	}
	return false;
}

/* Those that nobody wants any more make room for others. */
static void sweep(struct mcp_server *s)
{
	LIST_FOREACH (&s->watches, w, struct box_watch, node)
		if (!is_wanted(w))
			(void)watch_free(w);
}

void mcp_box_watch(struct mcp_server *s, const struct principal *who, const char *box_id,
		   const char *uri)
{
	static const struct file_ops ops = { .entry = looked,
					     .done = look_done,
					     .failed = look_failed };
	_cleanup_(watch_free_p) struct box_watch *w = NULL;
	struct guest_file f = { .op = FILE_STAT, .user = "", .target = "" };
	struct err err = { 0 };
	struct sandbox *sb;
	size_t count;

	sweep(s);
	if (is_known(s, who->owner, uri, &count) || count >= WATCHES_MAX ||
	    principal_check(who, SCOPE_FILE_READ, NULL) < 0)
		return;
	w = calloc(1, sizeof(*w));
	if (!w)
		return;
	list_init(&w->node);
	w->server = s;
	w->uri = str_dup(str_of(uri));
	if (!w->uri || mcp_box_uri_read(uri, &w->at) < 0 ||
	    str_copy(w->owner, sizeof(w->owner), who->owner) < 0)
		return;
	sb = mcp_box_find(s, who, box_id, w->at.id);
	if (!sb || loop_timer_create(s->deps.loop, tell, w, &w->timer) < 0)
		return;
	(void)str_copy(w->at.id, sizeof(w->at.id), sandbox_id(sb));
	f.path = w->at.path;
	if (file_start(sb, &f, &ops, w, &w->op, &err) < 0)
		return;
	list_push_back(&s->watches, &w->node);
	w = NULL;
}

void mcp_box_watches_end(struct mcp_server *s)
{
	while (!list_is_empty(&s->watches))
		(void)watch_free(LIST_ENTRY(s->watches.next, struct box_watch, node));
}
