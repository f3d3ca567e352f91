#include "mcpc/oauth.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/encode.h"
#include "base/str.h"
#include "check.h"
#include "crypto/hash.h"
#include "mcpc/oauth_impl.h"
#include "oauth_rig.h"

/* ---- where things are ---- */

static void metadata_is_where_the_challenge_says_or_at_the_path_or_at_the_root(void **state)
{
	struct oauth *o = oauth_rig_make(&(struct oauth_options){ .redirect = BACK });

	(void)state;
	oauth_rig_begin(o, 401, "Bearer resource_metadata=\"https://mcp.example/odd.json\"");
	oauth_rig_serve(o, "https://mcp.example/odd.json", 404, "");
	oauth_rig_serve(o, "https://mcp.example/.well-known/oauth-protected-resource/mcp", 404, "");
	oauth_rig_serve(o, "https://mcp.example/.well-known/oauth-protected-resource", 200,
			RESOURCE());
	assert_string_equal(oauth_rig_todo(o).url, AS "/.well-known/oauth-authorization-server");
	oauth_free(o);
}

static void an_issuer_with_a_path_has_its_metadata_in_three_places(void **state)
{
	struct oauth *o = oauth_rig_make(&(struct oauth_options){ .redirect = BACK });

	(void)state;
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve(o, "https://mcp.example/.well-known/oauth-protected-resource/mcp", 200,
			"{\"resource\":\"" SERVER "\",\"authorization_servers\":[\"" AS "/t1/\"]}");
	oauth_rig_serve(o, AS "/.well-known/oauth-authorization-server/t1", 404, "");
	oauth_rig_serve(o, AS "/.well-known/openid-configuration/t1", 404, "");
	oauth_rig_serve(o, AS "/t1/.well-known/openid-configuration", 404, "");
	oauth_rig_fails(o, "has no metadata");
	oauth_free(o);
}

static void a_server_without_metadata_is_its_own_authorization_server(void **state)
{
	struct oauth *o = oauth_rig_make(&(struct oauth_options){ .redirect = BACK });

	(void)state;
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve(o, "https://mcp.example/.well-known/oauth-protected-resource/mcp", 404, "");
	oauth_rig_serve(o, "https://mcp.example/.well-known/oauth-protected-resource", 404, "");
	oauth_rig_serve(o, "https://mcp.example/.well-known/oauth-authorization-server", 404, "");
	oauth_rig_serve(o, "https://mcp.example/register", 201, CLIENT);
	oauth_rig_come_back(o, "&code=abc");
	oauth_rig_serve(o, "https://mcp.example/token", 200, TOKEN);
	assert_string_equal(oauth_token(o, NOW), "tok-1");
	oauth_free(o);
}

static void a_server_that_breaks_is_not_taken_for_one_without_metadata(void **state)
{
	struct oauth *o = oauth_rig_make(&(struct oauth_options){ .redirect = BACK });

	(void)state;
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve(o, "https://mcp.example/.well-known/oauth-protected-resource/mcp", 500, "");
	oauth_rig_fails(o, "cannot be had");
	oauth_free(o);
}

