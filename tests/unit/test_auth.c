#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "auth/api_key.h"
#include "auth/principal.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "check.h"
#include "fault.h"
#include "store/store.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))
#define ID_A "aaaaaaaaaaaaaaaaaaaa"
#define ID_B "bbbbbbbbbbbbbbbbbbbb"
#define ID_C "cccccccccccccccccccc"

struct fixture {
	struct auth_keys *keys;
	char a[API_KEY_SIZE], b[API_KEY_SIZE]; /* two keys of the table, as they were shown */
	struct key_row row_a, row_b;
	struct principal who;
	struct err err;
};

static int setup(void **state)
{
	static struct fixture f; /* one test at a time */

	f = (struct fixture){ .keys = auth_keys_create(3) };
	f.row_a = (struct key_row){ .id = ID_A, .owner = "anna", .name = "n", .role = ROLE_USER };
	f.row_b = (struct key_row){ .id = ID_B, .owner = "root", .role = ROLE_ADMIN };
	if (!f.keys || api_key_make(f.a, f.row_a.hash) < 0 || api_key_make(f.b, f.row_b.hash) < 0 ||
	    auth_keys_put(f.keys, &f.row_a, NULL) < 0 || auth_keys_put(f.keys, &f.row_b, NULL) < 0)
		return -1;
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	auth_keys_free(f->keys);
	return 0;
}

static int check(struct fixture *f, const char *authorization, const char *x_api_key)
{
	memset(&f->who, 'x', sizeof(f->who));
	f->err = (struct err){ 0 };
	return auth_check(f->keys, authorization, x_api_key, &f->who, &f->err);
}

/* "Bearer " and the key. */
static const char *bearer(const char *key)
{
	static char text[128];

	assert_int_equal(str_format(text, sizeof(text), "Bearer %s", key), 0);
	return text;
}

static void a_new_key_has_the_form_of_one_and_its_own_secret(void **state)
{
	char text[API_KEY_SIZE], other[API_KEY_SIZE];
	uint8_t hash[HASH_LEN], again[HASH_LEN], sum[HASH_LEN];
	uint8_t secret[API_KEY_SECRET_LEN] = { 0 };

	(void)state;
	assert_int_equal(api_key_make(text, hash), 0);
	assert_int_equal(strlen(text), 45);
	assert_int_equal(strncmp(text, "holt_", 5), 0);
	assert_int_equal(strspn(text + 5, "0123456789abcdef"), 40);
	assert_int_equal(api_key_hash(text, again), 0);
	assert_memory_equal(hash, again, HASH_LEN);
	assert_int_equal(api_key_make(other, again), 0);
	assert_memory_not_equal(text, other, sizeof(text));
	/* The hash is the one of the bytes, so that other programs can compute it. */
	assert_int_equal(api_key_hash("holt_0000000000000000000000000000000000000000", hash), 0);
	assert_int_equal(hash_sha256(secret, sizeof(secret), sum), 0);
	assert_memory_equal(hash, sum, HASH_LEN);
}

static void what_is_no_key_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"holt_",
		"0000000000000000000000000000000000000000",
		"holt_000000000000000000000000000000000000000",   /* 39 */
		"holt_00000000000000000000000000000000000000000", /* 41 */
		"holt_000000000000000000000000000000000000000g",
		"HOLT_0000000000000000000000000000000000000000",
		"e2b_000000000000000000000000000000000000000000",
		"holt-0000000000000000000000000000000000000000",
		" holt_0000000000000000000000000000000000000000",
	};
	uint8_t hash[HASH_LEN] = { 7 };

	(void)state;
	for (size_t i = 0; i < LEN(texts); i++)
		assert_int_equal(api_key_hash(texts[i], hash), -EACCES);
	assert_int_equal(hash[0], 7);
}

