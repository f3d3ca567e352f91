#include "e2b/token.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/encode.h"
#include "base/str.h"
#include "crypto/hmac.h"
#include "crypto/secret.h"

static const char *const purposes[] = {
	[E2B_TOKEN_ENVD] = "e2b.envd",
	[E2B_TOKEN_TRAFFIC] = "e2b.traffic",
	[E2B_TOKEN_VOLUME] = "e2b.volume",
};

int e2b_token_make(const struct secret *secret, enum e2b_token kind, const char *sandbox_id,
		   char ret[E2B_TOKEN_SIZE])
{
	uint8_t mac[HASH_LEN];
	const char *key;
	char text[64];
	size_t n = 0;
	int r;

	if (!id_is_valid(sandbox_id))
		return -EINVAL;
	r = str_format(text, sizeof(text), "%s:%s", purposes[kind], sandbox_id);
	key = secret_reveal(secret, &n);
	if (r == 0)
		r = key ? hmac_sha256(key, n, text, strlen(text), mac) : -EINVAL;
	if (r < 0)
		return r;
	memcpy(ret, sandbox_id, ID_LEN);
	encode_hex(mac, E2B_TOKEN_MAC_LEN, ret + ID_LEN);
	return 0;
}

bool e2b_token_is(const struct secret *secret, enum e2b_token kind, const char *sandbox_id,
		  const char *text)
{
	char right[E2B_TOKEN_SIZE];

	return strlen(text) == E2B_TOKEN_SIZE - 1 &&
	       e2b_token_make(secret, kind, sandbox_id, right) == 0 &&
	       secret_bytes_equal(right, text, E2B_TOKEN_SIZE);
}

bool e2b_token_names(const char *text, char ret_id[ID_LEN + 1])
{
	if (strlen(text) != E2B_TOKEN_SIZE - 1)
		return false;
	memcpy(ret_id, text, ID_LEN);
	ret_id[ID_LEN] = '\0';
	return id_is_valid(ret_id);
}

/* SHA-256 of "path:operation:user:token[:expiration]", as their SDKs make it. */
int e2b_signature_make(const char *token, const struct e2b_signed *s, char ret[E2B_SIGNATURE_SIZE])
{
	_cleanup_(buf_done) struct buf b = { 0 };
	char base64[BASE64_SIZE(HASH_LEN)];
	uint8_t hash[HASH_LEN];
	size_t n;
	int r = buf_printf(&b, "%s:%s:%s:%s", s->path, s->is_write ? "write" : "read", s->user,
			   token);

	if (r == 0 && s->expires != 0)
		r = buf_printf(&b, ":%" PRId64, s->expires);
	if (r == 0)
		r = hash_sha256(b.data, b.len, hash);
	explicit_bzero(b.data, b.len);
	if (r < 0)
		return r;
	n = encode_base64(hash, sizeof(hash), base64);
	while (n > 0 && base64[n - 1] == '=')
		base64[--n] = '\0';
	return str_format(ret, E2B_SIGNATURE_SIZE, "v1_%s", base64);
}
