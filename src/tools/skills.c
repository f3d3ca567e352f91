#include "tools/skills.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "loop/loop.h"

#define SETTLE_MS 200 /* a folder is seldom written by one call */
#define AGAIN_MS 2000 /* where nothing tells of changes: the directory is not there, ... */

/* One reading, on a thread. Its watch sees everything that happens after it has begun. */
struct scan {
	struct skills *owner; /* NULL: nobody waits for it any more */
	char *dir;            /* owned */
	int watch_fd;         /* owned */
	bool is_watched;
	struct skill_set *set; /* owned */
	struct err err;
};

struct skills {
	struct loop *loop;        /* borrowed */
	char *dir;                /* owned */
	struct skill_set *set;    /* held */
	struct scan *scan;        /* under way; it frees itself */
	int watch_fd;             /* owned; of the set that we have */
	struct loop_io *watch;    /* owned */
	struct loop_timer *timer; /* owned */
	void (*changed)(void *user);
	void *user;
};

static struct scan *scan_free(struct scan *c)
{
	if (!c)
		return NULL;
	(void)fd_close(c->watch_fd);
	(void)skill_set_unref(c->set);
	free(c->dir);
	free(c);
	return NULL;
}
CLEANUP_FUNC(struct scan *, scan_free)

static struct scan *scan_create(struct skills *s)
{
	_cleanup_(scan_free_p) struct scan *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->owner = s;
	c->watch_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC); /* -1: we look now and then */
	c->dir = str_dup(str_of(s->dir));
	return c->dir ? TAKE(c) : NULL;
}

static void scan_run(void *user)
{
	struct scan *c = user;

	(void)skill_set_read(c->dir, c->watch_fd, &c->set, &c->is_watched, &c->err);
}

static void look_again(struct skills *s, uint64_t after_ms)
{
	loop_timer_start(s->timer, after_ms, 0);
}

/* What happened does not matter: it is all read again, when it has been quiet for a moment. The
 * descriptor is not emptied, and not looked at any more: the next reading has its own. */
static void touched(void *user, unsigned events)
{
	struct skills *s = user;

	(void)events;
	(void)loop_io_want(s->watch, 0);
	look_again(s, SETTLE_MS);
}

static int take_watch(struct skills *s, struct scan *c)
{
	int r;

	s->watch = loop_io_free(s->watch);
	s->watch_fd = fd_close(s->watch_fd);
	if (!c->is_watched)
		return -ENOENT;
	s->watch_fd = TAKE_FD(c->watch_fd);
	r = loop_io_create(s->loop, s->watch_fd, touched, s, &s->watch);
	return r < 0 ? r : loop_io_want(s->watch, LOOP_READ);
}

static void take(struct skills *s, struct scan *c)
{
	bool is_new;

	if (take_watch(s, c) < 0)
		look_again(s, AGAIN_MS);
	if (!c->set) {
		log_debug("skills", "%s", c->err.text);
		look_again(s, AGAIN_MS);
		return;
	}
	is_new = !s->set || memcmp(s->set->digest, c->set->digest, HASH_LEN) != 0;
	if (!is_new)
		return;
	(void)skill_set_unref(s->set);
	s->set = TAKE(c->set);
	if (s->changed)
		s->changed(s->user);
}

static void scan_done(void *user)
{
	_cleanup_(scan_free_p) struct scan *c = user;
	struct skills *s = c->owner;

	if (!s)
		return;
	s->scan = NULL;
	take(s, c);
}

static void fire(void *user)
{
	struct skills *s = user;

	if (s->scan)
		return; /* its end looks at its own watch */
	s->scan = scan_create(s);
	if (s->scan && loop_work_alone(s->loop, scan_run, scan_done, s->scan) == 0)
		return;
	s->scan = scan_free(s->scan);
	look_again(s, AGAIN_MS);
}

int skills_create(struct loop *loop, const char *dir, struct skills **ret, struct err *err)
{
	_cleanup_(skills_free_p) struct skills *s = calloc(1, sizeof(*s));
	_cleanup_(scan_free_p) struct scan *first = NULL;
	int r;

	if (!s)
		return err_sys(err, ENOMEM, "skills");
	s->loop = loop;
	s->watch_fd = -1;
	s->dir = str_dup(str_of(dir));
	r = s->dir ? loop_timer_create(loop, fire, s, &s->timer) : -ENOMEM;
	if (r < 0)
		return err_sys(err, r, "skills");
	first = scan_create(s);
	if (!first)
		return err_sys(err, ENOMEM, "skills");
	scan_run(first);
	if (!first->set)
		return err_set(err, first->err.code, "%s", first->err.text);
	take(s, first);
	*ret = TAKE(s);
	return 0;
}

struct skills *skills_free(struct skills *s)
{
	if (!s)
		return NULL;
	if (s->scan)
		s->scan->owner = NULL;
	(void)loop_io_free(s->watch);
	(void)fd_close(s->watch_fd);
	(void)loop_timer_free(s->timer);
	(void)skill_set_unref(s->set);
	free(s->dir);
	free(s);
	return NULL;
}

struct skill_set *skills_now(const struct skills *s)
{
	return s->set;
}

const char *skills_dir(const struct skills *s)
{
	return s->dir;
}

void skills_on_change(struct skills *s, void (*changed)(void *user), void *user)
{
	s->changed = changed;
	s->user = user;
}
