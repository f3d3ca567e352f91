#include "mcpc/oauth.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "check.h"
#include "mcpc/oauth_impl.h"

#define SERVER "https://mcp.example/mcp"
#define AS "https://as.example"
#define BACK "http://127.0.0.1:7777/callback"
#define NOW 1000000

#define RESOURCE(more) \
	"{\"resource\":\"" SERVER "\",\"authorization_servers\":[\"" AS "\"]" more "}"
#define METADATA(more)                                                                       \
	"{\"issuer\":\"" AS "\",\"authorization_endpoint\":\"" AS "/authorize\","            \
	"\"token_endpoint\":\"" AS "/token\",\"registration_endpoint\":\"" AS "/register\"," \
	"\"code_challenge_methods_supported\":[\"S256\"]" more "}"
#define CLIENT "{\"client_id\":\"c1\",\"client_secret\":\"s/1\"}"
#define TOKEN "{\"access_token\":\"tok-1\",\"token_type\":\"bearer\",\"expires_in\":3600}"

/* ---- playing the servers ---- */

static struct oauth *make(const struct oauth_options *more)
{
	struct oauth_options o = *more;
	struct oauth *ret = NULL;
	struct err err = { 0 };

	if (!o.server)
		o.server = SERVER;
	assert_int_equal(oauth_create(&o, &ret, &err), 0);
	return ret;
}

static struct oauth_todo todo(const struct oauth *o)
{
	struct oauth_todo t;

	oauth_todo(o, &t);
	return t;
}

static void begin(struct oauth *o, int status, const char *challenge)
{
	assert_int_equal(oauth_begin(o, status, challenge, NULL), 0);
}

/* What is asked must be this; it is answered. */
static void serve(struct oauth *o, const char *url, int status, const char *body)
{
	struct oauth_todo t = todo(o);

	assert_int_equal(t.step, OAUTH_FETCH);
	assert_string_equal(t.url, url);
	oauth_answer(o, status, body, strlen(body), NOW, NULL);
}

static void serve_metadata(struct oauth *o, const char *resource, const char *metadata)
{
	serve(o, "https://mcp.example/.well-known/oauth-protected-resource/mcp", 200, resource);
	serve(o, AS "/.well-known/oauth-authorization-server", 200, metadata);
}

static void expect(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in '%s'", part, text);
}

static void expect_not(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("'%s' is in '%s'", part, text);
}

static void fails(const struct oauth *o, const char *why)
{
	struct oauth_todo t = todo(o);

	assert_int_equal(t.step, OAUTH_FAILED);
	expect(t.err->text, why);
}

/* The browser comes back with the state that it was given, and this. */
static void come_back(struct oauth *o, const char *more)
{
	struct oauth_todo t = todo(o);
	char query[512];
	const char *state;

	assert_int_equal(t.step, OAUTH_OPEN);
	state = strstr(t.url, "&state=");
	assert_non_null(state);
	assert_int_equal(str_format(query, sizeof(query), "state=%.43s%s", state + 7, more), 0);
	assert_int_equal(oauth_redirected(o, query, NULL), 0);
}

static void login(struct oauth *o, const char *metadata)
{
	begin(o, 401, NULL);
	serve_metadata(o, RESOURCE(), metadata);
	serve(o, AS "/register", 201, CLIENT);
	come_back(o, "&code=abc");
	serve(o, AS "/token", 200, TOKEN);
	assert_int_equal(todo(o).step, OAUTH_READY);
}

/* ---- where things are ---- */

static void
metadata_is_looked_for_where_the_challenge_says_then_at_the_path_then_at_the_root(void **state)
{
	struct oauth *o = make(&(struct oauth_options){ .redirect = BACK });

	(void)state;
	begin(o, 401, "Bearer resource_metadata=\"https://mcp.example/odd.json\"");
	serve(o, "https://mcp.example/odd.json", 404, "");
	serve(o, "https://mcp.example/.well-known/oauth-protected-resource/mcp", 404, "");
	serve(o, "https://mcp.example/.well-known/oauth-protected-resource", 200, RESOURCE());
	assert_string_equal(todo(o).url, AS "/.well-known/oauth-authorization-server");
	oauth_free(o);
}

static void an_issuer_with_a_path_has_its_metadata_in_three_places(void **state)
{
	struct oauth *o = make(&(struct oauth_options){ .redirect = BACK });

	(void)state;
	begin(o, 401, NULL);
	serve(o, "https://mcp.example/.well-known/oauth-protected-resource/mcp", 200,
	      "{\"resource\":\"" SERVER "\",\"authorization_servers\":[\"" AS "/t1/\"]}");
	serve(o, AS "/.well-known/oauth-authorization-server/t1", 404, "");
	serve(o, AS "/.well-known/openid-configuration/t1", 404, "");
	serve(o, AS "/t1/.well-known/openid-configuration", 404, "");
	fails(o, "has no metadata");
	oauth_free(o);
}

