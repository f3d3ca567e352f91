/* Public keys of others, and checking what they have signed. Three kinds, each with one way to
 * sign: RSA (PKCS#1 v1.5 with SHA-256, 2048 to 8192 bits), ECDSA on P-256 with SHA-256, Ed25519.
 * The kind is the key's, never the signer's choice: so none can be passed off as another. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

enum pubkey_kind { PUBKEY_RSA, PUBKEY_P256, PUBKEY_ED25519 };

#define PUBKEY_RSA_MAX 1024u /* bytes of a modulus, and so of a signature */
#define PUBKEY_RSA_E_MAX 8u
#define PUBKEY_POINT_LEN 32u /* bytes of a coordinate, or of an Ed25519 key */

struct pubkey; /* opaque */

/* Numbers are big-endian. -EINVAL: no such key can be, or it is too weak; -ENOMEM. */
int pubkey_rsa(const uint8_t *n, size_t n_len, const uint8_t *e, size_t e_len, struct pubkey **ret);
int pubkey_p256(const uint8_t x[PUBKEY_POINT_LEN], const uint8_t y[PUBKEY_POINT_LEN],
		struct pubkey **ret);
int pubkey_ed25519(const uint8_t raw[PUBKEY_POINT_LEN], struct pubkey **ret);
struct pubkey *pubkey_free(struct pubkey *key); /* takes NULL, returns NULL */
CLEANUP_FUNC(struct pubkey *, pubkey_free)

enum pubkey_kind pubkey_kind(const struct pubkey *key);
/* 0, -EBADMSG: not signed by this key; -ENOMEM. A P-256 signature is the two numbers of 32 bytes
 * one behind the other. */
int pubkey_verify(const struct pubkey *key, const void *data, size_t n, const uint8_t *signature,
		  size_t signature_len);
