#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "auth/jwks.h"
#include "auth/jwt.h"
#include "base/err.h"
#include "base/str.h"
#include "check.h"
#include "fault.h"
#include "jwt_rig.h"

#define NOW 1800000000
#define ISS "https://id.example"
#define LONG "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz01"
#define SPACE "20a69b77~" /* of the SHA-256 of ISS */
#define AUD "holt"
#define CLAIMS(rest) \
	"{\"iss\":\"" ISS "\",\"aud\":\"" AUD "\",\"sub\":\"anna\",\"exp\":1800000060" rest "}"
#define GOOD CLAIMS("")

static const char *const heads[] = {
	[PUBKEY_RSA] = "{\"alg\":\"RS256\",\"kid\":\"r\",\"typ\":\"JWT\"}",
	[PUBKEY_P256] = "{\"alg\":\"ES256\",\"kid\":\"p\",\"typ\":\"at+jwt\"}",
	[PUBKEY_ED25519] = "{\"alg\":\"EdDSA\",\"kid\":\"e\"}",
};

struct fixture {
	struct jwt_key *keys[3];
	struct jwks *set;
	struct jwt_rules rules;
	struct buf token, text;
	struct principal who;
	struct err err;
};

static int group_setup(void **state)
{
	static struct fixture f;

	for (int i = 0; i < 3; i++)
		f.keys[i] = jwt_key_make((enum pubkey_kind)i, 2048);
	*state = &f;
	return 0;
}

static void make_set(struct fixture *f)
{
	buf_clear(&f->text);
	(void)buf_puts(&f->text, "{\"keys\":[");
	jwt_key_jwk(f->keys[PUBKEY_RSA], "r", ",\"use\":\"sig\",\"alg\":\"RS256\"", &f->text);
	(void)buf_putc(&f->text, ',');
	jwt_key_jwk(f->keys[PUBKEY_P256], "p", "", &f->text);
	(void)buf_putc(&f->text, ',');
	jwt_key_jwk(f->keys[PUBKEY_ED25519], "e", "", &f->text);
	(void)buf_puts(&f->text, "]}");
}

static int setup(void **state)
{
	struct fixture *f = *state;

	make_set(f);
	f->rules = (struct jwt_rules){ .issuer = ISS,
				       .audience = AUD,
				       .owner_claim = "sub",
				       .role_claim = "role",
				       .skew_s = 30 };
	return jwks_parse(f->text.data, f->text.len, &f->set, NULL);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	f->set = jwks_free(f->set);
	buf_done(&f->token);
	buf_done(&f->text);
	return 0;
}

static int group_teardown(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 3; i++)
		jwt_key_free(f->keys[i]);
	return 0;
}

static int check(struct fixture *f, const char *token)
{
	f->err = (struct err){ 0 };
	f->who = (struct principal){ .owner = "untouched" };
	return jwt_check(token, f->set, &f->rules, NOW, &f->who, &f->err);
}

/* The claims, signed as they should be. */
static int check_claims(struct fixture *f, const char *claims)
{
	jwt_sign(f->keys[PUBKEY_ED25519], heads[PUBKEY_ED25519], claims, &f->token);
	return check(f, f->token.data);
}

static int check_head(struct fixture *f, const char *head)
{
	jwt_sign(f->keys[PUBKEY_ED25519], head, GOOD, &f->token);
	return check(f, f->token.data);
}

static void refused(struct fixture *f, int r, const char *words)
{
	if (!strstr(f->err.text, words))
		fail_msg("'%s' is not in '%s'", words, f->err.text);
	assert_int_equal(r, -EACCES);
	assert_string_equal(f->who.owner, "untouched");
}

static void each_algorithm_is_verified_and_names_the_owner(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 3; i++) {
		jwt_sign(f->keys[i], heads[i], GOOD, &f->token);
		assert_true(jwt_is_like(f->token.data));
		assert_int_equal(check(f, f->token.data), 0);
		assert_string_equal(f->who.owner, SPACE "anna");
		assert_string_equal(f->who.key_id, "");
		assert_int_equal(f->who.role, ROLE_USER);
		assert_int_equal(f->who.scopes, scope_of_role(ROLE_USER));
		assert_true(f->who.expires_ms == 1800000090000);
	}
}

