/* Sandboxes and keys over HTTP. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/keys.h"
#include "api_rig.h"
#include "base/clock.h"
#include "base/str.h"
#include "store/store.h"
#include "json/jv.h"

static void a_sandbox_is_made_with_what_was_asked_for(void **state)
{
	struct api_rig *rig = *state;
	struct rig_answer a;

	rig_ask(rig, rig->user, "POST /api/v1/sandboxes", "",
		"{\"runtime\":\"nodejs\",\"name\":\"n1\",\"timeout\":\"10m\",\"resources\":{"
		"\"cpu\":"
		"\"250m\",\"memory\":\"64Mi\",\"pids\":10},\"metadata\":{\"team\":\"red\"},"
		"\"env\":{\"TOKEN\":\"hush\"},\"useWarmPool\":false}",
		&a);
	assert_int_equal(a.status, 201);
	assert_int_equal(rig->service.limits.cpu_milli, 250);
	assert_int_equal(rig->service.limits.memory_bytes, 64 << 20);
	assert_int_equal(rig->service.limits.pids, 10);
	assert_int_equal(rig->service.timeout_ms, 600000);
	assert_true(rig->service.cold);
	assert_string_equal(rig->service.template, "node");
	assert_non_null(strstr(rig_header(&a, "Location"), "/api/v1/sandboxes/"));
	assert_null(strstr(buf_str(&a.body), "hush"));
	assert_non_null(strstr(buf_str(&a.body), "\"metadata\":{\"team\":\"red\"}"));
	assert_non_null(strstr(buf_str(&a.body), "\"status\":\"running\""));
	assert_non_null(strstr(buf_str(&a.body), "\"totalMs\":1.2"));
	assert_non_null(strstr(buf_str(&a.body), "\"owner\":\"ann\""));
	rig_answer_done(&a);
	rig_expect(rig, rig->user, "POST /api/v1/sandboxes", "{\"name\":\"n1\"}", 409, "conflict");
	rig_expect(rig, rig->user, "POST /api/v1/sandboxes",
		   "{\"name\":\"n1\",\"getOrCreate\":true}", 200, "\"name\":\"n1\"");
	/* Names belong to their owners. */
	rig_expect(rig, rig->other, "POST /api/v1/sandboxes", "{\"name\":\"n1\"}", 201, NULL);
}

static void a_list_comes_in_pages_that_join_without_gap_or_overlap(void **state)
{
	struct api_rig *rig = *state;
	char what[256] = "GET /api/v1/sandboxes?limit=2";
	unsigned seen = 0;

	for (int i = 0; i < 5; i++)
		rig_expect(rig, rig->user, "POST /api/v1/sandboxes", "{}", 201, NULL);
	for (int page = 0; page < 3; page++) {
		struct rig_answer a;
		struct jv_doc *doc = NULL;
		const char *cursor;

		rig_ask(rig, rig->user, what, "", NULL, &a);
		assert_int_equal(a.status, 200);
		assert_int_equal(jv_parse(a.body.data, a.body.len, 1 << 20, &doc, NULL), 0);
		seen += (unsigned)jv_len(jv_get(jv_root(doc), "items"));
		cursor = jv_text(jv_get(jv_root(doc), "nextCursor"));
		assert_int_equal(cursor == NULL, page == 2);
		if (cursor)
			(void)str_format(what, sizeof(what),
					 "GET /api/v1/sandboxes?limit=2&cursor=%s", cursor);
		(void)jv_free(doc);
		rig_answer_done(&a);
	}
	assert_int_equal(seen, 5);
}

