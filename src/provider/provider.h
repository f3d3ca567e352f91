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
	/* A box of the spec's template, ready for guest_create() on reply->box->sock. In the
	 * answer: -ENOENT (no such template, layer or volume), -EBUSY (another box has a volume of
	 * it). */
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
	/* Defines a template, or defines it anew: boxes that are claimed go on as they are, those
	 * that wait are destroyed, its pool is as large as pool() says next. dir_fd: the root of a
	 * ROOT_DIR template, borrowed for the call; else -1. -ENOENT in the answer: a layer of it
	 * is not there. */
	int (*define)(void *self, const struct template_spec *t, int dir_fd, provider_cb cb,
		      void *user, struct err *err);
	/* The id is free again. -ENOENT in the answer. */
	int (*undefine)(void *self, uint32_t template_id, provider_cb cb, void *user,
			struct err *err);
	int (*pool)(void *self, const struct pool_spec *p, provider_cb cb, void *user,
		    struct err *err);
	/* What the box has written, as a new layer: reply->layers. The box stands still meanwhile,
	 * also one that is paused. In the answer: -EEXIST, -ENOENT, -ENOSPC, -EBUSY (another
	 * snapshot of that box is taken), -EOPNOTSUPP (no freezer, or no place for layers). Nothing
	 * of one that failed is left. */
	int (*snapshot)(void *self, const struct snapshot_spec *s, provider_cb cb, void *user,
			struct err *err);
	/* -ENOENT, -EBUSY in the answer. */
	int (*drop_layer)(void *self, const char *layer_id, provider_cb cb, void *user,
			  struct err *err);
	int (*layers)(void *self, provider_cb cb, void *user, struct err *err);
	/* -EEXIST, -ENOSPC, -EOPNOTSUPP (needs root) in the answer. */
	int (*make_volume)(void *self, const struct volume_spec *v, provider_cb cb, void *user,
			   struct err *err);
	/* -ENOENT, -EBUSY in the answer. */
	int (*drop_volume)(void *self, const char *volume_id, provider_cb cb, void *user,
			   struct err *err);
	int (*volumes)(void *self, provider_cb cb, void *user, struct err *err);
	/* Boxes that end by themselves are told to cb, from now on. A box that is destroyed on
	 * request is not. */
	void (*on_death)(void *self, provider_death_cb cb, void *user);
};

struct provider {
	const struct provider_ops *ops;
	void *self;      /* borrowed, outlives the provider */
	bool is_metered; /* usage() knows the processor time of what still runs */
};

/* Boxes of holt-launch. The launcher is borrowed; its owner watches and dispatches it. */
struct provider provider_native(struct launcher *l);