static void a_changed_byte_of_any_part_is_refused(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 3; i++) {
		jwt_sign(f->keys[i], heads[i], GOOD, &f->token);
		for (size_t at = 0; at < f->token.len; at += 7) {
			char was = f->token.data[at];

			f->token.data[at] = was == 'A' ? 'B' : 'A';
			assert_int_not_equal(check(f, f->token.data), 0);
			assert_string_equal(f->who.owner, "untouched");
			f->token.data[at] = was;
		}
		assert_int_equal(check(f, f->token.data), 0);
	}
}

static void a_token_cut_anywhere_is_refused(void **state)
{
	struct fixture *f = *state;

	jwt_sign(f->keys[PUBKEY_P256], heads[PUBKEY_P256], GOOD, &f->token);
	for (size_t n = f->token.len; n-- > 0;) {
		f->token.data[n] = '\0';
		assert_int_not_equal(check(f, f->token.data), 0);
	}
}

static void no_other_algorithm_is_accepted(void **state)
{
	static const char *const algs[] = { "none",  "None",  "NONE",  "HS256", "HS512", "RS512",
					    "PS256", "ES384", "rs256", "",      "EdDSA " };
	struct fixture *f = *state;
	char head[128];

	for (size_t i = 0; i < sizeof(algs) / sizeof(algs[0]); i++) {
		assert_int_equal(
			str_format(head, sizeof(head), "{\"alg\":\"%s\",\"kid\":\"e\"}", algs[i]),
			0);
		refused(f, check_head(f, head), "alg is not");
	}
	refused(f, check_head(f, "{\"kid\":\"e\"}"), "alg is not");
	refused(f, check_head(f, "{\"alg\":7,\"kid\":\"e\"}"), "alg is not");
	refused(f, check_head(f, "{\"alg\":[\"EdDSA\"],\"kid\":\"e\"}"), "alg is not");
	/* alg none with an empty signature has no third part */
	refused(f, check(f, "eyJhbGciOiJub25lIn0.e30."), "three parts");
}

static void a_key_is_not_used_as_one_of_another_kind(void **state)
{
	struct fixture *f = *state;

	/* signed with HMAC, the public key as its secret: the classic confusion */
	jwt_sign_hmac(f->text.data, "{\"alg\":\"HS256\",\"kid\":\"r\"}", GOOD, &f->token);
	refused(f, check(f, f->token.data), "alg is not");
	jwt_sign_hmac(f->text.data, heads[PUBKEY_RSA], GOOD, &f->token);
	refused(f, check(f, f->token.data), "signature");
	/* the name of a key of one kind with the algorithm of another finds nothing */
	jwt_sign(f->keys[PUBKEY_P256], "{\"alg\":\"RS256\",\"kid\":\"p\"}", GOOD, &f->token);
	assert_int_equal(check(f, f->token.data), -EAGAIN);
	jwt_sign(f->keys[PUBKEY_ED25519], "{\"alg\":\"ES256\",\"kid\":\"e\"}", GOOD, &f->token);
	assert_int_equal(check(f, f->token.data), -EAGAIN);
	/* and one key's signature under another key's name is none */
	jwt_sign(f->keys[PUBKEY_P256], heads[PUBKEY_ED25519], GOOD, &f->token);
	refused(f, check(f, f->token.data), "signature");
}

static void keys_that_a_token_brings_along_are_not_looked_at(void **state)
{
	struct fixture *f = *state;
	struct jwt_key *own = jwt_key_make(PUBKEY_ED25519, 0);
	struct buf head = { 0 };

	(void)buf_puts(&head, "{\"alg\":\"EdDSA\",\"kid\":\"e\",\"jku\":\"https://evil.example\","
			      "\"jwk\":");
	jwt_key_jwk(own, "e", "", &head);
	(void)buf_putc(&head, '}');
	jwt_sign(own, head.data, GOOD, &f->token);
	refused(f, check(f, f->token.data), "signature");
	buf_done(&head);
	jwt_key_free(own);
}

