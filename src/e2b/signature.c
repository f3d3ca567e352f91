#include "e2b/signature.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "auth/box_token.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/encode.h"
#include "base/str.h"
#include "crypto/hash.h"
#include "crypto/secret.h"

#define VERSION "v1_"
#define LEN (strlen(VERSION) + 43) /* 32 bytes as base64, without its end */

/* SHA-256 of "path:operation:user:token[:expiration]", as their SDKs make it: up to the token. */
static int hash_what(const struct e2b_signed *s, struct hash *h)
{
	int r = hash_update(h, s->path, strlen(s->path));

	if (r == 0)
		r = s->is_write ? hash_update(h, ":write:", 7) : hash_update(h, ":read:", 6);
	if (r == 0)
		r = hash_update(h, s->user, strlen(s->user));
	return r == 0 ? hash_update(h, ":", 1) : r;
}

static int hash_rest(struct hash *h, const char *token, const struct e2b_signed *s,
		     char ret[E2B_SIGNATURE_SIZE])
{
	char base64[BASE64_SIZE(HASH_LEN)], end[24];
	uint8_t sum[HASH_LEN];
	int r = hash_update(h, token, strlen(token));
	size_t n;

	if (r == 0 && s->expires != 0)
		r = str_format(end, sizeof(end), ":%" PRId64, s->expires);
	if (r == 0 && s->expires != 0)
		r = hash_update(h, end, strlen(end));
	if (r == 0)
		r = hash_final(h, sum);
	if (r < 0)
		return r;
	n = encode_base64(sum, sizeof(sum), base64);
	while (n > 0 && base64[n - 1] == '=')
		base64[--n] = '\0';
	return str_format(ret, E2B_SIGNATURE_SIZE, VERSION "%s", base64);
}

int e2b_signature_make(const char *token, const struct e2b_signed *s, char ret[E2B_SIGNATURE_SIZE])
{
	_cleanup_(hash_free_p) struct hash *h = hash_create();
	int r = h ? hash_what(s, h) : -ENOMEM;

	return r < 0 ? r : hash_rest(h, token, s, ret);
}

static bool has_form(const char *signature)
{
	return strlen(signature) == LEN && strncmp(signature, VERSION, strlen(VERSION)) == 0;
}

ssize_t e2b_signature_find(const struct secret *secret, const struct e2b_signed *s,
			   const char *signature, const char (*ids)[ID_LEN + 1], size_t n)
{
	_cleanup_(hash_free_p) struct hash *what = NULL;
	_cleanup_(hash_free_p) struct hash *one = NULL;
	char token[BOX_TOKEN_SIZE], right[E2B_SIGNATURE_SIZE];
	int r;

	if (n == 0 || !has_form(signature))
		return -ENOENT;
	what = hash_create();
	one = hash_create();
	r = what && one ? hash_what(s, what) : -ENOMEM;
	for (size_t i = 0; i < n && r == 0; i++) {
		r = box_token_make(secret, BOX_TOKEN_ENVD, ids[i], token);
		if (r == 0)
			r = hash_copy(one, what);
		if (r == 0)
			r = hash_rest(one, token, s, right);
		explicit_bzero(token, sizeof(token));
		if (r == 0 && secret_bytes_equal(right, signature, LEN))
			return (ssize_t)i;
	}
	return r < 0 ? r : -ENOENT;
}
