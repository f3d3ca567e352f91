/* Users, tokens, rates and quotas over HTTP; above all what happens when the store does not work.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api_rig.h"
#include "base/id.h"
#include "base/str.h"
#include "store/store.h"
#include "json/jv.h"

static void make_ann(struct api_rig *rig)
{
	rig_expect(rig, rig->admin, "POST /api/v1/users",
		   "{\"name\":\"ann\",\"rateLimits\":{\"exec\":\"600/m\"}}", 201,
		   "\"exec\":\"600/m\"");
}

static void a_user_that_the_store_did_not_take_is_none(void **state)
{
	struct api_rig *rig = *state;

	rig->faults.fail_in = 1;
	rig->faults.fail_with = ENOSPC;
	rig_expect(rig, rig->admin, "POST /api/v1/users", "{\"name\":\"ann\"}", 503,
		   "service_unavailable");
	rig_expect(rig, rig->admin, "GET /api/v1/users/ann", NULL, 404, "not_found");
	rig->faults.refuse_in = 1;
	rig_expect(rig, rig->admin, "POST /api/v1/users", "{\"name\":\"ann\"}", 503,
		   "service_unavailable");
	make_ann(rig);
	rig_expect(rig, rig->admin, "POST /api/v1/users", "{\"name\":\"ann\"}", 409, "conflict");
}

static void a_change_that_was_not_written_does_not_count(void **state)
{
	struct api_rig *rig = *state;

	make_ann(rig);
	rig->faults.fail_in = 1;
	rig->faults.fail_with = EIO;
	rig_expect(rig, rig->admin, "PATCH /api/v1/users/ann", "{\"status\":\"disabled\"}", 503,
		   NULL);
	rig_expect(rig, rig->user, "GET /api/v1/user", NULL, 200, "\"owner\":\"ann\"");
	rig_expect(rig, rig->admin, "PATCH /api/v1/users/ann", "{\"status\":\"disabled\"}", 200,
		   "\"status\":\"disabled\"");
	rig_expect(rig, rig->user, "GET /api/v1/user", NULL, 401, "unauthorized");
	rig_expect(rig, rig->other, "GET /api/v1/user", NULL, 200, "\"owner\":\"bob\"");
}

static void two_changes_of_one_user_do_not_meet(void **state)
{
	struct api_rig *rig = *state;
	struct rig_conn c;

	make_ann(rig);
	rig->faults.is_held = true;
	rig_connect(rig, &c);
	rig_request(&c, rig->admin, "PATCH /api/v1/users/ann", "Content-Type: application/json\r\n",
		    17);
	rig_send(&c, "{\"role\":\"viewer\"}", 17);
	rig_settle(rig);
	rig_expect(rig, rig->admin, "PATCH /api/v1/users/ann", "{\"role\":\"user\"}", 409,
		   "being changed");
	rig->faults.is_held = false;
	rig_until(&c, "\"role\":\"viewer\"");
	rig_disconnect(&c);
	rig_expect(rig, rig->user, "POST /api/v1/sandboxes", "{}", 403, "forbidden");
}

static void a_user_whose_end_was_not_written_stays_shut_out(void **state)
{
	struct api_rig *rig = *state;

	make_ann(rig);
	rig->faults.refuse_in = 1;
	rig_expect(rig, rig->admin, "DELETE /api/v1/users/ann", NULL, 503, NULL);
	rig_expect(rig, rig->user, "GET /api/v1/user", NULL, 401, "unauthorized");
	rig_expect(rig, rig->admin, "DELETE /api/v1/users/ann", NULL, 204, NULL);
	rig_expect(rig, rig->user, "GET /api/v1/user", NULL, 401, "unauthorized");
	rig_expect(rig, rig->admin, "GET /api/v1/users/ann", NULL, 404, NULL);
}

static void a_refusal_for_a_quota_says_which(void **state)
{
	struct api_rig *rig = *state;

	rig->service.fail_with = QUOTA_ERRNO;
	(void)str_copy(rig->service.fail_text, sizeof(rig->service.fail_text),
		       "memory: limit 7, in use 5: the quota of 'ann'");
	rig_expect(rig, rig->user, "POST /api/v1/sandboxes", "{}", 403,
		   "\"details\":{\"quota\":\"memory\",\"limit\":7,\"used\":5}");
	rig->service.fail_with = QUOTA_ERRNO;
	rig_expect(rig, rig->user, "POST /api/v1/sandboxes", "{}", 403,
		   "\"code\":\"quota_exceeded\"");
}

static void a_rate_counts_only_what_is_of_its_class(void **state)
{
	struct api_rig *rig = *state;
	struct rig_answer a;

	rig->config.rate_read = (struct rate){ 2, 3600000 };
	rig_ask(rig, rig->user, "GET /api/v1/user", "", NULL, &a);
	assert_string_equal(rig_header(&a, "X-RateLimit-Limit"), "2");
	assert_string_equal(rig_header(&a, "X-RateLimit-Remaining"), "1");
	assert_string_equal(rig_header(&a, "X-RateLimit-Reset"), "1800");
	rig_answer_done(&a);
	rig_expect(rig, rig->user, "GET /api/v1/sandboxes", NULL, 200, NULL);
	rig_ask(rig, rig->user, "GET /api/v1/sandboxes", "", NULL, &a);
	assert_int_equal(a.status, 429);
	assert_non_null(rig_header(&a, "Retry-After"));
	assert_non_null(strstr(buf_str(&a.body), "rate_limited"));
	rig_answer_done(&a);
	rig_expect(rig, rig->user, "POST /api/v1/sandboxes", "{}", 201, NULL);
	rig_expect(rig, rig->other, "GET /api/v1/sandboxes", NULL, 200, NULL);
}

static void count_user(void *user, const struct object_row *row)
{
	(void)row;
	++*(unsigned *)user;
}

static void the_last_user_has_a_place_and_one_more_is_refused_and_not_kept(void **state)
{
	struct api_rig *rig = *state;
	struct user u = { .role = ROLE_USER };
	unsigned kept = 0;

	for (unsigned i = 1; i < USERS_MAX; i++) {
		(void)str_format(u.name, sizeof(u.name), "u%u", i);
		assert_int_equal(users_put(rig->users, &u), 0);
	}
	make_ann(rig);
	rig_expect(rig, rig->admin, "POST /api/v1/users", "{\"name\":\"bob\"}", 400,
		   "there are 100000 users, the limit");
	rig_expect(rig, rig->admin, "GET /api/v1/users/bob", NULL, 404, "not_found");
	rig_settle(rig);
	assert_int_equal(store_load_objects(&rig->store, USERS_KIND, count_user, &kept, NULL), 0);
	assert_int_equal(kept, 1); /* ann */
	rig_expect(rig, rig->admin, "PATCH /api/v1/users/ann", "{\"role\":\"viewer\"}", 200, NULL);
	rig_expect(rig, rig->admin, "DELETE /api/v1/users/ann", NULL, 204, NULL);
	rig_expect(rig, rig->admin, "POST /api/v1/users", "{\"name\":\"bob\"}", 201, NULL);
}

