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

static void a_result_that_does_not_say_is_complete_and_an_unknown_one_is_none(void **state)
{
	static const struct {
		const char *result;
		int code;
	} rows[] = {
		{ RESULT("\"a\":1"), 0 },
		{ RESULT(COMPLETE), 0 },
		{ RESULT("\"resultType\":\"surprise\""), EPROTO },
		{ RESULT("\"resultType\":7"), EPROTO },
		{ RESULT("\"resultType\":\"input_required\""), EPROTO }, /* asks for nothing */
		{ RESULT("\"resultType\":\"input_required\",\"inputRequests\":[]"), EPROTO },
		{ RESULT("\"resultType\":\"input_required\",\"inputRequests\":{\"a\":{}}"),
		  EPROTO },
		{ RESULT("\"resultType\":\"input_required\",\"requestState\":{}"), EPROTO },
		{ "{\"jsonrpc\":\"2.0\",\"id\":$,\"result\":[]}", EPROTO },
		{ "{\"jsonrpc\":\"2.0\",\"id\":$}", EPROTO },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mcpc_rig *g = modern();

		(void)mcpc_rig_ask(g, "tools/call", "{\"name\":\"x\"}");
		mcpc_rig_say(g, rows[i].result);
		assert_int_equal(g->n_done, 1);
		assert_int_equal(g->err.code, rows[i].code);
		mcpc_rig_free(g);
	}
}

static void what_comes_for_nobody_is_passed_over(void **state)
{
	static const char *const rows[] = {
		"{\"jsonrpc\":\"2.0\",\"id\":999,\"result\":{}}",
		"{\"jsonrpc\":\"2.0\",\"id\":\"2\",\"result\":{}}",
		"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1,\"message\":\"\"}}",
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}",
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/unheard\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"roots/list\"}",
		"{\"jsonrpc\":\"1.0\",\"id\":999,\"result\":{}}",
		"[]",
		"[1,null]",
		"not JSON",
		"",
	};
	struct mcpc_rig *g = modern();

	(void)state;
	(void)mcpc_rig_ask(g, "tools/call", NULL);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		mcpc_rig_say(g, rows[i]);
	assert_int_equal(g->n_done, 0);
	assert_int_equal(g->n_sent, 2);
	mcpc_rig_free(g);
}

static void an_error_of_the_server_is_told_with_its_code(void **state)
{
	struct mcpc_rig *g = modern();
	const char body[] = "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32601,\"message\":"
			    "\"no such method\"}}";

	(void)state;
	(void)mcpc_rig_ask(g, "a/b", NULL);
	mcpc_rig_say(g, "{\"jsonrpc\":\"2.0\",\"id\":$,\"error\":{\"code\":-32602,\"message\":"
			"\"wrong\"}}");
	assert_int_equal(g->rpc_code, -32602);
	assert_string_equal(g->err.text, "wrong");
	(void)mcpc_rig_ask(g, "a/b", NULL); /* the same as the body of a refusal in HTTP */
	g->transport.events->failed(g->transport.user, mcpc_rig_id(g), 404, body, strlen(body),
				    NULL);
	assert_int_equal(g->n_done, 2);
	assert_int_equal(g->rpc_code, -32601);
	mcpc_rig_free(g);
}

static void answers_go_back_with_the_state_byte_for_byte(void **state)
{
	struct mcpc_rig *g = modern();

	(void)state;
	g->answer = "{\"action\":\"accept\"}";
	(void)mcpc_rig_ask(g, "tools/call", "{\"name\":\"x\",\"arguments\":{\"n\":1}}");
	assert_string_equal(mcpc_rig_id(g), "2");
	mcpc_rig_say(g,
		     RESULT("\"resultType\":\"input_required\",\"inputRequests\":{\"k\\\"1\":{"
			    "\"method\":\"elicitation/create\",\"params\":{}},\"k2\":{\"method\":"
			    "\"elicitation/create\"}},\"requestState\":\"a\\n\\u00e9/+=\""));
	assert_int_equal(g->n_asked, 2);
	assert_int_equal(g->n_done, 0);
	assert_string_equal(mcpc_rig_id(g), "3"); /* a new one */
	assert_non_null(strstr(mcpc_rig_last(g),
			       "\"params\":{\"name\":\"x\",\"arguments\":{\"n\":1},"
			       "\"inputResponses\":{\"k\\\"1\":{\"action\":\"accept\"},\"k2\":{"
			       "\"action\":\"accept\"}},\"requestState\":\"a\\n\xc3\xa9/+=\""));
	mcpc_rig_say(g, RESULT("\"resultType\":\"input_required\",\"inputRequests\":{\"k\":{"
			       "\"method\":\"elicitation/create\"}}"));
	assert_null(strstr(mcpc_rig_last(g), "requestState")); /* it had none this time */
	assert_non_null(strstr(mcpc_rig_last(g), "\"inputResponses\":{\"k\":{"));
	mcpc_rig_say(g, RESULT("\"resultType\":\"input_required\",\"requestState\":\"s\""));
	assert_null(strstr(mcpc_rig_last(g), "inputResponses"));
	mcpc_rig_say(g, RESULT(COMPLETE));
	assert_int_equal(g->n_done, 1);
	assert_int_equal(g->err.code, 0);
	mcpc_rig_free(g);
}