static void a_resource_stands_for_an_address_that_it_begins_and_for_no_other(void **state)
{
	static const struct {
		const char *resource;
		bool covers;
	} rows[] = {
		{ SERVER, true },
		{ "https://mcp.example", true },
		{ "https://mcp.example/", true },
		{ "https://mcp.example/m", false },
		{ "https://mcp.exampl", false },
		{ "https://evil.example/mcp", false },
		{ "https://mcp.example/mcp/x", false },
		{ "https://MCP.example/mcp", false },
		{ "http://mcp.example/mcp", false },
		{ "https://", false },
		{ "https:/", false },
		{ "", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(oauth_url_covers(rows[i].resource, SERVER), rows[i].covers);
}

static void metadata_of_another_resource_is_not_believed(void **state)
{
	struct oauth *o = oauth_rig_make(&(struct oauth_options){ .redirect = BACK });

	(void)state;
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve(
		o, "https://mcp.example/.well-known/oauth-protected-resource/mcp", 200,
		"{\"resource\":\"https://evil.example/mcp\",\"authorization_servers\":[\"" AS
		"\"]}");
	oauth_rig_fails(o, "another resource's");
	oauth_free(o);
}

static void metadata_of_another_issuer_is_not_believed(void **state)
{
	struct oauth *o = oauth_rig_make(&(struct oauth_options){ .redirect = BACK });

	(void)state;
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve_metadata(o, RESOURCE(),
				 "{\"issuer\":\"" AS "/\",\"token_endpoint\":\"" AS "/token\"}");
	oauth_rig_fails(o, "another issuer's");
	oauth_free(o);
}

static void everything_but_loopback_has_to_be_tls(void **state)
{
	struct oauth *o = oauth_rig_make(&(struct oauth_options){ .redirect = BACK });
	struct oauth_options plain = { .server = "http://mcp.example/mcp" };
	struct oauth *none = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(oauth_create(&plain, &none, &err), -EINVAL);
	expect_text(err.text, "https");
	assert_int_equal(
		oauth_begin(o, 401, "Bearer resource_metadata=\"http://a.example/\"", NULL),
		-EINVAL);
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve(o, "https://mcp.example/.well-known/oauth-protected-resource/mcp", 200,
			"{\"resource\":\"" SERVER
			"\",\"authorization_servers\":[\"http://as.example\"]}");
	oauth_rig_fails(o, "https");
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve_metadata(o, RESOURCE(),
				 "{\"issuer\":\"" AS
				 "\",\"token_endpoint\":\"http://as.example/token\"}");
	oauth_rig_fails(o, "token_endpoint");
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve_metadata(o, RESOURCE(),
				 "{\"issuer\":\"" AS "\",\"token_endpoint\":\"" AS "/token\","
				 "\"authorization_endpoint\":\"javascript:alert(1)\"}");
	oauth_rig_fails(o, "authorization_endpoint");
	oauth_free(o);
}

static void only_addresses_that_the_operator_named_may_be_private(void **state)
{
	struct oauth *o = oauth_rig_make(&(struct oauth_options){ .redirect = BACK });

	(void)state;
	oauth_rig_begin(o, 401, NULL);
	assert_false(oauth_rig_todo(o).public_only);
	oauth_rig_serve(o, "https://mcp.example/.well-known/oauth-protected-resource/mcp", 200,
			RESOURCE());
	assert_true(oauth_rig_todo(o).public_only);
	oauth_free(o);
	o = oauth_rig_make(&(struct oauth_options){ .redirect = BACK, .issuer = AS });
	oauth_rig_begin(o, 401, "Bearer resource_metadata=\"https://other.example/x\"");
	assert_true(oauth_rig_todo(o).public_only);
	oauth_rig_serve(o, "https://other.example/x", 200, RESOURCE());
	assert_false(oauth_rig_todo(o).public_only);
	oauth_free(o);
	o = oauth_rig_make(&(struct oauth_options){ .redirect = BACK, .allow_private = true });
	oauth_rig_begin(o, 401, "Bearer resource_metadata=\"https://other.example/x\"");
	assert_false(oauth_rig_todo(o).public_only);
	oauth_free(o);
}

/* ---- codes ---- */

static void a_code_is_asked_for_with_pkce_state_and_resource(void **state)
{
	struct oauth *o = oauth_rig_make(&(struct oauth_options){ .redirect = BACK, .name = "Me" });
	struct oauth_todo t;

	(void)state;
	oauth_rig_begin(o, 401, "Bearer scope=\"a b\"");
	oauth_rig_serve_metadata(o, RESOURCE(), METADATA());
	t = oauth_rig_todo(o);
	assert_string_equal(t.method, "POST");
	assert_string_equal(t.type, "application/json");
	expect_text(t.body, "\"application_type\":\"native\"");
	expect_text(t.body, "\"grant_types\":[\"authorization_code\",\"refresh_token\"]");
	expect_text(t.body, "\"redirect_uris\":[\"" BACK "\"]");
	expect_text(t.body, "\"client_name\":\"Me\"");
	oauth_rig_serve(o, AS "/register", 201, CLIENT);
	t = oauth_rig_todo(o);
	assert_int_equal(t.step, OAUTH_OPEN);
	expect_text(t.url, AS "/authorize?response_type=code&client_id=c1&");
	expect_text(t.url, "&redirect_uri=http%3A%2F%2F127.0.0.1%3A7777%2Fcallback");
	expect_text(t.url, "&code_challenge_method=S256");
	expect_text(t.url, "&resource=https%3A%2F%2Fmcp.example%2Fmcp");
	expect_text(t.url, "&scope=a%20b");
	oauth_rig_come_back(o, "&code=a%2Bb+c");
	t = oauth_rig_todo(o);
	assert_string_equal(t.url, AS "/token");
	assert_string_equal(t.type, "application/x-www-form-urlencoded");
	expect_text(t.body, "grant_type=authorization_code&code=a%2Bb%20c&redirect_uri=http%3A");
	expect_text(t.body, "&code_verifier=");
	expect_text(t.body, "&resource=https%3A%2F%2Fmcp.example%2Fmcp");
	/* no methods in the metadata: basic, with both parts encoded ("c1:s%2F1") */
	assert_string_equal(t.authorization, "Authorization: Basic YzE6cyUyRjE=");
	expect_no_text(t.body, "client_secret");
	oauth_rig_serve(o, AS "/token", 200, TOKEN);
	assert_int_equal(oauth_rig_todo(o).step, OAUTH_READY);
	assert_string_equal(oauth_token(o, NOW), "tok-1");
	assert_string_equal(oauth_token(o, NOW + 3600 - OAUTH_SKEW_S - 1), "tok-1");
	assert_null(oauth_token(o, NOW + 3600 - OAUTH_SKEW_S));
	oauth_free(o);
}

static void the_challenge_is_the_hash_of_a_new_verifier_each_time(void **state)
{
	struct oauth *o =
		oauth_rig_make(&(struct oauth_options){ .redirect = BACK, .client_id = "me" });
	char before[64] = "", challenge[BASE64_SIZE(HASH_LEN)], part[128];
	uint8_t sum[HASH_LEN];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		const char *verifier = o->flow.verifier;

		oauth_rig_begin(o, 401, NULL);
		oauth_rig_serve_metadata(o, RESOURCE(), METADATA());
		assert_int_equal(strlen(verifier), 43); /* 32 bytes */
		assert_string_not_equal(verifier, before);
		assert_int_equal(str_copy(before, sizeof(before), verifier), 0);
		assert_int_equal(hash_sha256(verifier, strlen(verifier), sum), 0);
		(void)encode_base64url(sum, sizeof(sum), challenge);
		assert_int_equal(str_format(part, sizeof(part), "&code_challenge=%s&", challenge),
				 0);
		expect_text(oauth_rig_todo(o).url, part);
		expect_no_text(oauth_rig_todo(o).url, verifier);
	}
	oauth_rig_come_back(o, "&code=x");
	assert_int_equal(str_format(part, sizeof(part), "&code_verifier=%s", before), 0);
	expect_text(oauth_rig_todo(o).body, part);
	oauth_free(o);
}

static void an_authorization_server_without_pkce_is_not_used(void **state)
{
	struct oauth *o = oauth_rig_make(&(struct oauth_options){ .redirect = BACK });

	(void)state;
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve_metadata(o, RESOURCE(),
				 "{\"issuer\":\"" AS "\",\"token_endpoint\":\"" AS "/token\","
				 "\"authorization_endpoint\":\"" AS "/authorize\","
				 "\"code_challenge_methods_supported\":[\"plain\"]}");
	oauth_rig_fails(o, "PKCE");
	oauth_free(o);
}

static void an_answer_with_another_state_is_no_answer(void **state)
{
	static const char *const queries[] = {
		"code=x",    "code=x&state=",         "code=x&state=guess",
		"state=%zz", "code=x&state=a&state=", "",
	};
	struct oauth *o =
		oauth_rig_make(&(struct oauth_options){ .redirect = BACK, .client_id = "me" });

	(void)state;
	assert_int_equal(oauth_redirected(o, "code=x", NULL), -EINVAL);
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve_metadata(o, RESOURCE(), METADATA());
	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++)
		assert_int_equal(oauth_redirected(o, queries[i], NULL), -EINVAL);
	oauth_rig_come_back(o, "&code=x"); /* it was still open */
	assert_string_equal(oauth_rig_todo(o).url, AS "/token");
	oauth_free(o);
}