static void count_key(void *user, const struct key_row *row)
{
	(void)row;
	++*(unsigned *)user;
}

static void the_last_key_has_a_place_and_one_more_is_refused_and_not_kept(void **state)
{
	struct api_rig *rig = *state;
	char id[ID_LEN + 1];
	struct key_row row = { .id = id, .owner = "eve", .role = ROLE_USER };
	unsigned before = 0, after = 0;

	for (uint32_t i = 0; auth_keys_len(rig->keys) < AUTH_KEYS_MAX - 1; i++) {
		id_make(id);
		memcpy(row.hash, &i, sizeof(i));
		assert_int_equal(auth_keys_put(rig->keys, &row, NULL), 0);
	}
	rig_expect(rig, rig->admin, "POST /api/v1/keys", "{\"name\":\"last\"}", 201, "\"key\":");
	assert_int_equal(store_load_keys(&rig->store, count_key, &before, NULL), 0);
	rig_expect(rig, rig->admin, "POST /api/v1/keys", "{\"name\":\"more\"}", 400,
		   "invalid_request");
	rig_settle(rig);
	assert_int_equal(store_load_keys(&rig->store, count_key, &after, NULL), 0);
	assert_int_equal(after, before);
	assert_int_equal(auth_keys_len(rig->keys), AUTH_KEYS_MAX);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_user_that_the_store_did_not_take_is_none),
		TEST(a_change_that_was_not_written_does_not_count),
		TEST(two_changes_of_one_user_do_not_meet),
		TEST(a_user_whose_end_was_not_written_stays_shut_out),
		TEST(a_refusal_for_a_quota_says_which),
		TEST(a_rate_counts_only_what_is_of_its_class),
		TEST(the_last_user_has_a_place_and_one_more_is_refused_and_not_kept),
		TEST(the_last_key_has_a_place_and_one_more_is_refused_and_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
