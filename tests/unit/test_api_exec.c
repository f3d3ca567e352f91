/* Executions over HTTP: waiting, streaming, control. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api_rig.h"
#include "base/str.h"
#include "sandbox/output.h"

#define BOX "/api/v1/sandboxes/box"
#define CANCEL ",\"cancelOnDisconnect\":true"
#define JSON "Content-Type: application/json\r\n"

static int setup(void **state)
{
	int r = rig_setup(state);
	struct api_rig *rig = *state;

	if (r == 0)
		(void)service_add(&rig->service, "sandboxofanns0000000", "ann", "box");
	return r;
}

/* Starts one and leaves it running; the id goes to dst. */
static struct execution *start(struct api_rig *rig, const char *body, char id[ID_LEN + 1])
{
	struct execution *x;
	struct exec_info info;

	rig->service.auto_end = false;
	rig_expect(rig, rig->user, "POST " BOX "/executions", body, 202, "\"status\":\"running\"");
	x = service_last(&rig->service);
	exec_info(x, &info);
	(void)str_copy(id, ID_LEN + 1, info.id);
	return x;
}

static void code_is_run_and_waited_for(void **state)
{
	struct api_rig *rig = *state;

	rig->service.auto_stdout = "42\n";
	rig->service.auto_stderr = "caf\xe9";
	rig->service.exit_code = 3;
	rig_expect(rig, rig->user, "POST " BOX "/execute",
		   "{\"type\":\"code\",\"language\":\"py\",\"content\":\"print(42)\",\"timeout\":5,"
		   "\"env\":{\"A\":\"b\"}}",
		   200, "\"stdout\":\"42\\n\",\"stderr\":\"caf\xef\xbf\xbd\"}");
	assert_string_equal(rig->service.language, "python");
	assert_int_equal(rig->service.timeout_ms, 5000);
	assert_int_equal(rig->service.n_env, 1);
	rig_expect(rig, rig->user, "POST " BOX "/execute?encoding=base64",
		   "{\"type\":\"command\",\"content\":\"false\"}", 200,
		   "\"stdout\":\"NDIK\",\"stderr\":\"Y2Fm6Q==\"");
	rig_expect(rig, rig->user, "POST " BOX "/executions", "{\"argv\":[\"ls\",\"-l\"]}", 200,
		   "\"exitCode\":3,\"signal\":null");
	assert_int_equal(rig->service.argc, 2);
}

static void a_request_that_makes_no_sense_is_refused_by_its_field(void **state)
{
	static const struct {
		const char *path, *body, *field;
	} rows[] = {
		{ "execute", "{\"type\":\"code\",\"content\":\"1\"}", "language" },
		{ "execute", "{\"type\":\"code\",\"content\":\"1\",\"language\":\"cobol\"}",
		  "language" },
		{ "execute", "{\"type\":\"poem\",\"content\":\"1\"}", "type" },
		{ "execute", "{\"content\":\"1\"}", "type" },
		{ "execute", "{\"type\":\"command\"}", "content" },
		{ "execute", "{\"type\":\"command\",\"content\":\"a\",\"timeout\":\"2h\"}",
		  "timeout" },
		{ "execute", "{\"type\":\"command\",\"content\":\"a\",\"stdin\":true}", "stdin" },
		{ "execute", "{\"type\":\"command\",\"content\":\"a\",\"stdin\":7}", "stdin" },
		{ "execute",
		  "{\"type\":\"command\",\"content\":\"a\",\"background\":true,\"stream\":true}",
		  "background" },
		{ "execute",
		  "{\"type\":\"command\",\"content\":\"a\",\"background\":true,"
		  "\"cancelOnDisconnect\":true}",
		  "cancelOnDisconnect" },
		{ "execute?encoding=rot13", "{\"type\":\"command\",\"content\":\"a\"}",
		  "encoding" },
		{ "executions", "{}", "command" },
		{ "executions", "{\"command\":\"a\",\"argv\":[\"b\"]}", "command" },
		{ "executions", "{\"argv\":[]}", "argv" },
		{ "executions", "{\"code\":\"1\"}", "language" },
		{ "executions", "{\"code\":\"1\",\"language\":\"python\",\"pty\":true}", "pty" },
		{ "executions", "{\"pty\":true,\"stdin\":\"x\"}", "stdin" },
		{ "executions", "{\"pty\":true,\"rows\":0}", "rows" },
		{ "executions", "{\"pty\":true,\"cols\":65536}", "cols" },
	};
	struct api_rig *rig = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char what[96], piece[64];

		(void)str_format(what, sizeof(what), "POST " BOX "/%s", rows[i].path);
		(void)str_format(piece, sizeof(piece), "\"field\":\"%s\"", rows[i].field);
		rig_expect(rig, rig->user, what, rows[i].body, 400, piece);
	}
	assert_null(service_last(&rig->service));
}

