/* API keys. `holt_` and 40 hex digits are shown once, when a key is made; the same digits behind
 * `e2b_` are the same key, because some clients insist on that prefix. Only SHA-256 of the 20
 * secret bytes is kept, and keys are looked up by it, so that the time of a lookup tells nothing
 * about the secret.
 *
 * The table is memory only: the caller loads it from the store and writes changes there. Not for
 * threads. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/principal.h"
#include "base/cleanup.h"
#include "crypto/hash.h"

struct err;
struct key_row; /* store/store.h */

#define API_KEY_SECRET_LEN 20
#define API_KEY_SIZE (sizeof("holt_") + 2 * API_KEY_SECRET_LEN) /* with its NUL */

/* A new key: the text to show once and the hash to keep. */
int api_key_make(char text[API_KEY_SIZE], uint8_t hash[HASH_LEN]);
/* The hash of a key as it was given; -EACCES when it has not the form of one. */
int api_key_hash(const char *text, uint8_t hash[HASH_LEN]);

struct auth_keys; /* opaque */

#define AUTH_KEYS_MAX 100000u

struct auth_keys *auth_keys_create(size_t max); /* NULL without memory */
struct auth_keys *auth_keys_free(struct auth_keys *keys);
CLEANUP_FUNC(struct auth_keys *, auth_keys_free)
size_t auth_keys_len(const struct auth_keys *keys);

/* Adds a key, or replaces the one with its id. -EEXIST when another key has that hash, -EINVAL for
 * a row that cannot be, -E2BIG at max, -ENOMEM. */
int auth_keys_put(struct auth_keys *keys, const struct key_row *row, struct err *err);
/* From now on refused. -ENOENT. */
int auth_keys_revoke(struct auth_keys *keys, const char *id, int64_t revoked_ms);
/* Whether requests with it are let in now. */
bool auth_keys_is_good(const struct auth_keys *keys, const char *id);
/* Who a request with it would be. -EACCES: none would be let in. */
int auth_keys_get(const struct auth_keys *keys, const char *id, struct principal *ret);
/* Whether it was made by a key that has ended, and so has itself. */
bool auth_keys_is_orphan(const struct auth_keys *keys, const char *id);
/* Forgotten altogether. -ENOENT. */
int auth_keys_remove(struct auth_keys *keys, const char *id);
/* Every key, in no order; the row and its texts are borrowed until the table changes. */
void auth_keys_each(const struct auth_keys *keys,
		    void (*each)(void *user, const struct key_row *row), void *user);

/* Who is asking, from `Authorization: Bearer <key>` or `X-API-Key: <key>` (NULL: not sent). All
 * refusals are -EACCES (401): no key, malformed, unknown, revoked, expired, or two different ones.
 */
int auth_check(struct auth_keys *keys, const char *authorization, const char *x_api_key,
	       struct principal *ret, struct err *err);
/* The same from `?token=`: for WebSocket routes only, where browsers cannot send a header. */
int auth_check_token(struct auth_keys *keys, const char *token, struct principal *ret,
		     struct err *err);

/* When keys were last used is noted to the minute. Takes up to max changed notes out of the table,
 * for the store. */
struct auth_used {
	char key_id[ID_LEN + 1];
	int64_t last_used_ms;
};
size_t auth_keys_take_used(struct auth_keys *keys, struct auth_used *ret, size_t max);
