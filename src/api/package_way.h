/* A way out of a sandbox to the registries of one package manager, and to nothing else. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "api/package_plan.h"

struct api;
struct config_list;
struct err;
struct sandbox;
struct way;
struct way_ops;

extern const char *const package_names[PACKAGE_MANAGERS]; /* "pip", ... */

/* The registries of a manager, the index first; none: not configured. */
const struct config_list *package_registries(const struct api *api, enum package_manager m);
/* -EINVAL: a name that is none; -EOPNOTSUPP: no registry is configured. */
int package_check(const struct api *api, enum package_manager m, const char *const *packages,
		  size_t n, struct err *err);

int package_way_open(struct api *api, struct sandbox *sb, enum package_manager m,
		     const struct way_ops *ops, void *user, struct way **ret, struct err *err);
/* The command, with the way's port for its proxy; all of it in the arena. */
int package_way_plan(const struct api *api, enum package_manager m, const char *const *packages,
		     size_t n, uint16_t port, struct arena *a, struct package_plan *ret);
int package_way_plan_file(const struct api *api, enum package_manager m, const char *file,
			  uint16_t port, struct arena *a, struct package_plan *ret);
