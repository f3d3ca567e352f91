#include "mcpc/oauth.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "base/buf.h"
#include "base/encode.h"
#include "base/str.h"
#include "check.h"
#include "crypto/pubkey.h"
#include "fault.h"
#include "mcpc/oauth_impl.h"
#include "oauth_rig.h"

/* ---- as whom ---- */

static char *pem_of(EVP_PKEY *key)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *text, *copy;
	long n;

	assert_int_equal(PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL), 1);
	n = BIO_get_mem_data(bio, &text);
	copy = str_dup((struct str){ text, (size_t)n });
	assert_non_null(copy);
	BIO_free(bio);
	return copy;
}

static struct pubkey *pubkey_of(EVP_PKEY *key)
{
	uint8_t point[65];
	size_t n = 0;
	struct pubkey *p = NULL;

	assert_int_equal(EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY, point,
							 sizeof(point), &n),
			 1);
	assert_int_equal(pubkey_p256(point + 1, point + 33, &p), 0);
	return p;
}

static void identity_is_what_was_given_then_a_document_then_a_registration(void **state)
{
	const char *takes = METADATA(",\"client_id_metadata_document_supported\":true");
	struct oauth_options o1 = { .redirect = BACK,
				    .client_id = "me",
				    .document = "https://me.example/doc.json" };
	struct oauth *o = oauth_rig_make(&o1);

	(void)state;
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve_metadata(o, RESOURCE(), takes);
	expect_text(oauth_rig_todo(o).url, "client_id=me&");
	oauth_free(o);
	o1.client_id = NULL;
	o = oauth_rig_make(&o1);
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve_metadata(o, RESOURCE(), takes);
	expect_text(oauth_rig_todo(o).url, "client_id=https%3A%2F%2Fme.example%2Fdoc.json&");
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve_metadata(o, RESOURCE(), METADATA());
	assert_string_equal(oauth_rig_todo(o).url, AS "/register");
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve_metadata(o, RESOURCE(),
				 "{\"issuer\":\"" AS "\",\"token_endpoint\":\"" AS "/token\","
				 "\"authorization_endpoint\":\"" AS "/authorize\","
				 "\"code_challenge_methods_supported\":[\"S256\"]}");
	oauth_rig_fails(o, "client_id");
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
		struct oauth *o = oauth_rig_make(&(struct oauth_options){ .redirect = BACK });
		struct oauth_todo t;

		oauth_rig_begin(o, 401, NULL);
		oauth_rig_serve_metadata(o, RESOURCE(), rows[i].metadata);
		oauth_rig_serve(o, AS "/register", 201, rows[i].client);
		oauth_rig_come_back(o, "&code=abc");
		t = oauth_rig_todo(o);
		if (rows[i].authorization)
			assert_string_equal(t.authorization, rows[i].authorization);
		else
			assert_null(t.authorization);
		expect_text(t.body, rows[i].body);
		expect_no_text(t.body, rows[i].not_body);
		oauth_free(o);
	}
}

static void client_credentials_need_no_browser(void **state)
{
	struct oauth *o = oauth_rig_make(&(struct oauth_options){ .grant = OAUTH_GRANT_CLIENT,
								  .client_id = "me",
								  .client_secret = "hush",
								  .issuer = AS });

	(void)state;
	oauth_rig_begin(o, 401, "Bearer scope=\"a\"");
	oauth_rig_serve_metadata(o, RESOURCE(), METADATA());
	expect_text(oauth_rig_todo(o).body, "grant_type=client_credentials&scope=a&resource=https");
	expect_text(oauth_rig_todo(o).authorization, "Authorization: Basic ");
	oauth_rig_serve(o, AS "/token", 200, TOKEN);
	assert_string_equal(oauth_token(o, NOW), "tok-1");
	oauth_free(o);
}

