/* What all boxes of a template share, built once: a mount namespace whose root is the template's
 * tree, read-only. A box is cloned out of it and adds only what is its own. */
#pragma once

#include <stdbool.h>

#include "spec/launch.h"

struct template_context {
	int view_ns; /* the launcher's copy of the machine's mounts; the caller is in it */
	bool rootless;
	int init_fd; /* borrowed: holt-init, which is `holt-call`, too */
};

/* Returns the descriptor of the new mount namespace; the caller is back in the view. dir_fd: the
 * root of a ROOT_DIR template, or of the lowest layer of one of layers, which each box mounts for
 * itself; else -1. */
int template_build(const struct template_context *ctx, const struct template_spec *spec, int dir_fd,
		   struct err *err);