static void too_long_an_answer_of_a_browser_is_refused(void **state)
{
	struct oauth *o =
		oauth_rig_make(&(struct oauth_options){ .redirect = BACK, .client_id = "me" });
	struct buf b = { 0 };
	struct err err = { 0 };

	(void)state;
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve_metadata(o, RESOURCE(), METADATA());
	while (b.len <= OAUTH_QUERY_MAX)
		assert_int_equal(buf_puts(&b, "code=x&"), 0);
	assert_int_equal(oauth_redirected(o, buf_str(&b), &err), -EINVAL);
	expect_text(err.text, "longer");
	buf_done(&b);
	oauth_free(o);
}

static void the_issuer_of_an_answer_is_compared_as_it_is(void **state)
{
	static const struct {
		const char *metadata, *back;
		bool passes;
	} rows[] = {
		{ METADATA(), "&code=x", true },
		{ METADATA(), "&code=x&iss=https%3A%2F%2Fas.example", true },
		{ METADATA(), "&code=x&iss=https%3A%2F%2Fevil.example", false },
		{ METADATA(",\"authorization_response_iss_parameter_supported\":true"), "&code=x",
		  false },
		{ METADATA(",\"authorization_response_iss_parameter_supported\":true"),
		  "&code=x&iss=https%3A%2F%2Fas.example", true },
		{ METADATA(",\"authorization_response_iss_parameter_supported\":true"),
		  "&code=x&iss=https%3A%2F%2Fas.example%2F", false },
		{ METADATA(), "&error=access_denied&iss=https%3A%2F%2Fevil.example", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct oauth *o = oauth_rig_make(
			&(struct oauth_options){ .redirect = BACK, .client_id = "me" });

		oauth_rig_begin(o, 401, NULL);
		oauth_rig_serve_metadata(o, RESOURCE(), rows[i].metadata);
		oauth_rig_come_back(o, rows[i].back);
		if (rows[i].passes)
			assert_string_equal(oauth_rig_todo(o).url, AS "/token");
		else
			oauth_rig_fails(o, "does not come from");
		oauth_free(o);
	}
}

static void whoever_says_no_is_believed(void **state)
{
	struct oauth *o =
		oauth_rig_make(&(struct oauth_options){ .redirect = BACK, .client_id = "me" });

	(void)state;
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve_metadata(o, RESOURCE(), METADATA());
	oauth_rig_come_back(o, "&error=access_denied");
	oauth_rig_fails(o, "access_denied");
	oauth_free(o);
}

/* ---- challenges ---- */

static void challenges_are_read_as_people_write_them(void **state)
{
	static const struct {
		const char *text, *error, *scope, *metadata;
	} rows[] = {
		{ "", "", "", "" },
		{ "Bearer", "", "", "" },
		{ "Bearer realm=\"x\"", "", "", "" },
		{ "bearer scope=\"a b\", resource_metadata=\"https://x/y\", error=\"e\"", "e",
		  "a b", "https://x/y" },
		{ "Bearer scope=a,error=invalid_token", "invalid_token", "a", "" },
		{ "Basic realm=\"a, Bearer scope=b\", Bearer scope=\"c\"", "", "c", "" },
		{ "Bearer scope=\"c\", Basic scope=\"d\", error=\"e\"", "", "c", "" },
		{ "Bearer scope=\"a\\\"b\"", "", "a\"b", "" },
		{ "Bearer scope=\"never ends", "", "never ends", "" },
		{ "Bearer SCOPE = \"x\"", "", "x", "" },
		{ "DPoP scope=\"x\"", "", "", "" },
		{ "Bearer scope=\"first\", scope=\"second\"", "", "first", "" },
		{ ",,, Bearer ,, scope=\"x\"", "", "x", "" },
		{ "\"\"\"=\"", "", "", "" },
		{ "Negotiate abc==, Bearer scope=\"x\"", "", "x", "" },
	};
	struct oauth_challenge c;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		oauth_challenge_parse(rows[i].text, &c);
		assert_string_equal(c.error, rows[i].error);
		assert_string_equal(c.scope, rows[i].scope);
		assert_string_equal(c.metadata, rows[i].metadata);
	}
}

