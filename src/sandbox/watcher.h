/* A watch that nobody listens to all the time: what has happened is kept until it is asked for, up
 * to a bound. It lives as long as its sandbox's box, or until it is ended. */
#pragma once

#include "base/id.h"
#include "sandbox/files.h"

struct watcher; /* opaque */

#define WATCHERS_MAX 16u             /* of one sandbox */
#define WATCHER_EVENTS_MAX 4096u     /* that wait in one */
#define WATCHER_BYTES_MAX (1u << 20) /* and what they hold together */

struct watcher_event {
	enum guest_event event;
	const char *path;                /* relative to what is watched */
	const struct guest_entry *entry; /* what it is about, with FILE_DETAILS; NULL: none came */
};

/* f is a FILE_WATCH. ready() comes once, when it sees what happens, or with an error: the watcher
 * is then gone. EBUSY, EAGAIN (too many), ENOMEM */
int watcher_create(struct sandbox *sb, const struct guest_file *f,
		   void (*ready)(void *user, struct watcher *w, const struct err *err), void *user,
		   struct watcher **ret, struct err *err);
void watcher_free(struct watcher *w); /* takes NULL; ready() does not come any more */
const char *watcher_id(const struct watcher *w);
struct watcher *watcher_find(struct sandbox *sb, const char *id); /* NULL: there is none */
/* Hands over what has happened since the last time. Behind events that were lost -EOVERFLOW, once;
 * behind the last of a watch that has ended -ENOENT, and the watcher is gone. */
int watcher_take(struct watcher *w, void (*each)(void *user, const struct watcher_event *e),
		 void *user);
