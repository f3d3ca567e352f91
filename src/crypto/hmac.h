/* HMAC-SHA-256: proof that a text comes from who knows the key. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/hash.h"

/* 0, -ENOMEM, -EIO. An empty key is refused with -EINVAL: it would prove nothing. */
int hmac_sha256(const void *key, size_t key_len, const void *data, size_t n, uint8_t ret[HASH_LEN]);
/* In constant time: whether mac is the one of this text. */
bool hmac_is_valid(const void *key, size_t key_len, const void *data, size_t n,
		   const uint8_t mac[HASH_LEN]);