static void a_list_can_be_asked_for_what_matters(void **state)
{
	struct api_rig *rig = *state;

	rig_expect(rig, rig->user, "POST /api/v1/sandboxes",
		   "{\"name\":\"a\",\"metadata\":{\"k\":\"x y\"}}", 201, NULL);
	rig_expect(rig, rig->user, "GET /api/v1/sandboxes?metadata.k=x%20y", NULL, 200,
		   "\"name\":\"a\"");
	rig_expect(rig, rig->user, "GET /api/v1/sandboxes?metadata.k=z", NULL, 200, "\"items\":[]");
	rig_expect(rig, rig->user, "GET /api/v1/sandboxes?status=paused,stopped", NULL, 200,
		   "\"items\":[]");
	rig_expect(rig, rig->user, "GET /api/v1/sandboxes?status=all", NULL, 200, "\"name\":\"a\"");
	rig_expect(rig, rig->user, "GET /api/v1/sandboxes?status=weird", NULL, 400,
		   "\"field\":\"status\"");
	rig_expect(rig, rig->user, "GET /api/v1/sandboxes?limit=0", NULL, 400,
		   "\"field\":\"limit\"");
	rig_expect(rig, rig->user, "GET /api/v1/sandboxes?limit=501", NULL, 400,
		   "\"field\":\"limit\"");
	rig_expect(rig, rig->user, "GET /api/v1/sandboxes?name=b", NULL, 200, "\"items\":[]");
	rig_expect(rig, rig->user, "GET /api/v1/sandboxes?template=python", NULL, 200,
		   "\"name\":\"a\"");
}

static void a_cursor_that_we_did_not_give_is_refused(void **state)
{
	static const char *const bad[] = {
		"x", "AAAA", "OmFi", "LTE6YWI", "MTo", "MTpuYQ==", "99999999999999999999"
	};
	struct api_rig *rig = *state;
	char what[128];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		(void)str_format(what, sizeof(what), "GET /api/v1/sandboxes?cursor=%s", bad[i]);
		rig_expect(rig, rig->user, what, NULL, 400, "\"field\":\"cursor\"");
	}
	rig_expect(rig, rig->user, "GET /api/v1/sandboxes?cursor=MTox%00", NULL, 400,
		   "not well-formed");
}

static void a_sandbox_is_changed_paused_and_ended(void **state)
{
	struct api_rig *rig = *state;

	(void)service_add(&rig->service, "sandboxofanns0000000", "ann", "box");
	rig_expect(rig, rig->user, "PATCH /api/v1/sandboxes/box",
		   "{\"timeout\":60,\"metadata\":{\"a\":\"b\"}}", 200, "\"timeout\":60,");
	rig_expect(rig, rig->user, "GET /api/v1/sandboxes/box", NULL, 200,
		   "\"metadata\":{\"a\":\"b\"}");
	rig_expect(rig, rig->user, "PATCH /api/v1/sandboxes/box", "{\"timeout\":\"25h\"}", 400,
		   "\"field\":\"timeout\"");
	rig_expect(rig, rig->user, "PATCH /api/v1/sandboxes/box", "{\"name\":\"x\"}", 400,
		   "\"field\":\"name\"");
	rig_expect(rig, rig->user, "POST /api/v1/sandboxes/box/pause", NULL, 200,
		   "\"status\":\"paused\"");
	rig_expect(rig, rig->user, "GET /api/v1/sandboxes/box/files", NULL, 409, "conflict");
	rig_expect(rig, rig->user, "POST /api/v1/sandboxes/box/resume", NULL, 200,
		   "\"status\":\"running\"");
	rig_expect(rig, rig->user, "DELETE /api/v1/sandboxes/box", NULL, 204, NULL);
	rig_expect(rig, rig->user, "DELETE /api/v1/sandboxes/box", NULL, 404, NULL);
	/* By its id it can still be looked at. */
	rig_expect(rig, rig->user, "GET /api/v1/sandboxes/sandboxofanns0000000", NULL, 200,
		   "\"status\":\"stopped\"");
	rig_expect(rig, rig->user, "GET /api/v1/sandboxes/sandboxofanns0000000/status", NULL, 200,
		   "\"status\":\"stopped\"");
}

