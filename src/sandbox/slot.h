/* The launcher knows templates by small numbers. Here is who has which: a slot for each different
 * thing that a finished box embodies, made when the first sandbox or pool wants it, told to the
 * launcher again when that is replaced, and given to another when nobody has used it for long. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "sandbox/recipe.h"

struct sandboxes;
struct slots; /* opaque */

struct slots *slots_create(void);
struct slots *slots_free(struct slots *s); /* takes NULL, returns NULL */

/* The number for this recipe, which is kept for the caller until slot_drop(). EDQUOT: every slot is
 * held. */
int slot_hold(struct sandboxes *all, const struct recipe *r, uint32_t *ret_id, struct err *err);
uint32_t slot_again(struct sandboxes *all, uint32_t id); /* one more holds it; returns id */
void slot_drop(struct sandboxes *all, uint32_t id);
/* How many boxes of it wait; NULL: as the configuration says. */
void slot_set_pool(struct sandboxes *all, uint32_t id, const struct pool_spec *pool);
/* Why the launcher did not take it; 0: it did, or has not said yet. */
int slot_error(const struct sandboxes *all, uint32_t id, struct err *err);

/* Finished boxes that were asked for: the most of every pool, and what always waits. What waits
 * beyond, because there was demand, is the launcher's to give up. */
uint32_t slots_waiting_max(const struct sandboxes *all);

/* A layer is about to be dropped: nothing that is made of it is kept ready any more. */
void slots_forget_layer(struct sandboxes *all, const char *layer_id);
/* The launcher is new: it is told everything. */
void slots_tell(struct sandboxes *all);
