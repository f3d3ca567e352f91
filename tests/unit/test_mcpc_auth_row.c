/* What the configuration says of auth, and what of it is kept in the store. */
#include "mcpc/auth_row.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "check.h"
#include "mcpc/auth.h"
#include "mcpc/auth_kept.h"
#include "mcpc/servers_row.h"
#include "outbound/courier.h"
#include "sandbox/credential.h"
#include "sandbox_rig.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))
#define URL "https://a.example/mcp"

struct rig {
	struct sandbox_rig box;
	struct courier *courier;
	struct jv_doc *doc;
	struct mcpc_auth *auth;
	struct err err;
	char file[32];
	uint64_t number;
};

static int setup(void **state)
{
	static struct rig g;

	g = (struct rig){ .file = "/tmp/holt-auth-XXXXXX" };
	assert_int_equal(fd_close(mkstemp(g.file)), -1);
	rig_open(&g.box);
	assert_int_equal(courier_create(g.box.loop, &g.courier, NULL), 0);
	*state = &g;
	return 0;
}

static int teardown(void **state)
{
	struct rig *g = *state;

	g->auth = mcpc_auth_free(g->auth);
	g->doc = jv_free(g->doc);
	g->courier = courier_free(g->courier);
	rig_close(&g->box);
	(void)unlink(g->file);
	return 0;
}

static const char *variable(void *user, const char *name)
{
	(void)user;
	return strcmp(name, "TOKEN") == 0 ? "t0k3n" : NULL;
}

static int make(struct rig *g, const char *url, const char *json)
{
	struct mcpc_servers_deps deps = { .loop = g->box.loop,
					  .sandboxes = g->box.all,
					  .courier = g->courier,
					  .variable = variable };
	struct server_row row = { .name = "it", .url = url };

	g->auth = mcpc_auth_free(g->auth);
	g->doc = jv_free(g->doc);
	g->err = (struct err){ 0 };
	assert_int_equal(jv_parse(json, strlen(json), 1u << 16, &g->doc, NULL), 0);
	row.auth = jv_root(g->doc);
	return mcpc_auth_from_row(&row, &deps, &g->auth, &g->err);
}

static void write_file(struct rig *g, const char *text)
{
	assert_int_equal(fd_write_file_at(-1, g->file, text), 0);
}

static void a_token_is_the_environment_s_or_a_file_s(void **state)
{
	struct rig *g = *state;
	char json[128];

	assert_int_equal(make(g, URL, "{\"type\":\"bearer\",\"token\":\"${TOKEN}\"}"), 0);
	assert_string_equal(g->auth->ops->token(g->auth, &g->number), "t0k3n");
	write_file(g, "  of-a-file\r\n");
	assert_int_equal(str_format(json, sizeof(json),
				    "{\"type\":\"bearer\",\"token_file\":\"%s\"}", g->file),
			 0);
	assert_int_equal(make(g, URL, json), 0);
	assert_string_equal(g->auth->ops->token(g->auth, &g->number), "of-a-file");
	write_file(g, "\n");
	assert_int_equal(truncate(g->file, 1), 0);
	assert_int_equal(make(g, URL, json), -ENODATA);
	assert_int_equal(truncate(g->file, AUTH_ROW_FILE_MAX + 1), 0);
	assert_int_equal(make(g, URL, json), -E2BIG);
	assert_int_equal(unlink(g->file), 0);
	assert_int_equal(make(g, URL, json), -ENOENT);
	assert_non_null(strstr(g->err.text, "auth.token_file"));
	assert_int_equal(make(g, URL, "{\"type\":\"bearer\",\"token_file\":\"/dev/zero\"}"),
			 -EINVAL);
	assert_int_equal(make(g, URL, "{\"type\":\"bearer\",\"token_file\":\"/tmp\"}"), -EINVAL);
}

static void what_does_not_go_together_is_refused_by_its_name(void **state)
{
	static const struct {
		const char *json, *why;
	} rows[] = {
		{ "{}", "auth.type" },
		{ "[]", "auth." },
		{ "{\"type\":\"basic\"}", "auth.type" },
		{ "{\"type\":\"bearer\"}", "auth.token: is missing" },
		{ "{\"type\":\"bearer\",\"token\":\"x\",\"issuer\":\"https://i\"}", "auth.type" },
		{ "{\"type\":\"bearer\",\"token\":\"x y\"}", "auth.token" },
		{ "{\"type\":\"bearer\",\"token\":\"${NOT_SET}\"}", "auth.token" },
		{ "{\"type\":\"bearer\",\"token\":\"x\",\"token_file\":\"/x\"}",
		  "auth.token_file" },
		{ "{\"type\":\"login\",\"token\":\"x\"}", "auth.token" },
		{ "{\"type\":\"login\",\"secret\":\"x\"}", "auth.secret" },
		{ "{\"type\":\"login\",\"token_file\":\"/x\"}", "auth.token_file" },
		{ "{\"type\":\"workload\",\"issuer\":\"https://i\"}", "auth.token_file" },
		{ "{\"type\":\"workload\",\"token_file\":\"/x\"}", "auth.issuer" },
		{ "{\"type\":\"workload\",\"token_file\":\"/x\",\"client_id\":\"a\","
		  "\"client_secret\":\"hush\",\"issuer\":\"https://i\"}",
		  "auth.type" },
		{ "{\"type\":\"client_credentials\"}", "auth.client_id" },
		{ "{\"type\":\"client_credentials\",\"client_id\":\"x\"}", "auth.client_id" },
		{ "{\"type\":\"client_credentials\",\"client_id\":\"x\",\"client_secret\":"
		  "\"hush\"}",
		  "auth.issuer" },
		{ "{\"type\":\"login\",\"client_id\":\"x\",\"client_secret\":\"hush\"}",
		  "auth.issuer" },
		{ "{\"type\":\"client_credentials\",\"client_id\":\"x\",\"client_secret\":\"hush\","
		  "\"issuer\":\"http://i.example\"}",
		  "issuer: wants https" },
		{ "{\"type\":\"client_credentials\",\"client_id\":\"x\","
		  "\"client_key_file\":\"/dev/null\",\"issuer\":\"https://i.example\"}",
		  "auth.client_key_file" },
	};
	struct rig *g = *state;

	for (size_t i = 0; i < LEN(rows); i++) {
		assert_true(make(g, URL, rows[i].json) < 0);
		if (!strstr(g->err.text, rows[i].why))
			fail_msg("%s: %s", rows[i].json, g->err.text);
		assert_null(strstr(g->err.text, "hush"));
		assert_null(g->auth);
	}
	assert_int_equal(make(g, "http://a.example/mcp", "{\"type\":\"bearer\",\"token\":\"x\"}"),
			 -EINVAL);
	assert_non_null(strstr(g->err.text, "https"));
}