static void a_background_execution_is_followed_by_polling(void **state)
{
	struct api_rig *rig = *state;
	char id[ID_LEN + 1], what[160];
	struct execution *x = start(rig, "{\"command\":\"x\",\"background\":true}", id);
	struct rig_conn c;

	assert_true(rig->service.background);
	service_write(x, 1, "one", 3);
	service_write(x, 2, "two", 3);
	(void)str_format(what, sizeof(what), "GET " BOX "/executions/%s/output", id);
	rig_expect(rig, rig->user, what, NULL, 200,
		   "\"chunks\":[{\"seq\":0,\"stream\":\"stdout\",\"data\":\"one\"},{\"seq\":3,"
		   "\"stream\":\"stderr\",\"data\":\"two\"}],\"from\":0,\"next\":6,\"begin\":0,"
		   "\"end\":6,\"omitted\":0,\"done\":false");
	(void)str_format(what, sizeof(what), "GET " BOX "/executions/%s/output?from=6&wait=9", id);
	rig_connect(rig, &c);
	rig_request(&c, rig->user, what, "", -1);
	rig_settle(rig);
	assert_int_equal(c.in.len, 0); /* it waits */
	service_write(x, 1, "three", 5);
	rig_until(&c, "\"data\":\"three\"");
	assert_true(rig_has(&c, "\"seq\":6"));
	rig_disconnect(&c);
	(void)str_format(what, sizeof(what), "GET " BOX "/executions/%s/output?from=11&wait=9", id);
	rig_connect(rig, &c);
	rig_request(&c, rig->user, what, "", -1);
	rig_settle(rig);
	service_end(x, 0);
	rig_until(&c, "\"done\":true");
	rig_disconnect(&c);
	(void)str_format(what, sizeof(what),
			 "GET " BOX "/executions/%s/output?from=3&encoding=base64", id);
	rig_expect(rig, rig->user, what, NULL, 200, "\"data\":\"dHdv\"");
	rig_expect(rig, rig->user, "GET " BOX "/executions", NULL, 200, id);
}

static void a_character_cut_by_the_end_of_a_page_comes_with_the_next(void **state)
{
	struct api_rig *rig = *state;
	char id[ID_LEN + 1], what[160];
	struct execution *x = start(rig, "{\"command\":\"x\",\"background\":true}", id);

	service_write(x, 1, "a\xe2\x82", 3);
	(void)str_format(what, sizeof(what), "GET " BOX "/executions/%s/output", id);
	rig_expect(rig, rig->user, what, NULL, 200, "\"data\":\"a\"}],\"from\":0,\"next\":1,");
	service_write(x, 1, "\xac!", 2);
	(void)str_format(what, sizeof(what), "GET " BOX "/executions/%s/output?from=1", id);
	rig_expect(rig, rig->user, what, NULL, 200, "\"data\":\"\xe2\x82\xac!\"}");
	/* One that nothing follows is told as far as it goes. */
	service_write(x, 1, "\xe2", 1);
	service_end(x, 0);
	(void)str_format(what, sizeof(what), "GET " BOX "/executions/%s/output?from=5", id);
	rig_expect(rig, rig->user, what, NULL, 200,
		   "\"data\":\"\xef\xbf\xbd\"}],\"from\":5,\"next\":6");
}