static void a_kid_is_a_name_and_nothing_else(void **state)
{
	struct fixture *f = *state;
	char head[512] = "{\"alg\":\"EdDSA\",\"kid\":\"";

	assert_int_equal(check_head(f, "{\"alg\":\"EdDSA\",\"kid\":\"../../etc/passwd\"}"),
			 -EAGAIN);
	assert_int_equal(check_head(f, "{\"alg\":\"EdDSA\",\"kid\":\"e' OR '1'='1\"}"), -EAGAIN);
	assert_int_equal(check_head(f, "{\"alg\":\"EdDSA\",\"kid\":\"\"}"), -EAGAIN);
	refused(f, check_head(f, "{\"alg\":\"EdDSA\",\"kid\":\"e\\u0000x\"}"), "kid");
	refused(f, check_head(f, "{\"alg\":\"EdDSA\",\"kid\":[\"e\"]}"), "kid");
	refused(f, check_head(f, "{\"alg\":\"EdDSA\",\"kid\":null}"), "kid");
	memset(head + strlen(head), 'k', JWKS_KID_MAX + 1);
	memcpy(head + strlen(head), "\"}", 3);
	refused(f, check_head(f, head), "kid");
	/* without a name the only one of the kind */
	assert_int_equal(check_head(f, "{\"alg\":\"EdDSA\"}"), 0);
}

static void what_is_said_twice_is_refused(void **state)
{
	struct fixture *f = *state;

	refused(f, check_head(f, "{\"alg\":\"EdDSA\",\"kid\":\"e\",\"alg\":\"EdDSA\"}"), "head");
	refused(f, check_claims(f, CLAIMS(",\"sub\":\"root\"")), "claims");
	refused(f, check_claims(f, "[]"), "claims");
	refused(f, check_claims(f, GOOD " {}"), "claims");
}

static void critical_extensions_and_other_kinds_of_tokens_are_refused(void **state)
{
	struct fixture *f = *state;

	refused(f, check_head(f, "{\"alg\":\"EdDSA\",\"kid\":\"e\",\"crit\":[\"x\"]}"), "critical");
	refused(f, check_head(f, "{\"alg\":\"EdDSA\",\"kid\":\"e\",\"typ\":\"logout+jwt\"}"),
		"typ");
	refused(f, check_head(f, "{\"alg\":\"EdDSA\",\"kid\":\"e\",\"typ\":7}"), "typ");
}

static void an_oversize_token_is_refused_before_it_is_read(void **state)
{
	struct fixture *f = *state;
	char *big = malloc(JWT_MAX + 2);

	assert_non_null(big);
	memset(big, 'a', JWT_MAX + 1);
	big[JWT_MAX + 1] = '\0';
	big[10] = big[20] = '.';
	refused(f, check(f, big), "more than");
	big[JWT_MAX] = '\0';
	refused(f, check(f, big), "head");
	free(big);
}

static void issuer_and_audience_must_be_ours(void **state)
{
	struct fixture *f = *state;

	refused(f, check_claims(f, "{\"aud\":\"holt\",\"sub\":\"anna\",\"exp\":1800000060}"),
		"issuer");
	refused(f,
		check_claims(f, "{\"iss\":\"" ISS "/\",\"aud\":\"holt\",\"sub\":\"anna\","
				"\"exp\":1800000060}"),
		"issuer");
	refused(f, check_claims(f, "{\"iss\":\"" ISS "\",\"sub\":\"anna\",\"exp\":1800000060}"),
		"audience");
	refused(f,
		check_claims(f, "{\"iss\":\"" ISS "\",\"aud\":[\"a\",\"holt2\"],\"sub\":\"anna\","
				"\"exp\":1800000060}"),
		"audience");
	assert_int_equal(check_claims(f, "{\"iss\":\"" ISS "\",\"aud\":[\"a\",\"holt\"],\"sub\":"
					 "\"anna\",\"exp\":1800000060}"),
			 0);
}

