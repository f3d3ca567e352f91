#include "mcpc/servers_row.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "check.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

struct rig {
	struct arena *arena;
	struct jv_doc *doc;
	struct mcpc_servers_deps deps;
	struct server_row row;
	struct err err;
};

static const char *variable(void *user, const char *name)
{
	(void)user;
	return strcmp(name, "TOKEN") == 0   ? "t0k3n"
	       : strcmp(name, "EMPTY") == 0 ? ""
	       : strcmp(name, "TWICE") == 0 ? "${TOKEN}"
					    : NULL;
}

static int setup(void **state)
{
	static struct rig f;

	f = (struct rig){ .deps.variable = variable };
	f.arena = arena_create(8u << 20);
	assert_non_null(f.arena);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct rig *f = *state;

	f->doc = jv_free(f->doc);
	f->arena = arena_free(f->arena);
	return 0;
}

static int read_named(struct rig *f, const char *name, const char *json)
{
	f->doc = jv_free(f->doc);
	f->err = (struct err){ 0 };
	assert_int_equal(jv_parse(json, strlen(json), 1u << 20, &f->doc, &f->err), 0);
	return server_row_read(str_of(name), jv_root(f->doc), &f->deps, f->arena, &f->row, &f->err);
}

static int read_row(struct rig *f, const char *json)
{
	return read_named(f, "it", json);
}

static void a_row_as_everybody_writes_it_is_a_process_in_a_sandbox(void **state)
{
	struct rig *f = *state;

	assert_int_equal(read_row(f, "{\"command\":\"npx\",\"args\":[\"-y\",\"a\"],\"env\":{\"K\":"
				     "\"v\"},\"cwd\":\"/srv\"}"),
			 0);
	assert_string_equal(f->row.name, "it");
	assert_string_equal(f->row.command, "npx");
	assert_int_equal(f->row.args.len, 2);
	assert_string_equal(f->row.args.items[1], "a");
	assert_string_equal(f->row.env.items[0].value, "v");
	assert_string_equal(f->row.cwd, "/srv");
	assert_string_equal(f->row.owner, SERVER_OWNER);
	assert_false(f->row.is_on_host);
	assert_false(f->row.is_disabled);
	assert_null(f->row.url);
	assert_int_equal(f->row.elicitation, SERVER_DECLINES);
	assert_int_equal(f->row.sampling, SERVER_DECLINES);
	assert_string_equal(f->row.unknown, "");
}

static void a_row_with_a_url_is_a_server_elsewhere(void **state)
{
	struct rig *f = *state;

	assert_int_equal(read_row(f, "{\"type\":\"http\",\"url\":\"https://a.example/mcp\","
				     "\"headers\":{\"Authorization\":\"Bearer ${TOKEN}\"}}"),
			 0);
	assert_null(f->row.command);
	assert_string_equal(f->row.url, "https://a.example/mcp");
	assert_string_equal(f->row.headers.items[0].value, "Bearer t0k3n");
}

static void variables_are_put_in_once(void **state)
{
	static const struct {
		const char *text, *want; /* NULL: refused */
	} rows[] = {
		{ "", "" },
		{ "plain $TOKEN }", "plain $TOKEN }" },
		{ "${TOKEN}", "t0k3n" },
		{ "a${TOKEN}b${TOKEN}c", "at0k3nbt0k3nc" },
		{ "${env:TOKEN}", "t0k3n" },
		{ "${NONE:-instead}", "instead" },
		{ "${EMPTY:-instead}", "instead" },
		{ "${EMPTY}", "" },
		{ "${NONE:-}", "" },
		{ "${TOKEN:-instead}", "t0k3n" },
		{ "${TWICE}", "${TOKEN}" }, /* what comes from outside is not looked at again */
		{ "${NONE}", NULL },
		{ "${}", NULL },
		{ "${TOKEN", NULL },
		{ "${input:key}", NULL },
		{ "${a b}", NULL },
	};
	struct rig *f = *state;
	const char *got;

	for (size_t i = 0; i < LEN(rows); i++) {
		struct err err = { 0 };
		int r = server_row_expand(rows[i].text, &f->deps, f->arena, &got, &err);

		assert_int_equal(r, rows[i].want ? 0 : -EINVAL);
		if (rows[i].want)
			assert_string_equal(got, rows[i].want);
		else
			assert_true(err.text[0] != '\0');
	}
}