static void a_key_opens_by_either_header_and_either_prefix(void **state)
{
	struct fixture *f = *state;
	char upper[API_KEY_SIZE], e2b[API_KEY_SIZE + 8];

	assert_int_equal(check(f, bearer(f->a), NULL), 0);
	assert_string_equal(f->who.key_id, ID_A);
	assert_string_equal(f->who.owner, "anna");
	assert_int_equal(f->who.role, ROLE_USER);
	assert_int_equal(f->who.scopes, scope_of_role(ROLE_USER));
	assert_int_equal(check(f, NULL, f->b), 0);
	assert_int_equal(f->who.role, ROLE_ADMIN);
	assert_int_equal(check(f, bearer(f->a), f->a), 0);
	assert_int_equal(str_format(e2b, sizeof(e2b), "e2b_%s", f->a + 5), 0);
	assert_int_equal(check(f, NULL, e2b), 0);
	assert_string_equal(f->who.key_id, ID_A);
	assert_int_equal(check(f, bearer(f->a), e2b), 0); /* the same one, spelled twice */
	for (size_t i = 0; i < sizeof(upper); i++)
		upper[i] = (char)(i < 5 ? f->a[i] : toupper(f->a[i]));
	assert_int_equal(check(f, NULL, upper), 0);
	assert_int_equal(check(f, "bearer  \t", NULL), -EACCES);
	assert_int_equal(str_format(e2b, sizeof(e2b), "bEARER   %s", "x"), 0);
	assert_int_equal(check(f, e2b, NULL), -EACCES);
	assert_int_equal(auth_check_token(f->keys, f->a, &f->who, &f->err), 0);
	assert_string_equal(f->who.key_id, ID_A);
}

static void blanks_around_a_bearer_do_not_matter(void **state)
{
	struct fixture *f = *state;
	char text[128];

	assert_int_equal(str_format(text, sizeof(text), " bEaReR   %s \t", f->a), 0);
	assert_int_equal(check(f, text, NULL), 0);
	assert_int_equal(str_format(text, sizeof(text), "Bearer %s x", f->a), 0);
	assert_int_equal(check(f, text, NULL), -EACCES);
	assert_int_equal(str_format(text, sizeof(text), "Bearer%s", f->a), 0);
	assert_int_equal(check(f, text, NULL), -EACCES);
}

static void every_refusal_is_the_same_errno_and_says_why(void **state)
{
	static const char unknown[] = "holt_0000000000000000000000000000000000000000";
	struct fixture *f = *state;
	char endless[1000];
	struct principal before;

	memset(endless, 'x', sizeof(endless) - 1);
	endless[sizeof(endless) - 1] = '\0';
	memcpy(endless, "Bearer ", 7);
	memset(&before, 'x', sizeof(before));
	assert_int_equal(check(f, NULL, NULL), -EACCES);
	assert_string_equal(f->err.text,
			    "an API key is needed: Authorization: Bearer, or X-API-Key");
	assert_int_equal(check(f, "Basic YTpi", NULL), -EACCES);
	assert_string_equal(f->err.text, "Authorization: want Bearer and an API key");
	assert_int_equal(check(f, "", NULL), -EACCES);
	assert_int_equal(check(f, endless, NULL), -EACCES);
	assert_string_equal(f->err.text, "Authorization: that is too long for an API key");
	assert_int_equal(check(f, NULL, ""), -EACCES);
	assert_string_equal(f->err.text, "the API key is malformed: want holt_ and 40 hex digits");
	assert_int_equal(check(f, NULL, endless), -EACCES);
	assert_int_equal(check(f, NULL, unknown), -EACCES);
	assert_string_equal(f->err.text, "the API key is not known");
	assert_int_equal(check(f, bearer(f->a), f->b), -EACCES);
	assert_string_equal(f->err.text, "two different API keys were given");
	assert_int_equal(check(f, bearer(f->a), "x"), -EACCES);
	assert_int_equal(check(f, "x", f->a), -EACCES);
	assert_memory_equal(&f->who, &before, sizeof(before)); /* nobody was let in */
	assert_int_equal(auth_check_token(f->keys, NULL, &f->who, &f->err), -EACCES);
	assert_int_equal(auth_check_token(f->keys, unknown, &f->who, &f->err), -EACCES);
}

static void no_message_repeats_the_key(void **state)
{
	struct fixture *f = *state;
	char text[128];

	assert_int_equal(str_format(text, sizeof(text), "%sx", f->a), 0);
	assert_int_equal(check(f, NULL, text), -EACCES);
	assert_null(strstr(f->err.text, f->a + 5));
	assert_int_equal(check(f, text, NULL), -EACCES);
	assert_null(strstr(f->err.text, f->a + 5));
}

