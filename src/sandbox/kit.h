/* What the boxes of one sandbox are made of: the built-in template, the layers of the template that
 * was asked for, and what that one says. What the sandbox has written itself lies on top, in its
 * own layers. Snapshots keep it, too. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "sandbox/layers.h"
#include "sandbox/makeup.h"

struct recipe;
struct sandboxes;
struct template_own;

#define KIT_RUNTIME_MAX 31
/* Of a template; what it has beyond them counts as the sandbox's own. There must be room for layers
 * on top. */
#define KIT_LAYERS_MAX 12

struct kit {
	char runtime[KIT_RUNTIME_MAX + 1]; /* the built-in template */
	struct layers layers;              /* bottom first; held by whoever has the kit */
	struct makeup make;
	struct arena *arena; /* owned: the texts of make; NULL: they are borrowed, or none */
};

/* A kit of a template, borrowed from it, and the layers that the kit has no room for. */
struct kit kit_of_template(const struct template_own *t, struct layers *ret_rest);
/* -ENOMEM. Nothing is held. */
int kit_copy(const struct kit *k, struct kit *ret);
void kit_done(struct kit *k);
/* The members of an open object, and back: -EINVAL, -ENOMEM. */
void kit_write(const struct kit *k, struct jw *w);
int kit_read(struct jv object, struct kit *ret);

/* What finished boxes of it embody. EINVAL: there is no such built-in template. */
int kit_recipe(const struct kit *k, struct recipe *ret, struct err *err);
/* The launcher's number for boxes of it, held for the caller (slot.h): that of the built-in
 * template's warm pool when there is one and the boxes are the same. strict: enum template_flag
 * beyond its own. */
int kit_slot(struct sandboxes *all, const struct kit *k, uint32_t strict, uint32_t *ret,
	     struct err *err);
/* enum snapshot_flag that it takes to keep all that boxes of it can write. */
uint32_t kit_snapshot_flags(const struct kit *k);