static void a_server_without_metadata_is_its_own_authorization_server(void **state)
{
	struct oauth *o = make(&(struct oauth_options){ .redirect = BACK });

	(void)state;
	begin(o, 401, NULL);
	serve(o, "https://mcp.example/.well-known/oauth-protected-resource/mcp", 404, "");
	serve(o, "https://mcp.example/.well-known/oauth-protected-resource", 404, "");
	serve(o, "https://mcp.example/.well-known/oauth-authorization-server", 404, "");
	serve(o, "https://mcp.example/register", 201, CLIENT);
	come_back(o, "&code=abc");
	serve(o, "https://mcp.example/token", 200, TOKEN);
	assert_string_equal(oauth_token(o, NOW), "tok-1");
	oauth_free(o);
}

static void a_server_that_breaks_is_not_taken_for_one_without_metadata(void **state)
{
	struct oauth *o = make(&(struct oauth_options){ .redirect = BACK });

	(void)state;
	begin(o, 401, NULL);
	serve(o, "https://mcp.example/.well-known/oauth-protected-resource/mcp", 500, "");
	fails(o, "cannot be had");
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
	struct oauth *o = make(&(struct oauth_options){ .redirect = BACK });

	(void)state;
	begin(o, 401, NULL);
	serve(o, "https://mcp.example/.well-known/oauth-protected-resource/mcp", 200,
	      "{\"resource\":\"https://evil.example/mcp\",\"authorization_servers\":[\"" AS "\"]}");
	fails(o, "another resource's");
	oauth_free(o);
}

static void metadata_of_another_issuer_is_not_believed(void **state)
{
	struct oauth *o = make(&(struct oauth_options){ .redirect = BACK });

	(void)state;
	begin(o, 401, NULL);
	serve_metadata(o, RESOURCE(),
		       "{\"issuer\":\"" AS "/\",\"token_endpoint\":\"" AS "/token\"}");
	fails(o, "another issuer's");
	oauth_free(o);
}

static void everything_but_loopback_has_to_be_tls(void **state)
{
	struct oauth *o = make(&(struct oauth_options){ .redirect = BACK });
	struct oauth_options plain = { .server = "http://mcp.example/mcp" };
	struct oauth *none = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(oauth_create(&plain, &none, &err), -EINVAL);
	expect(err.text, "https");
	assert_int_equal(
		oauth_begin(o, 401, "Bearer resource_metadata=\"http://a.example/\"", NULL),
		-EINVAL);
	begin(o, 401, NULL);
	serve(o, "https://mcp.example/.well-known/oauth-protected-resource/mcp", 200,
	      "{\"resource\":\"" SERVER "\",\"authorization_servers\":[\"http://as.example\"]}");
	fails(o, "https");
	begin(o, 401, NULL);
	serve_metadata(o, RESOURCE(),
		       "{\"issuer\":\"" AS "\",\"token_endpoint\":\"http://as.example/token\"}");
	fails(o, "token_endpoint");
	begin(o, 401, NULL);
	serve_metadata(o, RESOURCE(),
		       "{\"issuer\":\"" AS "\",\"token_endpoint\":\"" AS "/token\","
		       "\"authorization_endpoint\":\"javascript:alert(1)\"}");
	fails(o, "authorization_endpoint");
	oauth_free(o);
}

static void only_addresses_that_the_operator_named_may_be_private(void **state)
{
	struct oauth *o = make(&(struct oauth_options){ .redirect = BACK });

	(void)state;
	begin(o, 401, NULL);
	assert_false(todo(o).public_only);
	serve(o, "https://mcp.example/.well-known/oauth-protected-resource/mcp", 200, RESOURCE());
	assert_true(todo(o).public_only);
	oauth_free(o);
	o = make(&(struct oauth_options){ .redirect = BACK, .issuer = AS });
	begin(o, 401, "Bearer resource_metadata=\"https://other.example/x\"");
	assert_true(todo(o).public_only);
	serve(o, "https://other.example/x", 200, RESOURCE());
	assert_false(todo(o).public_only);
	oauth_free(o);
	o = make(&(struct oauth_options){ .redirect = BACK, .allow_private = true });
	begin(o, 401, "Bearer resource_metadata=\"https://other.example/x\"");
	assert_false(todo(o).public_only);
	oauth_free(o);
}

