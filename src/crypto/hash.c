#include "crypto/hash.h"

#include <errno.h>
#include <stdlib.h>

#include <openssl/evp.h>

struct hash {
	EVP_MD_CTX *ctx; /* owned */
};

int hash_sha256(const void *data, size_t n, uint8_t ret[HASH_LEN])
{
	uint8_t sum[EVP_MAX_MD_SIZE];

	if (EVP_Digest(n ? data : "", n, sum, NULL, EVP_sha256(), NULL) != 1)
		return -EIO;
	for (size_t i = 0; i < HASH_LEN; i++)
		ret[i] = sum[i];
	return 0;
}

struct hash *hash_create(void)
{
	struct hash *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->ctx = EVP_MD_CTX_new();
	if (!h->ctx || EVP_DigestInit_ex(h->ctx, EVP_sha256(), NULL) != 1)
		return hash_free(h);
	return h;
}

struct hash *hash_free(struct hash *h)
{
	if (!h)
		return NULL;
	EVP_MD_CTX_free(h->ctx);
	free(h);
	return NULL;
}

int hash_update(struct hash *h, const void *data, size_t n)
{
	if (n == 0)
		return 0;
	return EVP_DigestUpdate(h->ctx, data, n) == 1 ? 0 : -EIO;
}

int hash_copy(struct hash *to, const struct hash *from)
{
	return EVP_MD_CTX_copy_ex(to->ctx, from->ctx) == 1 ? 0 : -EIO;
}

int hash_final(struct hash *h, uint8_t ret[HASH_LEN])
{
	if (EVP_DigestFinal_ex(h->ctx, ret, NULL) != 1)
		return -EIO;
	return EVP_DigestInit_ex(h->ctx, EVP_sha256(), NULL) == 1 ? 0 : -EIO;
}