static void output_streams_as_events_and_goes_on_after_a_break(void **state)
{
	struct api_rig *rig = *state;
	struct execution *x;
	struct exec_info info;
	struct rig_conn c;
	char what[160];

	rig->service.auto_end = false;
	rig_connect(rig, &c);
	rig_request(&c, rig->user, "POST " BOX "/execute", JSON "Accept: text/event-stream\r\n",
		    35);
	rig_send(&c, "{\"type\":\"command\",\"content\":\"make\"}", 35);
	rig_until(&c, "event: start\n");
	assert_true(rig_has(&c, "Content-Type: text/event-stream"));
	x = service_last(&rig->service);
	exec_info(x, &info);
	service_write(x, 1, "gr\xc3", 3);
	rig_until(&c, "id: 2\nevent: output\ndata: {\"stream\":\"stdout\",\"data\":\"gr\"}\n");
	service_write(x, 1, "\xbc", 1);
	rig_until(&c,
		  "id: 4\nevent: output\ndata: {\"stream\":\"stdout\",\"data\":\"\xc3\xbc\"}\n");
	rig_disconnect(&c);
	rig_settle(rig);
	assert_int_equal(rig->service.cancels, 0); /* it goes on without us */
	service_write(x, 2, "more", 4);
	(void)str_format(what, sizeof(what), "GET " BOX "/executions/%s/output", info.id);
	rig_connect(rig, &c);
	rig_request(&c, rig->user, what, "Accept: text/event-stream\r\nLast-Event-ID: 4\r\n", -1);
	rig_until(&c, "\"data\":\"more\"");
	assert_false(rig_has(&c, "\"data\":\"gr\""));
	service_end(x, 7);
	rig_until(&c, "event: end\n");
	rig_until(&c, "\"exitCode\":7");
	rig_disconnect(&c);
	/* And it can be replayed when it is over. */
	rig_connect(rig, &c);
	rig_request(&c, rig->user, what, "Accept: text/event-stream\r\n", -1);
	rig_until(&c, "\"exitCode\":7");
	assert_true(rig_has(&c, "\"data\":\"gr\xc3\xbc\"") || rig_has(&c, "\"data\":\"\xc3\xbc\""));
	rig_disconnect(&c);
	rig_connect(rig, &c);
	rig_request(&c, rig->user, what, "Accept: text/event-stream\r\nLast-Event-ID: x\r\n", -1);
	rig_until(&c, "\"field\":\"Last-Event-ID\"");
	rig_disconnect(&c);
}

static void bytes_that_were_not_kept_are_told_as_a_gap(void **state)
{
	struct api_rig *rig = *state;
	char id[ID_LEN + 1], what[160], *data = calloc(1, OUTPUT_KEEP_MIN * 33);
	struct execution *x = start(rig, "{\"command\":\"x\",\"background\":true}", id);
	struct rig_conn c;

	assert_non_null(data);
	memset(data, 'x', OUTPUT_KEEP_MIN * 33);
	service_write(x, 1, data, OUTPUT_KEEP_MIN * 32);
	service_write(x, 1, data, OUTPUT_KEEP_MIN * 33);
	free(data);
	service_end(x, 0);
	(void)str_format(what, sizeof(what), "GET " BOX "/executions/%s/output", id);
	rig_connect(rig, &c);
	rig_request(&c, rig->user, what, "Accept: text/event-stream\r\n", -1);
	rig_until(&c, "event: end");
	assert_true(rig_has(&c, "event: gap\ndata: {\"omitted\":"));
	rig_disconnect(&c);
}

static void a_client_that_does_not_read_is_not_read_for(void **state)
{
	struct api_rig *rig = *state;
	char id[ID_LEN + 1], what[160], data[16384];
	struct execution *x = start(rig, "{\"command\":\"x\",\"background\":true}", id);
	struct rig_conn c;
	uint64_t total = 0;

	memset(data, 'y', sizeof(data));
	(void)str_format(what, sizeof(what), "GET " BOX "/executions/%s/output", id);
	rig_connect(rig, &c);
	rig_request(&c, rig->user, what, "Accept: text/event-stream\r\n", -1);
	rig_until(&c, "event: start");
	rig_slow(&c, true);
	/* The ring holds 256 KiB: what is read in time is not lost, what is not read is. */
	for (int i = 0; i < 256; i++, total += sizeof(data)) {
		service_write(x, 1, data, sizeof(data));
		rig_settle(rig);
	}
	service_end(x, 0);
	rig_slow(&c, false);
	rig_until(&c, "event: end");
	assert_true(rig_has(&c, "event: gap")); /* it was held back, and did not hoard 4 MiB */
	assert_true(c.in.len < total);
	rig_disconnect(&c);
}