/* ---- codes ---- */

static void a_code_is_asked_for_with_pkce_state_and_resource(void **state)
{
	struct oauth *o = make(&(struct oauth_options){ .redirect = BACK, .name = "Me" });
	struct oauth_todo t;

	(void)state;
	begin(o, 401, "Bearer scope=\"a b\"");
	serve_metadata(o, RESOURCE(), METADATA());
	t = todo(o);
	assert_string_equal(t.method, "POST");
	assert_string_equal(t.type, "application/json");
	expect(t.body, "\"application_type\":\"native\"");
	expect(t.body, "\"grant_types\":[\"authorization_code\",\"refresh_token\"]");
	expect(t.body, "\"redirect_uris\":[\"" BACK "\"]");
	expect(t.body, "\"client_name\":\"Me\"");
	serve(o, AS "/register", 201, CLIENT);
	t = todo(o);
	assert_int_equal(t.step, OAUTH_OPEN);
	expect(t.url, AS "/authorize?response_type=code&client_id=c1&");
	expect(t.url, "&redirect_uri=http%3A%2F%2F127.0.0.1%3A7777%2Fcallback");
	expect(t.url, "&code_challenge_method=S256");
	expect(t.url, "&resource=https%3A%2F%2Fmcp.example%2Fmcp");
	expect(t.url, "&scope=a%20b");
	come_back(o, "&code=a%2Bb+c");
	t = todo(o);
	assert_string_equal(t.url, AS "/token");
	assert_string_equal(t.type, "application/x-www-form-urlencoded");
	expect(t.body, "grant_type=authorization_code&code=a%2Bb%20c&redirect_uri=http%3A");
	expect(t.body, "&code_verifier=");
	expect(t.body, "&resource=https%3A%2F%2Fmcp.example%2Fmcp");
	/* no methods in the metadata: basic, with both parts encoded ("c1:s%2F1") */
	assert_string_equal(t.authorization, "Authorization: Basic YzE6cyUyRjE=");
	expect_not(t.body, "client_secret");
	serve(o, AS "/token", 200, TOKEN);
	assert_int_equal(todo(o).step, OAUTH_READY);
	assert_string_equal(oauth_token(o, NOW), "tok-1");
	assert_string_equal(oauth_token(o, NOW + 3600 - OAUTH_SKEW_S - 1), "tok-1");
	assert_null(oauth_token(o, NOW + 3600 - OAUTH_SKEW_S));
	oauth_free(o);
}

static void the_challenge_is_the_hash_of_the_verifier(void **state)
{
	struct oauth *o = make(&(struct oauth_options){ .redirect = BACK, .client_id = "me" });
	char first[64], second[64];

	(void)state;
	begin(o, 401, NULL);
	serve_metadata(o, RESOURCE(), METADATA());
	memcpy(first, o->flow.verifier, sizeof(first));
	assert_int_equal(strlen(first), 43);
	begin(o, 401, NULL);
	serve_metadata(o, RESOURCE(), METADATA());
	memcpy(second, o->flow.verifier, sizeof(second));
	assert_string_not_equal(first, second);
	/* RFC 7636, appendix B */
	memcpy(o->flow.verifier, "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", 44);
	come_back(o, "&code=x");
	expect(todo(o).body, "code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
	oauth_free(o);
}

static void an_authorization_server_without_pkce_is_not_used(void **state)
{
	struct oauth *o = make(&(struct oauth_options){ .redirect = BACK });

	(void)state;
	begin(o, 401, NULL);
	serve_metadata(o, RESOURCE(),
		       "{\"issuer\":\"" AS "\",\"token_endpoint\":\"" AS "/token\","
		       "\"authorization_endpoint\":\"" AS "/authorize\","
		       "\"code_challenge_methods_supported\":[\"plain\"]}");
	fails(o, "PKCE");
	oauth_free(o);
}

static void an_answer_with_another_state_is_no_answer(void **state)
{
	static const char *const queries[] = {
		"code=x",    "code=x&state=",         "code=x&state=guess",
		"state=%zz", "code=x&state=a&state=", "",
	};
	struct oauth *o = make(&(struct oauth_options){ .redirect = BACK, .client_id = "me" });

	(void)state;
	assert_int_equal(oauth_redirected(o, "code=x", NULL), -EINVAL);
	begin(o, 401, NULL);
	serve_metadata(o, RESOURCE(), METADATA());
	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++)
		assert_int_equal(oauth_redirected(o, queries[i], NULL), -EINVAL);
	come_back(o, "&code=x"); /* it was still open */
	assert_string_equal(todo(o).url, AS "/token");
	oauth_free(o);
}