static void only_use_keeps_a_sandbox_from_being_idle(void **state)
{
	struct api_rig *rig = *state;

	(void)service_add(&rig->service, "sandboxofanns0000000", "ann", "box");
	rig_expect(rig, rig->user, "GET /api/v1/sandboxes/box", NULL, 200, NULL);
	rig_expect(rig, rig->user, "GET /api/v1/sandboxes/box/status", NULL, 200, NULL);
	rig_expect(rig, rig->user, "GET /api/v1/sandboxes/box/executions", NULL, 200, NULL);
	assert_int_equal(rig->service.touches, 0);
	rig_expect(rig, rig->user, "POST /api/v1/sandboxes/box/execute",
		   "{\"type\":\"command\",\"content\":\"true\"}", 200, NULL);
	assert_int_equal(rig->service.touches, 1);
}

/* ---- keys ---- */

/* The text of a field of the answer, copied. */
static void field(const struct rig_answer *a, const char *name, char *dst, size_t size)
{
	struct jv_doc *doc = NULL;

	assert_int_equal(jv_parse(a->body.data, a->body.len, 1 << 20, &doc, NULL), 0);
	assert_int_equal(str_copy(dst, size, jv_text(jv_get(jv_root(doc), name))), 0);
	(void)jv_free(doc);
}

static void a_key_is_shown_once_works_and_can_be_revoked(void **state)
{
	struct api_rig *rig = *state;
	struct rig_answer a;
	char key[64], id[64], what[128];

	rig_ask(rig, rig->user, "POST /api/v1/keys", "",
		"{\"name\":\"ci\",\"role\":\"viewer\",\"expiresIn\":\"1h\"}", &a);
	assert_int_equal(a.status, 201);
	field(&a, "key", key, sizeof(key));
	field(&a, "id", id, sizeof(id));
	rig_answer_done(&a);
	rig_expect(rig, key, "GET /api/v1/user", NULL, 200,
		   "\"owner\":\"ann\",\"role\":\"viewer\"");
	rig_ask(rig, rig->user, "GET /api/v1/keys", "", NULL, &a);
	assert_non_null(strstr(buf_str(&a.body), id));
	assert_null(strstr(buf_str(&a.body), "holt_"));
	assert_null(strstr(buf_str(&a.body), "bob"));
	rig_answer_done(&a);
	(void)str_format(what, sizeof(what), "DELETE /api/v1/keys/%s", id);
	rig_expect(rig, rig->other, what, NULL, 404, "not_found");
	rig_expect(rig, rig->user, what, NULL, 204, NULL);
	rig_expect(rig, key, "GET /api/v1/user", NULL, 401, NULL);
	rig_expect(rig, rig->user, what, NULL, 404, NULL);
}

static void nobody_gives_away_more_than_they_have(void **state)
{
	struct api_rig *rig = *state;
	struct rig_answer a;
	char id[64], what[128];

	rig_expect(rig, rig->user, "POST /api/v1/keys", "{\"name\":\"x\",\"role\":\"admin\"}", 403,
		   "forbidden");
	rig_expect(rig, rig->user, "POST /api/v1/keys", "{\"name\":\"x\",\"owner\":\"bob\"}", 403,
		   "forbidden");
	rig_expect(rig, rig->viewer, "POST /api/v1/keys", "{\"name\":\"x\"}", 403, "forbidden");
	rig_expect(rig, rig->user, "POST /api/v1/keys", "{\"name\":\"x\",\"role\":\"king\"}", 400,
		   "\"field\":\"role\"");
	rig_expect(rig, rig->user, "POST /api/v1/keys", "{}", 400, "\"field\":\"name\"");
	rig_expect(rig, rig->user, "POST /api/v1/keys", "{\"name\":\"x\"}", 201,
		   "\"role\":\"user\",\"owner\":\"ann\"");
	/* An admin's too is an ordinary one unless it is said otherwise. */
	rig_expect(rig, rig->admin, "POST /api/v1/keys", "{\"name\":\"x\"}", 201,
		   "\"role\":\"user\",\"owner\":\"root\"");
	rig_ask(rig, rig->admin, "POST /api/v1/keys", "",
		"{\"name\":\"x\",\"role\":\"admin\",\"owner\":\"ann\"}", &a);
	assert_int_equal(a.status, 201);
	field(&a, "id", id, sizeof(id));
	rig_answer_done(&a);
	(void)str_format(what, sizeof(what), "DELETE /api/v1/keys/%s", id);
	rig_expect(rig, rig->user, what, NULL, 403, "forbidden");
	rig_expect(rig, rig->admin, what, NULL, 204, NULL);
}