static void what_is_too_long_in_a_challenge_is_not_said(void **state)
{
	struct oauth_challenge c;
	struct buf b = { 0 };

	(void)state;
	assert_int_equal(buf_puts(&b, "Bearer scope=\""), 0);
	for (unsigned i = 0; i < OAUTH_SCOPE_MAX; i++)
		assert_int_equal(buf_putc(&b, 'a'), 0);
	assert_int_equal(buf_puts(&b, "\", error=\"e\""), 0);
	oauth_challenge_parse(buf_str(&b), &c);
	assert_string_equal(c.scope, "");
	assert_string_equal(c.error, "e");
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			metadata_is_where_the_challenge_says_or_at_the_path_or_at_the_root),
		cmocka_unit_test(an_issuer_with_a_path_has_its_metadata_in_three_places),
		cmocka_unit_test(a_server_without_metadata_is_its_own_authorization_server),
		cmocka_unit_test(a_server_that_breaks_is_not_taken_for_one_without_metadata),
		cmocka_unit_test(a_resource_stands_for_an_address_that_it_begins_and_for_no_other),
		cmocka_unit_test(metadata_of_another_resource_is_not_believed),
		cmocka_unit_test(metadata_of_another_issuer_is_not_believed),
		cmocka_unit_test(everything_but_loopback_has_to_be_tls),
		cmocka_unit_test(only_addresses_that_the_operator_named_may_be_private),
		cmocka_unit_test(a_code_is_asked_for_with_pkce_state_and_resource),
		cmocka_unit_test(the_challenge_is_the_hash_of_a_new_verifier_each_time),
		cmocka_unit_test(an_authorization_server_without_pkce_is_not_used),
		cmocka_unit_test(an_answer_with_another_state_is_no_answer),
		cmocka_unit_test(too_long_an_answer_of_a_browser_is_refused),
		cmocka_unit_test(the_issuer_of_an_answer_is_compared_as_it_is),
		cmocka_unit_test(whoever_says_no_is_believed),
		cmocka_unit_test(challenges_are_read_as_people_write_them),
		cmocka_unit_test(what_is_too_long_in_a_challenge_is_not_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
