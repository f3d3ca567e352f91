#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "crypto/secret.h"
#include "e2b/token.h"

#define ID "abcdefghij0123456789"
#define OTHER "abcdefghij0123456780"

static int open_secret(void **state)
{
	*state = secret_create("0123456789abcdef0123456789abcdef", 32);
	return *state ? 0 : -1;
}

static int close_secret(void **state)
{
	(void)secret_free(*state);
	return 0;
}

static void a_token_is_good_for_its_sandbox_and_purpose_alone(void **state)
{
	char token[E2B_TOKEN_SIZE], id[ID_LEN + 1];

	assert_int_equal(e2b_token_make(*state, E2B_TOKEN_ENVD, ID, token), 0);
	assert_int_equal(strlen(token), E2B_TOKEN_SIZE - 1);
	assert_true(e2b_token_is(*state, E2B_TOKEN_ENVD, ID, token));
	assert_false(e2b_token_is(*state, E2B_TOKEN_TRAFFIC, ID, token));
	assert_false(e2b_token_is(*state, E2B_TOKEN_ENVD, OTHER, token));
	assert_true(e2b_token_names(token, id));
	assert_string_equal(id, ID);
	token[30] ^= 1;
	assert_false(e2b_token_is(*state, E2B_TOKEN_ENVD, ID, token));
	token[30] = '\0';
	assert_false(e2b_token_is(*state, E2B_TOKEN_ENVD, ID, token));
	assert_false(e2b_token_names(token, id));
}

static void another_secret_makes_other_tokens(void **state)
{
	struct secret *other = secret_create("another", 7);
	char token[E2B_TOKEN_SIZE];

	assert_int_equal(e2b_token_make(*state, E2B_TOKEN_ENVD, ID, token), 0);
	assert_false(e2b_token_is(other, E2B_TOKEN_ENVD, ID, token));
	(void)secret_free(other);
}

static void without_a_secret_no_token_is_good(void **state)
{
	char token[E2B_TOKEN_SIZE];

	assert_int_equal(e2b_token_make(*state, E2B_TOKEN_ENVD, ID, token), 0);
	assert_false(e2b_token_is(NULL, E2B_TOKEN_ENVD, ID, token));
	assert_int_equal(e2b_token_make(NULL, E2B_TOKEN_ENVD, ID, token), -EINVAL);
	assert_int_equal(e2b_token_make(*state, E2B_TOKEN_ENVD, "Not-an-id", token), -EINVAL);
	assert_false(e2b_token_is(*state, E2B_TOKEN_ENVD, "", ""));
}

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_token_is_good_for_its_sandbox_and_purpose_alone),
		cmocka_unit_test(another_secret_makes_other_tokens),
		cmocka_unit_test(without_a_secret_no_token_is_good),
		cmocka_unit_test(a_signature_is_the_one_that_their_clients_make),
	};

	return cmocka_run_group_tests(tests, open_secret, close_secret);
}
