#include "daemon/machinery.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "loop/loop.h"
#include "sandbox/template.h"

#define RETRY_MS 1000
#define START_HANGS 2u      /* a start may be silent for so many times as long */
#define LOOKS 3u            /* at one that is silent, before it is replaced */
#define LAST_TURNS_MAX 1000 /* more than all that can wait in a socket */

struct machinery {
	struct loop *loop;             /* borrowed */
	struct launcher_source source; /* borrowed inside */
	struct machinery_settings settings;
	const struct machinery_ops *ops; /* borrowed */
	void *user;
	struct launcher *launcher; /* owned; NULL while there is none */
	struct launcher *former;   /* owned: for the next start to bury */
	struct loop_io *io;
	struct loop_timer *retry;
	struct loop_timer *look;
	unsigned silent; /* looks in a row */
	struct provider provider;
	bool was_ready;  /* once */
	bool is_working; /* a thread is at it */
	bool is_stopping;
	/* The thread's, while is_working: */
	struct launcher *fresh; /* owned */
	struct err err;
};

static int define(const struct machinery *m, struct launcher *l, const struct template_row *row,
		  struct err *err)
{
	bool is_default = strcmp(row->name, TEMPLATE_DEFAULT) == 0;
	struct template_spec t = { .id = row->id,
				   .root = ROOT_HOST,
				   .level = LEVEL_STANDARD,
				   .net = NET_NONE,
				   .flags = row->flags,
				   .limits = m->settings.limits,
				   .preload = "" };
	struct pool_spec p = { .template_id = row->id,
			       .min = is_default ? m->settings.pool_min : 0,
			       .max = m->settings.pool_max,
			       .quiet_ms = m->settings.pool_quiet_ms };
	int r = launcher_template_sync(l, &t, -1, err);

	return r < 0 ? r : launcher_pool_sync(l, &p, err);
}

/* On a thread of its own: it never waits behind what tenants have asked for. */
static void make(void *user)
{
	struct machinery *m = user;
	_cleanup_(launcher_stop_p) struct launcher *l = NULL;
	const struct template_row *rows;
	size_t n;
	pid_t pid;
	int sock = -1, r;

	m->err = (struct err){ 0 };
	m->former = launcher_stop(m->former);
	r = m->source.get(m->source.self, &sock, &pid, &m->err);
	if (r == 0)
		r = launcher_connect(sock, pid, &l, &m->err);
	if (r == 0)
		launcher_set_patience(l, m->settings.hang_ms * START_HANGS);
	rows = template_rows(&n);
	for (size_t i = 0; i < n && r == 0; i++)
		r = define(m, l, &rows[i], &m->err);
	if (r == 0)
		m->fresh = TAKE(l);
}

static void made(void *user);

static void start(void *user)
{
	struct machinery *m = user;

	if (m->is_working || m->is_stopping)
		return;
	m->is_working = loop_work_alone(m->loop, make, made, m) == 0;
	if (!m->is_working)
		loop_timer_start(m->retry, RETRY_MS, 0);
}

static void lost(struct machinery *m)
{
	log_warn("daemon", "the launcher is gone; boxes go on, another is started");
	m->io = loop_io_free(m->io);
	m->former = TAKE(m->launcher);
	m->ops->lost(m->user);
	start(m);
}

static void watch(struct machinery *m)
{
	unsigned want = LOOP_READ | (launcher_wants_write(m->launcher) ? LOOP_WRITE : 0);

	(void)loop_io_want(m->io, want);
}

static void dispatch(void *user, unsigned events)
{
	struct machinery *m = user;

	(void)events;
	if (launcher_dispatch(m->launcher) < 0)
		lost(m);
	else
		watch(m);
}

/* Nothing ends a process that is stopped, or stuck in the kernel, but its parent's SIGKILL: it is
 * given up here, and killed when the next is asked for. Any word of it counts, for one request may
 * take long by good right. Looks count, not time: a daemon that stood still has not listened. */
static void look(void *user)
{
	struct machinery *m = user;

	if (!m->launcher)
		return;
	m->silent = launcher_ping(m->launcher) ? m->silent + 1 : 0;
	if (m->silent < LOOKS) {
		dispatch(m, 0); /* first what has come: we may have stood still ourselves */
		if (m->launcher)
			launcher_expire(m->launcher, m->settings.hang_ms);
		if (m->launcher)
			watch(m);
		return;
	}
	log_error("daemon", "the launcher does not answer");
	launcher_kill(m->launcher);
	lost(m);
}

static int adopt(struct machinery *m)
{
	int r = loop_io_create(m->loop, launcher_fd(m->fresh), dispatch, m, &m->io);

	if (r < 0)
		return err_sys(&m->err, r, "watch the launcher");
	m->launcher = TAKE(m->fresh);
	m->silent = 0;
	m->provider = provider_native(m->launcher);
	launcher_on_death(m->launcher, m->ops->died, m->user);
	launcher_on_builds(m->launcher, m->ops->builds, m->user);
	watch(m);
	return 0;
}

static void bury(struct machinery *m)
{
	m->launcher = launcher_stop(m->launcher);
	m->former = launcher_stop(m->former);
	m->fresh = launcher_stop(m->fresh);
	free(m);
}

static void made(void *user)
{
	struct machinery *m = user;

	m->is_working = false;
	if (m->is_stopping) {
		bury(m);
		return;
	}
	if (m->fresh && adopt(m) == 0) {
		m->was_ready = true;
		m->ops->ready(m->user, &m->provider, launcher_info(m->launcher));
		dispatch(m, 0); /* deaths of before */
		return;
	}
	m->former = TAKE(m->fresh);
	if (!m->was_ready) {
		m->ops->failed(m->user, &m->err);
		return;
	}
	log_error("daemon", "the launcher does not start: %s", m->err.text);
	loop_timer_start(m->retry, RETRY_MS, 0);
}

int machinery_start(struct loop *loop, const struct launcher_source *source,
		    const struct machinery_settings *settings, const struct machinery_ops *ops,
		    void *user, struct machinery **ret, struct err *err)
{
	struct machinery *m = calloc(1, sizeof(*m));

	if (!m || loop_timer_create(loop, start, m, &m->retry) < 0 ||
	    loop_timer_create(loop, look, m, &m->look) < 0) {
		if (m)
			m->retry = loop_timer_free(m->retry);
		free(m);
		return err_sys(err, ENOMEM, "launcher");
	}
	m->loop = loop;
	m->source = *source;
	m->settings = *settings;
	m->ops = ops;
	m->user = user;
	loop_timer_start(m->look, m->settings.hang_ms / LOOKS, m->settings.hang_ms / LOOKS);
	start(m);
	*ret = m;
	return 0;
}

/* Whoever waits for an answer gets what has come, or is told that none will: only they know what
 * was to become of it. */
static void hang_up(struct machinery *m)
{
	if (!m->launcher)
		return;
	(void)shutdown(launcher_fd(m->launcher), SHUT_RDWR);
	for (int i = 0; i < LAST_TURNS_MAX && launcher_dispatch(m->launcher) >= 0; i++)
		;
}

struct machinery *machinery_stop(struct machinery *m)
{
	if (!m)
		return NULL;
	m->is_stopping = true;
	m->retry = loop_timer_free(m->retry);
	m->look = loop_timer_free(m->look);
	m->io = loop_io_free(m->io);
	hang_up(m);
	if (!m->is_working)
		bury(m); /* else made() does, when the thread is through */
	return NULL;
}
