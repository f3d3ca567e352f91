#include <errno.h>
#include <string.h>

#include "check.h"
#include "mcpc_rig.h"

static unsigned n_ready;
static int ready_code;

static void ready(void *user, const struct err *err)
{
	(void)user;
	n_ready++;
	ready_code = err ? err->code : 0;
}

static struct mcpc_rig *begin(const char *only_version)
{
	struct mcpc_rig *g = mcpc_rig_create(only_version, true);

	n_ready = 0;
	ready_code = -1;
	mcpc_connect(g->client, ready, NULL);
	return g;
}

static void refuse(struct mcpc_rig *g, int status, const char *body, int code)
{
	struct err err = { .code = code, .text = "refused" };

	g->transport.events->failed(g->transport.user, mcpc_rig_id(g), status, body, strlen(body),
				    code ? &err : NULL);
}

#define WELCOME                                                                         \
	"{\"jsonrpc\":\"2.0\",\"id\":$,\"result\":{\"protocolVersion\":\"2025-11-25\"," \
	"\"capabilities\":{},\"serverInfo\":{\"name\":\"old\",\"version\":\"1\"}}}"

static void finish_legacy(struct mcpc_rig *g)
{
	assert_non_null(strstr(mcpc_rig_last(g), "\"method\":\"initialize\""));
	assert_non_null(strstr(mcpc_rig_last(g), "\"protocolVersion\":\"2025-11-25\""));
	assert_null(strstr(mcpc_rig_last(g), "_meta"));
	mcpc_rig_say(g, WELCOME);
	assert_int_equal(n_ready, 1);
	assert_int_equal(ready_code, 0);
	assert_false(mcpc_is_modern(g->client));
	assert_string_equal(g->agreed, "2025-11-25");
	assert_string_equal(mcpc_server_name(g->client), "old");
	assert_non_null(strstr(mcpc_rig_last(g), "notifications/initialized"));
	mcpc_rig_free(g);
}

static void a_modern_server_needs_no_handshake(void **state)
{
	struct mcpc_rig *g = mcpc_rig_create(NULL, true);

	(void)state;
	mcpc_rig_connect_modern(g, "{\"tools\":{}}");
	assert_true(mcpc_is_modern(g->client));
	assert_true(mcpc_offers(g->client, "tools"));
	assert_false(mcpc_offers(g->client, "prompts"));
	assert_int_equal(g->n_sent, 1);
	assert_non_null(strstr(
		g->sent[0], "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
			    "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"holt\","
			    "\"version\":\"1\"},\"io.modelcontextprotocol/clientCapabilities\":"
			    "{\"elicitation\":{}}}"));
	mcpc_rig_free(g);
}

