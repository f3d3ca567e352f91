#include "auth/api_key.h"

#include <errno.h>
#include <string.h>

#include "base/encode.h"
#include "base/str.h"
#include "crypto/random.h"

/* The first is the one that is shown. */
static const char *const prefixes[] = { "holt_", "e2b_" };

int api_key_make(char text[API_KEY_SIZE], uint8_t hash[HASH_LEN])
{
	uint8_t secret[API_KEY_SECRET_LEN];
	size_t n = strlen(prefixes[0]);
	int r;

	random_bytes(secret, sizeof(secret));
	r = hash_sha256(secret, sizeof(secret), hash);
	if (r == 0) {
		memcpy(text, prefixes[0], n);
		encode_hex(secret, sizeof(secret), text + n);
	}
	explicit_bzero(secret, sizeof(secret));
	return r;
}

int api_key_hash(const char *text, uint8_t hash[HASH_LEN])
{
	uint8_t secret[API_KEY_SECRET_LEN];
	struct str key = str_of(text);
	int r = -EACCES;

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		size_t n = strlen(prefixes[i]);

		if (!str_starts(key, prefixes[i]) || key.len != n + 2 * sizeof(secret))
			continue;
		if (decode_hex(text + n, 2 * sizeof(secret), secret, sizeof(secret)) ==
		    (ssize_t)sizeof(secret))
			r = hash_sha256(secret, sizeof(secret), hash);
	}
	explicit_bzero(secret, sizeof(secret));
	return r;
}
