#include "cli/mcp_bridge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "check.h"
#include "fault.h"
#include "mcpc/mcpc.h"

struct rig {
	struct mcpc_transport transport; /* first */
	struct mcp_bridge *bridge;
	struct buf sent; /* "id|method|name|version|modern|text\n" a message */
	struct buf said;
	char forgotten[64], agreed[32];
	int send_fails;
	unsigned n_over;
	bool is_closed;
};

static int on_send(struct mcpc_transport *t, const struct mcpc_send *m, struct err *err)
{
	struct rig *g = (struct rig *)t;

	if (g->send_fails < 0)
		return err_sys(err, g->send_fails, "send");
	return buf_printf(&g->sent, "%s|%s|%s|%s|%d|%.*s\n", m->id ? m->id : "",
			  m->method ? m->method : "", m->name ? m->name : "",
			  m->version ? m->version : "", m->is_modern, (int)m->len, m->text);
}

static void on_forget(struct mcpc_transport *t, const char *id)
{
	struct rig *g = (struct rig *)t;

	assert_int_equal(str_copy(g->forgotten, sizeof(g->forgotten), id), 0);
}

static void on_agreed(struct mcpc_transport *t, const char *version)
{
	struct rig *g = (struct rig *)t;

	assert_int_equal(str_copy(g->agreed, sizeof(g->agreed), version), 0);
}

static void on_close(struct mcpc_transport *t)
{
	((struct rig *)t)->is_closed = true;
}

static const struct mcpc_transport_ops transport_ops = { .send = on_send,
							 .forget = on_forget,
							 .agreed = on_agreed,
							 .close = on_close,
							 .forget_cancels = true };

static void on_line(void *user, const char *text, size_t n)
{
	struct rig *g = user;

	assert_null(memchr(text, '\n', n));
	(void)buf_append(&g->said, text, n);
	assert_int_equal(buf_putc(&g->said, '\n'), 0);
}

static void on_over(void *user)
{
	((struct rig *)user)->n_over++;
}

static const struct mcp_bridge_ops ops = { .line = on_line, .over = on_over };

static int setup(void **state)
{
	struct rig *g = calloc(1, sizeof(*g));

	assert_non_null(g);
	g->transport.ops = &transport_ops;
	assert_int_equal(mcp_bridge_create(&g->transport, &ops, g, &g->bridge, NULL), 0);
	*state = g;
	return 0;
}

static int teardown(void **state)
{
	struct rig *g = *state;

	g->bridge = mcp_bridge_free(g->bridge);
	assert_true(g->is_closed);
	buf_done(&g->sent);
	buf_done(&g->said);
	free(g);
	return 0;
}

static void write_to(struct rig *g, const char *text)
{
	buf_clear(&g->sent);
	buf_clear(&g->said);
	mcp_bridge_feed(g->bridge, text, strlen(text));
}

static void come(struct rig *g, const char *text)
{
	buf_clear(&g->sent);
	buf_clear(&g->said);
	g->transport.events->message(g->transport.user, text, strlen(text));
}

#define CALL "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"x\"}}"
#define MODERN                                                                            \
	"{\"jsonrpc\":\"2.0\",\"id\":\"m\",\"method\":\"tools/call\",\"params\":{"        \
	"\"name\":\"x\",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07" \
	"-28\"}}}"
#define LISTEN                                                                           \
	"{\"jsonrpc\":\"2.0\",\"id\":\"l\",\"method\":\"subscriptions/listen\",\"params" \
	"\":{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}}"
#define RESULT "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}"

static void a_request_goes_on_as_it_is_and_so_does_its_answer(void **state)
{
	struct rig *g = *state;

	write_to(g, " " CALL "\r\n");
	assert_string_equal(buf_str(&g->sent), "7|tools/call|x||0|" CALL "\n");
	come(g, RESULT);
	assert_string_equal(buf_str(&g->said), RESULT "\n");
	come(g, RESULT); /* nobody waits for it any more */
	assert_string_equal(buf_str(&g->said), "");
}

