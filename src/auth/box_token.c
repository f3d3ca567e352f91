#include "auth/box_token.h"

#include <errno.h>
#include <string.h>

#include "auth/scope.h"
#include "base/encode.h"
#include "base/str.h"
#include "crypto/hmac.h"
#include "crypto/secret.h"

#define IN_BOX (SCOPE_SANDBOX_READ | SCOPE_EXEC | SCOPE_FILE_READ | SCOPE_FILE_WRITE)

/* What is given out is good as long as the purposes stay. The interpreter of E2B takes the traffic
 * token too, and code that runs can do all that the other opens. */
static const struct {
	const char *purpose;
	unsigned scopes;
} kinds[] = {
	[BOX_TOKEN_ENVD] = { "e2b.envd", IN_BOX | SCOPE_PORT },
	[BOX_TOKEN_TRAFFIC] = { "e2b.traffic", IN_BOX | SCOPE_PORT },
	[BOX_TOKEN_VOLUME] = { "e2b.volume", SCOPE_FILE_READ | SCOPE_FILE_WRITE },
	[BOX_TOKEN_SESSION] = { "session", IN_BOX },
};

unsigned box_token_scopes(enum box_token kind)
{
	return kinds[kind].scopes;
}

int box_token_make(const struct secret *secret, enum box_token kind, const char *id,
		   char ret[BOX_TOKEN_SIZE])
{
	uint8_t mac[HASH_LEN];
	const char *key;
	char text[64];
	size_t n = 0;
	int r;

	if (!id_is_valid(id))
		return -EINVAL;
	r = str_format(text, sizeof(text), "%s:%s", kinds[kind].purpose, id);
	key = secret_reveal(secret, &n);
	if (r == 0)
		r = key ? hmac_sha256(key, n, text, strlen(text), mac) : -EINVAL;
	if (r < 0)
		return r;
	memcpy(ret, id, ID_LEN);
	encode_hex(mac, BOX_TOKEN_MAC_LEN, ret + ID_LEN);
	return 0;
}

bool box_token_is(const struct secret *secret, enum box_token kind, const char *id,
		  const char *text)
{
	char right[BOX_TOKEN_SIZE];

	return strlen(text) == BOX_TOKEN_SIZE - 1 && box_token_make(secret, kind, id, right) == 0 &&
	       secret_bytes_equal(right, text, BOX_TOKEN_SIZE);
}

bool box_token_names(const char *text, char ret_id[ID_LEN + 1])
{
	if (strlen(text) != BOX_TOKEN_SIZE - 1)
		return false;
	memcpy(ret_id, text, ID_LEN);
	ret_id[ID_LEN] = '\0';
	return id_is_valid(ret_id);
}