static void a_key_signs_instead_of_a_secret(void **state)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	char *pem = pem_of(key);
	struct pubkey *p = pubkey_of(key);
	struct oauth *o = oauth_rig_make(&(struct oauth_options){
		.grant = OAUTH_GRANT_CLIENT, .client_id = "me", .client_key = pem, .issuer = AS });
	const char *jwt, *dot, *end;
	uint8_t raw[512];
	ssize_t n;

	(void)state;
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve_metadata(o, RESOURCE(), METADATA());
	expect_text(oauth_rig_todo(o).body, "grant_type=client_credentials&");
	expect_text(oauth_rig_todo(o).body, "&client_id=me&client_assertion_type=urn%3Aietf%3A");
	jwt = strstr(oauth_rig_todo(o).body, "&client_assertion=");
	assert_non_null(jwt);
	jwt += strlen("&client_assertion=");
	dot = strchr(jwt, '.');
	assert_non_null(dot);
	end = strchr(dot + 1, '.');
	assert_non_null(end);
	n = decode_base64url(dot + 1, (size_t)(end - dot - 1), raw, sizeof(raw) - 1);
	assert_true(n > 0);
	raw[n] = '\0';
	expect_text((char *)raw, "{\"iss\":\"me\",\"sub\":\"me\",\"aud\":\"" AS "\",\"jti\":\"");
	expect_text((char *)raw, "\"iat\":1000000,\"exp\":1000120}");
	n = decode_base64url(end + 1, strlen(end + 1), raw, sizeof(raw));
	assert_int_equal(n, SIGNER_LEN);
	assert_int_equal(pubkey_verify(p, jwt, (size_t)(end - jwt), raw, SIGNER_LEN), 0);
	oauth_free(o);
	pubkey_free(p);
	free(pem);
	EVP_PKEY_free(key);
}

static void a_secret_is_shown_to_its_issuer_only(void **state)
{
	struct oauth *o =
		oauth_rig_make(&(struct oauth_options){ .grant = OAUTH_GRANT_CLIENT,
							.client_id = "me",
							.client_secret = "hush",
							.issuer = "https://good.example" });

	(void)state;
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve(o, "https://mcp.example/.well-known/oauth-protected-resource/mcp", 200,
			RESOURCE());
	oauth_rig_fails(o, "not the issuer that was given");
	oauth_free(o);
	/* without one: the first, and then no other */
	o = oauth_rig_make(&(struct oauth_options){
		.grant = OAUTH_GRANT_CLIENT, .client_id = "me", .client_secret = "hush" });
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve_metadata(o, RESOURCE(), METADATA());
	oauth_rig_serve(o, AS "/token", 200, TOKEN);
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve(o, "https://mcp.example/.well-known/oauth-protected-resource/mcp", 200,
			"{\"resource\":\"" SERVER
			"\",\"authorization_servers\":[\"https://b.example\"]}");
	oauth_rig_fails(o, "is not for it");
	oauth_free(o);
}

static void what_one_authorization_server_gave_is_not_shown_to_another(void **state)
{
	struct oauth *o = oauth_rig_make(&(struct oauth_options){ .redirect = BACK });

	(void)state;
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve_metadata(o, RESOURCE(), METADATA());
	oauth_rig_serve(o, AS "/register", 201, CLIENT);
	oauth_rig_come_back(o, "&code=abc");
	oauth_rig_serve(
		o, AS "/token", 200,
		"{\"access_token\":\"tok-1\",\"token_type\":\"Bearer\",\"refresh_token\":\"ref\"}");
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve(o, "https://mcp.example/.well-known/oauth-protected-resource/mcp", 200,
			"{\"resource\":\"" SERVER
			"\",\"authorization_servers\":[\"https://b.example\"]}");
	oauth_rig_serve(
		o, "https://b.example/.well-known/oauth-authorization-server", 200,
		"{\"issuer\":\"https://b.example\",\"token_endpoint\":\"https://b.example/token\","
		"\"authorization_endpoint\":\"https://b.example/authorize\","
		"\"registration_endpoint\":\"https://b.example/register\","
		"\"code_challenge_methods_supported\":[\"S256\"]}");
	assert_string_equal(oauth_rig_todo(o).url, "https://b.example/register");
	oauth_rig_serve(o, "https://b.example/register", 201, "{\"client_id\":\"c2\"}");
	expect_text(oauth_rig_todo(o).url, "client_id=c2&");
	oauth_free(o);
}