static void a_server_that_never_stops_asking_is_stopped(void **state)
{
	struct mcpc_rig *g = modern();
	unsigned rounds = 0;

	(void)state;
	(void)mcpc_rig_ask(g, "tools/call", NULL);
	while (g->n_done == 0 && rounds < 100) {
		mcpc_rig_say(g, RESULT("\"resultType\":\"input_required\",\"requestState\":\"s\""));
		rounds++;
	}
	assert_int_equal(rounds, 17);
	assert_int_equal(g->err.code, EPROTO);
	mcpc_rig_free(g);
}

static void a_server_that_asks_too_much_at_once_is_refused(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct mcpc_rig *g = modern();

	(void)state;
	(void)buf_puts(&b, "{\"jsonrpc\":\"2.0\",\"id\":$,\"result\":{\"resultType\":"
			   "\"input_required\",\"inputRequests\":{");
	for (int i = 0; i < 65; i++)
		(void)buf_printf(&b, "%s\"%d\":{\"method\":\"roots/list\"}", i ? "," : "", i);
	assert_int_equal(buf_puts(&b, "}}}"), 0);
	(void)mcpc_rig_ask(g, "tools/call", NULL);
	mcpc_rig_say(g, b.data);
	assert_int_equal(g->n_asked, 0);
	assert_int_equal(g->n_done, 1);
	assert_int_equal(g->err.code, EPROTO);
	mcpc_rig_free(g);
}

static void a_question_that_is_refused_ends_the_request(void **state)
{
	struct mcpc_rig *g = modern();

	(void)state;
	(void)mcpc_rig_ask(g, "tools/call", NULL);
	mcpc_rig_say(g, RESULT("\"resultType\":\"input_required\",\"inputRequests\":{\"k\":{"
			       "\"method\":\"sampling/createMessage\"}}"));
	assert_string_equal(g->asked, "sampling/createMessage");
	mcpc_refuse(g->client, g->ask, -1, "no model here");
	assert_int_equal(g->n_done, 0); /* not from within */
	mcpc_rig_wait(g, &g->n_done, 1);
	assert_int_equal(g->err.code, ECANCELED);
	assert_non_null(strstr(g->err.text, "no model here"));
	mcpc_rig_free(g);
}

static void an_answer_that_comes_too_late_harms_nobody(void **state)
{
	struct mcpc_rig *g = modern();
	struct mcpc_call *call = mcpc_rig_ask(g, "tools/call", NULL);

	(void)state;
	mcpc_rig_say(g, RESULT("\"resultType\":\"input_required\",\"inputRequests\":{\"k\":{"
			       "\"method\":\"roots/list\"}}"));
	mcpc_cancel(call);
	assert_string_equal(g->forgotten, ""); /* nothing of it was with the server */
	mcpc_answer(g->client, g->ask, "{}");
	assert_int_equal(g->n_sent, 2);
	mcpc_rig_free(g);
}

static void a_request_of_an_old_server_is_answered_with_its_id(void **state)
{
	struct mcpc_rig *g = legacy();

	(void)state;
	mcpc_rig_say(g, "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}");
	assert_string_equal(mcpc_rig_last(g), "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"result\":{}}");
	mcpc_rig_say(g, "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"roots/list\"}");
	mcpc_answer(g->client, g->ask, "{\"roots\":[]}");
	assert_string_equal(mcpc_rig_last(g),
			    "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"roots\":[]}}");
	mcpc_rig_say(g, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\"}");
	mcpc_refuse(g->client, g->ask, -32601, "no");
	assert_non_null(strstr(mcpc_rig_last(g), "\"id\":1,\"error\":{\"code\":-32601"));
	mcpc_rig_say(g, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"roots/list\"}");
	mcpc_rig_say(g, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
			"\"requestId\":2}}");
	mcpc_answer(g->client, g->ask, "{\"roots\":[2]}");
	assert_null(strstr(mcpc_rig_last(g), "[2]"));
	mcpc_rig_free(g);
}