static void keys_come_in_pages_too(void **state)
{
	struct api_rig *rig = *state;
	char what[256] = "GET /api/v1/keys?limit=3";
	unsigned seen = 0;

	for (int i = 0; i < 5; i++) /* beside the rig's four */
		rig_expect(rig, rig->admin, "POST /api/v1/keys", "{\"name\":\"x\"}", 201, NULL);
	for (int page = 0; page < 3; page++) {
		struct rig_answer a;
		struct jv_doc *doc = NULL;
		const char *cursor;

		rig_ask(rig, rig->admin, what, "", NULL, &a);
		assert_int_equal(jv_parse(a.body.data, a.body.len, 1 << 20, &doc, NULL), 0);
		seen += (unsigned)jv_len(jv_get(jv_root(doc), "items"));
		cursor = jv_text(jv_get(jv_root(doc), "nextCursor"));
		assert_int_equal(cursor == NULL, page == 2);
		if (cursor)
			(void)str_format(what, sizeof(what), "GET /api/v1/keys?limit=3&cursor=%s",
					 cursor);
		(void)jv_free(doc);
		rig_answer_done(&a);
	}
	assert_int_equal(seen, 9);
}

static void the_last_admin_key_stays(void **state)
{
	struct api_rig *rig = *state;
	struct rig_answer a;
	char id[64], second[64], what[128];

	rig_ask(rig, rig->admin, "GET /api/v1/user", "", NULL, &a);
	field(&a, "keyId", id, sizeof(id));
	rig_answer_done(&a);
	(void)str_format(what, sizeof(what), "DELETE /api/v1/keys/%s", id);
	rig_expect(rig, rig->admin, what, NULL, 409, "conflict");
	rig_ask(rig, rig->admin, "POST /api/v1/keys", "",
		"{\"name\":\"second\",\"role\":\"admin\"}", &a);
	field(&a, "key", second, sizeof(second));
	rig_answer_done(&a);
	rig_expect(rig, second, what, NULL, 204, NULL);
	rig_expect(rig, rig->admin, "GET /api/v1/user", NULL, 401, NULL);
}

static void a_key_that_the_store_does_not_take_does_not_exist(void **state)
{
	struct api_rig *rig = *state;
	size_t n = auth_keys_len(rig->keys);

	rig->faults.fail_in = 1;
	rig->faults.fail_with = ENOSPC;
	rig_expect(rig, rig->user, "POST /api/v1/keys", "{\"name\":\"x\"}", 503,
		   "service_unavailable");
	rig->faults.refuse_in = 1;
	rig_expect(rig, rig->user, "POST /api/v1/keys", "{\"name\":\"x\"}", 503,
		   "service_unavailable");
	assert_int_equal(auth_keys_len(rig->keys), n);
}

static void a_revoked_key_is_refused_even_when_the_store_fails(void **state)
{
	struct api_rig *rig = *state;
	struct rig_answer a;
	char id[64], what[128];

	rig_ask(rig, rig->user, "GET /api/v1/user", "", NULL, &a);
	field(&a, "keyId", id, sizeof(id));
	rig_answer_done(&a);
	(void)str_format(what, sizeof(what), "DELETE /api/v1/keys/%s", id);
	rig->faults.fail_in = 1;
	rig->faults.fail_with = EIO;
	rig_expect(rig, rig->admin, what, NULL, 503, "service_unavailable");
	rig_expect(rig, rig->user, "GET /api/v1/user", NULL, 401, NULL);
	rig_expect(rig, rig->admin, what, NULL, 204, NULL);
}

