/* An identity provider for tests: keys made now, their JWKS, and tokens of whatever text. */
#pragma once

#include "base/buf.h"
#include "crypto/pubkey.h"

struct jwt_key; /* opaque */

struct jwt_key *jwt_key_make(enum pubkey_kind kind, unsigned rsa_bits);
void jwt_key_free(struct jwt_key *key);
/* Appends its public part as a JWK; extra: further members, ",\"alg\":..." or "". */
void jwt_key_jwk(const struct jwt_key *key, const char *kid, const char *extra, struct buf *b);
/* Head and claims as they are, base64url, signed by the key. Replaces what is in b. */
void jwt_sign(const struct jwt_key *key, const char *head, const char *claims, struct buf *b);
/* The same, signed by HMAC-SHA-256 with these bytes. */
void jwt_sign_hmac(const char *secret, const char *head, const char *claims, struct buf *b);
