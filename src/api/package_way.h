/* A way out of a sandbox to the registries of one package manager, and to nothing else: a listener
 * inside, a proxy behind it. It is open as long as it is kept. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "api/package_plan.h"

struct api;
struct config_list;
struct err;
struct package_way; /* opaque */
struct sandbox;

extern const char *const package_names[PACKAGE_MANAGERS]; /* "pip", ... */

/* The registries of a manager, the index first; none: not configured. */
const struct config_list *package_registries(const struct api *api, enum package_manager m);
/* -EINVAL: a name that is none; -EOPNOTSUPP: no registry is configured. */
int package_check(const struct api *api, enum package_manager m, const char *const *packages,
		  size_t n, struct err *err);

struct package_way_ops {
	/* One of the two, later: it is open, at this port of the box's own 127.0.0.1; */
	void (*open)(void *user, uint16_t port);
	/* or it cannot be. It is still the caller's to close. */
	void (*failed)(void *user, const struct err *err);
};
int package_way_open(struct api *api, struct sandbox *sb, enum package_manager m,
		     const struct package_way_ops *ops, void *user, struct package_way **ret,
		     struct err *err);
void package_way_close(struct package_way *w); /* takes NULL */
/* The command, with the way's port for its proxy; all of it in the arena. */
int package_way_plan(const struct api *api, enum package_manager m, const char *const *packages,
		     size_t n, uint16_t port, struct arena *a, struct package_plan *ret);