/* ---- scopes ---- */

static void scopes_are_those_of_the_challenge_then_of_the_resource_then_none(void **state)
{
	const char *has = RESOURCE(",\"scopes_supported\":[\"x\",\"y\"]");
	struct oauth *o =
		oauth_rig_make(&(struct oauth_options){ .redirect = BACK, .client_id = "me" });

	(void)state;
	oauth_rig_begin(o, 401, "Bearer scope=\"a\"");
	oauth_rig_serve_metadata(o, has, METADATA());
	expect_text(oauth_rig_todo(o).url, "&scope=a");
	expect_no_text(oauth_rig_todo(o).url, "&scope=a%20");
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve_metadata(o, has, METADATA());
	expect_text(oauth_rig_todo(o).url, "&scope=x%20y");
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve_metadata(o, RESOURCE(), METADATA());
	expect_no_text(oauth_rig_todo(o).url, "scope=");
	oauth_free(o);
	o = oauth_rig_make(
		&(struct oauth_options){ .redirect = BACK, .client_id = "me", .scope = "mine" });
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve_metadata(o, has, METADATA());
	expect_text(oauth_rig_todo(o).url, "&scope=mine");
	oauth_free(o);
}

static void offline_access_is_asked_for_only_where_it_is_advertised(void **state)
{
	struct oauth *o =
		oauth_rig_make(&(struct oauth_options){ .redirect = BACK, .client_id = "me" });

	(void)state;
	oauth_rig_begin(o, 401, "Bearer scope=\"a\"");
	oauth_rig_serve_metadata(o, RESOURCE(),
				 METADATA(",\"scopes_supported\":[\"a\",\"offline_access\"]"));
	expect_text(oauth_rig_todo(o).url, "&scope=a%20offline_access");
	oauth_rig_begin(o, 401, "Bearer scope=\"a offline_access\"");
	oauth_rig_serve_metadata(o, RESOURCE(), METADATA(",\"scopes_supported\":[\"a\"]"));
	expect_text(oauth_rig_todo(o).url, "&scope=a");
	expect_no_text(oauth_rig_todo(o).url, "offline");
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve_metadata(o, RESOURCE(),
				 METADATA(",\"scopes_supported\":[\"a\",\"offline_access\"]"));
	expect_no_text(oauth_rig_todo(o).url, "scope="); /* alone it would take the others away */
	oauth_free(o);
}

static void a_step_up_asks_for_all_there_was_and_what_is_new(void **state)
{
	struct oauth *o =
		oauth_rig_make(&(struct oauth_options){ .redirect = BACK, .client_id = "me" });
	struct err err = { 0 };

	(void)state;
	oauth_rig_begin(o, 401, "Bearer scope=\"a\"");
	oauth_rig_serve_metadata(o, RESOURCE(), METADATA());
	oauth_rig_come_back(o, "&code=1");
	oauth_rig_serve(o, AS "/token", 200, TOKEN);
	oauth_rig_begin(o, 403, "Bearer error=\"insufficient_scope\", scope=\"b\"");
	assert_string_equal(oauth_token(o, NOW), "tok-1"); /* good for the rest meanwhile */
	oauth_rig_serve_metadata(o, RESOURCE(), METADATA());
	expect_text(oauth_rig_todo(o).url, "&scope=a%20b");
	oauth_rig_come_back(o, "&code=2");
	oauth_rig_serve(o, AS "/token", 200, TOKEN);
	assert_int_equal(
		oauth_begin(o, 403, "Bearer error=\"insufficient_scope\", scope=\"b a\"", &err),
		-EACCES);
	expect_text(err.text, "was asked for");
	assert_int_equal(oauth_begin(o, 403, "Bearer error=\"invalid_token\"", &err), -EACCES);
	assert_int_equal(oauth_begin(o, 403, NULL, &err), -EACCES);
	oauth_free(o);
}

