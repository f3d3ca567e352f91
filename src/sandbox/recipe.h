/* What finished boxes embody before anybody claims them: two templates with the same recipe share
 * the launcher's pool. */
#pragma once

#include <stddef.h>

#include "sandbox/layers.h"
#include "spec/launch.h"

#define RECIPE_PRELOAD_MAX TEMPLATE_PRELOAD_MAX

struct recipe {
	uint8_t root;   /* enum template_root */
	uint32_t flags; /* enum template_flag */
	char preload[RECIPE_PRELOAD_MAX + 1], preload_node[RECIPE_PRELOAD_MAX + 1];
	char writable[TEMPLATE_WRITABLE_MAX + 1]; /* as in struct template_spec */
	struct layers layers;                     /* of the root, bottom first */
};
