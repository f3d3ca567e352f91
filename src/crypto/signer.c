#include "crypto/signer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#define DER_MAX 80 /* bytes of a signature as the library gives it */

struct signer {
	EVP_PKEY *key; /* owned */
};

CLEANUP_FUNC(EVP_MD_CTX *, EVP_MD_CTX_free)
CLEANUP_FUNC(ECDSA_SIG *, ECDSA_SIG_free)
CLEANUP_FUNC(EVP_PKEY *, EVP_PKEY_free)

struct signer *signer_free(struct signer *s)
{
	if (!s)
		return NULL;
	EVP_PKEY_free(s->key);
	free(s);
	return NULL;
}

/* Nobody is there to type one: without this the library would ask the terminal. */
static int no_passphrase(char *dst, int size, int is_writing, void *user)
{
	(void)dst;
	(void)size;
	(void)is_writing;
	(void)user;
	return -1;
}

static EVP_PKEY *read_pem(const char *pem)
{
	BIO *bio = BIO_new_mem_buf(pem, (int)strlen(pem));
	EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;

	BIO_free(bio);
	ERR_clear_error();
	return key;
}

static int is_p256(const EVP_PKEY *key)
{
	char group[32];
	size_t n = 0;

	return EVP_PKEY_is_a(key, "EC") &&
	       EVP_PKEY_get_group_name(key, group, sizeof(group), &n) == 1 &&
	       strcmp(group, "prime256v1") == 0;
}

int signer_create(const char *pem, struct signer **ret)
{
	_cleanup_(EVP_PKEY_free_p) EVP_PKEY *key = NULL;
	struct signer *s;

	if (strlen(pem) > SIGNER_PEM_MAX)
		return -EINVAL;
	key = read_pem(pem);
	if (!key || !is_p256(key))
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->key = TAKE(key);
	*ret = s;
	return 0;
}

static int to_numbers(const uint8_t *der, size_t n, uint8_t ret[SIGNER_LEN])
{
	const unsigned char *p = der;
	_cleanup_(ECDSA_SIG_free_p) ECDSA_SIG *sig = d2i_ECDSA_SIG(NULL, &p, (long)n);

	if (!sig)
		return -EIO;
	if (BN_bn2binpad(ECDSA_SIG_get0_r(sig), ret, SIGNER_LEN / 2) < 0 ||
	    BN_bn2binpad(ECDSA_SIG_get0_s(sig), ret + SIGNER_LEN / 2, SIGNER_LEN / 2) < 0)
		return -EIO;
	return 0;
}

int signer_sign(const struct signer *s, const void *data, size_t n, uint8_t ret[SIGNER_LEN])
{
	_cleanup_(EVP_MD_CTX_free_p) EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	uint8_t der[DER_MAX];
	size_t len = sizeof(der);

	if (!ctx)
		return -ENOMEM;
	if (EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, s->key) != 1 ||
	    EVP_DigestSign(ctx, der, &len, data, n) != 1) {
		ERR_clear_error();
		return -EIO;
	}
	return to_numbers(der, len, ret);
}