static void a_client_that_leaves_ends_only_what_it_said_it_would(void **state)
{
	static const char *const bodies[] = {
		"{\"type\":\"command\",\"content\":\"x\"}",
		"{\"type\":\"command\",\"content\":\"x\"" CANCEL "}",
		"{\"type\":\"command\",\"content\":\"x\",\"stream\":true}",
		"{\"type\":\"command\",\"content\":\"x\",\"stream\":true" CANCEL "}",
	};
	struct api_rig *rig = *state;

	rig->service.auto_end = false;
	for (unsigned i = 0; i < 4; i++) {
		struct rig_conn c;

		rig_connect(rig, &c);
		rig_request(&c, rig->user, "POST " BOX "/execute", JSON, (long)strlen(bodies[i]));
		rig_send(&c, bodies[i], strlen(bodies[i]));
		rig_settle(rig);
		rig_disconnect(&c);
		rig_settle(rig);
		assert_int_equal(rig->service.cancels, (i + 1) / 2);
	}
}

static void standard_input_is_given_at_once_or_piece_by_piece(void **state)
{
	struct api_rig *rig = *state;
	char id[ID_LEN + 1], what[160];
	struct execution *x;

	rig->service.auto_end = false;
	x = start(rig, "{\"command\":\"cat\",\"background\":true,\"stdin\":\"all of it\"}", id);
	assert_string_equal(rig->service.stdin_text, "all of it");
	assert_int_equal(exec_stdin(x, "x", 1), -EPIPE); /* the end came behind it */
	rig->service.stdin_text[0] = '\0';
	x = start(rig, "{\"command\":\"cat\",\"background\":true,\"stdin\":true}", id);
	(void)str_format(what, sizeof(what), "POST " BOX "/executions/%s/stdin", id);
	rig_expect(rig, rig->user, what, "one ", 200, "{\"bytes\":4,\"eof\":false}");
	(void)str_format(what, sizeof(what), "POST " BOX "/executions/%s/stdin?eof=1", id);
	rig_expect(rig, rig->user, what, "two", 200, "{\"bytes\":3,\"eof\":true}");
	assert_string_equal(rig->service.stdin_text, "one two");
	rig_expect(rig, rig->user, what, "three", 409, "conflict");
	service_end(x, 0);
	rig_expect(rig, rig->user, what, "four", 409, "conflict");
}

static void input_waits_in_line_until_the_program_reads(void **state)
{
	struct api_rig *rig = *state;
	char id[ID_LEN + 1], what[160];
	struct execution *x =
		start(rig, "{\"command\":\"x\",\"background\":true,\"stdin\":true}", id);
	struct rig_conn conns[17];

	rig->service.stdin_room = 1;
	(void)str_format(what, sizeof(what), "POST " BOX "/executions/%s/stdin", id);
	rig_expect(rig, rig->user, what, "a", 200, NULL);
	for (int i = 0; i < 17; i++) {
		char byte = (char)('b' + i);

		rig_connect(rig, &conns[i]);
		rig_request(&conns[i], rig->user, what, "", 1);
		rig_send(&conns[i], &byte, 1);
		rig_settle(rig);
	}
	rig_until(&conns[16], "HTTP/1.1 503"); /* the line is full */
	assert_int_equal(conns[0].in.len, 0);
	rig_disconnect(&conns[3]); /* who leaves has still sent it */
	rig_settle(rig);
	for (int i = 0; i < 16; i++)
		service_room(x);
	rig_until(&conns[15], "HTTP/1.1 200");
	assert_string_equal(rig->service.stdin_text, "abcdefghijklmnopq");
	for (int i = 0; i < 17; i++)
		if (i != 3)
			rig_disconnect(&conns[i]);
}

