#include "mcpc/mirror.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "check.h"
#include "fault.h"

CLEANUP_FUNC(struct jv_doc *, jv_free)
CLEANUP_FUNC(struct arena *, arena_free)

static struct jv_doc *parse(const char *text)
{
	struct jv_doc *doc = NULL;
	struct err err = { 0 };

	assert_int_equal(jv_parse(text, strlen(text), 1 << 20, &doc, &err), 0);
	return doc;
}

#define TOOL(properties) "{\"inputSchema\":{\"type\":\"object\",\"properties\":{" properties "}}}"

static void check_header(const char *tool, const char *arguments, const char *want)
{
	_cleanup_(jv_free_p) struct jv_doc *schema = parse(tool), *args = parse(arguments);
	_cleanup_(arena_free_p) struct arena *a = arena_create(1 << 20);
	_cleanup_(mcpc_mirror_free_p) struct mcpc_mirror *m = NULL;
	const char *const *headers = NULL;

	assert_int_equal(mcpc_mirror_read(jv_root(schema), &m), 0);
	assert_non_null(m);
	assert_int_equal(mcpc_mirror_write(m, jv_root(args), a, &headers), 0);
	if (!want) {
		assert_null(headers[0]);
		return;
	}
	assert_non_null(headers[0]);
	assert_string_equal(headers[0], want);
	assert_null(headers[1]);
}

static void values_are_plain_where_a_header_can_have_them(void **state)
{
	static const char tool[] = TOOL("\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}");
	static const struct {
		const char *arguments, *header;
	} rows[] = {
		{ "{\"a\":\"us west\"}", "Mcp-Param-A: us west" },
		{ "{\"a\":\"\"}", "Mcp-Param-A;" },
		{ "{\"a\":null}", NULL },
		{ "{}", NULL },
		{ "{\"a\":[1]}", NULL },
		{ "{\"a\":42}", "Mcp-Param-A: 42" },
		{ "{\"a\":false}", "Mcp-Param-A: false" },
		{ "{\"a\":\" x\"}", "Mcp-Param-A: =?base64?IHg=?=" },
		{ "{\"a\":\"x \"}", "Mcp-Param-A: =?base64?eCA=?=" },
		{ "{\"a\":\"x\\r\\ny\"}", "Mcp-Param-A: =?base64?eA0KeQ==?=" },
		{ "{\"a\":\"\\tx\"}", "Mcp-Param-A: =?base64?CXg=?=" },
		{ "{\"a\":\"\xc3\xa9\"}", "Mcp-Param-A: =?base64?w6k=?=" },
		{ "{\"a\":\"=?base64?eA==?=\"}", "Mcp-Param-A: =?base64?PT9iYXNlNjQ/ZUE9PT89?=" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_header(tool, rows[i].arguments, rows[i].header);
}

static void a_property_in_a_property_is_found(void **state)
{
	(void)state;
	check_header(TOOL("\"where\":{\"type\":\"object\",\"properties\":{\"zone\":{"
			  "\"type\":\"string\",\"x-mcp-header\":\"Zone\"}}}"),
		     "{\"where\":{\"zone\":\"b\"},\"zone\":\"c\"}", "Mcp-Param-Zone: b");
}

static void a_tool_with_wrong_headers_is_refused(void **state)
{
	static const char *const tools[] = {
		TOOL("\"a\":{\"type\":\"string\",\"x-mcp-header\":\"\"}"),
		TOOL("\"a\":{\"type\":\"string\",\"x-mcp-header\":1}"),
		TOOL("\"a\":{\"type\":\"object\",\"x-mcp-header\":\"A\"}"),
		TOOL("\"a\":{\"type\":\"array\",\"x-mcp-header\":\"A\"}"),
		TOOL("\"a\":{\"type\":\"number\",\"x-mcp-header\":\"A\"}"),
		TOOL("\"a\":{\"type\":\"null\",\"x-mcp-header\":\"A\"}"),
		TOOL("\"a\":{\"x-mcp-header\":\"A\"}"),
		TOOL("\"a\":{\"type\":\"string\",\"x-mcp-header\":\"My A\"}"),
		TOOL("\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A:\"}"),
		TOOL("\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\\r\\nB\"}"),
		TOOL("\"a\":{\"type\":\"string\",\"x-mcp-header\":\"R\xc3\xa9gion\"}"),
		TOOL("\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"},"
		     "\"b\":{\"type\":\"string\",\"x-mcp-header\":\"a\"}"),
		TOOL("\"a\":{\"type\":\"array\",\"items\":{\"type\":\"string\","
		     "\"x-mcp-header\":\"A\"}}"),
		TOOL("\"a\":{\"anyOf\":[{\"type\":\"string\",\"x-mcp-header\":\"A\"}]}"),
		"{\"inputSchema\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
		_cleanup_(jv_free_p) struct jv_doc *doc = parse(tools[i]);
		struct mcpc_mirror *m = NULL;

		assert_int_equal(mcpc_mirror_read(jv_root(doc), &m), -EINVAL);
		assert_null(m);
	}
}

static void a_tool_may_have_at_most_so_many_headers(void **state)
{
	(void)state;
	for (size_t n = MCPC_MIRROR_MAX; n <= MCPC_MIRROR_MAX + 1; n++) {
		_cleanup_(buf_done) struct buf b = { 0 };
		_cleanup_(jv_free_p) struct jv_doc *doc = NULL;
		_cleanup_(mcpc_mirror_free_p) struct mcpc_mirror *m = NULL;

		(void)buf_puts(&b, "{\"inputSchema\":{\"properties\":{");
		for (size_t i = 0; i < n; i++)
			(void)buf_printf(&b,
					 "%s\"p%zu\":{\"type\":\"string\",\"x-mcp-header\":"
					 "\"P%zu\"}",
					 i ? "," : "", i, i);
		assert_int_equal(buf_puts(&b, "}}}"), 0);
		doc = parse(b.data);
		assert_int_equal(mcpc_mirror_read(jv_root(doc), &m),
				 n > MCPC_MIRROR_MAX ? -EINVAL : 0);
	}
}

static void what_only_looks_like_it_is_left_alone(void **state)
{
	_cleanup_(jv_free_p) struct jv_doc *doc =
		parse(TOOL("\"x-mcp-header\":{\"type\":\"string\"},\"a\":{\"type\":\"object\","
			   "\"default\":{\"x-mcp-header\":\"A\"}}"));
	struct mcpc_mirror *m = NULL;

	(void)state;
	assert_int_equal(mcpc_mirror_read(jv_root(doc), &m), 0);
	assert_null(m);
}

static int read_once(void *arg)
{
	struct mcpc_mirror *m = NULL;
	int r = mcpc_mirror_read(jv_root(arg), &m);

	m = mcpc_mirror_free(m);
	return r;
}

static void a_tool_without_memory_leaves_nothing_behind(void **state)
{
	_cleanup_(jv_free_p) struct jv_doc *doc =
		parse(TOOL("\"a\":{\"type\":\"object\",\"properties\":{\"b\":{\"type\":\"string\","
			   "\"x-mcp-header\":\"B\"}}}"));

	(void)state;
	assert_true(fault_each(read_once, doc) > 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_plain_where_a_header_can_have_them),
		cmocka_unit_test(a_property_in_a_property_is_found),
		cmocka_unit_test(a_tool_with_wrong_headers_is_refused),
		cmocka_unit_test(a_tool_may_have_at_most_so_many_headers),
		cmocka_unit_test(what_only_looks_like_it_is_left_alone),
		cmocka_unit_test(a_tool_without_memory_leaves_nothing_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