static int check_exp(struct fixture *f, const char *rest)
{
	char claims[256];

	assert_int_equal(str_format(claims, sizeof(claims),
				    "{\"iss\":\"" ISS "\",\"aud\":\"holt\",\"sub\":\"anna\"%s}",
				    rest),
			 0);
	return check_claims(f, claims);
}

static void times_are_held_with_the_skew_that_is_allowed(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(check_exp(f, ",\"exp\":1799999971"), 0);
	refused(f, check_exp(f, ",\"exp\":1799999970"), "expired");
	refused(f, check_exp(f, ""), "no exp");
	refused(f, check_exp(f, ",\"exp\":\"1800000060\""), "not a time");
	refused(f, check_exp(f, ",\"exp\":1e300"), "not a time");
	refused(f, check_exp(f, ",\"exp\":-1"), "not a time");
	refused(f, check_exp(f, ",\"exp\":null"), "not a time");
	assert_int_equal(check_claims(f, CLAIMS(",\"nbf\":1800000030")), 0);
	refused(f, check_claims(f, CLAIMS(",\"nbf\":1800000031")), "not yet");
	refused(f, check_claims(f, CLAIMS(",\"iat\":1800000031")), "not yet");
	refused(f, check_claims(f, CLAIMS(",\"nbf\":\"soon\"")), "not a time");
	assert_int_equal(check_claims(f, CLAIMS(",\"iat\":1799999999.5")), 0);
}

static void owners_are_in_the_space_of_their_issuer_unless_they_are_named_as_local(void **state)
{
	static const char *const local[] = { "bob", "anna", NULL };
	struct fixture *f = *state;

	f->rules.local_owners = local;
	assert_int_equal(check_claims(f, GOOD), 0);
	assert_string_equal(f->who.owner, "anna");
	f->rules.local_owners = local + 2;
	assert_int_equal(check_claims(f, GOOD), 0);
	assert_string_equal(f->who.owner, SPACE "anna");
	/* The longest that fits, and one more. */
	f->rules.owner_claim = "who";
	assert_int_equal(check_claims(f, CLAIMS(",\"who\":\"" LONG "\"")), 0);
	assert_string_equal(f->who.owner, SPACE LONG);
	assert_int_equal(strlen(f->who.owner), OWNER_MAX);
	refused(f, check_claims(f, CLAIMS(",\"who\":\"a" LONG "\"")), "owner's name");
}

static void an_owner_with_unsafe_characters_is_refused(void **state)
{
	static const char *const bad[] = { "",       "a b",  "a/b",      "../a",    "a\\\\b",
					   "a\\\"b", "a\\n", "a\\u0000", "\\u00e9", "-a",
					   ".a",     "a;b",  "a,b",      "a<b",     "a%b",
					   "a~b",    "~a" };
	static const char *const good[] = { "anna@example.org", "auth0|5f7c8ec7", "a",
					    "A.b-c_d+e:f" };
	struct fixture *f = *state;
	char claims[512];

	f->rules.owner_claim = "who";
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(
			str_format(claims, sizeof(claims), CLAIMS(",\"who\":\"%s\""), bad[i]), 0);
		refused(f, check_claims(f, claims), "owner's name");
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(
			str_format(claims, sizeof(claims), CLAIMS(",\"who\":\"%s\""), good[i]), 0);
		assert_int_equal(check_claims(f, claims), 0);
		assert_int_equal(strncmp(f->who.owner, SPACE, strlen(SPACE)), 0);
		assert_string_equal(f->who.owner + strlen(SPACE), good[i]);
	}
	refused(f, check_claims(f, CLAIMS(",\"who\":7")), "owner's name");
	refused(f, check_claims(f, GOOD), "owner's name");
	refused(f,
		check_claims(
			f,
			CLAIMS(",\"who\":"
			       "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
			       "a\"")),
		"owner's name");
}