static void too_many_scopes_are_refused(void **state)
{
	struct oauth *o =
		oauth_rig_make(&(struct oauth_options){ .redirect = BACK, .client_id = "me" });
	struct buf b = { 0 };

	(void)state;
	assert_int_equal(buf_puts(&b,
				  "{\"resource\":\"" SERVER "\",\"authorization_servers\":[\"" AS
				  "\"],\"scopes_supported\":[\"x\""),
			 0);
	for (unsigned i = 0; i < 500; i++)
		assert_int_equal(buf_printf(&b, ",\"scope-%u\"", i), 0);
	assert_int_equal(buf_puts(&b, "]}"), 0);
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve_metadata(o, buf_str(&b), METADATA());
	oauth_rig_fails(o, "scopes are longer");
	buf_done(&b);
	oauth_free(o);
}

/* ---- tokens ---- */

static void a_used_up_token_is_refreshed_without_anybody(void **state)
{
	struct oauth *o = oauth_rig_make(&(struct oauth_options){ .redirect = BACK });

	(void)state;
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve_metadata(o, RESOURCE(), METADATA());
	oauth_rig_serve(o, AS "/register", 201, CLIENT);
	oauth_rig_come_back(o, "&code=abc");
	oauth_rig_serve(
		o, AS "/token", 200,
		"{\"access_token\":\"t1\",\"token_type\":\"Bearer\",\"refresh_token\":\"r+1\"}");
	oauth_rig_begin(o, 401, NULL);
	assert_null(oauth_token(o, NOW)); /* it was refused */
	oauth_rig_serve_metadata(o, RESOURCE(), METADATA());
	expect_text(oauth_rig_todo(o).body,
		    "grant_type=refresh_token&refresh_token=r%2B1&resource=https");
	oauth_rig_serve(o, AS "/token", 200, "{\"access_token\":\"t2\",\"token_type\":\"Bearer\"}");
	assert_string_equal(oauth_token(o, NOW), "t2");
	oauth_rig_begin(o, 401, NULL); /* the refresh token stays when no other one came */
	oauth_rig_serve_metadata(o, RESOURCE(), METADATA());
	expect_text(oauth_rig_todo(o).body, "refresh_token=r%2B1");
	oauth_rig_serve(o, AS "/token", 503, "");
	oauth_rig_fails(o, "503");
	oauth_rig_begin(o, 401, NULL); /* a server that is down does not cost it */
	oauth_rig_serve_metadata(o, RESOURCE(), METADATA());
	oauth_rig_serve(o, AS "/token", 400, "{\"error\":\"invalid_grant\"}");
	assert_int_equal(oauth_rig_todo(o).step, OAUTH_OPEN); /* somebody has to say yes again */
	oauth_free(o);
}

static void without_a_browser_somebody_is_told_to_log_in(void **state)
{
	struct oauth *o = oauth_rig_make(&(struct oauth_options){ .client_id = "me" });

	(void)state;
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve_metadata(o, RESOURCE(), METADATA());
	oauth_rig_fails(o, "holt mcp login");
	assert_int_equal(oauth_set_redirect(o, "ftp://x", NULL), -EINVAL);
	assert_int_equal(oauth_set_redirect(o, BACK, NULL), 0);
	oauth_rig_begin(o, 0, NULL);
	oauth_rig_serve_metadata(o, RESOURCE(), METADATA());
	assert_int_equal(oauth_rig_todo(o).step, OAUTH_OPEN);
	oauth_free(o);
}

