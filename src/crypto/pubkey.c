#include "crypto/pubkey.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#define RSA_BITS_MIN 2048

struct pubkey {
	enum pubkey_kind kind;
	EVP_PKEY *key; /* owned */
};

CLEANUP_FUNC(EVP_PKEY_CTX *, EVP_PKEY_CTX_free)
CLEANUP_FUNC(EVP_MD_CTX *, EVP_MD_CTX_free)
CLEANUP_FUNC(OSSL_PARAM_BLD *, OSSL_PARAM_BLD_free)
CLEANUP_FUNC(OSSL_PARAM *, OSSL_PARAM_free)
CLEANUP_FUNC(BIGNUM *, BN_free)
CLEANUP_FUNC(ECDSA_SIG *, ECDSA_SIG_free)

struct pubkey *pubkey_free(struct pubkey *key)
{
	if (!key)
		return NULL;
	EVP_PKEY_free(key->key);
	free(key);
	return NULL;
}

enum pubkey_kind pubkey_kind(const struct pubkey *key)
{
	return key->kind;
}

/* Takes the library's key. */
static int wrap(enum pubkey_kind kind, EVP_PKEY *key, struct pubkey **ret)
{
	struct pubkey *k;

	if (!key) {
		ERR_clear_error();
		return -EINVAL;
	}
	k = calloc(1, sizeof(*k));
	if (!k) {
		EVP_PKEY_free(key);
		return -ENOMEM;
	}
	k->kind = kind;
	k->key = key;
	*ret = k;
	return 0;
}

/* NULL: that is no key. */
static EVP_PKEY *from_params(const char *type, OSSL_PARAM *params)
{
	_cleanup_(EVP_PKEY_CTX_free_p) EVP_PKEY_CTX *ctx =
		EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
	_cleanup_(EVP_PKEY_CTX_free_p) EVP_PKEY_CTX *check = NULL;
	EVP_PKEY *key = NULL;

	if (!ctx || EVP_PKEY_fromdata_init(ctx) != 1 ||
	    EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
		return NULL;
	check = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
	/* A point that is not on the curve is refused here. */
	if (check && EVP_PKEY_public_check(check) == 1)
		return key;
	EVP_PKEY_free(key);
	return NULL;
}

int pubkey_rsa(const uint8_t *n, size_t n_len, const uint8_t *e, size_t e_len, struct pubkey **ret)
{
	_cleanup_(OSSL_PARAM_BLD_free_p) OSSL_PARAM_BLD *build = NULL;
	_cleanup_(OSSL_PARAM_free_p) OSSL_PARAM *params = NULL;
	_cleanup_(BN_free_p) BIGNUM *modulus = NULL;
	_cleanup_(BN_free_p) BIGNUM *exponent = NULL;

	if (n_len == 0 || n_len > PUBKEY_RSA_MAX || e_len == 0 || e_len > PUBKEY_RSA_E_MAX)
		return -EINVAL;
	modulus = BN_bin2bn(n, (int)n_len, NULL);
	exponent = BN_bin2bn(e, (int)e_len, NULL);
	build = OSSL_PARAM_BLD_new();
	if (!modulus || !exponent || !build)
		return -ENOMEM;
	if (BN_num_bits(modulus) < RSA_BITS_MIN || !BN_is_odd(modulus) || !BN_is_odd(exponent) ||
	    BN_is_one(exponent))
		return -EINVAL;
	if (OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, modulus) != 1 ||
	    OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, exponent) != 1)
		return -ENOMEM;
	params = OSSL_PARAM_BLD_to_param(build);
	return params ? wrap(PUBKEY_RSA, from_params("RSA", params), ret) : -ENOMEM;
}

int pubkey_p256(const uint8_t x[PUBKEY_POINT_LEN], const uint8_t y[PUBKEY_POINT_LEN],
		struct pubkey **ret)
{
	char group[] = "prime256v1";
	uint8_t point[1 + 2 * PUBKEY_POINT_LEN] = { 4 }; /* not compressed */
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, 0),
		OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point)),
		OSSL_PARAM_construct_end(),
	};

	memcpy(point + 1, x, PUBKEY_POINT_LEN);
	memcpy(point + 1 + PUBKEY_POINT_LEN, y, PUBKEY_POINT_LEN);
	return wrap(PUBKEY_P256, from_params("EC", params), ret);
}

int pubkey_ed25519(const uint8_t raw[PUBKEY_POINT_LEN], struct pubkey **ret)
{
	return wrap(PUBKEY_ED25519,
		    EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, raw, PUBKEY_POINT_LEN),
		    ret);
}

static int verify(const struct pubkey *key, const void *data, size_t n, const uint8_t *signature,
		  size_t signature_len)
{
	_cleanup_(EVP_MD_CTX_free_p) EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	const EVP_MD *md = key->kind == PUBKEY_ED25519 ? NULL : EVP_sha256();
	int good;

	if (!ctx)
		return -ENOMEM;
	/* RSA is padded as PKCS#1 v1.5 unless one asks for another way. */
	good = EVP_DigestVerifyInit(ctx, NULL, md, NULL, key->key) == 1 &&
	       EVP_DigestVerify(ctx, signature, signature_len, data, n) == 1;
	ERR_clear_error();
	return good ? 0 : -EBADMSG;
}

/* The library wants DER. */
static int verify_p256(const struct pubkey *key, const void *data, size_t n,
		       const uint8_t *signature)
{
	_cleanup_(ECDSA_SIG_free_p) ECDSA_SIG *sig = ECDSA_SIG_new();
	BIGNUM *r = BN_bin2bn(signature, PUBKEY_POINT_LEN, NULL);
	BIGNUM *s = BN_bin2bn(signature + PUBKEY_POINT_LEN, PUBKEY_POINT_LEN, NULL);
	unsigned char *der = NULL;
	int len, result;

	if (!sig || !r || !s || ECDSA_SIG_set0(sig, r, s) != 1) {
		BN_free(r);
		BN_free(s);
		return -ENOMEM;
	}
	len = i2d_ECDSA_SIG(sig, &der);
	if (len <= 0)
		return -ENOMEM;
	result = verify(key, data, n, der, (size_t)len);
	OPENSSL_free(der);
	return result;
}

int pubkey_verify(const struct pubkey *key, const void *data, size_t n, const uint8_t *signature,
		  size_t signature_len)
{
	if (key->kind == PUBKEY_P256)
		return signature_len == 2 * PUBKEY_POINT_LEN ? verify_p256(key, data, n, signature)
							     : -EBADMSG;
	return verify(key, data, n, signature, signature_len);
}
