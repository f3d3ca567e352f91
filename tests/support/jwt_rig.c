#include "jwt_rig.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>

#include "base/encode.h"
#include "check.h"
#include "crypto/hmac.h"

struct jwt_key {
	enum pubkey_kind kind;
	EVP_PKEY *key;
};

struct jwt_key *jwt_key_make(enum pubkey_kind kind, unsigned rsa_bits)
{
	struct jwt_key *k = calloc(1, sizeof(*k));

	assert_non_null(k);
	k->kind = kind;
	if (kind == PUBKEY_RSA)
		k->key = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)rsa_bits);
	else if (kind == PUBKEY_P256)
		k->key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
	else
		k->key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	assert_non_null(k->key);
	return k;
}

void jwt_key_free(struct jwt_key *key)
{
	if (key)
		EVP_PKEY_free(key->key);
	free(key);
}

static void put_bytes(struct buf *b, const void *data, size_t n)
{
	char text[BASE64_SIZE(2048)];

	(void)encode_base64url(data, n, text);
	assert_int_equal(buf_puts(b, text), 0);
}

static void put_number(struct buf *b, const struct jwt_key *key, const char *param, int size)
{
	unsigned char bytes[1024];
	BIGNUM *n = NULL;

	assert_int_equal(EVP_PKEY_get_bn_param(key->key, param, &n), 1);
	size = size ? size : BN_num_bytes(n);
	assert_int_equal(BN_bn2binpad(n, bytes, size), size);
	put_bytes(b, bytes, (size_t)size);
	BN_free(n);
}

void jwt_key_jwk(const struct jwt_key *key, const char *kid, const char *extra, struct buf *b)
{
	unsigned char raw[32];
	size_t n = sizeof(raw);

	(void)buf_printf(b, "{\"kid\":\"%s\"%s,", kid, extra);
	if (key->kind == PUBKEY_RSA) {
		(void)buf_puts(b, "\"kty\":\"RSA\",\"n\":\"");
		put_number(b, key, OSSL_PKEY_PARAM_RSA_N, 0);
		(void)buf_puts(b, "\",\"e\":\"");
		put_number(b, key, OSSL_PKEY_PARAM_RSA_E, 0);
	} else if (key->kind == PUBKEY_P256) {
		(void)buf_puts(b, "\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"");
		put_number(b, key, OSSL_PKEY_PARAM_EC_PUB_X, 32);
		(void)buf_puts(b, "\",\"y\":\"");
		put_number(b, key, OSSL_PKEY_PARAM_EC_PUB_Y, 32);
	} else {
		(void)buf_puts(b, "\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"");
		assert_int_equal(EVP_PKEY_get_raw_public_key(key->key, raw, &n), 1);
		put_bytes(b, raw, n);
	}
	assert_int_equal(buf_puts(b, "\"}"), 0);
}

static void put_unsigned(const char *head, const char *claims, struct buf *b)
{
	buf_clear(b);
	put_bytes(b, head, strlen(head));
	(void)buf_putc(b, '.');
	put_bytes(b, claims, strlen(claims));
}

/* DER to the two numbers of a JWT. */
static size_t flatten(const unsigned char *der, size_t n, unsigned char *dst)
{
	ECDSA_SIG *sig = d2i_ECDSA_SIG(NULL, &der, (long)n);

	assert_non_null(sig);
	assert_int_equal(BN_bn2binpad(ECDSA_SIG_get0_r(sig), dst, 32), 32);
	assert_int_equal(BN_bn2binpad(ECDSA_SIG_get0_s(sig), dst + 32, 32), 32);
	ECDSA_SIG_free(sig);
	return 64;
}

void jwt_sign(const struct jwt_key *key, const char *head, const char *claims, struct buf *b)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	unsigned char sig[1024], flat[64];
	size_t n = sizeof(sig);
	const EVP_MD *md = key->kind == PUBKEY_ED25519 ? NULL : EVP_sha256();

	put_unsigned(head, claims, b);
	assert_int_equal(EVP_DigestSignInit(ctx, NULL, md, NULL, key->key), 1);
	assert_int_equal(EVP_DigestSign(ctx, sig, &n, (unsigned char *)b->data, b->len), 1);
	EVP_MD_CTX_free(ctx);
	(void)buf_putc(b, '.');
	if (key->kind == PUBKEY_P256)
		put_bytes(b, flat, flatten(sig, n, flat));
	else
		put_bytes(b, sig, n);
}

void jwt_sign_hmac(const char *secret, const char *head, const char *claims, struct buf *b)
{
	uint8_t mac[HASH_LEN];

	put_unsigned(head, claims, b);
	assert_int_equal(hmac_sha256(secret, strlen(secret), b->data, b->len, mac), 0);
	(void)buf_putc(b, '.');
	put_bytes(b, mac, sizeof(mac));
}
