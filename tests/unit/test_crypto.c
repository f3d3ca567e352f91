#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/encode.h"
#include "check.h"
#include "crypto/hash.h"
#include "crypto/hmac.h"
#include "crypto/random.h"
#include "crypto/secret.h"
#include "fault.h"

static void assert_hex(const uint8_t sum[HASH_LEN], const char *want)
{
	char hex[2 * HASH_LEN + 1];

	encode_hex(sum, HASH_LEN, hex);
	assert_string_equal(hex, want);
}

/* FIPS 180-4's examples, and the empty message. */
static const struct {
	const char *text, *sum;
} vectors[] = {
	{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
	{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
	{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
	  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
};

static void sha256_agrees_with_the_published_sums(void **state)
{
	uint8_t sum[HASH_LEN];

	(void)state;
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		assert_int_equal(hash_sha256(vectors[i].text, strlen(vectors[i].text), sum), 0);
		assert_hex(sum, vectors[i].sum);
	}
	assert_int_equal(hash_sha256(NULL, 0, sum), 0);
	assert_hex(sum, vectors[0].sum);
}

static void pieces_give_the_same_sum_as_the_whole_and_again(void **state)
{
	struct hash *h = hash_create();
	uint8_t sum[HASH_LEN];
	char kilo[1000];

	(void)state;
	assert_non_null(h);
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		for (const char *p = vectors[i].text; *p; p++)
			assert_int_equal(hash_update(h, p, 1), 0);
		assert_int_equal(hash_update(h, NULL, 0), 0);
		assert_int_equal(hash_final(h, sum), 0);
		assert_hex(sum, vectors[i].sum);
	}
	memset(kilo, 'a', sizeof(kilo));
	for (int i = 0; i < 1000; i++)
		assert_int_equal(hash_update(h, kilo, sizeof(kilo)), 0);
	assert_int_equal(hash_final(h, sum), 0);
	assert_hex(sum, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	assert_null(hash_free(h));
	assert_null(hash_free(NULL));
}

/* RFC 4231, cases 1, 2 and 6 (a key longer than a block). */
static void hmac_agrees_with_the_published_codes(void **state)
{
	uint8_t key[131], mac[HASH_LEN];

	(void)state;
	memset(key, 0x0b, 20);
	assert_int_equal(hmac_sha256(key, 20, "Hi There", 8, mac), 0);
	assert_hex(mac, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
	assert_int_equal(hmac_sha256("Jefe", 4, "what do ya want for nothing?", 28, mac), 0);
	assert_hex(mac, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(key, 0xaa, sizeof(key));
	assert_int_equal(hmac_sha256(key, sizeof(key),
				     "Test Using Larger Than Block-Size Key - Hash Key First", 54,
				     mac),
			 0);
	assert_hex(mac, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

static void a_code_is_valid_for_its_key_and_text_only(void **state)
{
	uint8_t mac[HASH_LEN];

	(void)state;
	assert_int_equal(hmac_sha256("k", 1, "text", 4, mac), 0);
	assert_true(hmac_is_valid("k", 1, "text", 4, mac));
	assert_false(hmac_is_valid("l", 1, "text", 4, mac));
	assert_false(hmac_is_valid("k", 1, "texT", 4, mac));
	mac[HASH_LEN - 1] ^= 1;
	assert_false(hmac_is_valid("k", 1, "text", 4, mac));
}

static void an_empty_key_proves_nothing(void **state)
{
	uint8_t mac[HASH_LEN] = { 0 };

	(void)state;
	assert_int_equal(hmac_sha256("", 0, "x", 1, mac), -EINVAL);
	assert_false(hmac_is_valid("", 0, "x", 1, mac));
}

static void random_bytes_fill_all_and_differ(void **state)
{
	uint8_t a[1024], b[1024];
	size_t zeros = 0;

	(void)state;
	memset(a, 0, sizeof(a));
	memset(b, 0, sizeof(b));
	random_bytes(a, sizeof(a));
	random_bytes(b, sizeof(b));
	assert_memory_not_equal(a, b, sizeof(a));
	for (size_t i = sizeof(a) - 256; i < sizeof(a); i++)
		zeros += a[i] == 0;
	assert_true(zeros < 32); /* 1 on average */
	random_bytes(NULL, 0);
}

static void a_secret_shows_as_stars_and_is_revealed_by_name_only(void **state)
{
	_cleanup_(secret_free_p) struct secret *s = secret_create("pass\0word", 9);
	size_t n = 0;

	(void)state;
	assert_string_equal(secret_show(s), "***");
	assert_string_equal(secret_show(NULL), "");
	assert_memory_equal(secret_reveal(s, &n), "pass\0word", 10); /* a NUL stands behind it */
	assert_int_equal(n, 9);
	assert_null(secret_reveal(NULL, &n));
	assert_int_equal(n, 0);
	assert_null(secret_free(NULL));
}

static void secrets_are_equal_when_every_byte_is(void **state)
{
	_cleanup_(secret_free_p) struct secret *a = secret_create("abc", 3);
	_cleanup_(secret_free_p) struct secret *b = secret_create("abc", 3);
	_cleanup_(secret_free_p) struct secret *c = secret_create("abd", 3);
	_cleanup_(secret_free_p) struct secret *none = secret_create(NULL, 0);

	(void)state;
	assert_true(secret_equals(a, b));
	assert_false(secret_equals(a, c));
	assert_false(secret_equals(a, none));
	assert_false(secret_equals(a, NULL));
	assert_false(secret_equals(NULL, NULL));
	assert_true(secret_is(a, "abc", 3));
	assert_false(secret_is(a, "abcd", 4));
	assert_false(secret_is(a, "ab", 2));
	assert_true(secret_is(none, "", 0));
	assert_false(secret_is(NULL, "", 0));
}

static void a_secret_above_the_limit_is_refused(void **state)
{
	char *big = calloc(1, SECRET_MAX + 1);
	struct secret *s = NULL;

	(void)state;
	assert_non_null(big);
	assert_null(secret_create(big, SECRET_MAX + 1));
	s = secret_create(big, SECRET_MAX);
	assert_non_null(s);
	secret_free(s);
	free(big);
}

static int create_all(void *arg)
{
	_cleanup_(secret_free_p) struct secret *s = NULL;
	struct hash *h = NULL;

	(void)arg;
	h = hash_create();
	if (!h)
		return -ENOMEM;
	hash_free(h);
	s = secret_create("x", 1);
	return s ? 0 : -ENOMEM;
}

static void creating_fails_cleanly_without_memory(void **state)
{
	(void)state;
	assert_int_equal(fault_each(create_all, NULL), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sha256_agrees_with_the_published_sums),
		cmocka_unit_test(pieces_give_the_same_sum_as_the_whole_and_again),
		cmocka_unit_test(hmac_agrees_with_the_published_codes),
		cmocka_unit_test(a_code_is_valid_for_its_key_and_text_only),
		cmocka_unit_test(an_empty_key_proves_nothing),
		cmocka_unit_test(random_bytes_fill_all_and_differ),
		cmocka_unit_test(a_secret_shows_as_stars_and_is_revealed_by_name_only),
		cmocka_unit_test(secrets_are_equal_when_every_byte_is),
		cmocka_unit_test(a_secret_above_the_limit_is_refused),
		cmocka_unit_test(creating_fails_cleanly_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