static void too_long_an_answer_of_a_browser_is_refused(void **state)
{
	struct oauth *o = make(&(struct oauth_options){ .redirect = BACK, .client_id = "me" });
	struct buf b = { 0 };
	struct err err = { 0 };

	(void)state;
	begin(o, 401, NULL);
	serve_metadata(o, RESOURCE(), METADATA());
	while (b.len <= OAUTH_QUERY_MAX)
		assert_int_equal(buf_puts(&b, "code=x&"), 0);
	assert_int_equal(oauth_redirected(o, buf_str(&b), &err), -EINVAL);
	expect(err.text, "longer");
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
		struct oauth *o =
			make(&(struct oauth_options){ .redirect = BACK, .client_id = "me" });

		begin(o, 401, NULL);
		serve_metadata(o, RESOURCE(), rows[i].metadata);
		come_back(o, rows[i].back);
		if (rows[i].passes)
			assert_string_equal(todo(o).url, AS "/token");
		else
			fails(o, "does not come from");
		oauth_free(o);
	}
}

static void whoever_says_no_is_believed(void **state)
{
	struct oauth *o = make(&(struct oauth_options){ .redirect = BACK, .client_id = "me" });

	(void)state;
	begin(o, 401, NULL);
	serve_metadata(o, RESOURCE(), METADATA());
	come_back(o, "&error=access_denied");
	fails(o, "access_denied");
	oauth_free(o);
}

/* ---- as whom ---- */

static void identity_is_what_was_given_then_a_document_then_a_registration(void **state)
{
	const char *takes = METADATA(",\"client_id_metadata_document_supported\":true");
	struct oauth_options o1 = { .redirect = BACK,
				    .client_id = "me",
				    .document = "https://me.example/doc.json" };
	struct oauth *o = make(&o1);

	(void)state;
	begin(o, 401, NULL);
	serve_metadata(o, RESOURCE(), takes);
	expect(todo(o).url, "client_id=me&");
	oauth_free(o);
	o1.client_id = NULL;
	o = make(&o1);
	begin(o, 401, NULL);
	serve_metadata(o, RESOURCE(), takes);
	expect(todo(o).url, "client_id=https%3A%2F%2Fme.example%2Fdoc.json&");
	begin(o, 401, NULL);
	serve_metadata(o, RESOURCE(), METADATA());
	assert_string_equal(todo(o).url, AS "/register");
	begin(o, 401, NULL);
	serve_metadata(o, RESOURCE(),
		       "{\"issuer\":\"" AS "\",\"token_endpoint\":\"" AS "/token\","
		       "\"authorization_endpoint\":\"" AS "/authorize\","
		       "\"code_challenge_methods_supported\":[\"S256\"]}");
	fails(o, "client_id");
	oauth_free(o);
}

