/* Hash map from byte strings to pointers, keyed SipHash with a random key per map: hostile keys do
 * not collide on purpose. Values are borrowed; keys are copied. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct map; /* opaque */

struct map *map_create(size_t max_entries);
struct map *map_free(struct map *m);
size_t map_len(const struct map *m);
void *map_get(const struct map *m, const char *key, size_t key_len); /* NULL when absent */
/* value must not be NULL. *ret_old (may be NULL) gets the replaced value or NULL.
 * -ENOMEM, -E2BIG at max_entries. */
int map_put(struct map *m, const char *key, size_t key_len, void *value, void **ret_old);
void *map_remove(struct map *m, const char *key, size_t key_len); /* the value or NULL */

struct map_iter {
	size_t pos;
	const char *key; /* borrowed */
	size_t key_len;
	void *value;
};
/* Start from a zeroed iterator. The map must not be changed on the way. */
bool map_next(const struct map *m, struct map_iter *it);
#define MAP_FOREACH(m, it) for (struct map_iter it = { 0 }; map_next(m, &it);)