static void a_key_whose_maker_left_is_taken_back(void **state)
{
	struct api_rig *rig = *state;
	size_t n = auth_keys_len(rig->keys);
	unsigned writes = rig->faults.writes;
	struct rig_conn c;

	rig->faults.is_held = true;
	rig_connect(rig, &c);
	rig_request(&c, rig->user, "POST /api/v1/keys", "Content-Type: application/json\r\n", 12);
	rig_send(&c, "{\"name\":\"x\"}", 12);
	rig_settle(rig);
	assert_int_equal(rig->faults.writes, writes + 1);
	rig_disconnect(&c);
	rig_settle(rig);
	rig->faults.is_held = false;
	store_dispatch(&rig->store);
	rig_settle(rig);
	assert_int_equal(rig->faults.writes, writes + 2);
	assert_int_equal(auth_keys_len(rig->keys), n);
}

/* The table of keys is everybody's and has an end: nobody may fill it alone. */
static void an_owner_has_so_many_keys_and_no_more(void **state)
{
	struct api_rig *rig = *state;
	char text[API_KEY_SIZE];

	for (int i = 2; i < 999; i++) /* two are there */
		rig_add_key(rig, ROLE_USER, "ann", text);
	rig_settle(rig);
	rig_expect(rig, rig->user, "POST /api/v1/keys", "{\"name\":\"x\"}", 201, NULL);
	rig_expect(rig, rig->user, "POST /api/v1/keys", "{\"name\":\"x\"}", 429, "rate_limited");
	rig_expect(rig, rig->other, "POST /api/v1/keys", "{\"name\":\"x\"}", 201, NULL);
	rig_expect(rig, rig->admin, "POST /api/v1/keys", "{\"name\":\"x\",\"owner\":\"ann\"}", 201,
		   NULL);
}

static void keys_that_expired_long_ago_are_forgotten(void **state)
{
	struct api_rig *rig = *state;
	static const struct {
		const char *id;
		uint8_t role;
		int64_t ago_ms;
		bool stays;
	} rows[] = {
		{ "aaaaaaaaaaaaaaaaaaaa", ROLE_USER, 2 * 3600000, false },
		{ "bbbbbbbbbbbbbbbbbbbb", ROLE_USER, 1000, true },
		{ "cccccccccccccccccccc", ROLE_ADMIN, 2 * 3600000, true },
	};
	size_t before = auth_keys_len(rig->keys);
	struct err err = { 0 };

	for (size_t i = 0; i < 3; i++) {
		struct key_row row = { .id = rows[i].id,
				       .hash = { (uint8_t)i },
				       .name = "x",
				       .owner = "ann",
				       .role = rows[i].role,
				       .expires_ms = clock_wall_ms() - rows[i].ago_ms };

		assert_int_equal(auth_keys_put(rig->keys, &row, &err), 0);
	}
	keys_expire(rig->api);
	rig_settle(rig);
	assert_int_equal(auth_keys_len(rig->keys), before + 2);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(auth_keys_remove(rig->keys, rows[i].id),
				 rows[i].stays ? 0 : -ENOENT);
}

#define RIG_TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(a_sandbox_is_made_with_what_was_asked_for),
		RIG_TEST(a_list_comes_in_pages_that_join_without_gap_or_overlap),
		RIG_TEST(a_list_can_be_asked_for_what_matters),
		RIG_TEST(a_cursor_that_we_did_not_give_is_refused),
		RIG_TEST(a_sandbox_is_changed_paused_and_ended),
		RIG_TEST(only_use_keeps_a_sandbox_from_being_idle),
		RIG_TEST(a_key_is_shown_once_works_and_can_be_revoked),
		RIG_TEST(nobody_gives_away_more_than_they_have),
		RIG_TEST(keys_come_in_pages_too),
		RIG_TEST(the_last_admin_key_stays),
		RIG_TEST(a_key_that_the_store_does_not_take_does_not_exist),
		RIG_TEST(a_revoked_key_is_refused_even_when_the_store_fails),
		RIG_TEST(a_key_whose_maker_left_is_taken_back),
		RIG_TEST(an_owner_has_so_many_keys_and_no_more),
		RIG_TEST(keys_that_expired_long_ago_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
