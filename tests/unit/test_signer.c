#include "crypto/signer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "base/str.h"
#include "check.h"
#include "crypto/pubkey.h"

enum form { PLAIN, LOCKED, PUBLIC };

static char *to_pem(EVP_PKEY *key, enum form form)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *text, *copy;
	long n;
	int ok = form == PUBLIC
			 ? PEM_write_bio_PUBKEY(bio, key)
			 : PEM_write_bio_PKCS8PrivateKey(bio, key,
							 form == LOCKED ? EVP_aes_128_cbc() : NULL,
							 form == LOCKED ? "pass" : NULL,
							 form == LOCKED ? 4 : 0, NULL, NULL);

	assert_int_equal(ok, 1);
	n = BIO_get_mem_data(bio, &text);
	copy = str_dup((struct str){ text, (size_t)n });
	assert_non_null(copy);
	BIO_free(bio);
	return copy;
}

static struct pubkey *public_of(EVP_PKEY *key)
{
	uint8_t point[65];
	size_t n = 0;
	struct pubkey *p = NULL;

	assert_int_equal(EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY, point,
							 sizeof(point), &n),
			 1);
	assert_int_equal(n, sizeof(point));
	assert_int_equal(pubkey_p256(point + 1, point + 33, &p), 0);
	return p;
}

static void what_is_signed_is_verified_with_the_public_key(void **state)
{
	struct signer *s = NULL;
	EVP_PKEY *key = EVP_EC_gen("P-256");
	struct pubkey *p = public_of(key);
	char *pem = to_pem(key, PLAIN);
	uint8_t one[SIGNER_LEN], two[SIGNER_LEN];

	(void)state;
	assert_int_equal(signer_create(pem, &s), 0);
	for (unsigned i = 0; i < 64; i++) { /* numbers that are short, too, are padded */
		assert_int_equal(signer_sign(s, "hello", 5, one), 0);
		assert_int_equal(pubkey_verify(p, "hello", 5, one, sizeof(one)), 0);
	}
	assert_int_equal(signer_sign(s, "hello", 5, two), 0);
	assert_memory_not_equal(one, two, sizeof(one));
	assert_int_equal(pubkey_verify(p, "hellO", 5, one, sizeof(one)), -EBADMSG);
	EVP_PKEY_free(key);
	free(pem);
	pubkey_free(p);
	signer_free(s);
}

static void other_keys_are_refused(void **state)
{
	EVP_PKEY *p256 = EVP_EC_gen("P-256"), *p384 = EVP_EC_gen("P-384"), *rsa = EVP_RSA_gen(2048);
	char *bad[] = { to_pem(p384, PLAIN),  to_pem(rsa, PLAIN), to_pem(p256, LOCKED),
			to_pem(p256, PUBLIC), str_dup(STR("")),   str_dup(STR("x")) };
	struct signer *s = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(signer_create(bad[i], &s), -EINVAL);
		assert_null(s);
		free(bad[i]);
	}
	EVP_PKEY_free(p256);
	EVP_PKEY_free(p384);
	EVP_PKEY_free(rsa);
}

static void too_long_a_key_is_refused(void **state)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	char *pem = to_pem(key, PLAIN), *large = calloc(1, SIGNER_PEM_MAX + 2);
	struct signer *s = NULL;

	(void)state;
	assert_non_null(large);
	memset(large, '\n', SIGNER_PEM_MAX + 1);
	memcpy(large, pem, strlen(pem));
	assert_int_equal(signer_create(large, &s), -EINVAL);
	large[SIGNER_PEM_MAX] = '\0';
	assert_int_equal(signer_create(large, &s), 0);
	signer_free(s);
	free(large);
	free(pem);
	EVP_PKEY_free(key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_signed_is_verified_with_the_public_key),
		cmocka_unit_test(other_keys_are_refused),
		cmocka_unit_test(too_long_a_key_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
