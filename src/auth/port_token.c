#include "auth/port_token.h"

#include <string.h>

#include "base/encode.h"
#include "base/str.h"
#include "crypto/random.h"
#include "crypto/secret.h"

#define PREFIX "port_"

int port_token_make(char text[PORT_TOKEN_SIZE], uint8_t hash[HASH_LEN])
{
	uint8_t secret[PORT_TOKEN_SECRET_LEN];
	int r;

	random_bytes(secret, sizeof(secret));
	r = hash_sha256(secret, sizeof(secret), hash);
	if (r == 0) {
		memcpy(text, PREFIX, strlen(PREFIX));
		encode_hex(secret, sizeof(secret), text + strlen(PREFIX));
	}
	explicit_bzero(secret, sizeof(secret));
	return r;
}

bool port_token_is(const char *text, const uint8_t hash[HASH_LEN])
{
	uint8_t secret[PORT_TOKEN_SECRET_LEN], sum[HASH_LEN];
	struct str token = str_of(text);
	bool is_it;

	if (!str_starts(token, PREFIX) || token.len != PORT_TOKEN_SIZE - 1 ||
	    decode_hex(text + strlen(PREFIX), token.len - strlen(PREFIX), secret, sizeof(secret)) !=
		    (ssize_t)sizeof(secret))
		return false;
	is_it = hash_sha256(secret, sizeof(secret), sum) == 0 &&
		secret_bytes_equal(sum, hash, HASH_LEN);
	explicit_bzero(secret, sizeof(secret));
	return is_it;
}
