#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "fault.h"
#include "mcpc_rig.h"

static struct mcpc_rig *modern(void)
{
	struct mcpc_rig *g = mcpc_rig_create("2026-07-28", true);

	mcpc_rig_connect_modern(g, "{\"tools\":{}}");
	return g;
}

static struct mcpc_rig *legacy(void)
{
	struct mcpc_rig *g = mcpc_rig_create("2025-06-18", false);

	mcpc_rig_connect_legacy(g);
	return g;
}

#define RESULT(text) "{\"jsonrpc\":\"2.0\",\"id\":$,\"result\":{" text "}}"
#define COMPLETE "\"resultType\":\"complete\""

static void a_list_of_pages_is_one_list(void **state)
{
	struct mcpc_rig *g = legacy();

	(void)state;
	assert_int_equal(mcpc_list(g->client, "tools/list", "tools", mcpc_rig_done, g, NULL), 0);
	assert_null(strstr(mcpc_rig_last(g), "cursor"));
	mcpc_rig_say(g,
		     RESULT("\"tools\":[{\"name\":\"a\"},{\"name\":\"b\"}],\"nextCursor\":\"\""));
	assert_non_null(strstr(mcpc_rig_last(g), "\"cursor\":\"\"")); /* is one, too */
	mcpc_rig_say(g, RESULT("\"tools\":[],"
			       "\"nextCursor\":\"x\""));
	mcpc_rig_say(g, RESULT("\"tools\":[{\"name\":\"c\"}]"));
	assert_int_equal(g->n_done, 1);
	assert_string_equal(g->result,
			    "{\"tools\":[{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":\"c\"}]}");
	mcpc_rig_free(g);
}

static void a_list_without_an_end_is_ended(void **state)
{
	struct mcpc_rig *g = legacy();
	unsigned pages = 0;

	(void)state;
	assert_int_equal(mcpc_list(g->client, "tools/list", "tools", mcpc_rig_done, g, NULL), 0);
	while (g->n_done == 0 && pages++ < 1000)
		mcpc_rig_say(g, RESULT("\"tools\":[],\"nextCursor\":\"same\""));
	assert_int_equal(pages, 200);
	assert_int_equal(g->err.code, E2BIG);
	mcpc_rig_free(g);
}

static void a_list_of_too_many_is_refused(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct mcpc_rig *g = legacy();

	(void)state;
	(void)buf_puts(&b, "{\"jsonrpc\":\"2.0\",\"id\":$,\"result\":{\"tools\":[");
	for (int i = 0; i < 10001; i++)
		(void)buf_puts(&b, i ? ",{}" : "{}");
	assert_int_equal(buf_puts(&b, "]}}"), 0);
	assert_int_equal(mcpc_list(g->client, "tools/list", "tools", mcpc_rig_done, g, NULL), 0);
	mcpc_rig_say(g, b.data);
	assert_int_equal(g->err.code, E2BIG);
	mcpc_rig_free(g);
}

static void a_list_that_is_none_is_an_error_and_one_under_way_may_be_dropped(void **state)
{
	struct mcpc_rig *g = legacy();

	(void)state;
	assert_int_equal(mcpc_list(g->client, "tools/list", "tools", mcpc_rig_done, g, NULL), 0);
	mcpc_rig_say(g, RESULT("\"tools\":{}"));
	assert_int_equal(g->err.code, EPROTO);
	assert_int_equal(mcpc_list(g->client, "tools/list", "tools", mcpc_rig_done, g, NULL), 0);
	mcpc_rig_free(g);
}

static void arguments_go_into_headers_where_the_tool_says_so(void **state)
{
	struct mcpc_rig *g = modern();

	(void)state;
	assert_int_equal(mcpc_list(g->client, "tools/list", "tools", mcpc_rig_done, g, NULL), 0);
	mcpc_rig_say(
		g, RESULT(COMPLETE
			  ",\"tools\":[{\"name\":\"good\",\"inputSchema\":{\"type\":\"object\","
			  "\"properties\":{\"r\":{\"type\":\"string\",\"x-mcp-header\":\"R\"}}}},"
			  "{\"name\":\"bad\",\"inputSchema\":{\"type\":\"object\",\"properties\":{"
			  "\"r\":{\"type\":\"string\",\"x-mcp-header\":\"\"}}}},"
			  "{\"title\":\"nameless\",\"inputSchema\":{\"properties\":{\"r\":{"
			  "\"type\":\"string\",\"x-mcp-header\":\"R\"}}}}]"));
	assert_non_null(strstr(g->result, "good"));
	assert_null(strstr(g->result, "nameless"));
	assert_null(strstr(g->result, "bad"));
	(void)mcpc_rig_ask(g, "tools/call", "{\"name\":\"good\",\"arguments\":{\"r\":\"west\"}}");
	assert_string_equal(g->name, "good");
	assert_string_equal(g->headers, "Mcp-Param-R: west");
	(void)mcpc_rig_ask(g, "tools/call", "{\"name\":\"other\",\"arguments\":{\"r\":\"west\"}}");
	assert_null(g->headers);
	mcpc_rig_free(g);
}

static int list_once(void *arg)
{
	struct mcpc_rig *g = arg;

	return mcpc_list(g->client, "tools/list", "tools", mcpc_rig_done, g, NULL);
}

static void a_list_without_memory_leaves_nothing_behind(void **state)
{
	struct mcpc_rig *g = modern();

	(void)state;
	g->is_deaf = true;
	assert_true(fault_each(list_once, g) > 5);
	assert_int_equal(g->n_done, 0);
	mcpc_rig_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_of_pages_is_one_list),
		cmocka_unit_test(a_list_without_an_end_is_ended),
		cmocka_unit_test(a_list_of_too_many_is_refused),
		cmocka_unit_test(a_list_that_is_none_is_an_error_and_one_under_way_may_be_dropped),
		cmocka_unit_test(arguments_go_into_headers_where_the_tool_says_so),
		cmocka_unit_test(a_list_without_memory_leaves_nothing_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
