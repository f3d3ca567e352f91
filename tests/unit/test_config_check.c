#include "config/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "check.h"
#include "config_rig.h"
#include "json/jv.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static void what_does_not_go_together_is_refused(void **state)
{
	static const struct {
		const char *pairs[4], *want; /* NULL: fine */
	} rows[] = {
		{ { "HOLT_TLS_CERT=c" }, "tls_cert needs tls_key, the certificate's private key" },
		{ { "HOLT_TLS_KEY=k" }, "tls_key needs tls_cert, the certificate" },
		{ { "HOLT_TLS_CERT=c", "HOLT_TLS_KEY=k", "HOLT_LISTEN=0.0.0.0:443" }, NULL },
		{ { "HOLT_LISTEN=:80" },
		  "listen :80: other machines would reach it without TLS: set tls_cert and "
		  "tls_key, "
		  "or insecure_bind when something in front does TLS" },
		{ { "HOLT_LISTEN=:80", "HOLT_INSECURE_BIND=1" }, NULL },
		{ { "HOLT_LISTEN=" }, "listen: no address to serve" },
		{ { "HOLT_CORS_ORIGINS=https://a.example,*" }, NULL },
		{ { "HOLT_CORS_ORIGINS=a.example" },
		  "cors_origins: 'a.example': want https://host[:port]" },
		{ { "HOLT_SANDBOX_TIMEOUT=25h" },
		  "sandbox_timeout is longer than sandbox_timeout_max" },
		{ { "HOLT_EXEC_TIMEOUT=61m" }, "exec_timeout is longer than exec_timeout_max" },
		{ { "HOLT_JWT_ISSUER=https://id", "HOLT_JWT_AUDIENCE=holt" },
		  "jwt_issuer, jwt_audience and jwt_jwks: want all of them or none" },
		{ { "HOLT_JWT_ISSUER=https://id", "HOLT_JWT_AUDIENCE=holt",
		    "HOLT_JWT_JWKS=http://id.example/keys" },
		  "jwt_jwks: keys that come without TLS could be anybody's: want https://, a file, "
		  "or http:// to this machine" },
		{ { "HOLT_JWT_ISSUER=https://id", "HOLT_JWT_AUDIENCE=holt",
		    "HOLT_JWT_JWKS=http://127.0.0.1:9/keys" },
		  NULL },
		{ { "HOLT_JWT_ISSUER=https://id", "HOLT_JWT_AUDIENCE=holt",
		    "HOLT_JWT_JWKS=http://[::1]/keys" },
		  NULL },
		{ { "HOLT_JWT_ISSUER=https://id", "HOLT_JWT_AUDIENCE=holt",
		    "HOLT_JWT_JWKS=/etc/holt/keys.json" },
		  NULL },
		{ { "HOLT_OTLP_ENDPOINT=http://collector:4318" }, NULL },
		{ { "HOLT_OTLP_ENDPOINT=collector:4318" },
		  "otlp_endpoint: want http:// or https://" },
		{ { "HOLT_OTLP_HEADERS=a=b" }, "otlp_headers: there is no otlp_endpoint" },
		{ { "HOLT_OTLP_ENDPOINT=http://collector:4318", "HOLT_OTLP_HEADERS=a=b" },
		  "otlp_headers would be seen on the way: want an otlp_endpoint with https://, or "
		  "http:// to this machine" },
		{ { "HOLT_OTLP_ENDPOINT=https://collector", "HOLT_OTLP_HEADERS=a=b" }, NULL },
		{ { "HOLT_OTLP_ENDPOINT=http://127.0.0.1:4318", "HOLT_OTLP_HEADERS=a=b" }, NULL },
		{ { "HOLT_PUBLIC_URL=https://holt.example:8443/sub" }, NULL },
		{ { "HOLT_PUBLIC_URL=holt.example" },
		  "public_url holt.example: want one such as https://holt.example, without a slash "
		  "at its end" },
		{ { "HOLT_PUBLIC_URL=https://a/" },
		  "public_url https://a/: want one such as https://holt.example, without a slash "
		  "at "
		  "its end" },
		{ { "HOLT_PUBLIC_URL=https://a?b" },
		  "public_url https://a?b: want one such as https://holt.example, without a slash "
		  "at its end" },
		{ { "HOLT_REGISTRY_PIP=https://a.example/simple, http://b.example" }, NULL },
		{ { "HOLT_REGISTRY_NPM=https://a.example https://b.example" },
		  "registry_npm: 'https://a.example https://b.example': want "
		  "https://host[:port]/path, and commas between several" },
		{ { "HOLT_REGISTRY_GO=a.example" },
		  "registry_go: 'a.example': want https://host[:port]/path, and commas between "
		  "several" },
		{ { "HOLT_POOL_MIN=17" }, "pool_min is more than pool_max" },
	};
	struct config_rig *f = *state;

	for (size_t i = 0; i < LEN(rows); i++) {
		f->env[1] = NULL;
		for (size_t k = 0; rows[i].pairs[k]; k++) {
			f->env[k + 1] = (char *)rows[i].pairs[k];
			f->env[k + 2] = NULL;
		}
		config_rig_load(f);
		assert_int_equal(config_check(f->c, &f->err), rows[i].want ? -EINVAL : 0);
		assert_string_equal(f->err.text, rows[i].want ? rows[i].want : "");
	}
}

