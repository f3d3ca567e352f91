/* Foreign tokens and sets of keys. The first byte says which: a set and a token for it (a NUL
 * between them), or a head and claims that are signed by the right key, so that all of the checks
 * behind the signature are reached. Whoever is let in is somebody. */
#include <string.h>

#include <openssl/evp.h>

#include "auth/jwks.h"
#include "auth/jwt.h"
#include "base/cleanup.h"
#include "base/encode.h"
#include "base/err.h"
#include "base/str.h"
#include "fuzz.h"

static const struct jwt_rules rules = {
	.issuer = "i", .audience = "a", .owner_claim = "sub", .role_claim = "role", .skew_s = 30
};

static void check(const char *token, const struct jwks *keys)
{
	struct principal who = { 0 };
	struct err err = { 0 };
	int r = jwt_check(token, keys, &rules, 1800000000, &who, &err);

	MUST((r == 0) == (who.owner[0] != '\0'));
	MUST(r == 0 || err.code == -r);
	MUST(who.role != ROLE_ADMIN && !(who.scopes & SCOPE_ADMIN));
}

static void check_foreign(char *text, size_t n)
{
	_cleanup_(jwks_free_p) struct jwks *keys = NULL;
	size_t set = strnlen(text, n);

	if (jwks_parse(text, set, &keys, NULL) == 0)
		MUST(jwks_len(keys) > 0);
	check(set < n ? text + set + 1 : text, keys);
}

static EVP_PKEY *signer(struct jwks **ret)
{
	static const uint8_t seed[32] = { 1 };
	EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, sizeof(seed));
	char set[256], x[64];
	uint8_t raw[32];
	size_t n = sizeof(raw);

	MUST(key && EVP_PKEY_get_raw_public_key(key, raw, &n) == 1);
	(void)encode_base64url(raw, n, x);
	MUST(str_format(set, sizeof(set),
			"{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"%s\"}]}", x) == 0);
	MUST(jwks_parse(set, strlen(set), ret, NULL) == 0);
	return key;
}

static void check_signed(const char *text, size_t n)
{
	_cleanup_(jwks_free_p) struct jwks *keys = NULL;
	EVP_PKEY *key = signer(&keys);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	static char token[JWT_MAX * 4];
	size_t head = strnlen(text, n), len, sig_len = 64;
	uint8_t sig[64];

	len = encode_base64url(text, head, token);
	token[len++] = '.';
	if (head < n)
		len += encode_base64url(text + head + 1, n - head - 1, token + len);
	MUST(EVP_DigestSignInit(ctx, NULL, NULL, NULL, key) == 1);
	MUST(EVP_DigestSign(ctx, sig, &sig_len, (uint8_t *)token, len) == 1);
	token[len++] = '.';
	(void)encode_base64url(sig, sig_len, token + len);
	check(token, keys);
	EVP_MD_CTX_free(ctx);
	EVP_PKEY_free(key);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_free_ char *text = NULL;

	if (size < 1 || size > JWT_MAX)
		return 0;
	text = calloc(1, size);
	MUST(text);
	memcpy(text, data + 1, size - 1);
	if (data[0] & 1)
		check_signed(text, size - 1);
	else
		check_foreign(text, size - 1);
	return 0;
}
