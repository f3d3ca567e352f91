/* The table behind objects.h, for the two files that know it. */
#pragma once

#include "base/list.h"
#include "sandbox/objects.h"

struct map;

struct objects {
	struct sandboxes *all; /* borrowed */
	const struct object_kind *kind;
	struct list list; /* owned struct object, oldest first */
	struct map *by_id, *by_name;
};