static void a_client_that_was_forgotten_registers_again(void **state)
{
	struct oauth *o = oauth_rig_make(&(struct oauth_options){ .redirect = BACK });

	(void)state;
	oauth_rig_login(o, METADATA());
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve_metadata(o, RESOURCE(), METADATA());
	oauth_rig_come_back(o, "&code=abc"); /* not registered again */
	oauth_rig_serve(o, AS "/token", 401, "{\"error\":\"invalid_client\"}");
	oauth_rig_fails(o, "invalid_client");
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve_metadata(o, RESOURCE(), METADATA());
	assert_string_equal(oauth_rig_todo(o).url, AS "/register");
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
		struct oauth *o = oauth_rig_make(
			&(struct oauth_options){ .redirect = BACK, .client_id = "me" });

		oauth_rig_begin(o, 401, NULL);
		oauth_rig_serve_metadata(o, RESOURCE(), METADATA());
		oauth_rig_come_back(o, "&code=abc");
		oauth_rig_serve(o, AS "/token", 200, bodies[i]);
		assert_int_equal(oauth_rig_todo(o).step, OAUTH_FAILED);
		assert_null(oauth_token(o, NOW));
		oauth_free(o);
	}
}

static void no_error_tells_a_secret(void **state)
{
	struct oauth *o = oauth_rig_make(&(struct oauth_options){
		.grant = OAUTH_GRANT_CLIENT, .client_id = "me", .client_secret = "hush" });

	(void)state;
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve_metadata(o, RESOURCE(), METADATA());
	oauth_rig_serve(o, AS "/token", 400,
			"{\"error\":\"invalid_client\",\"error_description\":\"hush is wrong\"}");
	expect_no_text(oauth_rig_todo(o).err->text, "hush");
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve_metadata(o, RESOURCE(), METADATA());
	oauth_rig_serve(o, AS "/token", 400, "{\"error\":\"Hush!\"}");
	oauth_rig_fails(o, "400");
	expect_no_text(oauth_rig_todo(o).err->text, "ush!");
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve_metadata(o, RESOURCE(), METADATA());
	oauth_rig_serve(o, AS "/token", 200,
			"{\"access_token\":\"hush hush\",\"token_type\":\"Bearer\"}");
	expect_no_text(oauth_rig_todo(o).err->text, "hush");
	oauth_free(o);
}

static void nothing_that_answers_is_an_error_of_its_own(void **state)
{
	struct oauth *o = oauth_rig_make(&(struct oauth_options){ .redirect = BACK });
	struct err err = { .code = ETIMEDOUT, .text = "too slow" };

	(void)state;
	oauth_rig_begin(o, 401, NULL);
	oauth_answer(o, 0, NULL, 0, NOW, &err);
	assert_int_equal(oauth_rig_todo(o).err->code, ETIMEDOUT);
	oauth_rig_fails(o, "too slow");
	oauth_answer(o, 200, "{}", 2, NOW, NULL); /* nobody asked */
	oauth_rig_fails(o, "too slow");
	oauth_free(o);
}

/* ---- without memory ---- */

static const char *answer_to(const char *url)
{
	return strstr(url, "protected-resource") ? RESOURCE(",\"scopes_supported\":[\"x\"]")
	       : strstr(url, "well-known")       ? METADATA(",\"scopes_supported\":[\"x\"]")
	       : strstr(url, "register")         ? CLIENT
					 : "{\"access_token\":\"t\",\"token_type\":\"Bearer\","
					   "\"refresh_token\":\"r\",\"expires_in\":60}";
}

static int come_back_again(struct oauth *o)
{
	char query[256];

	(void)str_format(query, sizeof(query), "code=x&state=%s", o->flow.token_of_state);
	return oauth_redirected(o, query, NULL);
}