static void so_many_questions_are_open_and_no_more(void **state)
{
	struct mcpc_rig *g = legacy();

	(void)state;
	for (int i = 0; i < 64; i++)
		mcpc_rig_say(g, "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"roots/list\"}");
	assert_int_equal(g->n_asked, 64);
	mcpc_rig_say(g, "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"roots/list\"}");
	assert_int_equal(g->n_asked, 64);
	assert_non_null(strstr(mcpc_rig_last(g), "\"id\":9,\"error\""));
	mcpc_rig_free(g);
}

static void a_batch_is_taken_message_by_message(void **state)
{
	struct mcpc_rig *g = legacy();

	(void)state;
	(void)mcpc_rig_ask(g, "tools/call", NULL);
	mcpc_rig_say(g, "[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"},"
			"{\"jsonrpc\":\"2.0\",\"id\":$,\"result\":{}}]");
	assert_int_equal(g->n_changed, 1);
	assert_int_equal(g->n_done, 1);
	mcpc_rig_free(g);
}

static void what_takes_too_long_is_cancelled(void **state)
{
	struct mcpc_request req = { .method = "tools/call",
				    .done = mcpc_rig_done,
				    .timeout_ms = 5 };

	(void)state;
	for (int is_modern = 0; is_modern < 2; is_modern++) {
		struct mcpc_rig *g = is_modern ? modern() : legacy();

		req.user = g;
		assert_int_equal(mcpc_request(g->client, &req, NULL, NULL), 0);
		mcpc_rig_wait(g, &g->n_done, 1);
		assert_int_equal(g->err.code, ETIMEDOUT);
		assert_string_equal(g->forgotten, mcpc_rig_id(g));
		assert_int_equal(strstr(mcpc_rig_last(g), "notifications/cancelled") == NULL,
				 is_modern);
		mcpc_rig_say(g, RESULT("")); /* too late */
		assert_int_equal(g->n_done, 1);
		mcpc_rig_free(g);
	}
}

static void a_modern_server_on_a_pipe_is_told_of_a_cancelled_request(void **state)
{
	struct mcpc_rig *g = mcpc_rig_create("2026-07-28", false);

	(void)state;
	mcpc_rig_connect_modern(g, "{}");
	mcpc_cancel(mcpc_rig_ask(g, "tools/call", NULL));
	assert_non_null(strstr(mcpc_rig_last(g), "\"method\":\"notifications/cancelled\","
						 "\"params\":{\"requestId\":2"));
	mcpc_rig_say(g, RESULT(COMPLETE));
	assert_int_equal(g->n_done, 0);
	mcpc_rig_free(g);
}

static void progress_is_told_to_whom_it_belongs(void **state)
{
	struct mcpc_rig *g = modern();

	(void)state;
	(void)mcpc_rig_ask(g, "tools/call", NULL);
	assert_non_null(strstr(mcpc_rig_last(g), "\"progressToken\":2"));
	mcpc_rig_say(g, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
			"\"progressToken\":2,\"progress\":1,\"total\":3,\"message\":\"a\"}}");
	mcpc_rig_say(g, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
			"\"progressToken\":3,\"progress\":1}}");
	assert_int_equal(g->n_progress, 1);
	mcpc_rig_free(g);
}

static void so_many_are_under_way_and_no_more(void **state)
{
	struct mcpc_rig *g = legacy();
	struct mcpc_request req = { .method = "ping", .done = mcpc_rig_done, .user = g };

	(void)state;
	for (unsigned i = 0; i < MCPC_CALLS_MAX; i++)
		(void)mcpc_rig_ask(g, "ping", NULL);
	assert_int_equal(mcpc_request(g->client, &req, NULL, NULL), -EAGAIN);
	mcpc_rig_say(g, RESULT(""));
	assert_int_equal(mcpc_request(g->client, &req, NULL, NULL), 0);
	mcpc_rig_free(g);
}