static void a_file_of_the_working_directory_names_no_servers(void **state)
{
	struct config_rig *f = *state;

	config_rig_write(f, "holt.yaml", "mcp_servers_file: servers.json\n");
	config_rig_load(f);
	assert_int_equal(config_check(f->c, &f->err), -EPERM);
	assert_string_equal(f->err.text,
			    "holt.yaml:1: mcp_servers_file is not taken from a file of the working "
			    "directory: want --mcp-servers-file or HOLT_MCP_SERVERS_FILE");
	config_rig_env(f, "HOLT_MCP_SERVERS_FILE=/etc/holt/servers.json");
	f->err = (struct err){ 0 };
	config_rig_load(f);
	assert_int_equal(config_check(f->c, &f->err), 0);
	assert_string_equal(f->c->mcp_servers_file, "/etc/holt/servers.json");
}

static void only_this_machine_reaches_loopback(void **state)
{
	static const char *const yes[] = { "127.0.0.1:80", "127.9.9.9:0", "[::1]:80",
					   "localhost:1",  "unix:/run/x", "[::ffff:127.0.0.1]:1" };
	static const char *const no[] = { ":80",      "0.0.0.0:80",    "[::]:80", "10.0.0.1:1",
					  "host:80",  "127.0.0.1",     "",        "128.0.0.1:1",
					  "[::2]:80", "localhost.x:1", "unix" };

	(void)state;
	for (size_t i = 0; i < LEN(yes); i++)
		if (!config_is_loopback(yes[i]))
			fail_msg("%s", yes[i]);
	for (size_t i = 0; i < LEN(no); i++)
		if (config_is_loopback(no[i]))
			fail_msg("%s", no[i]);
}

/* What config_print() writes, in b. */
static void printed(const struct config_rig *f, bool json, struct buf *b)
{
	FILE *out = tmpfile();

	assert_non_null(out);
	assert_int_equal(config_print(f->c, json, out), 0);
	rewind(out);
	assert_int_equal(fd_slurp(fileno(out), b), 0);
	(void)fclose(out);
}

static void settings_are_shown_with_their_origin_and_without_secrets(void **state)
{
	struct config_rig *f = *state;
	_cleanup_(buf_done) struct buf text = { 0 };
	_cleanup_(buf_done) struct buf json = { 0 };
	struct jv_doc *doc = NULL;
	struct jv root;
	uint64_t n = 0;

	config_rig_env(f, "HOLT_API_KEY=holt_very_secret");
	config_rig_flag(f, "--exec-timeout", "90s");
	config_rig_flag(f, "--limits-cpu", "1.5");
	config_rig_load(f);
	printed(f, false, &text);
	assert_null(strstr(text.data, "very_secret"));
	assert_non_null(strstr(text.data,
			       "\napi_key                ***                                  "
			       "HOLT_API_KEY\n"));
	assert_non_null(strstr(text.data, "\nexec_timeout           90s   "));
	assert_non_null(strstr(text.data, "\nlimits_cpu             1500m "));
	assert_non_null(strstr(text.data, "\nlimits_memory          256M  "));
	assert_non_null(strstr(text.data, "\ntls_cert               -     "));
	printed(f, true, &json);
	assert_null(strstr(json.data, "very_secret"));
	assert_int_equal(jv_parse(json.data, json.len, json.len, &doc, NULL), 0);
	root = jv_root(doc);
	assert_string_equal(jv_text(jv_get(jv_get(root, "api_key"), "value")), "***");
	assert_string_equal(jv_text(jv_get(jv_get(root, "api_key"), "where")), "HOLT_API_KEY");
	assert_string_equal(jv_text(jv_get(jv_get(root, "listen"), "origin")), "default");
	assert_int_equal(jv_kind(jv_get(jv_get(root, "tls_cert"), "value")), JV_NULL);
	assert_int_equal(jv_u64(jv_get(jv_get(root, "exec_timeout"), "value"), &n), 0);
	assert_int_equal(n, 90000);
	jv_free(doc);
}

static void the_table_is_of_one_piece(void **state)
{
	size_t n;
	const struct setting *table = settings_table(&n);

	(void)state;
	assert_true(n > 30);
	for (size_t i = 0; i < n; i++) {
		const struct setting *s = &table[i];
		char env[64] = "HOLT_", flag[64] = "--";

		for (size_t k = 0; k <= strlen(s->name); k++) {
			env[5 + k] = (char)toupper(s->name[k]);
			flag[2 + k] = s->name[k] == '_' ? '-' : s->name[k];
		}
		assert_string_equal(s->env, env);
		if (s->type == SETTING_SECRET)
			assert_null(s->flag); /* everybody can read arguments */
		else
			assert_string_equal(s->flag, flag);
		assert_true(strlen(s->help) > 10 && strlen(s->help) < 80);
		assert_true(s->arg || s->type == SETTING_BOOL);
		assert_ptr_equal(settings_find(s->name), s);
		assert_ptr_equal(settings_find_env(s->env), s);
		if (s->flag)
			assert_ptr_equal(settings_find_flag(s->flag), s);
		assert_true((s->choices != NULL) == (s->type == SETTING_CHOICE));
	}
	assert_null(settings_find("nothing"));
	assert_string_equal(settings_nearest("--lisen"), "--listen");
	assert_string_equal(settings_nearest("HOLT_POOLMIN"), "HOLT_POOL_MIN");
	assert_null(settings_nearest("something quite different and far too long to be a name"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, config_rig_setup, config_rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_does_not_go_together_is_refused),
		TEST(a_file_of_the_working_directory_names_no_servers),
		cmocka_unit_test(only_this_machine_reaches_loopback),
		TEST(settings_are_shown_with_their_origin_and_without_secrets),
		cmocka_unit_test(the_table_is_of_one_piece),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
