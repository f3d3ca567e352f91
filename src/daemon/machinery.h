/* Keeps a launcher running: gets one, tells it about the templates and pools, watches it, and gets
 * another when it is gone, or does not answer any more. What must wait for it waits on another
 * thread, never on the loop. */
#pragma once

#include "provider/keeper.h"
#include "provider/provider.h"

struct err;
struct loop;
struct machinery; /* opaque */

struct machinery_settings {
	struct limits limits; /* of every template */
	uint32_t pool_min, pool_max, pool_quiet_ms;
	uint32_t hang_ms; /* a launcher that is silent for so long is replaced */
};

struct machinery_ops { /* on the loop */
	/* A launcher is there; the provider is good until lost(). */
	void (*ready)(void *user, const struct provider *p, const struct launch_info *info);
	void (*lost)(void *user);
	/* The very first could not be started; nothing is tried again. Later failures are. */
	void (*failed)(void *user, const struct err *err);
	void (*died)(void *user, const char *box_id, int status, const struct box_usage *usage);
	/* How the building of boxes goes; a new launcher begins with nothing to tell. May be NULL.
	 */
	void (*builds)(void *user, const struct build_state *s);
};

/* The source is borrowed and used on worker threads, one call at a time. ready() or failed()
 * follows. */
int machinery_start(struct loop *loop, const struct launcher_source *source,
		    const struct machinery_settings *settings, const struct machinery_ops *ops,
		    void *user, struct machinery **ret, struct err *err);
/* Hangs up: persistent boxes live on, requests under way fail with EPIPE from within this call. A
 * start that is under way is over when loop_free() returns; the source must live as long. Takes
 * NULL. */
struct machinery *machinery_stop(struct machinery *m);
