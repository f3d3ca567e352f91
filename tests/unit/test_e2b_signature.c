#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "auth/box_token.h"
#include "crypto/secret.h"
#include "e2b/signature.h"

static void a_signature_is_the_one_that_their_clients_make(void **state)
{
	static const char token[] = "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0";
	struct e2b_signed what = { .path = "hello.txt", .user = "user" };
	char text[E2B_SIGNATURE_SIZE], other[E2B_SIGNATURE_SIZE];

	(void)state;
	assert_int_equal(e2b_signature_make(token, &what, text), 0);
	assert_string_equal(text, "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E");
	what.is_write = true;
	assert_int_equal(e2b_signature_make(token, &what, other), 0);
	assert_string_not_equal(text, other);
	what.is_write = false;
	what.expires = 1;
	assert_int_equal(e2b_signature_make(token, &what, other), 0);
	assert_string_not_equal(text, other);
}

static const char ids[][ID_LEN + 1] = { "aaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbb",
					"cccccccccccccccccccc" };

static void the_one_whose_token_has_signed_is_found(void **state)
{
	struct secret *secret = secret_create("0123456789abcdef0123456789abcdef", 32);
	struct e2b_signed what = { .path = "hello.txt", .user = "user", .expires = 1 };
	char token[BOX_TOKEN_SIZE], text[E2B_SIGNATURE_SIZE];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(box_token_make(secret, BOX_TOKEN_ENVD, ids[i], token), 0);
		assert_int_equal(e2b_signature_make(token, &what, text), 0);
		assert_int_equal(e2b_signature_find(secret, &what, text, ids, 3), i);
		assert_int_equal(e2b_signature_find(secret, &what, text, ids, i), -ENOENT);
	}
	what.expires = 2; /* it was signed for another time */
	assert_int_equal(e2b_signature_find(secret, &what, text, ids, 3), -ENOENT);
	(void)secret_free(secret);
}

/* Without a secret no token can be made: who gets that far fails in another way. */
static void what_has_not_the_form_of_a_signature_is_not_hashed(void **state)
{
	static const char *const bad[] = { "", "v1_", "v1_gUtH",
					   "v2_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E",
					   "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E=" };
	struct e2b_signed what = { .path = "hello.txt", .user = "user" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(e2b_signature_find(NULL, &what, bad[i], ids, 3), -ENOENT);
	assert_int_equal(e2b_signature_find(NULL, &what,
					    "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E", ids,
					    3),
			 -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_one_whose_token_has_signed_is_found),
		cmocka_unit_test(what_has_not_the_form_of_a_signature_is_not_hashed),
		cmocka_unit_test(a_signature_is_the_one_that_their_clients_make),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