static int go_through(struct oauth *o, const char *challenge)
{
	struct err err = { 0 };
	int r = oauth_begin(o, 401, challenge, &err);

	while (r == 0) {
		struct oauth_todo t = oauth_rig_todo(o);

		if (t.step == OAUTH_READY)
			return 0;
		if (t.step == OAUTH_FAILED)
			return -t.err->code;
		if (t.step == OAUTH_OPEN)
			r = come_back_again(o) < 0 ? -ENOMEM : 0;
		else
			oauth_answer(o, strstr(t.url, "register") ? 201 : 200, answer_to(t.url),
				     strlen(answer_to(t.url)), NOW, NULL);
	}
	return r;
}

static int live(void *arg)
{
	const struct oauth_options options = { .server = SERVER, .redirect = BACK };
	struct oauth *o = NULL, *again = NULL;
	struct buf b = { 0 };
	int r = oauth_create(&options, &o, NULL);

	(void)arg;
	if (r == 0)
		r = go_through(o, "Bearer scope=\"a\"");
	if (r == 0)
		r = go_through(o, "Bearer scope=\"b\""); /* by the refresh token */
	if (r == 0)
		r = oauth_save(o, &b);
	if (r == 0)
		r = oauth_create(&options, &again, NULL);
	if (r == 0)
		r = oauth_load(again, buf_str(&b), b.len, NULL);
	if (r == 0)
		assert_string_equal(oauth_token(again, NOW), "t");
	buf_done(&b);
	oauth_free(o);
	oauth_free(again);
	return r;
}

static void wherever_memory_ends_it_says_so_and_leaves_nothing(void **state)
{
	(void)state;
	assert_true(fault_each(live, NULL) > 20);
}

/* ---- what is kept ---- */

static void what_is_kept_comes_back(void **state)
{
	struct oauth *o = oauth_rig_make(&(struct oauth_options){ .redirect = BACK });
	struct oauth *again = oauth_rig_make(&(struct oauth_options){ .redirect = BACK });
	struct buf b = { 0 }, c = { 0 };

	(void)state;
	assert_int_equal(oauth_save(o, &b), 0);
	assert_string_equal(buf_str(&b), "{}");
	assert_int_equal(oauth_load(again, "{}", 2, NULL), 0);
	assert_false(oauth_has_tokens(again));
	buf_clear(&b);
	oauth_rig_login(o, METADATA());
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
	oauth_rig_begin(again, 401, NULL); /* and it goes on with the same registration */
	oauth_rig_serve_metadata(again, RESOURCE(), METADATA());
	expect_text(oauth_rig_todo(again).url, "client_id=c1&");
	buf_done(&b);
	buf_done(&c);
	oauth_free(o);
	oauth_free(again);
}

static void options_that_are_too_long_are_refused(void **state)
{
	char *large = malloc((64u << 10) + 1);
	struct oauth_options options = { .server = SERVER, .name = large };
	struct oauth *o = NULL;

	(void)state;
	assert_non_null(large);
	memset(large, 'x', 64u << 10);
	large[64u << 10] = '\0';
	assert_int_equal(oauth_create(&options, &o, NULL), -E2BIG);
	large[60u << 10] = '\0';
	assert_int_equal(oauth_create(&options, &o, NULL), 0);
	oauth_free(o);
	free(large);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(identity_is_what_was_given_then_a_document_then_a_registration),
		cmocka_unit_test(the_secret_goes_the_way_that_the_server_knows),
		cmocka_unit_test(client_credentials_need_no_browser),
		cmocka_unit_test(a_key_signs_instead_of_a_secret),
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
		cmocka_unit_test(wherever_memory_ends_it_says_so_and_leaves_nothing),
		cmocka_unit_test(what_is_kept_comes_back),
		cmocka_unit_test(options_that_are_too_long_are_refused),
		cmocka_unit_test(options_that_do_not_go_together_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
