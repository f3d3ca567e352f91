#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "auth/box_token.h"
#include "auth/signed_file.h"
#include "crypto/secret.h"

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
	char token[BOX_TOKEN_SIZE], id[ID_LEN + 1];

	assert_int_equal(box_token_make(*state, BOX_TOKEN_ENVD, ID, token), 0);
	assert_int_equal(strlen(token), BOX_TOKEN_SIZE - 1);
	assert_true(box_token_is(*state, BOX_TOKEN_ENVD, ID, token));
	assert_false(box_token_is(*state, BOX_TOKEN_TRAFFIC, ID, token));
	assert_false(box_token_is(*state, BOX_TOKEN_ENVD, OTHER, token));
	assert_true(box_token_names(token, id));
	assert_string_equal(id, ID);
	token[30] ^= 1;
	assert_false(box_token_is(*state, BOX_TOKEN_ENVD, ID, token));
	token[30] = '\0';
	assert_false(box_token_is(*state, BOX_TOKEN_ENVD, ID, token));
	assert_false(box_token_names(token, id));
}

static void another_secret_makes_other_tokens(void **state)
{
	struct secret *other = secret_create("another", 7);
	char token[BOX_TOKEN_SIZE];

	assert_int_equal(box_token_make(*state, BOX_TOKEN_ENVD, ID, token), 0);
	assert_false(box_token_is(other, BOX_TOKEN_ENVD, ID, token));
	(void)secret_free(other);
}

static void without_a_secret_no_token_is_good(void **state)
{
	char token[BOX_TOKEN_SIZE];

	assert_int_equal(box_token_make(*state, BOX_TOKEN_ENVD, ID, token), 0);
	assert_false(box_token_is(NULL, BOX_TOKEN_ENVD, ID, token));
	assert_int_equal(box_token_make(NULL, BOX_TOKEN_ENVD, ID, token), -EINVAL);
	assert_int_equal(box_token_make(*state, BOX_TOKEN_ENVD, "Not-an-id", token), -EINVAL);
	assert_false(box_token_is(*state, BOX_TOKEN_ENVD, "", ""));
}

static void a_session_s_token_names_what_it_ends_with(void **state)
{
	static const struct box_maker makers[] = { { .key_id = OTHER },
						   { .until_ms = 1800000000000 },
						   { .until_ms = INT64_MAX } };
	char text[BOX_SESSION_SIZE], id[ID_LEN + 1];
	struct box_maker by;

	for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
		assert_int_equal(box_session_make(*state, ID, &makers[i], text), 0);
		assert_int_equal(strlen(text), BOX_SESSION_SIZE - 1);
		assert_true(box_session_read(*state, text, id, &by));
		assert_string_equal(id, ID);
		assert_string_equal(by.key_id, makers[i].key_id);
		assert_int_equal(by.until_ms, makers[i].until_ms);
		assert_false(box_session_read(NULL, text, id, &by));
		/* Neither its sandbox, nor its maker, nor what was signed can be another. */
		for (size_t at = 0; at < BOX_SESSION_SIZE - 1; at++) {
			char was = text[at];

			text[at] = was == '0' ? '1' : '0';
			assert_false(box_session_read(*state, text, id, &by));
			text[at] = was;
		}
		assert_true(box_session_read(*state, text, id, &by));
		text[BOX_SESSION_SIZE - 2] = '\0';
		assert_false(box_session_read(*state, text, id, &by));
	}
	assert_int_equal(box_session_make(*state, "short", &makers[0], text), -EINVAL);
	assert_int_equal(box_session_make(*state, ID, &(struct box_maker){ .until_ms = -1 }, text),
			 -EINVAL);
}

#define FILE_OF(id, path, is_write, expires) \
	(&(struct signed_file){ id, "", path, is_write, expires })
#define PATH "/workspace/a b:c"

static void an_address_is_signed_for_one_file_method_and_time(void **state)
{
	char text[SIGNED_FILE_SIZE];

	assert_int_equal(signed_file_make(*state, FILE_OF(ID, PATH, false, 7), text), 0);
	assert_true(signed_file_is(*state, FILE_OF(ID, PATH, false, 7), text));
	assert_false(signed_file_is(*state, FILE_OF(ID, PATH, false, 8), text));
	assert_false(signed_file_is(*state, FILE_OF(ID, PATH, true, 7), text));
	assert_false(signed_file_is(*state, FILE_OF(OTHER, PATH, false, 7), text));
	assert_false(signed_file_is(*state, FILE_OF(ID, "/workspace/a", false, 7), text));
	assert_false(signed_file_is(NULL, FILE_OF(ID, PATH, false, 7), text));
	assert_false(signed_file_is(*state, FILE_OF(ID, PATH, false, 7), ""));
	text[3] ^= 1;
	assert_false(signed_file_is(*state, FILE_OF(ID, PATH, false, 7), text));
	assert_int_equal(signed_file_make(NULL, FILE_OF(ID, PATH, false, 7), text), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_token_is_good_for_its_sandbox_and_purpose_alone),
		cmocka_unit_test(another_secret_makes_other_tokens),
		cmocka_unit_test(without_a_secret_no_token_is_good),
		cmocka_unit_test(a_session_s_token_names_what_it_ends_with),
		cmocka_unit_test(an_address_is_signed_for_one_file_method_and_time),
	};

	return cmocka_run_group_tests(tests, open_secret, close_secret);
}
