/* A set of public keys as an identity provider publishes it (RFC 7517). What cannot be used here is
 * passed over: other kinds of keys, keys for encryption or for another algorithm, weak ones. */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"
#include "crypto/pubkey.h"

struct err;
struct jwks; /* opaque */

#define JWKS_BYTES_MAX (256u << 10)
#define JWKS_KEYS_MAX 64u
#define JWKS_KID_MAX 255u

/* -EINVAL: no set of keys, or none of them is of use, or two cannot be told apart; -E2BIG, -ENOMEM.
 */
int jwks_parse(const void *data, size_t n, struct jwks **ret, struct err *err);
struct jwks *jwks_free(struct jwks *set); /* takes NULL, returns NULL */
CLEANUP_FUNC(struct jwks *, jwks_free)
size_t jwks_len(const struct jwks *set);
/* The key of that name and kind; without a name the only one of that kind. NULL: none. Borrowed. */
const struct pubkey *jwks_find(const struct jwks *set, const char *kid, enum pubkey_kind kind);