static void an_expired_key_is_refused(void **state)
{
	struct fixture *f = *state;

	f->row_a.expires_ms = clock_wall_ms() + 3600000;
	assert_int_equal(auth_keys_put(f->keys, &f->row_a, &f->err), 0);
	assert_int_equal(check(f, NULL, f->a), 0);
	assert_true(auth_keys_is_good(f->keys, ID_A));
	f->row_a.expires_ms = clock_wall_ms() - 1;
	assert_int_equal(auth_keys_put(f->keys, &f->row_a, &f->err), 0);
	assert_int_equal(check(f, NULL, f->a), -EACCES);
	assert_string_equal(f->err.text, "the API key has expired");
	assert_false(auth_keys_is_good(f->keys, ID_A));
	assert_int_equal(auth_keys_len(f->keys), 2);
}

static void a_key_ends_with_the_one_that_made_it(void **state)
{
	struct fixture *f = *state;

	f->row_a.parent_id = ID_B;
	assert_int_equal(auth_keys_put(f->keys, &f->row_a, &f->err), 0);
	assert_int_equal(check(f, bearer(f->a), NULL), 0);
	assert_true(auth_keys_is_good(f->keys, ID_A));
	assert_false(auth_keys_is_orphan(f->keys, ID_A));
	/* Its maker has expired, was revoked, or is not there any more. */
	f->row_b.expires_ms = 1;
	assert_int_equal(auth_keys_put(f->keys, &f->row_b, &f->err), 0);
	assert_int_equal(check(f, bearer(f->a), NULL), -EACCES);
	assert_non_null(strstr(f->err.text, "made this"));
	f->row_b.expires_ms = 0;
	assert_int_equal(auth_keys_put(f->keys, &f->row_b, &f->err), 0);
	assert_int_equal(check(f, bearer(f->a), NULL), 0);
	assert_int_equal(auth_keys_revoke(f->keys, ID_B, 1), 0);
	assert_int_equal(check(f, bearer(f->a), NULL), -EACCES);
	assert_false(auth_keys_is_good(f->keys, ID_A));
	assert_int_equal(auth_keys_remove(f->keys, ID_B), 0);
	assert_int_equal(check(f, bearer(f->a), NULL), -EACCES);
	assert_true(auth_keys_is_orphan(f->keys, ID_A));
	/* What cannot be ends the search all the same. */
	f->row_a.parent_id = ID_A;
	assert_int_equal(auth_keys_put(f->keys, &f->row_a, &f->err), 0);
	assert_int_equal(check(f, bearer(f->a), NULL), -EACCES);
}

static void a_revoked_key_is_refused_at_once(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(auth_keys_revoke(f->keys, ID_A, 5), 0);
	assert_int_equal(check(f, NULL, f->a), -EACCES);
	assert_string_equal(f->err.text, "the API key was revoked");
	assert_false(auth_keys_is_good(f->keys, ID_A));
	assert_true(auth_keys_is_good(f->keys, ID_B));
	assert_false(auth_keys_is_good(f->keys, ID_C));
	assert_int_equal(check(f, NULL, f->b), 0);
	assert_int_equal(auth_keys_revoke(f->keys, ID_C, 5), -ENOENT);
	assert_int_equal(auth_keys_remove(f->keys, ID_A), 0);
	assert_int_equal(check(f, NULL, f->a), -EACCES);
	assert_string_equal(f->err.text, "the API key is not known");
	assert_int_equal(auth_keys_remove(f->keys, ID_A), -ENOENT);
	assert_int_equal(auth_keys_len(f->keys), 1);
}

static void a_new_secret_for_an_id_replaces_the_old_one(void **state)
{
	struct fixture *f = *state;
	char fresh[API_KEY_SIZE];

	assert_int_equal(api_key_make(fresh, f->row_a.hash), 0);
	assert_int_equal(auth_keys_put(f->keys, &f->row_a, &f->err), 0);
	assert_int_equal(check(f, NULL, f->a), -EACCES);
	assert_int_equal(check(f, NULL, fresh), 0);
	assert_string_equal(f->who.key_id, ID_A);
	assert_int_equal(auth_keys_len(f->keys), 2);
}

