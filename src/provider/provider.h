/* The one seam between the service and the machinery that makes boxes. A provider is a const table;
 * it holds no globals, its state is *self. Callers never ask which provider it is. */
#pragma once

#include <stdbool.h>

#include "provider/launcher.h"

struct provider_ops {
	const char *name;
	/* A box of the spec's template, ready for guest_create() on ret->sock. */
	int (*claim)(void *self, const struct launch_spec *spec, struct launcher_box *ret,
		     struct err *err);
	/* Nothing of the box is left when this returns 0; ret_usage may be NULL. -ENOENT. */
	int (*destroy)(void *self, const char *box_id, struct box_usage *ret_usage,
		       struct err *err);
	int (*freeze)(void *self, const char *box_id, bool on, struct err *err);
	int (*usage)(void *self, const char *box_id, struct box_usage *ret, struct err *err);
	int (*limits)(void *self, const char *box_id, const struct limits *limits, struct err *err);
};

struct provider {
	const struct provider_ops *ops;
	void *self; /* borrowed, outlives the provider */
};

/* Boxes of holt-launch. The launcher is borrowed. */
struct provider provider_native(struct launcher *l);