/* An answer says that the box has it: what this process alone has would be lost with it. */
static void input_is_answered_when_it_has_left(void **state)
{
	struct api_rig *rig = *state;
	char id[ID_LEN + 1], what[160];
	struct execution *x =
		start(rig, "{\"command\":\"x\",\"background\":true,\"stdin\":true}", id);
	struct rig_conn conns[2];

	rig->service.stdin_unsent = true;
	for (int i = 0; i < 2; i++) {
		(void)str_format(what, sizeof(what), "POST " BOX "/executions/%s/stdin?eof=%d", id,
				 i);
		rig_connect(rig, &conns[i]);
		rig_request(&conns[i], rig->user, what, "", 1);
		rig_send(&conns[i], i ? "b" : "a", 1);
		rig_settle(rig);
	}
	service_room(x);
	rig_settle(rig);
	assert_int_equal(conns[0].in.len, 0);
	assert_string_equal(rig->service.stdin_text, "a");
	rig->service.stdin_unsent = false;
	service_room(x);
	rig_until(&conns[0], "{\"bytes\":1,\"eof\":false}");
	rig_until(&conns[1], "{\"bytes\":1,\"eof\":true}");
	assert_string_equal(rig->service.stdin_text, "ab");
	for (int i = 0; i < 2; i++)
		rig_disconnect(&conns[i]);
}

/* What was sent stays when the client goes: a sandbox of programs that do not read must not make us
 * keep any amount of it. */
static void a_sandbox_has_so_much_input_waiting_and_no_more(void **state)
{
	static const char body[] = "{\"command\":\"x\",\"background\":true,\"stdin\":true}";
	struct api_rig *rig = *state;
	char id[ID_LEN + 1], what[160];
	struct rig_conn c;

	rig->service.stdin_room = 0;
	for (int i = 0; i < 128; i++) {
		if (i % 16 == 0)
			(void)start(rig, body, id);
		(void)str_format(what, sizeof(what), "POST " BOX "/executions/%s/stdin", id);
		rig_connect(rig, &c);
		rig_request(&c, rig->user, what, "", 1);
		rig_send(&c, "x", 1);
		rig_settle(rig);
		assert_int_equal(c.in.len, 0);
		rig_disconnect(&c);
	}
	(void)start(rig, body, id);
	(void)str_format(what, sizeof(what), "POST " BOX "/executions/%s/stdin", id);
	rig_expect(rig, rig->user, what, "x", 503, "service_unavailable");
}

static void an_end_lets_go_of_those_who_wait_in_line(void **state)
{
	struct api_rig *rig = *state;
	char id[ID_LEN + 1], what[160];
	struct execution *x =
		start(rig, "{\"command\":\"x\",\"background\":true,\"stdin\":true}", id);
	struct rig_conn a, b;

	rig->service.stdin_room = 0;
	(void)str_format(what, sizeof(what), "POST " BOX "/executions/%s/stdin", id);
	rig_connect(rig, &a);
	rig_request(&a, rig->user, what, "", 1);
	rig_send(&a, "1", 1);
	rig_connect(rig, &b);
	rig_request(&b, rig->user, what, "", 1);
	rig_send(&b, "2", 1);
	rig_settle(rig);
	service_end(x, 0);
	rig_until(&a, "HTTP/1.1 409");
	rig_until(&b, "HTTP/1.1 409");
	rig_disconnect(&a);
	rig_disconnect(&b);
}