static void two_keys_cannot_have_one_secret(void **state)
{
	struct fixture *f = *state;

	memcpy(f->row_a.hash, f->row_b.hash, HASH_LEN);
	assert_int_equal(auth_keys_put(f->keys, &f->row_a, &f->err), -EEXIST);
	assert_int_equal(check(f, NULL, f->b), 0);
	assert_string_equal(f->who.key_id, ID_B);
	assert_int_equal(check(f, NULL, f->a), 0);
}

static void rows_that_cannot_be_are_refused(void **state)
{
	struct fixture *f = *state;
	char owner[OWNER_MAX + 2], name[STORE_NAME_MAX + 2];
	struct key_row row = { .id = ID_C, .owner = "o", .name = name, .role = ROLE_VIEWER };

	memset(owner, 'o', sizeof(owner));
	owner[OWNER_MAX + 1] = '\0';
	memset(name, 'n', sizeof(name));
	name[STORE_NAME_MAX + 1] = '\0';
	assert_int_equal(auth_keys_put(f->keys, &row, &f->err), -EINVAL);
	name[STORE_NAME_MAX] = '\0';
	row.owner = owner;
	assert_int_equal(auth_keys_put(f->keys, &row, &f->err), -EINVAL);
	row.owner = "";
	assert_int_equal(auth_keys_put(f->keys, &row, &f->err), -EINVAL);
	row.owner = NULL;
	assert_int_equal(auth_keys_put(f->keys, &row, &f->err), -EINVAL);
	owner[OWNER_MAX] = '\0';
	row.owner = owner;
	row.role = ROLE_COUNT;
	assert_int_equal(auth_keys_put(f->keys, &row, &f->err), -EINVAL);
	row.role = ROLE_ADMIN;
	row.id = "short";
	assert_int_equal(auth_keys_put(f->keys, &row, &f->err), -EINVAL);
	row.id = NULL;
	assert_int_equal(auth_keys_put(f->keys, &row, &f->err), -EINVAL);
	row.id = ID_C;
	assert_int_equal(auth_keys_put(f->keys, &row, &f->err), 0);
}

static void the_table_has_a_limit_but_still_replaces(void **state)
{
	struct fixture *f = *state;
	struct key_row row = { .id = ID_C, .owner = "o" };

	assert_int_equal(auth_keys_put(f->keys, &row, &f->err), 0);
	row.id = "dddddddddddddddddddd";
	row.hash[0] = 1;
	assert_int_equal(auth_keys_put(f->keys, &row, &f->err), -E2BIG);
	assert_int_equal(auth_keys_put(f->keys, &f->row_a, &f->err), 0);
	assert_int_equal(api_key_make(f->a, f->row_a.hash), 0);
	assert_int_equal(auth_keys_put(f->keys, &f->row_a, &f->err), 0);
	assert_int_equal(check(f, NULL, f->a), 0);
	assert_int_equal(auth_keys_len(f->keys), 3);
}

static void count_row(void *user, const struct key_row *row)
{
	struct buf *b = user;

	buf_printf(b, "%c%s/%s/%u ", row->id[0], row->name, row->owner, row->role);
}

static void every_row_is_shown_as_it_was_put(void **state)
{
	struct fixture *f = *state;
	_cleanup_(buf_done) struct buf b = { 0 };

	auth_keys_each(f->keys, count_row, &b);
	assert_true(strcmp(b.data, "an/anna/1 b/root/2 ") == 0 ||
		    strcmp(b.data, "b/root/2 an/anna/1 ") == 0);
}