static void nobody_is_admin_unless_claim_and_setting_both_say_so(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(check_claims(f, CLAIMS(",\"role\":\"admin\"")), 0);
	assert_int_equal(f->who.role, ROLE_USER);
	assert_int_equal(f->who.scopes & SCOPE_ADMIN, 0);
	f->rules.may_be_admin = true;
	assert_int_equal(check_claims(f, CLAIMS(",\"role\":\"admin\"")), 0);
	assert_int_equal(f->who.role, ROLE_ADMIN);
	assert_int_equal(check_claims(f, GOOD), 0);
	assert_int_equal(f->who.role, ROLE_USER);
	assert_int_equal(check_claims(f, CLAIMS(",\"role\":\"viewer\"")), 0);
	assert_int_equal(f->who.role, ROLE_VIEWER);
	assert_int_equal(check_claims(f, CLAIMS(",\"role\":[\"x\",\"viewer\",\"user\",7]")), 0);
	assert_int_equal(f->who.role, ROLE_USER);
	f->rules.role_claim = NULL;
	assert_int_equal(check_claims(f, CLAIMS(",\"role\":\"admin\"")), 0);
	assert_int_equal(f->who.role, ROLE_USER);
}

static void scopes_narrow_and_never_widen_what_the_role_gives(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(check_claims(f, CLAIMS(",\"scope\":\"openid sandbox:read exec\"")), 0);
	assert_int_equal(f->who.scopes, SCOPE_SANDBOX_READ | SCOPE_EXEC);
	assert_int_equal(check_claims(f, CLAIMS(",\"scope\":\"openid profile\"")), 0);
	assert_int_equal(f->who.scopes, scope_of_role(ROLE_USER));
	assert_int_equal(check_claims(f, CLAIMS(",\"scope\":\"admin\"")), 0);
	assert_int_equal(f->who.scopes, 0);
	assert_int_equal(
		check_claims(f, CLAIMS(",\"role\":\"viewer\",\"scope\":\"exec sandbox:read\"")), 0);
	assert_int_equal(f->who.scopes, SCOPE_SANDBOX_READ);
}

static int parse(struct fixture *f, const char *text)
{
	f->set = jwks_free(f->set);
	f->err = (struct err){ 0 };
	return jwks_parse(text, strlen(text), &f->set, &f->err);
}

static void a_set_without_a_key_for_us_is_refused(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(parse(f, ""), -EINVAL);
	assert_int_equal(parse(f, "[]"), -EINVAL);
	assert_int_equal(parse(f, "{\"keys\":{}}"), -EINVAL);
	assert_int_equal(parse(f, "{\"keys\":[]}"), -EINVAL);
	assert_int_equal(
		parse(f, "{\"keys\":[{\"kty\":\"oct\",\"k\":\"c2VjcmV0\",\"kid\":\"e\"}]}"),
		-EINVAL);
	assert_int_equal(parse(f, "{\"keys\":[7,null,\"x\",{\"kty\":1},{\"kty\":\"EC\",\"crv\":"
				  "\"P-256\",\"x\":\"AA\",\"y\":\"AA\"}]}"),
			 -EINVAL);
	/* a point beside the curve */
	assert_int_equal(parse(f, "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":"
				  "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\",\"y\":"
				  "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\"}]}"),
			 -EINVAL);
}

