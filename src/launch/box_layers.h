/* Layers and volumes in a box's file tree; for box_mount.c. In the new process, like box.h. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "launch/box.h"

struct err;

#define BOX_DISK "/tmp" /* where the writable tmpfs is while the root is put together */
#define BOX_NOTHING BOX_DISK "/none" /* an overlay without an upper layer needs two lower ones */
#define LOWER_MAX 256                /* the kernel takes no longer option */

/* One overlay to mount. */
struct overlay {
	const char *name;         /* of its directories in layers */
	const char *lower;        /* below all layers; NULL: nothing */
	const char *second;       /* below that; NULL: nothing */
	const char *upper, *path; /* upper NULL: nothing can be written */
};

/* Attaches the layers where layers_below() names them. */
int layers_attach(const struct box_plan *plan, struct err *err);
/* The directory at an absolute path of the new root, which is the working directory; made, for this
 * owner, where it is not there. No link is followed. Its descriptor. */
int layers_make_path(const char *path, uid_t owner, struct err *err);
/* Writes the lower directories of an overlay, top first. Those in layers are named relative to
 * where they are attached, which becomes the working directory: absolute ones would not fit. */
int layers_below(const struct box_plan *plan, const struct overlay *o, char *dst, size_t size,
		 struct err *err);
/* In the new root, which is the working directory. */
int layers_add_volumes(const struct box_plan *plan, uid_t owner, struct err *err);