static void what_is_wrong_is_said_with_its_field(void **state)
{
	static const struct {
		const char *json, *want;
	} rows[] = {
		{ "[]", "want an object with a command or a url" },
		{ "{}", "command: wants a command or a url" },
		{ "{\"command\":1}", "command: want a string, got a number" },
		{ "{\"command\":\"a\",\"url\":\"b\"}", "url: it has a command already" },
		{ "{\"command\":\"a\",\"type\":\"http\"}", "type: does not go with a command" },
		{ "{\"url\":\"https://a\",\"type\":\"stdio\"}", "type: does not go with a url" },
		{ "{\"command\":\"a\",\"env\":{\"K\":\"${NONE}\"}}",
		  "env.K: ${NONE} is not set in the daemon's environment" },
		{ "{\"command\":\"a\",\"args\":[\"b\",\"${\"]}", "args[1]: ${ without its }" },
		{ "{\"command\":\"a\",\"env\":{\"A=B\":\"c\"}}",
		  "env: 'A=B' is no variable's name" },
		{ "{\"url\":\"https://a\",\"host\":true}", "url: there is nothing to be run here" },
		{ "{\"command\":\"a\",\"host\":true,\"template\":\"node\"}",
		  "host: it has no sandbox there, whatever it is made of" },
		{ "{\"command\":\"a\",\"template\":\"t\",\"snapshot\":\"s\"}",
		  "snapshot: it has a template already" },
		{ "{\"command\":\"a\",\"network\":\"all\"}",
		  "network: want true, false, or a list of at most 64 names" },
		{ "{\"command\":\"a\",\"network\":[\"a.example\",1]}", "network[1]: want a name" },
		{ "{\"command\":\"a\",\"network\":true,\"host\":true}",
		  "host: it has no sandbox there, whatever it is made of" },
		{ "{\"command\":\"a\",\"auth\":{}}", "auth: is for servers with a url" },
		{ "{\"url\":\"https://a\",\"headers\":{\"A\":\"b\\r\\nC: d\"}}",
		  "headers.A: has more than one line" },
		{ "{\"url\":\"https://a\",\"headers\":{\"A: b\":\"c\"}}",
		  "headers: 'A: b' is no header's name" },
		{ "{\"command\":\"a\",\"roots\":[{\"name\":\"x\"}]}",
		  "roots[0]: wants {\"uri\": \"file://...\"}" },
		{ "{\"command\":\"a\",\"roots\":{}}", "roots: want a list of at most 16" },
	};
	struct rig *f = *state;

	for (size_t i = 0; i < LEN(rows); i++) {
		assert_int_equal(read_row(f, rows[i].json), -EINVAL);
		assert_string_equal(f->err.text, rows[i].want);
	}
}

static void names_are_such_as_can_stand_in_a_path(void **state)
{
	static const char *const bad[] = { "", ".", ".hidden", "a/b", "a b", "a\"b", "\xc3\xa4" };
	char name[MCPC_SERVER_NAME_MAX + 2];
	struct rig *f = *state;

	for (size_t i = 0; i < LEN(bad); i++)
		assert_int_equal(read_named(f, bad[i], "{\"command\":\"a\"}"), -EINVAL);
	memset(name, 'a', sizeof(name));
	name[MCPC_SERVER_NAME_MAX + 1] = '\0';
	assert_int_equal(read_named(f, name, "{\"command\":\"a\"}"), -EINVAL);
	name[MCPC_SERVER_NAME_MAX] = '\0';
	assert_int_equal(read_named(f, name, "{\"command\":\"a\"}"), 0);
}

static void fields_of_other_hosts_are_passed_over_and_told(void **state)
{
	struct rig *f = *state;

	assert_int_equal(read_row(f, "{\"command\":\"a\",\"autoApprove\":[]}"), 0);
	assert_string_equal(f->row.unknown, "autoApprove");
}

