#include "auth/box_token.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "auth/scope.h"
#include "base/encode.h"
#include "base/parse.h"
#include "base/str.h"
#include "crypto/hmac.h"
#include "crypto/secret.h"

#define TEXT_SIZE 96
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

static int sign(const struct secret *secret, const char *text, char ret[2 * BOX_TOKEN_MAC_LEN + 1])
{
	uint8_t mac[HASH_LEN];
	size_t n = 0;
	const char *key = secret_reveal(secret, &n);
	int r = key ? hmac_sha256(key, n, text, strlen(text), mac) : -EINVAL;

	if (r == 0)
		encode_hex(mac, BOX_TOKEN_MAC_LEN, ret);
	return r;
}

int box_token_make(const struct secret *secret, enum box_token kind, const char *id,
		   char ret[BOX_TOKEN_SIZE])
{
	char text[TEXT_SIZE];
	int r;

	if (!id_is_valid(id))
		return -EINVAL;
	r = str_format(text, sizeof(text), "%s:%s", kinds[kind].purpose, id);
	if (r == 0)
		r = sign(secret, text, ret + ID_LEN);
	if (r == 0)
		memcpy(ret, id, ID_LEN);
	return r;
}

int box_session_make(const struct secret *secret, const char *id, const struct box_maker *by,
		     char ret[BOX_SESSION_SIZE])
{
	bool is_key = by->key_id[0] != '\0';
	char text[TEXT_SIZE], maker[ID_LEN + 1];
	int r;

	if (!id_is_valid(id) || (is_key && !id_is_valid(by->key_id)) || by->until_ms < 0)
		return -EINVAL;
	r = is_key ? str_copy(maker, sizeof(maker), by->key_id)
		   : str_format(maker, sizeof(maker), "%020" PRId64, by->until_ms);
	if (r == 0)
		r = str_format(text, sizeof(text), "%s:%s:%s:%s", kinds[BOX_TOKEN_SESSION].purpose,
			       is_key ? "key" : "until", id, maker);
	if (r == 0)
		r = sign(secret, text, ret + 2 * ID_LEN);
	if (r == 0) {
		memcpy(ret, id, ID_LEN);
		memcpy(ret + ID_LEN, maker, ID_LEN);
	}
	return r;
}

bool box_session_read(const struct secret *secret, const char *text, char ret_id[ID_LEN + 1],
		      struct box_maker *ret_by)
{
	struct box_maker makers[2] = { 0 };
	char right[BOX_SESSION_SIZE];
	uint64_t until = 0;

	if (strlen(text) != BOX_SESSION_SIZE - 1)
		return false;
	memcpy(ret_id, text, ID_LEN);
	ret_id[ID_LEN] = '\0';
	memcpy(makers[0].key_id, text + ID_LEN, ID_LEN);
	if (parse_u64(makers[0].key_id, 0, INT64_MAX, &until) == 0)
		makers[1].until_ms = (int64_t)until;
	/* What was signed says which of the two it is. */
	for (size_t i = 0; i < 2; i++) {
		if (box_session_make(secret, ret_id, &makers[i], right) < 0 ||
		    !secret_bytes_equal(right, text, BOX_SESSION_SIZE))
			continue;
		*ret_by = makers[i];
		return true;
	}
	return false;
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