/* ---- what is kept ---- */

static void live_again(struct rig *g)
{
	rig_death(&g->box);
	rig_birth(&g->box);
	rig_ready(&g->box);
	rig_run(&g->box);
}

#define KEPT "{\"issuer\":\"https://i\",\"access\":\"tok\",\"ends\":0}"

static void tokens_outlast_the_daemon_for_the_same_server_at_the_same_address(void **state)
{
	struct rig *g = *state;
	struct auth_kept *k = auth_kept_create(g->box.all, "it", URL);

	assert_non_null(k);
	assert_null(auth_kept_find(k));
	auth_kept_put(k, KEPT);
	rig_run(&g->box);
	assert_string_equal(auth_kept_find(k), KEPT);
	k = auth_kept_free(k);
	live_again(g);
	assert_int_equal(make(g, URL, "{\"type\":\"login\"}"), 0);
	assert_string_equal(g->auth->ops->token(g->auth, &g->number), "tok");
	assert_int_equal(make(g, "https://b.example/mcp", "{\"type\":\"login\"}"), 0);
	assert_null(g->auth->ops->token(g->auth, &g->number));
	assert_int_equal(make(g, URL, "{\"type\":\"login\"}"), 0);
	mcpc_auth_logout(g->auth);
	rig_run(&g->box);
	g->auth = mcpc_auth_free(g->auth);
	live_again(g);
	assert_int_equal(make(g, URL, "{\"type\":\"login\"}"), 0);
	assert_null(g->auth->ops->token(g->auth, &g->number));
}

static void of_what_comes_while_it_is_written_the_last_counts(void **state)
{
	struct rig *g = *state;
	struct auth_kept *k = auth_kept_create(g->box.all, "it", URL);

	assert_non_null(k);
	auth_kept_put(k, "{\"a\":1}");
	auth_kept_put(k, "{\"a\":2}");
	auth_kept_put(k, "{\"a\":3}");
	k = auth_kept_free(k); /* and it is written all the same */
	rig_run(&g->box);
	k = auth_kept_create(g->box.all, "it", URL);
	assert_non_null(k);
	assert_string_equal(auth_kept_find(k), "{\"a\":3}");
	auth_kept_put(k, "{\"a\":4}");
	auth_kept_put(k, NULL);
	rig_run(&g->box);
	assert_null(auth_kept_find(k));
	k = auth_kept_free(k);
}

static void count(void *user, struct object *o, const struct err *err)
{
	(void)o;
	*(int *)user = err ? err->code : 0;
}

static void a_credential_is_an_object_and_not_too_large(void **state)
{
	struct rig *g = *state;
	char *large = malloc(CREDENTIAL_BYTES_MAX + 16);
	int code = -1;

	credential_put(g->box.all, "x", "[]", count, &code);
	rig_run(&g->box);
	assert_int_equal(code, EINVAL);
	assert_non_null(large);
	memset(large, ' ', CREDENTIAL_BYTES_MAX + 16);
	memcpy(large + CREDENTIAL_BYTES_MAX - 2, "{}", 3);
	credential_put(g->box.all, "x", large, count, &code);
	rig_run(&g->box);
	assert_int_equal(code, 0);
	memcpy(large + CREDENTIAL_BYTES_MAX - 2, "   {}", 6);
	credential_put(g->box.all, "x", large, count, &code);
	rig_run(&g->box);
	assert_int_equal(code, EINVAL);
	assert_non_null(credential_find(g->box.all, "x"));
	credential_put(g->box.all, "y", NULL, count, &code); /* there is none: that is fine */
	assert_int_equal(code, 0);
	free(large);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_token_is_the_environment_s_or_a_file_s),
		TEST(what_does_not_go_together_is_refused_by_its_name),
		TEST(tokens_outlast_the_daemon_for_the_same_server_at_the_same_address),
		TEST(of_what_comes_while_it_is_written_the_last_counts),
		TEST(a_credential_is_an_object_and_not_too_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
