#include "json/rpc.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "check.h"
#include "json/jw.h"

static struct jv_doc *doc_of(const char *text)
{
	struct jv_doc *doc = NULL;

	assert_int_equal(jv_parse(text, strlen(text), strlen(text), &doc, NULL), 0);
	return doc;
}

static void a_message_is_what_its_members_say(void **state)
{
	static const struct {
		const char *text;
		enum rpc_kind kind;
	} rows[] = {
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", RPC_REQUEST },
		{ "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\",\"params\":{}}",
		  RPC_REQUEST },
		{ "{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}", RPC_NOTIFICATION },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", RPC_RESULT },
		{ "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-1,\"message\":\"x\"}}",
		  RPC_ERROR },
	};
	struct rpc_message m;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct jv_doc *doc = doc_of(rows[i].text);

		assert_int_equal(rpc_read(jv_root(doc), &m, NULL), 0);
		assert_int_equal(m.kind, rows[i].kind);
		(void)jv_free(doc);
	}
}

static void what_is_no_message_is_refused_by_name(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "[]", "object" },
		{ "{\"id\":1,\"method\":\"x\"}", "jsonrpc" },
		{ "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"x\"}", "jsonrpc" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}", "method" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"x\"}", "id" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"x\"}", "id" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"x\"}", "id" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":[1]}", "params" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1}", "result" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":5}", "result" },
		{ "{\"jsonrpc\":\"2.0\",\"result\":{}}", "id" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{\"code\":1}}", "both" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":\"1\"}}", "code" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct jv_doc *doc = doc_of(rows[i].text);
		struct err err = { 0 };
		struct rpc_message m;

		assert_int_equal(rpc_read(jv_root(doc), &m, &err), -EINVAL);
		assert_non_null(strstr(err.text, rows[i].says));
		(void)jv_free(doc);
	}
}

static void the_id_of_a_bad_message_is_known(void **state)
{
	struct jv_doc *doc = doc_of("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":5}");
	char id[RPC_ID_MAX];
	struct rpc_message m;

	(void)state;
	assert_int_equal(rpc_read(jv_root(doc), &m, NULL), -EINVAL);
	assert_int_equal(rpc_id(m.id, id, sizeof(id)), 0);
	assert_string_equal(id, "7");
	(void)jv_free(doc);
}

static void ids_are_compared_as_text(void **state)
{
	struct jv_doc *doc = doc_of("[1,\"1\",\"\\u00e4\\\"\",null,[]]");
	char id[RPC_ID_MAX];

	(void)state;
	assert_int_equal(rpc_id(jv_at(jv_root(doc), 0), id, sizeof(id)), 0);
	assert_string_equal(id, "1");
	assert_int_equal(rpc_id(jv_at(jv_root(doc), 1), id, sizeof(id)), 0);
	assert_string_equal(id, "\"1\"");
	assert_int_equal(rpc_id(jv_at(jv_root(doc), 2), id, sizeof(id)), 0);
	assert_int_equal(rpc_id(jv_at(jv_root(doc), 2), id, 5), -E2BIG);
	assert_int_equal(rpc_id(jv_at(jv_root(doc), 3), id, sizeof(id)), -EINVAL);
	assert_int_equal(rpc_id(jv_at(jv_root(doc), 4), id, sizeof(id)), -EINVAL);
	(void)jv_free(doc);
}

static void envelopes_are_whole(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	(void)state;
	jw_array_begin(&w);
	rpc_request_begin(&w, "\"a\"", "m");
	jw_object_begin(&w), jw_object_end(&w);
	rpc_end(&w);
	rpc_notification_begin(&w, "n");
	jw_object_begin(&w), jw_object_end(&w);
	rpc_end(&w);
	rpc_result_begin(&w, "3");
	jw_object_begin(&w), jw_object_end(&w);
	rpc_end(&w);
	rpc_error(&w, NULL, RPC_PARSE, "bad", NULL);
	rpc_error(&w, "4", RPC_PARAMS, "worse", "{\"x\":1}");
	jw_array_end(&w);
	assert_int_equal(jw_end(&w), 0);
	assert_string_equal(
		b.data,
		"[{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"m\",\"params\":{}},"
		"{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{}},"
		"{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}},"
		"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"bad\"}},"
		"{\"jsonrpc\":\"2.0\",\"id\":4,\"error\":{\"code\":-32602,\"message\":\"worse\","
		"\"data\":{\"x\":1}}}]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_is_what_its_members_say),
		cmocka_unit_test(what_is_no_message_is_refused_by_name),
		cmocka_unit_test(the_id_of_a_bad_message_is_known),
		cmocka_unit_test(ids_are_compared_as_text),
		cmocka_unit_test(envelopes_are_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