static void uses_are_noted_to_the_minute_and_once(void **state)
{
	struct fixture *f = *state;
	struct auth_used used[3];
	int64_t before = clock_wall_ms();

	assert_int_equal(auth_keys_take_used(f->keys, used, 3), 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(check(f, NULL, f->a), 0);
	assert_int_equal(check(f, NULL, f->b), 0);
	assert_int_equal(auth_keys_take_used(f->keys, used, 1), 1);
	assert_string_equal(used[0].key_id, ID_A);
	assert_true(used[0].last_used_ms >= before && used[0].last_used_ms <= clock_wall_ms());
	assert_int_equal(auth_keys_take_used(f->keys, used, 3), 1);
	assert_string_equal(used[0].key_id, ID_B);
	assert_int_equal(check(f, NULL, f->a), 0); /* within the same minute */
	assert_int_equal(auth_keys_take_used(f->keys, used, 3), 0);
	f->row_a.last_used_ms = before - 61000;
	assert_int_equal(auth_keys_put(f->keys, &f->row_a, NULL), 0);
	assert_int_equal(check(f, NULL, f->a), 0);
	assert_int_equal(auth_keys_remove(f->keys, ID_A), 0); /* with its note */
	assert_int_equal(auth_keys_take_used(f->keys, used, 3), 0);
	f->row_b.last_used_ms = before + 3600000; /* the clock was set back */
	assert_int_equal(auth_keys_put(f->keys, &f->row_b, NULL), 0);
	assert_int_equal(check(f, NULL, f->b), 0);
	assert_int_equal(auth_keys_take_used(f->keys, used, 3), 1);
}

static void roles_are_sets_of_scopes(void **state)
{
	static const unsigned reads =
		SCOPE_SANDBOX_READ | SCOPE_FILE_READ | SCOPE_METRICS | SCOPE_USAGE;
	unsigned scope = 0;

	(void)state;
	assert_int_equal(scope_of_role(ROLE_VIEWER), reads);
	assert_int_equal(scope_of_role(ROLE_USER), SCOPE_ALL & ~(SCOPE_ADMIN | SCOPE_AUDIT));
	assert_int_equal(scope_of_role(ROLE_ADMIN), SCOPE_ALL);
	assert_int_equal(scope_of_role(ROLE_COUNT), SCOPE_NONE);
	assert_int_equal(scope_of_role((enum role) - 1), SCOPE_NONE);
	for (unsigned bit = 1; bit < SCOPE_ALL; bit <<= 1) {
		assert_non_null(scope_name((enum scope)bit));
		assert_int_equal(scope_from(scope_name((enum scope)bit), &scope), 0);
		assert_int_equal(scope, bit);
	}
	assert_int_equal(scope_from("Exec", &scope), -EINVAL);
	assert_int_equal(scope_from("", &scope), -EINVAL);
	assert_null(scope_name(SCOPE_NONE));
	assert_null(scope_name((enum scope)3));
}

static void a_key_may_do_less_than_its_role_and_never_more(void **state)
{
	struct fixture *f = *state;

	f->row_a.scopes = SCOPE_EXEC | SCOPE_ADMIN | 1u << 31;
	f->row_a.sandbox_id = ID_C;
	assert_int_equal(auth_keys_put(f->keys, &f->row_a, NULL), 0);
	assert_int_equal(check(f, NULL, f->a), 0);
	assert_int_equal(f->who.scopes, SCOPE_EXEC);
	assert_string_equal(f->who.sandbox_id, ID_C);
	f->row_a.scopes = SCOPE_ADMIN; /* nothing of that: not all either */
	f->row_a.sandbox_id = NULL;
	assert_int_equal(auth_keys_put(f->keys, &f->row_a, NULL), 0);
	assert_int_equal(check(f, NULL, f->a), 0);
	assert_int_equal(f->who.scopes, SCOPE_NONE);
	assert_string_equal(f->who.sandbox_id, "");
	f->row_a.sandbox_id = "../x";
	assert_int_equal(auth_keys_put(f->keys, &f->row_a, &f->err), -EINVAL);
}

static void roles_have_names(void **state)
{
	enum role role = ROLE_USER;

	(void)state;
	for (int i = 0; i < ROLE_COUNT; i++) {
		assert_int_equal(role_from(role_name((enum role)i), &role), 0);
		assert_int_equal(role, i);
	}
	role = ROLE_USER;
	assert_int_equal(role_from("Admin", &role), -EINVAL);
	assert_int_equal(role_from("", &role), -EINVAL);
	assert_int_equal(role_from(NULL, &role), -EINVAL);
	assert_int_equal(role, ROLE_USER);
	assert_null(role_name(ROLE_COUNT));
}

static void a_missing_scope_is_named(void **state)
{
	struct principal p = { .scopes = scope_of_role(ROLE_VIEWER), .owner = "anna" };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(principal_check(&p, SCOPE_NONE, &err), 0);
	assert_int_equal(principal_check(&p, SCOPE_SANDBOX_READ | SCOPE_FILE_READ, &err), 0);
	assert_int_equal(principal_check(&p, SCOPE_FILE_READ | SCOPE_EXEC | SCOPE_ADMIN, &err),
			 -EPERM);
	assert_string_equal(err.text, "this key may not do that: it lacks 'exec'");
	assert_int_equal(principal_check(&p, 1u << 30, &err), -EPERM);
}

static void one_owns_what_is_ones_own_and_admins_everything(void **state)
{
	struct principal p = { .scopes = scope_of_role(ROLE_USER), .owner = "anna" };

	(void)state;
	assert_true(principal_owns(&p, "anna"));
	assert_false(principal_owns(&p, "Anna"));
	assert_false(principal_owns(&p, ""));
	assert_false(principal_owns(&p, NULL));
	p.owner[0] = '\0';
	assert_false(principal_owns(&p, ""));
	p.scopes = scope_of_role(ROLE_ADMIN);
	assert_true(principal_owns(&p, "anna"));
	assert_true(principal_owns(&p, ""));
}

static int fill_once(void *arg)
{
	struct fixture *f = arg;
	_cleanup_(auth_keys_free_p) struct auth_keys *keys = auth_keys_create(10);
	struct key_row changed = f->row_a;
	int r;

	if (!keys)
		return -ENOMEM;
	r = auth_keys_put(keys, &f->row_a, NULL);
	if (r == 0)
		r = auth_keys_put(keys, &f->row_b, NULL);
	changed.hash[0] ^= 1;
	if (r == 0) {
		r = auth_keys_put(keys, &changed, NULL);
		/* The old key is gone when the new one is there, and not before. */
		assert_int_equal(auth_check(keys, NULL, f->a, &f->who, NULL), r < 0 ? 0 : -EACCES);
	}
	/* Whatever failed, both ways to a key agree. */
	for (int i = 0; i < 2; i++) {
		int by_id = auth_keys_remove(keys, i ? ID_B : ID_A);

		assert_true(by_id == 0 || by_id == -ENOENT);
	}
	assert_int_equal(auth_check(keys, NULL, f->a, &f->who, NULL), -EACCES);
	assert_int_equal(auth_check(keys, NULL, f->b, &f->who, NULL), -EACCES);
	return r;
}

static void filling_the_table_fails_cleanly_without_memory(void **state)
{
	assert_true(fault_each(fill_once, *state) > 6);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_key_has_the_form_of_one_and_its_own_secret),
		cmocka_unit_test(what_is_no_key_is_refused),
		TEST(a_key_opens_by_either_header_and_either_prefix),
		TEST(blanks_around_a_bearer_do_not_matter),
		TEST(every_refusal_is_the_same_errno_and_says_why),
		TEST(no_message_repeats_the_key),
		TEST(an_expired_key_is_refused),
		TEST(a_key_ends_with_the_one_that_made_it),
		TEST(a_revoked_key_is_refused_at_once),
		TEST(a_new_secret_for_an_id_replaces_the_old_one),
		TEST(two_keys_cannot_have_one_secret),
		TEST(rows_that_cannot_be_are_refused),
		TEST(the_table_has_a_limit_but_still_replaces),
		TEST(every_row_is_shown_as_it_was_put),
		TEST(uses_are_noted_to_the_minute_and_once),
		cmocka_unit_test(roles_are_sets_of_scopes),
		cmocka_unit_test_setup_teardown(a_key_may_do_less_than_its_role_and_never_more,
						setup, teardown),
		cmocka_unit_test(roles_have_names),
		cmocka_unit_test(a_missing_scope_is_named),
		cmocka_unit_test(one_owns_what_is_ones_own_and_admins_everything),
		TEST(filling_the_table_fails_cleanly_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