static void a_modern_request_is_told_by_its_version(void **state)
{
	struct rig *g = *state;

	write_to(g, MODERN "\n");
	assert_string_equal(buf_str(&g->sent), "\"m\"|tools/call|x|2026-07-28|1|" MODERN "\n");
	write_to(g, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n");
	assert_non_null(strstr(buf_str(&g->sent), "|notifications/x||2026-07-28|1|"));
	write_to(g, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
		    "\"requestId\":\"m\"}}\n");
	assert_string_equal(g->forgotten, "\"m\"");
	assert_string_equal(buf_str(&g->sent), ""); /* that was all of it */
	mcp_bridge_end(g->bridge);
	assert_int_equal(g->n_over, 1);
}

static void the_handshake_is_overheard(void **state)
{
	struct rig *g = *state;

	write_to(g, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}\n");
	come(g, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-06-18\"}}");
	assert_string_equal(g->agreed, "");
	write_to(g, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
	assert_string_equal(g->agreed, "2025-06-18");
	assert_non_null(strstr(buf_str(&g->sent), "|notifications/initialized||2025-06-18|0|"));
}

static void a_client_that_does_not_wait_for_the_handshake_is_understood(void **state)
{
	struct rig *g = *state;

	write_to(g, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}\n"
		    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
	assert_string_equal(g->agreed, "");
	come(g, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-06-18\"}}");
	assert_string_equal(g->agreed, "2025-06-18");
}

static void pieces_of_lines_and_several_at_once_are_lines(void **state)
{
	struct rig *g = *state;
	const char text[] = "\n\n" CALL "\n{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"a\"}\n";

	for (size_t i = 0; i < strlen(text); i++)
		mcp_bridge_feed(g->bridge, text + i, 1);
	assert_string_equal(buf_str(&g->sent), "7|tools/call|x||0|" CALL "\n"
					       "8|a|||0|{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":"
					       "\"a\"}\n");
}

static void a_batch_is_split(void **state)
{
	struct rig *g = *state;

	write_to(g, "[" CALL ",1,{\"jsonrpc\":\"2.0\",\"method\":\"n\"}]\n");
	assert_string_equal(buf_str(&g->sent), "7|tools/call|x||0|" CALL "\n"
					       "|n|||0|{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n");
	assert_non_null(strstr(buf_str(&g->said), "\"id\":null,\"error\":{\"code\":-32600"));
	write_to(g, "[]\n");
	assert_non_null(strstr(buf_str(&g->said), "-32600"));
}

static void what_is_no_message_is_refused(void **state)
{
	static const struct {
		const char *line, *error;
	} rows[] = {
		{ "nonsense\n", "\"id\":null,\"error\":{\"code\":-32700" },
		{ "{\"id\":3}\n", "\"id\":3,\"error\":{\"code\":-32600" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"x\"}\n",
		  "\"id\":null,\"error\":{\"code\":-32600" },
		{ "\"text\"\n", "-32600" },
	};
	struct rig *g = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		write_to(g, rows[i].line);
		assert_non_null(strstr(buf_str(&g->said), rows[i].error));
		assert_string_equal(buf_str(&g->sent), "");
	}
}

static void a_line_that_is_too_long_is_refused_and_the_next_is_not(void **state)
{
	struct rig *g = *state;
	char *chunk = calloc(1, 1 << 20);

	assert_non_null(chunk);
	memset(chunk, 'x', 1 << 20);
	for (int i = 0; i < 18; i++)
		mcp_bridge_feed(g->bridge, chunk, 1 << 20);
	free(chunk);
	assert_non_null(strstr(buf_str(&g->said), "\"id\":null,\"error\":{\"code\":-32600"));
	assert_null(strchr(strchr(g->said.data, '\n') + 1, '\n')); /* said once */
	write_to(g, "\n" CALL "\n");
	assert_string_equal(buf_str(&g->sent), "7|tools/call|x||0|" CALL "\n");
	assert_string_equal(buf_str(&g->said), "");
}

static void an_id_is_in_use_once(void **state)
{
	struct rig *g = *state;

	write_to(g, CALL "\n");
	write_to(g, CALL "\n");
	assert_string_equal(buf_str(&g->sent), "");
	assert_non_null(strstr(buf_str(&g->said), "\"id\":7,\"error\":{\"code\":-32600"));
}

static void so_many_are_under_way_and_no_more(void **state)
{
	struct rig *g = *state;
	char line[96];

	for (unsigned i = 0; i <= MCP_BRIDGE_PENDING_MAX; i++) {
		assert_int_equal(str_format(line, sizeof(line),
					    "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"a\"}\n",
					    i),
				 0);
		write_to(g, line);
		assert_int_equal(g->said.len > 0, i == MCP_BRIDGE_PENDING_MAX);
	}
}

static void what_cannot_be_sent_or_answered_is_an_error_with_its_id(void **state)
{
	static const char body[] = "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32601,"
				   "\"message\":\"none\",\"data\":{\"a\":1}}}";
	struct rig *g = *state;
	struct err err = { .code = ECONNRESET, .text = "broke off" };

	g->send_fails = -EAGAIN;
	write_to(g, CALL "\n");
	assert_non_null(strstr(buf_str(&g->said), "\"id\":7,\"error\":{\"code\":-32000"));
	g->send_fails = 0;
	write_to(g, CALL "\n");
	g->transport.events->failed(g->transport.user, "7", 404, body, strlen(body), &err);
	assert_string_equal(buf_str(&g->said),
			    "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32601,\"message\":"
			    "\"none\",\"data\":{\"a\":1}}}\n");
	write_to(g, CALL "\n");
	g->transport.events->failed(g->transport.user, "7", 0, "", 0, &err);
	assert_string_equal(buf_str(&g->said),
			    "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32000,\"message\":"
			    "\"broke off\"}}\n");
}

static void a_message_of_several_lines_becomes_one(void **state)
{
	struct rig *g = *state;

	come(g, "{\"jsonrpc\":\"2.0\",\n \"method\":\"n\",\r\n\"params\":{\"t\":\"a\\nb\"}}");
	assert_string_equal(
		buf_str(&g->said),
		"{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{\"t\":\"a\\nb\"}}\n");
}

static void the_end_waits_for_answers(void **state)
{
	struct rig *g = *state;

	write_to(g, CALL "\n" LISTEN); /* the last line has no end */
	mcp_bridge_end(g->bridge);
	assert_string_equal(g->forgotten, "\"l\""); /* would never be over */
	assert_int_equal(g->n_over, 0);
	come(g, RESULT);
	assert_string_equal(buf_str(&g->said), RESULT "\n");
	assert_int_equal(g->n_over, 1);
}

static void a_server_that_asks_after_the_end_is_refused(void **state)
{
	struct rig *g = *state;

	write_to(g, CALL "\n");
	come(g, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\"}");
	assert_non_null(strstr(buf_str(&g->said), "roots/list"));
	mcp_bridge_end(g->bridge);
	assert_non_null(strstr(buf_str(&g->sent), "\"id\":1,\"error\""));
	come(g, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"roots/list\"}");
	assert_string_equal(buf_str(&g->said), "");
	assert_non_null(strstr(buf_str(&g->sent), "\"id\":2,\"error\""));
	assert_int_equal(g->n_over, 0);
}

static int make_once(void *arg)
{
	struct rig *g = arg;
	struct mcp_bridge *b = NULL;
	int r = mcp_bridge_create(&g->transport, &ops, g, &b, NULL);

	b = mcp_bridge_free(b);
	return r;
}

static void one_without_memory_leaves_nothing_behind(void **state)
{
	struct rig g = { .transport.ops = &transport_ops };

	(void)state;
	assert_true(fault_each(make_once, &g) > 2);
	assert_true(g.is_closed); /* the transport is taken in any case */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_request_goes_on_as_it_is_and_so_does_its_answer),
		TEST(a_modern_request_is_told_by_its_version),
		TEST(the_handshake_is_overheard),
		TEST(a_client_that_does_not_wait_for_the_handshake_is_understood),
		TEST(pieces_of_lines_and_several_at_once_are_lines),
		TEST(a_batch_is_split),
		TEST(what_is_no_message_is_refused),
		TEST(a_line_that_is_too_long_is_refused_and_the_next_is_not),
		TEST(an_id_is_in_use_once),
		TEST(so_many_are_under_way_and_no_more),
		TEST(what_cannot_be_sent_or_answered_is_an_error_with_its_id),
		TEST(a_message_of_several_lines_becomes_one),
		TEST(the_end_waits_for_answers),
		TEST(a_server_that_asks_after_the_end_is_refused),
		cmocka_unit_test(one_without_memory_leaves_nothing_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
