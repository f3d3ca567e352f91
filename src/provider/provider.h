/* The one seam between the service and the machinery that makes boxes. A provider is a const table;
 * it holds no globals, its state is *self. Callers never ask which provider it is.
 *
 * Nothing here waits. A call returns 0 and its callback comes later, exactly once and never from
 * inside the call; or it returns a negative errno (-EPIPE: the provider is gone, -EAGAIN: too many
 * requests on their way) and no callback comes. A callback may make calls. */
#pragma once

#include <stdbool.h>

#include "provider/reply.h"

struct err;
struct launcher;

struct provider_ops {
	const char *name;
	/* A box of the spec's template, ready for guest_create() on reply->box->sock. */
	int (*claim)(void *self, const struct launch_spec *spec, provider_cb cb, void *user,
		     struct err *err);
	/* A new connection to a box that was claimed before, also by an earlier life of ours. */
	int (*attach)(void *self, const char *box_id, provider_cb cb, void *user, struct err *err);
	/* Every claimed box, also those of an earlier life. */
	int (*list)(void *self, provider_cb cb, void *user, struct err *err);
	/* Nothing of the box is left when it is answered with 0; -ENOENT in the answer. */
	int (*destroy)(void *self, const char *box_id, provider_cb cb, void *user, struct err *err);
	int (*freeze)(void *self, const char *box_id, bool on, provider_cb cb, void *user,
		      struct err *err);
	int (*usage)(void *self, const char *box_id, provider_cb cb, void *user, struct err *err);
	int (*limits)(void *self, const char *box_id, const struct limits *limits, provider_cb cb,
		      void *user, struct err *err);
	int (*pool_state)(void *self, uint32_t template_id, provider_cb cb, void *user,
			  struct err *err);
	/* Boxes that end by themselves are told to cb, from now on. A box that is destroyed on
	 * request is not. */
	void (*on_death)(void *self, provider_death_cb cb, void *user);
};

struct provider {
	const struct provider_ops *ops;
	void *self; /* borrowed, outlives the provider */
};

/* Boxes of holt-launch. The launcher is borrowed; its owner watches and dispatches it. */
struct provider provider_native(struct launcher *l);
