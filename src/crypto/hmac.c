#include "crypto/hmac.h"

#include <errno.h>
#include <limits.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "crypto/secret.h"

int hmac_sha256(const void *key, size_t key_len, const void *data, size_t n, uint8_t ret[HASH_LEN])
{
	unsigned len = 0;

	if (key_len == 0 || key_len > INT_MAX)
		return -EINVAL;
	if (!HMAC(EVP_sha256(), key, (int)key_len, data, n, ret, &len) || len != HASH_LEN)
		return -EIO;
	return 0;
}

bool hmac_is_valid(const void *key, size_t key_len, const void *data, size_t n,
		   const uint8_t mac[HASH_LEN])
{
	uint8_t want[HASH_LEN];

	if (hmac_sha256(key, key_len, data, n, want) < 0)
		return false;
	return secret_bytes_equal(want, mac, HASH_LEN);
}
