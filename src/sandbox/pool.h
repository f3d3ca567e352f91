/* Warm pools: how many boxes of a template wait, finished, for whoever comes next. A pool is the
 * machine's, not an owner's: there is one for a template, and it has a name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sandbox/layers.h"
#include "sandbox/objects.h"
#include "sandbox/sandbox.h"
#include "spec/launch.h"
#include "json/jv_decode.h"

struct sandboxes;

#define POOL_SIZE_MAX 1000u
#define POOL_UTILIZATION_DEFAULT 80u
#define POOL_QUIET_DEFAULT_MS 300000u
#define POOL_PRELOAD_MAX 32

/* As clients write it, and as it is kept. */
struct pool_wish {
	const char *name;
	const char *runtime; /* a template, built in or the owner's */
	const char *owner;   /* of that; "" or NULL: it is built in */
	uint32_t min, max;
	int level;                 /* enum box_level, or 2: "custom" */
	struct jv_strings preload; /* modules that Python has imported */
	struct pool_scaling {
		bool enabled;         /* false: min are kept, whatever the demand */
		uint32_t utilization; /* per cent of those waiting that a peak may take */
		uint64_t quiet_ms;    /* how long before it shrinks */
	} scaling;
};
#define POOL_SCALING_FIELDS 3
extern const struct jv_field pool_scaling_fields[POOL_SCALING_FIELDS];
#define POOL_FIELDS 8
extern const struct jv_field pool_fields[POOL_FIELDS];
extern const struct pool_wish pool_defaults;

struct pool_patch {
	uint32_t min, max;         /* UINT32_MAX: as it was */
	struct jv_strings preload; /* len SIZE_MAX: as it was */
	struct jv scaling;         /* what it names is changed; borrowed for the call */
};
#define POOL_PATCH_FIELDS 4
extern const struct jv_field pool_patch_fields[POOL_PATCH_FIELDS];
extern const struct pool_patch pool_patch_defaults;

struct pool {                /* the data of its object */
	struct arena *arena; /* owned: the wish's texts */
	struct pool_wish wish;
	struct layers layers; /* held: what its boxes are made of */
	uint32_t base; /* that of its template alone, which is not used meanwhile; 0: the same */
	uint32_t slot; /* the launcher's number; 0: none, as when its template is gone */
};
extern const struct object_kind pool_kind;

/* Answers when the store has it and the launcher was told. EINVAL (a bad value, named), EEXIST (the
 * name, or the template has one). */
void pool_create(struct sandboxes *all, const struct pool_wish *wish, object_cb cb, void *user);
void pool_change(struct sandboxes *all, const char *id, const struct pool_patch *patch,
		 object_cb cb, void *user);
void pool_delete(struct sandboxes *all, const char *id, object_cb cb, void *user);
/* How it does now. */
void pool_state(struct sandboxes *all, const struct pool *p, pool_state_cb cb, void *user);
/* Templates or aliases have changed: pools of them follow, in the next turn. */
void pools_follow(struct sandboxes *all);
void pools_loaded(struct sandboxes *all); /* the same, at once: all there is has been loaded */
/* By id or name; NULL. Borrowed for this turn of the loop. */
struct object *pool_find(struct sandboxes *all, const char *id_or_name);

/* ---- inside ---- */

/* The pool of a built-in template, if there is one: its preload is the template's. */
const struct pool *pool_of_template(struct sandboxes *all, const char *template);