static void a_server_that_goes_takes_its_requests_along(void **state)
{
	struct err err = { .code = ECHILD, .text = "ended with status 1" };

	(void)state;
	for (int frees = 0; frees < 2; frees++) {
		struct mcpc_rig *g = legacy();

		g->frees_in_callbacks = frees;
		(void)mcpc_rig_ask(g, "ping", NULL);
		(void)mcpc_rig_ask(g, "ping", NULL);
		g->transport.events->lost(g->transport.user, &err);
		assert_int_equal(g->n_done, frees ? 1 : 2);
		assert_int_equal(g->err.code, EPIPE);
		assert_string_equal(g->err.text, "ended with status 1");
		assert_int_equal(g->n_lost, frees ? 0 : 1);
		mcpc_rig_free(g);
	}
}

static void the_client_may_be_freed_in_the_middle_of_a_batch(void **state)
{
	struct mcpc_rig *g = legacy();

	(void)state;
	g->frees_in_callbacks = true;
	(void)mcpc_rig_ask(g, "ping", NULL);
	mcpc_rig_say(g, "[{\"jsonrpc\":\"2.0\",\"id\":$,\"result\":{}},{\"jsonrpc\":\"2.0\","
			"\"method\":\"notifications/tools/list_changed\"}]");
	assert_int_equal(g->n_done, 1);
	assert_int_equal(g->n_changed, 0);
	mcpc_rig_free(g);
}

static void params_that_are_none_are_refused_at_once(void **state)
{
	static const char *const rows[] = { "[]", "1", "{", "" };
	struct mcpc_rig *g = modern();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mcpc_request req = { .method = "x", .params = rows[i] };

		assert_int_equal(mcpc_request(g->client, &req, NULL, NULL), -EINVAL);
	}
	assert_int_equal(g->n_sent, 1);
	mcpc_rig_free(g);
}

static int request_once(void *arg)
{
	struct mcpc_rig *g = arg;
	struct mcpc_call *call = NULL;
	struct mcpc_request req = { .method = "tools/call",
				    .params = "{\"name\":\"x\"}",
				    .traceparent = "00-1-2-00",
				    .done = mcpc_rig_done,
				    .user = g };
	int r = mcpc_request(g->client, &req, &call, NULL);

	if (r == 0)
		mcpc_cancel(call);
	return r;
}

static void a_request_without_memory_leaves_nothing_behind(void **state)
{
	struct mcpc_rig *g = modern();

	(void)state;
	g->is_deaf = true;
	assert_true(fault_each(request_once, g) > 5);
	assert_int_equal(g->n_done, 0);
	mcpc_rig_free(g);
}

/* ---- notices ---- */

static void a_modern_server_is_listened_to_when_it_has_something_to_tell(void **state)
{
	struct mcpc_rig *g = mcpc_rig_create(NULL, true);

	(void)state;
	mcpc_rig_connect_modern(g, "{\"tools\":{\"listChanged\":true},\"prompts\":{}}");
	assert_non_null(strstr(mcpc_rig_last(g), "\"method\":\"subscriptions/listen\",\"params\":{"
						 "\"notifications\":{\"toolsListChanged\":true}"));
	mcpc_rig_say(g, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}");
	assert_int_equal(g->n_changed, 1);
	mcpc_rig_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_result_that_does_not_say_is_complete_and_an_unknown_one_is_none),
		cmocka_unit_test(what_comes_for_nobody_is_passed_over),
		cmocka_unit_test(an_error_of_the_server_is_told_with_its_code),
		cmocka_unit_test(answers_go_back_with_the_state_byte_for_byte),
		cmocka_unit_test(a_server_that_never_stops_asking_is_stopped),
		cmocka_unit_test(a_server_that_asks_too_much_at_once_is_refused),
		cmocka_unit_test(a_question_that_is_refused_ends_the_request),
		cmocka_unit_test(an_answer_that_comes_too_late_harms_nobody),
		cmocka_unit_test(a_request_of_an_old_server_is_answered_with_its_id),
		cmocka_unit_test(so_many_questions_are_open_and_no_more),
		cmocka_unit_test(a_batch_is_taken_message_by_message),
		cmocka_unit_test(what_takes_too_long_is_cancelled),
		cmocka_unit_test(a_modern_server_on_a_pipe_is_told_of_a_cancelled_request),
		cmocka_unit_test(progress_is_told_to_whom_it_belongs),
		cmocka_unit_test(so_many_are_under_way_and_no_more),
		cmocka_unit_test(a_server_that_goes_takes_its_requests_along),
		cmocka_unit_test(the_client_may_be_freed_in_the_middle_of_a_batch),
		cmocka_unit_test(params_that_are_none_are_refused_at_once),
		cmocka_unit_test(a_request_without_memory_leaves_nothing_behind),
		cmocka_unit_test(a_modern_server_is_listened_to_when_it_has_something_to_tell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
