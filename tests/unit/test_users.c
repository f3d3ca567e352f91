#include "auth/users.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "check.h"
#include "store/store.h"

static struct user anna(void)
{
	struct user u = { .name = "anna",
			  .role = ROLE_USER,
			  .own_quota = 1u << QUOTA_MEMORY | 1u << QUOTA_CPU,
			  .own_rates = 1u << RATE_EXEC | 1u << RATE_READ,
			  .created_ms = 1,
			  .updated_ms = 2 };

	u.quota.v[QUOTA_MEMORY] = (uint64_t)1 << 53;
	u.rates[RATE_EXEC] = (struct rate){ 600, 60000 };
	return u;
}

static void a_user_is_read_as_it_was_written(void **state)
{
	_cleanup_(buf_done) struct buf text = { 0 };
	struct user u = anna(), back;
	struct err err = { 0 };

	(void)state;
	u.is_disabled = true;
	assert_int_equal(user_write(&u, &text), 0);
	assert_int_equal(user_read(&(struct object_row){ .id = "anna",
							 .text = buf_str(&text),
							 .created_ms = 1,
							 .updated_ms = 2 },
				   &back, &err),
			 0);
	assert_string_equal(back.name, "anna");
	assert_int_equal(back.role, ROLE_USER);
	assert_true(back.is_disabled);
	assert_int_equal(back.own_quota, u.own_quota);
	assert_int_equal(back.own_rates, u.own_rates);
	assert_memory_equal(&back.quota, &u.quota, sizeof(u.quota));
	assert_memory_equal(&back.rates, &u.rates, sizeof(u.rates));
	assert_int_equal(back.created_ms, 1);
	assert_int_equal(back.updated_ms, 2);
}

static void what_is_no_user_is_refused(void **state)
{
	static const struct {
		const char *id, *text;
	} bad[] = {
		{ "a b", "{\"role\":\"user\",\"disabled\":false}" },
		{ "", "{\"role\":\"user\",\"disabled\":false}" },
		{ "a", "" },
		{ "a", "{}" },
		{ "a", "{\"role\":\"king\",\"disabled\":false}" },
		{ "a", "{\"role\":\"user\"}" },
		{ "a", "{\"role\":\"user\",\"disabled\":false,\"quota\":{\"cpu\":-1}}" },
		{ "a", "{\"role\":\"user\",\"disabled\":false,\"rates\":{\"exec\":\"1/x\"}}" },
		{ "a", "{\"role\":\"user\",\"disabled\":false,\"rates\":{\"exec\":5}}" },
	};
	struct user u = { .updated_ms = 9 };
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(
			user_read(&(struct object_row){ .id = bad[i].id, .text = bad[i].text }, &u,
				  &err),
			-EINVAL);
	assert_int_equal(u.updated_ms, 9);
}

static void names_are_those_that_a_token_could_say(void **state)
{
	char name[OWNER_MAX + 2];

	(void)state;
	assert_true(user_name_is_valid("auth0|a.b+c-d_e@f:g"));
	assert_false(user_name_is_valid(""));
	assert_false(user_name_is_valid("a/b"));
	assert_false(user_name_is_valid("a\n"));
	memset(name, 'a', sizeof(name));
	name[OWNER_MAX + 1] = '\0';
	assert_false(user_name_is_valid(name));
	name[OWNER_MAX] = '\0';
	assert_true(user_name_is_valid(name));
}

static void a_user_is_admitted_with_no_more_than_their_role(void **state)
{
	_cleanup_(users_free_p) struct users *users = users_create(2);
	struct principal p = { .owner = "anna", .role = ROLE_ADMIN, .scopes = SCOPE_ALL };
	struct user u = anna();
	struct err err = { 0 };

	(void)state;
	assert_int_equal(users_admit(users, &p, &err), 0); /* no record, no rule */
	assert_int_equal(users_admit(NULL, &p, &err), 0);
	assert_int_equal(p.scopes, SCOPE_ALL);
	assert_int_equal(users_put(users, &u), 0);
	assert_int_equal(users_admit(users, &p, &err), 0);
	assert_int_equal(p.role, ROLE_USER);
	assert_int_equal(p.scopes, scope_of_role(ROLE_USER));
	p.scopes = SCOPE_EXEC; /* a narrow key stays narrow */
	u.role = ROLE_ADMIN;
	assert_int_equal(users_put(users, &u), 0);
	assert_int_equal(users_admit(users, &p, &err), 0);
	assert_int_equal(p.scopes, SCOPE_EXEC);
	assert_int_equal(p.role, ROLE_USER);
	u.is_disabled = true;
	assert_int_equal(users_put(users, &u), 0);
	assert_int_equal(users_admit(users, &p, &err), -EACCES);
	assert_false(users_is_good(users, "anna"));
	assert_true(users_is_good(users, "bob"));
	users_remove(users, "anna");
	users_remove(users, "anna");
	assert_true(users_is_good(users, "anna"));
}

static void own_limits_go_before_everybodys(void **state)
{
	_cleanup_(users_free_p) struct users *users = users_create(2);
	struct quota q = { .v = { 1, 2, 3, 4, 5 } };
	struct rate r = { 9, 1000 };
	struct user u = anna();

	(void)state;
	assert_int_equal(users_put(users, &u), 0);
	users_quota(users, "bob", &q);
	users_rate(users, "bob", RATE_EXEC, &r);
	assert_int_equal(q.v[QUOTA_CPU], 2);
	assert_int_equal(r.count, 9);
	users_quota(users, "anna", &q);
	assert_int_equal(q.v[QUOTA_SANDBOXES], 1);
	assert_int_equal(q.v[QUOTA_CPU], 0); /* none is a limit of their own, too */
	assert_int_equal(q.v[QUOTA_MEMORY], (uint64_t)1 << 53);
	users_rate(users, "anna", RATE_WRITE, &r);
	assert_int_equal(r.count, 9);
	users_rate(users, "anna", RATE_EXEC, &r);
	assert_int_equal(r.count, 600);
	users_rate(users, "anna", RATE_READ, &r);
	assert_int_equal(r.count, 0);
}

static void the_table_has_an_end(void **state)
{
	_cleanup_(users_free_p) struct users *users = users_create(1);
	struct user u = anna();

	(void)state;
	assert_int_equal(users_put(users, &u), 0);
	assert_int_equal(users_put(users, &u), 0);
	u.name[0] = 'b';
	assert_int_equal(users_put(users, &u), -E2BIG);
	assert_null(users_find(users, u.name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_user_is_read_as_it_was_written),
		cmocka_unit_test(what_is_no_user_is_refused),
		cmocka_unit_test(names_are_those_that_a_token_could_say),
		cmocka_unit_test(a_user_is_admitted_with_no_more_than_their_role),
		cmocka_unit_test(own_limits_go_before_everybodys),
		cmocka_unit_test(the_table_has_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