static void an_execution_is_signalled_resized_cancelled_and_waited_for(void **state)
{
	struct api_rig *rig = *state;
	char id[ID_LEN + 1], what[160];
	struct execution *x =
		start(rig, "{\"pty\":true,\"background\":true,\"rows\":10,\"cols\":20}", id);
	struct rig_conn c;

	assert_int_equal(rig->service.rows, 10);
	(void)str_format(what, sizeof(what), "POST " BOX "/executions/%s/signal", id);
	rig_expect(rig, rig->user, what, "{\"signal\":\"SIGINT\",\"tree\":true}", 204, NULL);
	assert_int_equal(rig->service.signo, 2);
	assert_true(rig->service.tree);
	rig_expect(rig, rig->user, what, "{\"signal\":15}", 204, NULL);
	assert_int_equal(rig->service.signo, 15);
	rig_expect(rig, rig->user, what, "{\"signal\":\"SIGNOPE\"}", 400, "\"field\":\"signal\"");
	rig_expect(rig, rig->user, what, "{\"signal\":65}", 400, "\"field\":\"signal\"");
	rig_expect(rig, rig->user, what, "{\"signal\":0}", 400, "\"field\":\"signal\"");
	rig_expect(rig, rig->user, what, "{}", 400, "\"field\":\"signal\"");
	(void)str_format(what, sizeof(what), "POST " BOX "/executions/%s/resize", id);
	rig_expect(rig, rig->user, what, "{\"rows\":40,\"cols\":120}", 204, NULL);
	assert_int_equal(rig->service.cols, 120);
	(void)str_format(what, sizeof(what), "GET " BOX "/executions/%s/wait?timeout=0", id);
	rig_expect(rig, rig->user, what, NULL, 202, "\"status\":\"running\"");
	(void)str_format(what, sizeof(what), "GET " BOX "/executions/%s/wait?timeout=1ms", id);
	rig_expect(rig, rig->user, what, NULL, 202, "\"status\":\"running\"");
	(void)str_format(what, sizeof(what), "GET " BOX "/executions/%s/wait", id);
	rig_connect(rig, &c);
	rig_request(&c, rig->user, what, "", -1);
	rig_settle(rig);
	assert_int_equal(c.in.len, 0);
	(void)str_format(what, sizeof(what), "DELETE " BOX "/executions/%s", id);
	rig_expect(rig, rig->user, what, NULL, 204, NULL);
	rig_until(&c, "\"status\":\"cancelled\"");
	rig_disconnect(&c);
	assert_int_equal(rig->service.cancels, 1);
	rig_expect(rig, rig->user, what, NULL, 204, NULL); /* it is over: that is what was wanted */
	assert_int_equal(rig->service.cancels, 1);
	(void)str_format(what, sizeof(what), "POST " BOX "/executions/%s/signal", id);
	rig_expect(rig, rig->user, what, "{\"signal\":2}", 409, "conflict");
	(void)x;
}

/* Who asks from where he is until there is more would otherwise ask without end. */
static void half_a_character_is_waited_for(void **state)
{
	struct api_rig *rig = *state;
	char id[ID_LEN + 1], what[160];
	struct execution *x = start(rig, "{\"command\":\"x\",\"background\":true}", id);
	struct rig_conn c;

	service_write(x, 1, "a\xc3", 2);
	service_write(x, 2, "\xe2\x82", 2);
	rig_connect(rig, &c);
	(void)str_format(what, sizeof(what), "GET " BOX "/executions/%s/output?from=1&wait=30", id);
	rig_request(&c, rig->user, what, "", -1);
	rig_settle(rig);
	assert_int_equal(c.in.len, 0);
	service_write(x, 2, "\xac", 1);
	rig_until(&c, "\"data\":\"\xe2\x82\xac\"");
	(void)str_format(what, sizeof(what),
			 "GET " BOX "/executions/%s/output?from=1&wait=30&encoding=base64", id);
	rig_expect(rig, rig->user, what, NULL, 200, "ww==");
	rig_disconnect(&c);
	service_end(x, 0);
	rig_settle(rig);
}

static void those_who_wait_and_leave_are_forgotten(void **state)
{
	static const char *const rests[] = { "wait", "output?wait=30", "output" };
	struct api_rig *rig = *state;
	char id[ID_LEN + 1], what[160];
	struct execution *x = start(rig, "{\"command\":\"x\",\"background\":true}", id);

	for (size_t i = 0; i < 3; i++) {
		struct rig_conn c;

		(void)str_format(what, sizeof(what), "GET " BOX "/executions/%s/%s", id, rests[i]);
		rig_connect(rig, &c);
		rig_request(&c, rig->user, what, i == 2 ? "Accept: text/event-stream\r\n" : "", -1);
		rig_settle(rig);
		rig_disconnect(&c);
		rig_settle(rig);
	}
	service_write(x, 1, "x", 1);
	service_end(x, 0);
	rig_settle(rig);
}

