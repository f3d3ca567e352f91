/* A private key of ours: P-256, signing with ECDSA and SHA-256 (ES256). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct signer; /* opaque */

#define SIGNER_LEN 64u /* bytes of a signature: two numbers, one behind the other */
#define SIGNER_PEM_MAX (8u << 10)

/* From PEM, without a passphrase. -EINVAL: no such key, or one of another kind; -ENOMEM. */
int signer_create(const char *pem, struct signer **ret);
struct signer *signer_free(struct signer *s); /* takes NULL, returns NULL */
CLEANUP_FUNC(struct signer *, signer_free)
int signer_sign(const struct signer *s, const void *data, size_t n, uint8_t ret[SIGNER_LEN]);