static void a_wrong_row_that_is_disabled_is_disabled(void **state)
{
	struct rig *f = *state;

	assert_int_equal(read_row(f, "{\"disabled\":true}"), -EINVAL);
	assert_true(f->row.is_disabled);
}

static void a_text_has_an_end(void **state)
{
	static char json[SERVER_TEXT_MAX + 64], long_text[SERVER_TEXT_MAX];
	struct rig *f = *state;
	const char *got;
	struct err err = { 0 };

	memset(long_text, 'x', sizeof(long_text) - 2);
	assert_int_equal(str_format(json, sizeof(json), "${TOKEN}%s", long_text), 0);
	assert_int_equal(server_row_expand(json, &f->deps, f->arena, &got, &err), -E2BIG);
}

static void the_policy_denies_before_it_asks_and_asks_before_it_allows(void **state)
{
	static const struct {
		const char *json, *tool;
		enum mcpc_policy want;
	} rows[] = {
		{ "{}", "anything", MCPC_ALLOW },
		{ "{\"deny\":[\"write_*\"]}", "write_file", MCPC_DENY },
		{ "{\"deny\":[\"write_*\"]}", "read_file", MCPC_ALLOW },
		{ "{\"ask\":[\"*\"],\"deny\":[\"rm\"]}", "rm", MCPC_DENY },
		{ "{\"ask\":[\"*\"],\"allow\":[\"ls\"]}", "ls", MCPC_ASK },
		{ "{\"allow\":[\"read_*\",\"ls\"]}", "ls", MCPC_ALLOW },
		{ "{\"allow\":[\"read_*\",\"ls\"]}", "rm", MCPC_DENY },
		{ "{\"allow\":[\"ls\"],\"ask\":[\"rm\"]}", "rm", MCPC_ASK },
		{ "{\"allow\":[\"ls\"]}", "LS", MCPC_DENY },
		{ "{\"deny\":[\"a/*\"]}", "a/b/c", MCPC_DENY },
	};
	struct rig *f = *state;
	char json[256];

	for (size_t i = 0; i < LEN(rows); i++) {
		assert_int_equal(str_format(json, sizeof(json), "{\"command\":\"a\",\"tools\":%s}",
					    rows[i].json),
				 0);
		assert_int_equal(read_row(f, json), 0);
		assert_int_equal(server_row_policy(&f->row, rows[i].tool), rows[i].want);
	}
}

static void a_server_s_sandbox_is_as_the_row_says(void **state)
{
	struct rig *f = *state;

	assert_int_equal(read_row(f, "{\"command\":\"a\",\"template\":\"node\",\"owner\":\"ops\","
				     "\"resources\":{\"memory\":\"1G\",\"cpu\":2},\"volumes\":["
				     "{\"name\":\"data\",\"path\":\"/mnt/data\",\"readOnly\":true}]"
				     ",\"timeout\":\"5s\"}"),
			 0);
	assert_string_equal(f->row.template, "node");
	assert_string_equal(f->row.owner, "ops");
	assert_int_equal(f->row.limits.memory_bytes, 1u << 30);
	assert_int_equal(f->row.limits.cpu_milli, 2000);
	assert_int_equal(f->row.volumes.n, 1);
	assert_string_equal(f->row.volumes.items[0].name, "data");
	assert_true(f->row.volumes.items[0].read_only);
	assert_int_equal(f->row.timeout_ms, 5000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_row_as_everybody_writes_it_is_a_process_in_a_sandbox),
		TEST(a_row_with_a_url_is_a_server_elsewhere),
		TEST(variables_are_put_in_once),
		TEST(what_is_wrong_is_said_with_its_field),
		TEST(names_are_such_as_can_stand_in_a_path),
		TEST(fields_of_other_hosts_are_passed_over_and_told),
		TEST(a_wrong_row_that_is_disabled_is_disabled),
		TEST(a_text_has_an_end),
		TEST(the_policy_denies_before_it_asks_and_asks_before_it_allows),
		TEST(a_server_s_sandbox_is_as_the_row_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