static void the_secret_goes_the_way_that_the_server_knows(void **state)
{
	static const struct {
		const char *metadata, *client, *authorization, *body, *not_body;
	} rows[] = {
		{ METADATA(",\"token_endpoint_auth_methods_supported\":[\"client_secret_basic\"]"),
		  CLIENT, "Authorization: Basic YzE6cyUyRjE=", "grant_type", "client_id" },
		{ METADATA(",\"token_endpoint_auth_methods_supported\":[\"client_secret_post\"]"),
		  CLIENT, NULL, "&client_id=c1&client_secret=s%2F1", "Basic" },
		{ METADATA(",\"token_endpoint_auth_methods_supported\":[\"none\"]"), CLIENT, NULL,
		  "&client_id=c1", "client_secret" },
		{ METADATA(), "{\"client_id\":\"c1\"}", NULL, "&client_id=c1", "client_secret" },
		{ METADATA(",\"token_endpoint_auth_methods_supported\":[\"client_secret_basic\","
			   "\"client_secret_post\"]"),
		  "{\"client_id\":\"c1\",\"client_secret\":\"s/1\","
		  "\"token_endpoint_auth_method\":\"client_secret_post\"}",
		  NULL, "&client_secret=s%2F1", "Basic" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct oauth *o = make(&(struct oauth_options){ .redirect = BACK });
		struct oauth_todo t;

		begin(o, 401, NULL);
		serve_metadata(o, RESOURCE(), rows[i].metadata);
		serve(o, AS "/register", 201, rows[i].client);
		come_back(o, "&code=abc");
		t = todo(o);
		if (rows[i].authorization)
			assert_string_equal(t.authorization, rows[i].authorization);
		else
			assert_null(t.authorization);
		expect(t.body, rows[i].body);
		expect_not(t.body, rows[i].not_body);
		oauth_free(o);
	}
}

static void client_credentials_need_no_browser(void **state)
{
	struct oauth *o = make(&(struct oauth_options){ .grant = OAUTH_GRANT_CLIENT,
							.client_id = "me",
							.client_secret = "hush",
							.issuer = AS });

	(void)state;
	begin(o, 401, "Bearer scope=\"a\"");
	serve_metadata(o, RESOURCE(), METADATA());
	expect(todo(o).body, "grant_type=client_credentials&scope=a&resource=https");
	expect(todo(o).authorization, "Authorization: Basic ");
	serve(o, AS "/token", 200, TOKEN);
	assert_string_equal(oauth_token(o, NOW), "tok-1");
	oauth_free(o);
}

static void a_secret_is_shown_to_its_issuer_only(void **state)
{
	struct oauth *o = make(&(struct oauth_options){ .grant = OAUTH_GRANT_CLIENT,
							.client_id = "me",
							.client_secret = "hush",
							.issuer = "https://good.example" });

	(void)state;
	begin(o, 401, NULL);
	serve(o, "https://mcp.example/.well-known/oauth-protected-resource/mcp", 200, RESOURCE());
	fails(o, "not the issuer that was given");
	oauth_free(o);
	/* without one: the first, and then no other */
	o = make(&(struct oauth_options){
		.grant = OAUTH_GRANT_CLIENT, .client_id = "me", .client_secret = "hush" });
	begin(o, 401, NULL);
	serve_metadata(o, RESOURCE(), METADATA());
	serve(o, AS "/token", 200, TOKEN);
	begin(o, 401, NULL);
	serve(o, "https://mcp.example/.well-known/oauth-protected-resource/mcp", 200,
	      "{\"resource\":\"" SERVER "\",\"authorization_servers\":[\"https://b.example\"]}");
	fails(o, "is not for it");
	oauth_free(o);
}

static void what_one_authorization_server_gave_is_not_shown_to_another(void **state)
{
	struct oauth *o = make(&(struct oauth_options){ .redirect = BACK });

	(void)state;
	begin(o, 401, NULL);
	serve_metadata(o, RESOURCE(), METADATA());
	serve(o, AS "/register", 201, CLIENT);
	come_back(o, "&code=abc");
	serve(o, AS "/token", 200,
	      "{\"access_token\":\"tok-1\",\"token_type\":\"Bearer\",\"refresh_token\":\"ref\"}");
	begin(o, 401, NULL);
	serve(o, "https://mcp.example/.well-known/oauth-protected-resource/mcp", 200,
	      "{\"resource\":\"" SERVER "\",\"authorization_servers\":[\"https://b.example\"]}");
	serve(o, "https://b.example/.well-known/oauth-authorization-server", 200,
	      "{\"issuer\":\"https://b.example\",\"token_endpoint\":\"https://b.example/token\","
	      "\"authorization_endpoint\":\"https://b.example/authorize\","
	      "\"registration_endpoint\":\"https://b.example/register\","
	      "\"code_challenge_methods_supported\":[\"S256\"]}");
	assert_string_equal(todo(o).url, "https://b.example/register");
	serve(o, "https://b.example/register", 201, "{\"client_id\":\"c2\"}");
	expect(todo(o).url, "client_id=c2&");
	oauth_free(o);
}

/* ---- scopes ---- */

static void scopes_are_those_of_the_challenge_then_of_the_resource_then_none(void **state)
{
	const char *has = RESOURCE(",\"scopes_supported\":[\"x\",\"y\"]");
	struct oauth *o = make(&(struct oauth_options){ .redirect = BACK, .client_id = "me" });

	(void)state;
	begin(o, 401, "Bearer scope=\"a\"");
	serve_metadata(o, has, METADATA());
	expect(todo(o).url, "&scope=a");
	expect_not(todo(o).url, "&scope=a%20");
	begin(o, 401, NULL);
	serve_metadata(o, has, METADATA());
	expect(todo(o).url, "&scope=x%20y");
	begin(o, 401, NULL);
	serve_metadata(o, RESOURCE(), METADATA());
	expect_not(todo(o).url, "scope=");
	oauth_free(o);
	o = make(&(struct oauth_options){ .redirect = BACK, .client_id = "me", .scope = "mine" });
	begin(o, 401, NULL);
	serve_metadata(o, has, METADATA());
	expect(todo(o).url, "&scope=mine");
	oauth_free(o);
}

static void offline_access_is_asked_for_only_where_it_is_advertised(void **state)
{
	struct oauth *o = make(&(struct oauth_options){ .redirect = BACK, .client_id = "me" });

	(void)state;
	begin(o, 401, "Bearer scope=\"a\"");
	serve_metadata(o, RESOURCE(), METADATA(",\"scopes_supported\":[\"a\",\"offline_access\"]"));
	expect(todo(o).url, "&scope=a%20offline_access");
	begin(o, 401, "Bearer scope=\"a offline_access\"");
	serve_metadata(o, RESOURCE(), METADATA(",\"scopes_supported\":[\"a\"]"));
	expect(todo(o).url, "&scope=a");
	expect_not(todo(o).url, "offline");
	begin(o, 401, NULL);
	serve_metadata(o, RESOURCE(), METADATA(",\"scopes_supported\":[\"a\",\"offline_access\"]"));
	expect_not(todo(o).url, "scope="); /* alone it would take the others away */
	oauth_free(o);
}

static void a_step_up_asks_for_all_there_was_and_what_is_new(void **state)
{
	struct oauth *o = make(&(struct oauth_options){ .redirect = BACK, .client_id = "me" });
	struct err err = { 0 };

	(void)state;
	begin(o, 401, "Bearer scope=\"a\"");
	serve_metadata(o, RESOURCE(), METADATA());
	come_back(o, "&code=1");
	serve(o, AS "/token", 200, TOKEN);
	begin(o, 403, "Bearer error=\"insufficient_scope\", scope=\"b\"");
	assert_string_equal(oauth_token(o, NOW), "tok-1"); /* good for the rest meanwhile */
	serve_metadata(o, RESOURCE(), METADATA());
	expect(todo(o).url, "&scope=a%20b");
	come_back(o, "&code=2");
	serve(o, AS "/token", 200, TOKEN);
	assert_int_equal(
		oauth_begin(o, 403, "Bearer error=\"insufficient_scope\", scope=\"b a\"", &err),
		-EACCES);
	expect(err.text, "was asked for");
	assert_int_equal(oauth_begin(o, 403, "Bearer error=\"invalid_token\"", &err), -EACCES);
	assert_int_equal(oauth_begin(o, 403, NULL, &err), -EACCES);
	oauth_free(o);
}

static void too_many_scopes_are_refused(void **state)
{
	struct oauth *o = make(&(struct oauth_options){ .redirect = BACK, .client_id = "me" });
	struct buf b = { 0 };

	(void)state;
	assert_int_equal(buf_puts(&b,
				  "{\"resource\":\"" SERVER "\",\"authorization_servers\":[\"" AS
				  "\"],\"scopes_supported\":[\"x\""),
			 0);
	for (unsigned i = 0; i < 500; i++)
		assert_int_equal(buf_printf(&b, ",\"scope-%u\"", i), 0);
	assert_int_equal(buf_puts(&b, "]}"), 0);
	begin(o, 401, NULL);
	serve_metadata(o, buf_str(&b), METADATA());
	fails(o, "scopes are longer");
	buf_done(&b);
	oauth_free(o);
}

/* ---- tokens ---- */

static void a_used_up_token_is_refreshed_without_anybody(void **state)
{
	struct oauth *o = make(&(struct oauth_options){ .redirect = BACK });

	(void)state;
	begin(o, 401, NULL);
	serve_metadata(o, RESOURCE(), METADATA());
	serve(o, AS "/register", 201, CLIENT);
	come_back(o, "&code=abc");
	serve(o, AS "/token", 200,
	      "{\"access_token\":\"t1\",\"token_type\":\"Bearer\",\"refresh_token\":\"r+1\"}");
	begin(o, 401, NULL);
	assert_null(oauth_token(o, NOW)); /* it was refused */
	serve_metadata(o, RESOURCE(), METADATA());
	expect(todo(o).body, "grant_type=refresh_token&refresh_token=r%2B1&resource=https");
	serve(o, AS "/token", 200, "{\"access_token\":\"t2\",\"token_type\":\"Bearer\"}");
	assert_string_equal(oauth_token(o, NOW), "t2");
	begin(o, 401, NULL); /* the refresh token stays when no other one came */
	serve_metadata(o, RESOURCE(), METADATA());
	expect(todo(o).body, "refresh_token=r%2B1");
	serve(o, AS "/token", 503, "");
	fails(o, "503");
	begin(o, 401, NULL); /* a server that is down does not cost it */
	serve_metadata(o, RESOURCE(), METADATA());
	serve(o, AS "/token", 400, "{\"error\":\"invalid_grant\"}");
	assert_int_equal(todo(o).step, OAUTH_OPEN); /* somebody has to say yes again */
	oauth_free(o);
}

static void without_a_browser_somebody_is_told_to_log_in(void **state)
{
	struct oauth *o = make(&(struct oauth_options){ .client_id = "me" });

	(void)state;
	begin(o, 401, NULL);
	serve_metadata(o, RESOURCE(), METADATA());
	fails(o, "holt mcp login");
	assert_int_equal(oauth_set_redirect(o, "ftp://x", NULL), -EINVAL);
	assert_int_equal(oauth_set_redirect(o, BACK, NULL), 0);
	begin(o, 0, NULL);
	serve_metadata(o, RESOURCE(), METADATA());
	assert_int_equal(todo(o).step, OAUTH_OPEN);
	oauth_free(o);
}

static void a_client_that_was_forgotten_registers_again(void **state)
{
	struct oauth *o = make(&(struct oauth_options){ .redirect = BACK });

	(void)state;
	login(o, METADATA());
	begin(o, 401, NULL);
	serve_metadata(o, RESOURCE(), METADATA());
	come_back(o, "&code=abc"); /* not registered again */
	serve(o, AS "/token", 401, "{\"error\":\"invalid_client\"}");
	fails(o, "invalid_client");
	begin(o, 401, NULL);
	serve_metadata(o, RESOURCE(), METADATA());
	assert_string_equal(todo(o).url, AS "/register");
	oauth_free(o);
}

static void answers_that_are_none_are_refused(void **state)
{
	static const char *const bodies[] = {
		"",
		"[]",
		"{",
		"{\"access_token\":7,\"token_type\":\"Bearer\"}",
		"{\"access_token\":\"\",\"token_type\":\"Bearer\"}",
		"{\"access_token\":\"a b\",\"token_type\":\"Bearer\"}",
		"{\"access_token\":\"a\\r\\nX: y\",\"token_type\":\"Bearer\"}",
		"{\"access_token\":\"abc\",\"token_type\":\"DPoP\"}",
		"{\"access_token\":\"abc\"}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		struct oauth *o =
			make(&(struct oauth_options){ .redirect = BACK, .client_id = "me" });

		begin(o, 401, NULL);
		serve_metadata(o, RESOURCE(), METADATA());
		come_back(o, "&code=abc");
		serve(o, AS "/token", 200, bodies[i]);
		assert_int_equal(todo(o).step, OAUTH_FAILED);
		assert_null(oauth_token(o, NOW));
		oauth_free(o);
	}
}

static void no_error_tells_a_secret(void **state)
{
	struct oauth *o = make(&(struct oauth_options){
		.grant = OAUTH_GRANT_CLIENT, .client_id = "me", .client_secret = "hush" });

	(void)state;
	begin(o, 401, NULL);
	serve_metadata(o, RESOURCE(), METADATA());
	serve(o, AS "/token", 400,
	      "{\"error\":\"invalid_client\",\"error_description\":\"hush is wrong\"}");
	expect_not(todo(o).err->text, "hush");
	begin(o, 401, NULL);
	serve_metadata(o, RESOURCE(), METADATA());
	serve(o, AS "/token", 400, "{\"error\":\"Hush!\"}");
	fails(o, "400");
	expect_not(todo(o).err->text, "ush!");
	begin(o, 401, NULL);
	serve_metadata(o, RESOURCE(), METADATA());
	serve(o, AS "/token", 200, "{\"access_token\":\"hush hush\",\"token_type\":\"Bearer\"}");
	expect_not(todo(o).err->text, "hush");
	oauth_free(o);
}

static void nothing_that_answers_is_an_error_of_its_own(void **state)
{
	struct oauth *o = make(&(struct oauth_options){ .redirect = BACK });
	struct err err = { .code = ETIMEDOUT, .text = "too slow" };

	(void)state;
	begin(o, 401, NULL);
	oauth_answer(o, 0, NULL, 0, NOW, &err);
	assert_int_equal(todo(o).err->code, ETIMEDOUT);
	fails(o, "too slow");
	oauth_answer(o, 200, "{}", 2, NOW, NULL); /* nobody asked */
	fails(o, "too slow");
	oauth_free(o);
}

/* ---- what is kept ---- */

static void what_is_kept_comes_back(void **state)
{
	struct oauth *o = make(&(struct oauth_options){ .redirect = BACK });
	struct oauth *again = make(&(struct oauth_options){ .redirect = BACK });
	struct buf b = { 0 }, c = { 0 };

	(void)state;
	assert_int_equal(oauth_save(o, &b), 0);
	assert_string_equal(buf_str(&b), "{}");
	assert_int_equal(oauth_load(again, "{}", 2, NULL), 0);
	assert_false(oauth_has_tokens(again));
	buf_clear(&b);
	login(o, METADATA());
	assert_int_equal(oauth_save(o, &b), 0);
	assert_int_equal(oauth_load(again, buf_str(&b), b.len, NULL), 0);
	assert_string_equal(oauth_token(again, NOW), "tok-1");
	assert_true(oauth_has_tokens(again));
	assert_null(oauth_token(again, NOW + 3600));
	assert_int_equal(oauth_save(again, &c), 0);
	assert_string_equal(buf_str(&b), buf_str(&c));
	assert_int_equal(oauth_load(again, "{\"issuer\":1}", 12, NULL), -EINVAL);
	assert_int_equal(oauth_load(again, "x", 1, NULL), -EINVAL);
	assert_string_equal(oauth_token(again, NOW), "tok-1");
	begin(again, 401, NULL); /* and it goes on with the same registration */
	serve_metadata(again, RESOURCE(), METADATA());
	expect(todo(again).url, "client_id=c1&");
	buf_done(&b);
	buf_done(&c);
	oauth_free(o);
	oauth_free(again);
}

static void options_that_do_not_go_together_are_refused(void **state)
{
	static const struct oauth_options rows[] = {
		{ .server = "mcp.example" },
		{ .server = "unix:/run/x" },
		{ .server = SERVER, .client_secret = "x" },
		{ .server = SERVER, .grant = OAUTH_GRANT_CLIENT },
		{ .server = SERVER, .grant = OAUTH_GRANT_CLIENT, .client_id = "x" },
		{ .server = SERVER, .issuer = "http://as.example" },
		{ .server = SERVER, .document = "x" },
		{ .server = SERVER, .redirect = "http://evil.example/" },
		{ .server = "https://a\"b.example" },
	};
	struct oauth *o = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(oauth_create(&rows[i], &o, NULL), -EINVAL);
		assert_null(o);
	}
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
			metadata_is_looked_for_where_the_challenge_says_then_at_the_path_then_at_the_root),
		cmocka_unit_test(an_issuer_with_a_path_has_its_metadata_in_three_places),
		cmocka_unit_test(a_server_without_metadata_is_its_own_authorization_server),
		cmocka_unit_test(a_server_that_breaks_is_not_taken_for_one_without_metadata),
		cmocka_unit_test(a_resource_stands_for_an_address_that_it_begins_and_for_no_other),
		cmocka_unit_test(metadata_of_another_resource_is_not_believed),
		cmocka_unit_test(metadata_of_another_issuer_is_not_believed),
		cmocka_unit_test(everything_but_loopback_has_to_be_tls),
		cmocka_unit_test(only_addresses_that_the_operator_named_may_be_private),
		cmocka_unit_test(a_code_is_asked_for_with_pkce_state_and_resource),
		cmocka_unit_test(the_challenge_is_the_hash_of_the_verifier),
		cmocka_unit_test(an_authorization_server_without_pkce_is_not_used),
		cmocka_unit_test(an_answer_with_another_state_is_no_answer),
		cmocka_unit_test(too_long_an_answer_of_a_browser_is_refused),
		cmocka_unit_test(the_issuer_of_an_answer_is_compared_as_it_is),
		cmocka_unit_test(whoever_says_no_is_believed),
		cmocka_unit_test(identity_is_what_was_given_then_a_document_then_a_registration),
		cmocka_unit_test(the_secret_goes_the_way_that_the_server_knows),
		cmocka_unit_test(client_credentials_need_no_browser),
		cmocka_unit_test(a_secret_is_shown_to_its_issuer_only),
		cmocka_unit_test(what_one_authorization_server_gave_is_not_shown_to_another),
		cmocka_unit_test(scopes_are_those_of_the_challenge_then_of_the_resource_then_none),
		cmocka_unit_test(offline_access_is_asked_for_only_where_it_is_advertised),
		cmocka_unit_test(a_step_up_asks_for_all_there_was_and_what_is_new),
		cmocka_unit_test(too_many_scopes_are_refused),
		cmocka_unit_test(a_used_up_token_is_refreshed_without_anybody),
		cmocka_unit_test(without_a_browser_somebody_is_told_to_log_in),
		cmocka_unit_test(a_client_that_was_forgotten_registers_again),
		cmocka_unit_test(answers_that_are_none_are_refused),
		cmocka_unit_test(no_error_tells_a_secret),
		cmocka_unit_test(nothing_that_answers_is_an_error_of_its_own),
		cmocka_unit_test(what_is_kept_comes_back),
		cmocka_unit_test(options_that_do_not_go_together_are_refused),
		cmocka_unit_test(challenges_are_read_as_people_write_them),
		cmocka_unit_test(what_is_too_long_in_a_challenge_is_not_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