static void a_sandbox_has_so_many_streams_and_no_more(void **state)
{
	struct api_rig *rig = *state;
	char id[ID_LEN + 1], what[160];
	struct rig_conn conns[65];
	struct rig_answer a;
	unsigned serial;

	(void)start(rig, "{\"command\":\"x\",\"background\":true}", id);
	(void)str_format(what, sizeof(what), "GET " BOX "/executions/%s/output", id);
	for (int i = 0; i < 65; i++) {
		rig_connect(rig, &conns[i]);
		rig_request(&conns[i], rig->user, what, "Accept: text/event-stream\r\n", -1);
		rig_until(&conns[i], i < 64 ? "event: start" : "HTTP/1.1 429");
	}
	assert_true(rig_has(&conns[64], "Retry-After"));
	/* Who is told to try again must not find it done twice. */
	serial = rig->service.serial;
	rig_expect(rig, rig->user, "POST " BOX "/execute",
		   "{\"type\":\"command\",\"content\":\"pay\",\"stream\":true}", 429,
		   "rate_limited");
	rig_ask(rig, rig->user, "GET " BOX "/pty?command=pay",
		"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
		NULL, &a);
	assert_int_equal(a.status, 429);
	rig_answer_done(&a);
	assert_int_equal(rig->service.serial, serial);
	rig_disconnect(&conns[0]);
	rig_settle(rig);
	rig_request(&conns[64], rig->user, what, "Accept: text/event-stream\r\n", -1);
	rig_until(&conns[64], "event: start");
	for (int i = 1; i < 65; i++)
		rig_disconnect(&conns[i]);
	rig_settle(rig);
}

/* More than a client may leave waiting at once: it goes out in pieces. */
static void a_large_result_arrives_whole(void **state)
{
	struct api_rig *rig = *state;
	char id[ID_LEN + 1], what[160];
	struct execution *x;
	struct rig_answer a;
	char *data = malloc(200 << 10);

	rig->service.keep = 4 << 20;
	x = start(rig, "{\"command\":\"x\",\"background\":true}", id);
	assert_non_null(data);
	memset(data, 1, 200 << 10); /* each becomes six characters */
	for (int i = 0; i < 16; i++)
		service_write(x, 1 + i % 2, data, 200 << 10);
	free(data);
	service_end(x, 0);
	(void)str_format(what, sizeof(what), "GET " BOX "/executions/%s", id);
	rig_ask(rig, rig->user, what, "", NULL, &a);
	assert_int_equal(a.status, 200);
	assert_true(a.body.len > 6 * 16 * (200 << 10)); /* above what the server lets wait */
	assert_int_equal(a.body.data[a.body.len - 1], '}');
	rig_answer_done(&a);
	/* As events too, and in pages. */
	(void)str_format(what, sizeof(what), "GET " BOX "/executions/%s/output", id);
	rig_ask(rig, rig->user, what, "Accept: text/event-stream\r\n", NULL, &a);
	assert_true(a.body.len > 6 * 16 * (200 << 10));
	assert_non_null(strstr(buf_str(&a.body), "event: end"));
	rig_answer_done(&a);
	rig_expect(rig, rig->user, what, NULL, 200, "\"next\":1048576,");
}

#define RIG_TEST(f) cmocka_unit_test_setup_teardown(f, setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(code_is_run_and_waited_for),
		RIG_TEST(a_request_that_makes_no_sense_is_refused_by_its_field),
		RIG_TEST(a_background_execution_is_followed_by_polling),
		RIG_TEST(a_character_cut_by_the_end_of_a_page_comes_with_the_next),
		RIG_TEST(output_streams_as_events_and_goes_on_after_a_break),
		RIG_TEST(bytes_that_were_not_kept_are_told_as_a_gap),
		RIG_TEST(a_client_that_does_not_read_is_not_read_for),
		RIG_TEST(a_client_that_leaves_ends_only_what_it_said_it_would),
		RIG_TEST(standard_input_is_given_at_once_or_piece_by_piece),
		RIG_TEST(input_waits_in_line_until_the_program_reads),
		RIG_TEST(input_is_answered_when_it_has_left),
		RIG_TEST(a_sandbox_has_so_much_input_waiting_and_no_more),
		RIG_TEST(an_end_lets_go_of_those_who_wait_in_line),
		RIG_TEST(an_execution_is_signalled_resized_cancelled_and_waited_for),
		RIG_TEST(half_a_character_is_waited_for),
		RIG_TEST(those_who_wait_and_leave_are_forgotten),
		RIG_TEST(a_sandbox_has_so_many_streams_and_no_more),
		RIG_TEST(a_large_result_arrives_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
