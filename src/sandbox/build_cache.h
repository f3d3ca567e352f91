/* What steps of builds have made, by all that it was made of: a step that is asked for again takes
 * these layers and needs no box. Each owner has a cache of their own, because what a step makes
 * can depend on who stood by. An entry keeps its layers; it counts as the owner's disk, and the
 * one that was unused the longest gives way to a new one. */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "crypto/hash.h"
#include "sandbox/layers.h"
#include "sandbox/objects.h"

#define BUILD_CACHE_OWNER_MAX 256u
#define BUILD_CACHE_DAYS_MS (14ull * 24 * 3600 * 1000)

struct build_entry { /* the data of its object; its name is the key */
	char owner[OBJECT_OWNER_MAX + 1];
	struct layers layers; /* all of them, bottom first */
	uint64_t bytes;       /* of the layer that was new */
	int64_t used_ms;      /* by this process; 0: not yet */
};
extern const struct object_kind build_entry_kind;

/* NULL: there is none. Borrowed for this turn of the loop. */
const struct build_entry *build_cache_find(struct sandboxes *all, const char *owner,
					   const uint8_t key[HASH_LEN]);
/* Keeps it, soon; that the store does not take it is nobody's problem. QUOTA_ERRNO: the owner has
 * no disk left for it. */
int build_cache_put(struct sandboxes *all, const char *owner, const uint8_t key[HASH_LEN],
		    const struct layers *layers, uint64_t bytes, struct err *err);
/* Forgets all of an owner's; NULL: everybody's. Answers when the store has. */
void build_cache_clear(struct sandboxes *all, const char *owner, object_cb cb, void *user);
/* Removes what was not used for long. */
void build_cache_sweep(struct sandboxes *all);