static void weak_keys_and_keys_for_other_uses_are_passed_over(void **state)
{
	struct fixture *f = *state;
	struct jwt_key *weak = jwt_key_make(PUBKEY_RSA, 1024);

	buf_clear(&f->text);
	(void)buf_puts(&f->text, "{\"keys\":[");
	jwt_key_jwk(weak, "w", "", &f->text);
	(void)buf_putc(&f->text, ',');
	jwt_key_jwk(f->keys[PUBKEY_RSA], "a", ",\"use\":\"enc\"", &f->text);
	(void)buf_putc(&f->text, ',');
	jwt_key_jwk(f->keys[PUBKEY_RSA], "b", ",\"alg\":\"PS256\"", &f->text);
	(void)buf_putc(&f->text, ',');
	jwt_key_jwk(f->keys[PUBKEY_ED25519], "e", "", &f->text);
	(void)buf_puts(&f->text, "]}");
	assert_int_equal(parse(f, f->text.data), 0);
	assert_int_equal(jwks_len(f->set), 1);
	assert_null(jwks_find(f->set, "w", PUBKEY_RSA));
	assert_non_null(jwks_find(f->set, "e", PUBKEY_ED25519));
	jwt_key_free(weak);
}

static void two_keys_of_one_name_cannot_be_told_apart(void **state)
{
	struct fixture *f = *state;

	buf_clear(&f->text);
	(void)buf_puts(&f->text, "{\"keys\":[");
	jwt_key_jwk(f->keys[PUBKEY_ED25519], "e", "", &f->text);
	(void)buf_putc(&f->text, ',');
	jwt_key_jwk(f->keys[PUBKEY_ED25519], "e", "", &f->text);
	(void)buf_puts(&f->text, "]}");
	assert_int_equal(parse(f, f->text.data), -EINVAL);
	assert_non_null(strstr(f->err.text, "two keys"));
}

static void a_set_has_a_most_of_keys_and_of_bytes(void **state)
{
	struct fixture *f = *state;

	buf_clear(&f->text);
	(void)buf_puts(&f->text, "{\"keys\":[0");
	for (unsigned i = 0; i < JWKS_KEYS_MAX; i++)
		(void)buf_puts(&f->text, ",0");
	(void)buf_puts(&f->text, "]}");
	assert_int_equal(parse(f, f->text.data), -E2BIG);
	while (f->text.len <= JWKS_BYTES_MAX)
		(void)buf_puts(&f->text,
			       "                                                        ");
	assert_int_equal(parse(f, f->text.data), -E2BIG);
}

static int parse_again(void *arg)
{
	struct fixture *f = arg;

	f->set = jwks_free(f->set);
	return jwks_parse(f->text.data, f->text.len, &f->set, NULL);
}

static int check_again(void *arg)
{
	struct fixture *f = arg;

	return check(f, f->token.data);
}

static void no_lack_of_memory_lets_anybody_in(void **state)
{
	struct fixture *f = *state;

	assert_true(fault_each(parse_again, f) > 0);
	jwt_sign(f->keys[PUBKEY_ED25519], heads[PUBKEY_ED25519], GOOD, &f->token);
	assert_true(fault_each(check_again, f) > 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_algorithm_is_verified_and_names_the_owner),
		TEST(a_changed_byte_of_any_part_is_refused),
		TEST(a_token_cut_anywhere_is_refused),
		TEST(no_other_algorithm_is_accepted),
		TEST(a_key_is_not_used_as_one_of_another_kind),
		TEST(keys_that_a_token_brings_along_are_not_looked_at),
		TEST(a_kid_is_a_name_and_nothing_else),
		TEST(what_is_said_twice_is_refused),
		TEST(critical_extensions_and_other_kinds_of_tokens_are_refused),
		TEST(an_oversize_token_is_refused_before_it_is_read),
		TEST(issuer_and_audience_must_be_ours),
		TEST(times_are_held_with_the_skew_that_is_allowed),
		TEST(owners_are_in_the_space_of_their_issuer_unless_they_are_named_as_local),
		TEST(an_owner_with_unsafe_characters_is_refused),
		TEST(nobody_is_admin_unless_claim_and_setting_both_say_so),
		TEST(scopes_narrow_and_never_widen_what_the_role_gives),
		TEST(a_set_without_a_key_for_us_is_refused),
		TEST(weak_keys_and_keys_for_other_uses_are_passed_over),
		TEST(two_keys_of_one_name_cannot_be_told_apart),
		TEST(a_set_has_a_most_of_keys_and_of_bytes),
		TEST(no_lack_of_memory_lets_anybody_in),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