static void whatever_an_old_server_says_to_the_new_it_is_asked_in_its_own_way(void **state)
{
	static const struct {
		int status;
		const char *body;
	} rows[] = {
		{ 400, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32000,\"message\":"
		       "\"Bad Request: Server not initialized\"}}" },
		{ 400, "" },
		{ 404, "no such page" },
		{ 405, "" },
		{ 500, "<html>" },
		{ 400,
		  "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32022,\"message\":\"no\","
		  "\"data\":{\"supported\":[\"2025-11-25\"]}}}" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mcpc_rig *g = begin(NULL);

		refuse(g, rows[i].status, rows[i].body, EREMOTEIO);
		finish_legacy(g);
	}
}

static void an_old_server_on_a_pipe_answers_with_an_error(void **state)
{
	struct mcpc_rig *g = begin(NULL);

	(void)state;
	mcpc_rig_say(g,
		     "{\"jsonrpc\":\"2.0\",\"id\":$,\"error\":{\"code\":-32602,\"message\":\"x\"}"
		     "}");
	finish_legacy(g);
}

static void a_server_that_discovers_only_old_versions_is_old(void **state)
{
	struct mcpc_rig *g = begin(NULL);

	(void)state;
	mcpc_rig_say(g, "{\"jsonrpc\":\"2.0\",\"id\":$,\"result\":{\"supportedVersions\":"
			"[\"2025-11-25\"],\"capabilities\":{}}}");
	finish_legacy(g);
}

static void a_server_that_names_our_version_is_asked_once_more(void **state)
{
	static const char no[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32022,"
				 "\"message\":\"no\",\"data\":{\"supported\":[\"2026-07-28\"]}}}";
	struct mcpc_rig *g = begin("2026-07-28");

	(void)state;
	refuse(g, 400, no, EREMOTEIO);
	assert_int_equal(g->n_sent, 2);
	assert_non_null(strstr(mcpc_rig_last(g), "server/discover"));
	refuse(g, 400, no, EREMOTEIO); /* and not for ever */
	assert_int_equal(g->n_sent, 2);
	assert_int_equal(n_ready, 1);
	assert_int_equal(ready_code, EREMOTEIO);
	mcpc_rig_free(g);
}

static void a_server_without_the_only_version_is_none(void **state)
{
	struct mcpc_rig *g = begin("2026-07-28");

	(void)state;
	mcpc_rig_say(g, "{\"jsonrpc\":\"2.0\",\"id\":$,\"result\":{\"supportedVersions\":"
			"[\"2025-11-25\"],\"capabilities\":{}}}");
	assert_int_equal(g->n_sent, 1);
	assert_int_equal(n_ready, 1);
	assert_int_equal(ready_code, EPROTO);
	mcpc_rig_free(g);
}

static void nobody_there_is_asked_once_only(void **state)
{
	static const int codes[] = { ECONNREFUSED, EHOSTUNREACH, EKEYREJECTED, EACCES };

	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		struct mcpc_rig *g = begin(NULL);

		refuse(g, codes[i] == EACCES ? 401 : 0, "", codes[i]);
		assert_int_equal(g->n_sent, 1);
		assert_int_equal(n_ready, 1);
		assert_int_equal(ready_code, codes[i]);
		mcpc_rig_free(g);
	}
}

static void a_version_that_nobody_knows_ends_it(void **state)
{
	struct mcpc_rig *g = begin("2025-11-25");

	(void)state;
	assert_int_equal(g->n_sent, 1); /* no probe: there is nothing to find out */
	mcpc_rig_say(g, "{\"jsonrpc\":\"2.0\",\"id\":$,\"result\":{\"protocolVersion\":"
			"\"1999-01-01\",\"capabilities\":{}}}");
	assert_int_equal(n_ready, 1);
	assert_int_equal(ready_code, EPROTO);
	mcpc_rig_free(g);
}

static void what_cannot_be_sent_is_told_later(void **state)
{
	struct mcpc_rig *g = mcpc_rig_create(NULL, true);

	(void)state;
	n_ready = 0;
	g->send_fails = -EPIPE;
	mcpc_connect(g->client, ready, NULL);
	assert_int_equal(n_ready, 0);
	mcpc_rig_wait(g, &n_ready, 1);
	assert_int_equal(ready_code, EPIPE);
	mcpc_rig_free(g);
}

static void a_session_that_is_gone_is_begun_again_once(void **state)
{
	struct mcpc_rig *g = mcpc_rig_create(NULL, true);

	(void)state;
	mcpc_rig_connect_legacy(g);
	(void)mcpc_rig_ask(g, "tools/call", "{\"name\":\"a\"}");
	refuse(g, 404, "", ENOENT);
	assert_non_null(strstr(mcpc_rig_last(g), "\"method\":\"initialize\""));
	(void)mcpc_rig_ask(g, "tools/call", "{\"name\":\"b\"}"); /* waits for it */
	assert_non_null(strstr(mcpc_rig_last(g), "\"method\":\"initialize\""));
	mcpc_rig_say(g, WELCOME);
	assert_non_null(strstr(g->sent[g->n_sent - 2], "\"name\":\"a\""));
	assert_non_null(strstr(mcpc_rig_last(g), "\"name\":\"b\""));
	assert_int_equal(g->n_ready, 1);
	mcpc_rig_say(g, "{\"jsonrpc\":\"2.0\",\"id\":$,\"result\":{}}");
	assert_int_equal(g->n_done, 1);
	assert_int_equal(g->err.code, 0);
	mcpc_rig_free(g);
}

static void a_server_that_keeps_no_session_is_given_up(void **state)
{
	struct mcpc_rig *g = mcpc_rig_create(NULL, true);

	(void)state;
	mcpc_rig_connect_legacy(g);
	(void)mcpc_rig_ask(g, "ping", NULL);
	refuse(g, 404, "", ENOENT);
	mcpc_rig_say(g,
		     "{\"jsonrpc\":\"2.0\",\"id\":$,\"error\":{\"code\":-1,\"message\":\"no\"}}");
	assert_int_equal(g->n_lost, 1);
	mcpc_rig_wait(g, &g->n_done, 1);
	assert_int_equal(g->err.code, EREMOTEIO);
	assert_int_equal(
		mcpc_request(g->client,
			     &(struct mcpc_request){ .method = "ping", .done = mcpc_rig_done },
			     NULL, NULL),
		-EPIPE);
	mcpc_rig_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_modern_server_needs_no_handshake),
		cmocka_unit_test(whatever_an_old_server_says_to_the_new_it_is_asked_in_its_own_way),
		cmocka_unit_test(an_old_server_on_a_pipe_answers_with_an_error),
		cmocka_unit_test(a_server_that_discovers_only_old_versions_is_old),
		cmocka_unit_test(a_server_that_names_our_version_is_asked_once_more),
		cmocka_unit_test(a_server_without_the_only_version_is_none),
		cmocka_unit_test(nobody_there_is_asked_once_only),
		cmocka_unit_test(a_version_that_nobody_knows_ends_it),
		cmocka_unit_test(what_cannot_be_sent_is_told_later),
		cmocka_unit_test(a_session_that_is_gone_is_begun_again_once),
		cmocka_unit_test(a_server_that_keeps_no_session_is_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
