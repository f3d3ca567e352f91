/* Terminals and executions over WebSocket. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "api_rig.h"
#include "base/str.h"

#define BOX "/api/v1/sandboxes/box"

static int setup(void **state)
{
	int r = rig_setup(state);
	struct api_rig *rig = *state;

	if (r == 0)
		(void)service_add(&rig->service, "sandboxofanns0000000", "ann", "box");
	return r;
}

static void say(struct rig_conn *c, const char *text)
{
	rig_ws_send(c, true, text, strlen(text));
}

/* ---- terminals ---- */

static void a_terminal_runs_over_a_socket(void **state)
{
	struct api_rig *rig = *state;
	struct rig_conn c;

	rig->service.auto_end = false;
	rig_ws_open(rig, &c, rig->user, BOX "/pty?rows=30&cols=100&command=top");
	rig_until(&c, "{\"type\":\"start\",\"executionId\":\"");
	assert_true(rig_has(&c, "HTTP/1.1 101"));
	assert_string_equal(rig->service.command, "top");
	assert_int_equal(rig->service.rows, 30);
	service_write(service_last(&rig->service), 1, "\x1b[2J\xff", 5);
	rig_until(&c, "\x1b[2J\xff");
	rig_ws_send(&c, false, "ls\r", 3);
	say(&c, "{\"type\":\"ping\"}");
	rig_until(&c, "{\"type\":\"pong\"}");
	assert_string_equal(rig->service.stdin_text, "ls\r");
	say(&c, "{\"type\":\"resize\",\"rows\":50,\"cols\":132}");
	say(&c, "{\"type\":\"signal\",\"signal\":\"SIGINT\"}");
	say(&c, "{\"type\":\"resize\",\"rows\":50}");
	rig_until(&c, "\"field\":\"cols\"");
	assert_int_equal(rig->service.rows, 50);
	assert_int_equal(rig->service.signo, 2);
	say(&c, "{\"type\":\"dance\"}");
	rig_until(&c, "\"field\":\"type\"");
	say(&c, "{\"type\":\"signal\",\"signal\":\"SIGNOPE\"}");
	rig_until(&c, "\"field\":\"signal\"");
	say(&c, "not json");
	rig_settle(rig);
	service_end(service_last(&rig->service), 4);
	rig_until(&c,
		  "{\"type\":\"exit\",\"exitCode\":4,\"signal\":null,\"status\":\"completed\"}");
	rig_disconnect(&c);
	rig_settle(rig);
	assert_int_equal(rig->service.cancels, 0);
}

static void a_terminal_outlives_its_socket_and_is_attached_to_again(void **state)
{
	struct api_rig *rig = *state;
	struct rig_conn c, d;
	struct exec_info info;
	char path[160];

	rig->service.auto_end = false;
	rig_ws_open(rig, &c, rig->user, BOX "/pty");
	rig_until(&c, "\"type\":\"start\"");
	service_write(service_last(&rig->service), 1, "earlier", 7);
	rig_until(&c, "earlier");
	rig_disconnect(&c);
	rig_settle(rig);
	assert_int_equal(rig->service.cancels, 0);
	exec_info(service_last(&rig->service), &info);
	(void)str_format(path, sizeof(path), BOX "/pty?execution=%s", info.id);
	rig_ws_open(rig, &c, rig->user, path);
	rig_until(&c, "earlier");
	rig_ws_open(rig, &d, rig->user, path); /* and by two at once */
	rig_until(&d, "earlier");
	service_write(service_last(&rig->service), 1, "later", 5);
	rig_until(&c, "later");
	rig_until(&d, "later");
	rig_disconnect(&c);
	rig_disconnect(&d);
	(void)str_format(path, sizeof(path), BOX "/pty?kill=1&execution=%s", info.id);
	rig_ws_open(rig, &c, rig->user, path);
	rig_until(&c, "earlier");
	rig_disconnect(&c);
	rig_settle(rig);
	assert_int_equal(rig->service.cancels, 1);
	(void)str_format(path, sizeof(path), BOX "/pty?execution=%s", info.id);
	rig_ws_open(rig, &c, rig->user, path);
	assert_true(rig_has(&c, "HTTP/1.1 409"));
	rig_disconnect(&c);
}

static void only_a_websocket_of_a_sandbox_gets_a_terminal(void **state)
{
	struct api_rig *rig = *state;
	struct rig_conn c;
	char path[160];

	rig_expect(rig, rig->user, "GET " BOX "/pty", NULL, 426, "WebSocket");
	assert_null(service_last(&rig->service));
	rig_ws_open(rig, &c, rig->other, BOX "/pty");
	assert_true(rig_has(&c, "HTTP/1.1 404"));
	rig_disconnect(&c);
	rig_ws_open(rig, &c, rig->user, BOX "/pty?execution=none");
	assert_true(rig_has(&c, "HTTP/1.1 404"));
	rig_disconnect(&c);
	rig_ws_open(rig, &c, rig->user, BOX "/pty?rows=0");
	assert_true(rig_has(&c, "HTTP/1.1 400"));
	rig_disconnect(&c);
	rig->service.auto_end = false;
	(void)str_format(path, sizeof(path), BOX "/pty?token=%s", rig->user);
	rig_ws_open(rig, &c, NULL, path);
	assert_true(rig_has(&c, "HTTP/1.1 101"));
	rig_disconnect(&c);
	rig_settle(rig);
}

/* A page of somebody else must not open terminals with the key that a browser has. */
static void a_terminal_that_nobody_could_attach_to_does_not_stay(void **state)
{
	struct api_rig *rig = *state;
	struct rig_conn c;

	rig->service.auto_end = false;
	rig_connect(rig, &c);
	rig_request(
		&c, rig->user, "GET " BOX "/pty",
		"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: https://evil.example\r\n",
		-1);
	rig_until(&c, "HTTP/1.1 403");
	rig_disconnect(&c);
	rig_settle(rig);
	assert_int_equal(rig->service.cancels, 1);
}

static void a_terminal_that_does_not_read_holds_its_client_back(void **state)
{
	struct api_rig *rig = *state;
	static const char letters[] = "abcde";
	struct rig_conn c;
	struct execution *x;

	rig->service.auto_end = false;
	rig->service.stdin_room = 1;
	rig_ws_open(rig, &c, rig->user, BOX "/pty");
	rig_until(&c, "\"type\":\"start\"");
	x = service_last(&rig->service);
	for (int i = 0; i < 5; i++)
		rig_ws_send(&c, false, &letters[i], 1);
	rig_settle(rig);
	assert_string_equal(rig->service.stdin_text, "a");
	for (int i = 0; i < 4; i++) {
		service_room(x);
		rig_settle(rig);
	}
	assert_string_equal(rig->service.stdin_text, "abcde");
	rig_ws_send(&c, false, "f", 1);
	rig_settle(rig);
	rig_disconnect(&c); /* leaves while input waits */
	rig_settle(rig);
	service_room(x);
	assert_string_equal(rig->service.stdin_text, "abcdef");
}

/* ---- executions ---- */

static void executions_run_side_by_side_on_one_socket(void **state)
{
	struct api_rig *rig = *state;
	struct execution *first, *second;
	struct rig_conn c;

	rig->service.auto_end = false;
	rig_ws_open(rig, &c, rig->user, BOX "/stream");
	say(&c,
	    "{\"type\":\"execute\",\"executionId\":\"a\",\"mode\":\"code\",\"language\":\"python\","
	    "\"content\":\"1\",\"timeout\":30}");
	rig_until(&c, "{\"type\":\"execution_start\",\"executionId\":\"a\",\"id\":\"");
	first = service_last(&rig->service);
	assert_int_equal(rig->service.timeout_ms, 30000);
	say(&c,
	    "{\"type\":\"execute\",\"executionId\":\"b\",\"mode\":\"command\",\"content\":\"x\"}");
	rig_until(&c, "{\"type\":\"execution_start\",\"executionId\":\"b\"");
	second = service_last(&rig->service);
	service_write(second, 2, "err\xc3", 4);
	rig_until(&c, "{\"type\":\"output\",\"executionId\":\"b\",\"stream\":\"stderr\","
		      "\"content\":\"err\"}");
	service_write(first, 1, "out", 3);
	rig_until(&c, "{\"type\":\"output\",\"executionId\":\"a\",\"stream\":\"stdout\","
		      "\"content\":\"out\"}");
	say(&c,
	    "{\"type\":\"execute\",\"executionId\":\"a\",\"mode\":\"command\",\"content\":\"x\"}");
	rig_until(&c, "\"code\":\"conflict\"");
	service_end(second, 0);
	rig_until(&c, "{\"type\":\"execution_complete\",\"executionId\":\"b\",\"id\":\"");
	assert_true(
		rig_has(&c, "\"content\":\"\xef\xbf\xbd\"")); /* the sequence never became whole */
	say(&c, "{\"type\":\"cancel\",\"executionId\":\"a\"}");
	rig_until(&c, "{\"type\":\"execution_complete\",\"executionId\":\"a\"");
	assert_true(rig_has(&c, "\"status\":\"cancelled\""));
	say(&c, "{\"type\":\"cancel\",\"executionId\":\"a\"}");
	rig_until(&c, "\"code\":\"not_found\"");
	say(&c, "{\"type\":\"ping\"}");
	rig_until(&c, "{\"type\":\"pong\"}");
	rig_disconnect(&c);
	rig_settle(rig);
}

/* As one message, each byte as long as JSON can make it, it would be more than may wait. */
static void much_output_at_once_arrives_whole(void **state)
{
	struct api_rig *rig = *state;
	size_t n = 2 << 20;
	char *data = malloc(n);
	struct rig_conn c;

	assert_non_null(data);
	memset(data, 1, n);
	rig->service.auto_end = false;
	rig->service.keep = 4 << 20;
	rig_ws_open(rig, &c, rig->user, BOX "/stream");
	say(&c, "{\"type\":\"execute\",\"mode\":\"command\",\"content\":\"x\"}");
	rig_until(&c, "execution_start");
	service_write(service_last(&rig->service), 1, data, n);
	service_end(service_last(&rig->service), 0);
	free(data);
	rig_until(&c, "execution_complete");
	assert_true(c.in.len > 6 * n);
	assert_false(rig_has(&c, "\"type\":\"gap\""));
	rig_disconnect(&c);
	rig_settle(rig);
}

static void bad_messages_are_answered_and_the_socket_goes_on(void **state)
{
	static const struct {
		const char *message, *piece;
	} rows[] = {
		{ "{", "\"code\":\"invalid_request\"" },
		{ "[]", "\"code\":\"invalid_request\"" },
		{ "{\"type\":\"execute\"}", "\"field\":\"content\"" },
		{ "{\"type\":\"execute\",\"content\":\"x\"}", "\"field\":\"mode\"" },
		{ "{\"type\":\"execute\",\"executionId\":\"q\",\"content\":\"x\",\"mode\":"
		  "\"code\"}",
		  "\"field\":\"language\",\"executionId\":\"q\"" },
		{ "{\"type\":\"execute\",\"content\":\"x\",\"mode\":\"poem\"}",
		  "\"field\":\"mode\"" },
		{ "{\"type\":\"execute\",\"content\":\"x\",\"mode\":\"command\",\"timeout\":"
		  "\"2h\"}",
		  "\"field\":\"timeout\"" },
		{ "{\"type\":\"cancel\"}", "\"field\":\"executionId\"" },
		{ "{\"type\":\"ping\",\"nope\":1}", "\"field\":\"nope\"" },
		{ "{\"executionId\":\"\",\"type\":\"ping\"}", "\"field\":\"executionId\"" },
	};
	struct api_rig *rig = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rig_conn c;

		rig_ws_open(rig, &c, rig->user, BOX "/stream");
		say(&c, rows[i].message);
		rig_until(&c, rows[i].piece);
		say(&c, "{\"type\":\"ping\"}");
		rig_until(&c, "{\"type\":\"pong\"}");
		rig_disconnect(&c);
		rig_settle(rig);
	}
	assert_null(service_last(&rig->service));
}

static void a_socket_has_so_many_executions_and_no_more(void **state)
{
	struct api_rig *rig = *state;
	struct rig_conn c;

	rig->service.auto_end = false;
	rig_ws_open(rig, &c, rig->user, BOX "/stream");
	for (int i = 0; i < 16; i++)
		say(&c, "{\"type\":\"execute\",\"mode\":\"command\",\"content\":\"x\"}");
	say(&c, "{\"type\":\"execute\",\"mode\":\"command\",\"content\":\"x\"}");
	rig_until(&c, "\"code\":\"rate_limited\"");
	rig_settle(rig);
	service_end(service_last(&rig->service), 0);
	rig_until(&c, "execution_complete");
	say(&c, "{\"type\":\"execute\",\"executionId\":\"next\",\"mode\":\"command\",\"content\":"
		"\"x\"}");
	rig_until(&c, "\"executionId\":\"next\"");
	rig_disconnect(&c);
	rig_settle(rig);
}

static void a_socket_that_closes_ends_only_what_it_said_it_would(void **state)
{
	struct api_rig *rig = *state;
	struct rig_conn c;

	rig->service.auto_end = false;
	rig_ws_open(rig, &c, rig->user, BOX "/stream");
	say(&c, "{\"type\":\"execute\",\"mode\":\"command\",\"content\":\"x\"}");
	say(&c, "{\"type\":\"execute\",\"mode\":\"command\",\"content\":\"x\","
		"\"cancelOnDisconnect\":true}");
	rig_settle(rig);
	rig_disconnect(&c);
	rig_settle(rig);
	assert_int_equal(rig->service.cancels, 1);
}

static void an_execution_that_cannot_start_is_an_error_message(void **state)
{
	struct api_rig *rig = *state;
	struct rig_conn c;

	rig_ws_open(rig, &c, rig->user, BOX "/stream");
	rig->service.fail_with = EBUSY;
	(void)str_copy(rig->service.fail_text, sizeof(rig->service.fail_text),
		       "the sandbox is paused");
	say(&c,
	    "{\"type\":\"execute\",\"executionId\":\"a\",\"mode\":\"command\",\"content\":\"x\"}");
	rig_until(&c,
		  "{\"type\":\"error\",\"code\":\"conflict\",\"message\":\"the sandbox is paused\","
		  "\"field\":null,\"executionId\":\"a\"}");
	rig_expect(rig, rig->user, "DELETE " BOX, NULL, 204, NULL);
	say(&c,
	    "{\"type\":\"execute\",\"executionId\":\"b\",\"mode\":\"command\",\"content\":\"x\"}");
	rig_until(&c, "\"message\":\"the sandbox has ended\"");
	rig_disconnect(&c);
	rig_settle(rig);
}

/* Who sends and does not read gets no answers in the end; that some are missing must show. */
static void a_socket_loses_no_message_without_a_word(void **state)
{
	static const char frame[] = "\x81\x90\0\0\0\0{\"type\":\"dance\"}";
	struct api_rig *rig = *state;
	struct rig_conn c;
	char many[(sizeof(frame) - 1) * 512];

	for (size_t i = 0; i < 512; i++)
		memcpy(many + i * (sizeof(frame) - 1), frame, sizeof(frame) - 1);
	rig_ws_open(rig, &c, rig->user, BOX "/stream");
	rig_slow(&c, true);
	/* A piece of it may be left behind at the end, when the server has had enough. */
	for (int i = 0; i < 200 && send(c.fd, many, sizeof(many), MSG_NOSIGNAL) > 0; i++)
		rig_settle(rig);
	rig_slow(&c, false);
	rig_until(&c, "too much is unread");
	rig_disconnect(&c);
	rig_settle(rig);
}

/* ---- keys ---- */

/* Its id, from what the key may ask about itself. */
static void key_path(struct api_rig *rig, const char *key, char path[64])
{
	struct rig_answer a;
	const char *id;

	rig_ask(rig, key, "GET /api/v1/user", "", NULL, &a);
	id = strstr(buf_str(&a.body), "\"keyId\":\"");
	assert_non_null(id);
	(void)str_format(path, 64, "DELETE /api/v1/keys/%.20s", id + strlen("\"keyId\":\""));
	rig_answer_done(&a);
}

/* Whoever revokes a key that has leaked wants the thief out, not only kept from coming again. */
static void a_revoked_key_takes_what_it_opened_along(void **state)
{
	struct api_rig *rig = *state;
	struct rig_conn stream, pty, events, watch, friend;
	char leaked[API_KEY_SIZE], path[64];
	struct exec_info info;
	char what[160];
	unsigned serial;

	rig->service.auto_end = false;
	rig_add_key(rig, ROLE_USER, "ann", leaked);
	key_path(rig, leaked, path);
	rig_ws_open(rig, &stream, leaked, BOX "/stream");
	rig_ws_open(rig, &pty, leaked, BOX "/pty");
	rig_until(&pty, "\"type\":\"start\"");
	exec_info(service_last(&rig->service), &info);
	(void)str_format(what, sizeof(what), "GET " BOX "/executions/%s/output", info.id);
	rig_connect(rig, &events);
	rig_request(&events, leaked, what, "Accept: text/event-stream\r\n", -1);
	rig_until(&events, "event: start");
	rig_connect(rig, &watch);
	rig_request(&watch, leaked, "GET " BOX "/watch", "", -1);
	rig_until(&watch, "event: start");
	rig_ws_open(rig, &friend, rig->user, BOX "/stream");

	rig_expect(rig, rig->admin, path, NULL, 204, NULL);
	rig_until(&stream, "the API key is not valid any more");
	rig_until(&pty, "the API key is not valid any more");
	rig_until_closed(&events);
	rig_until_closed(&watch);
	serial = rig->service.serial;
	say(&stream, "{\"type\":\"execute\",\"mode\":\"command\",\"content\":\"x\"}");
	rig_ws_send(&pty, false, "ls\r", 3);
	rig_settle(rig);
	assert_int_equal(rig->service.serial, serial);
	assert_string_equal(rig->service.stdin_text, "");
	say(&friend, "{\"type\":\"ping\"}"); /* the same owner's, another key */
	rig_until(&friend, "{\"type\":\"pong\"}");
	rig_disconnect(&stream);
	rig_disconnect(&pty);
	rig_disconnect(&events);
	rig_disconnect(&watch);
	rig_disconnect(&friend);
	rig_settle(rig);
}

#define RIG_TEST(f) cmocka_unit_test_setup_teardown(f, setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(a_terminal_runs_over_a_socket),
		RIG_TEST(a_terminal_outlives_its_socket_and_is_attached_to_again),
		RIG_TEST(only_a_websocket_of_a_sandbox_gets_a_terminal),
		RIG_TEST(a_terminal_that_nobody_could_attach_to_does_not_stay),
		RIG_TEST(a_terminal_that_does_not_read_holds_its_client_back),
		RIG_TEST(executions_run_side_by_side_on_one_socket),
		RIG_TEST(much_output_at_once_arrives_whole),
		RIG_TEST(bad_messages_are_answered_and_the_socket_goes_on),
		RIG_TEST(a_socket_has_so_many_executions_and_no_more),
		RIG_TEST(a_socket_that_closes_ends_only_what_it_said_it_would),
		RIG_TEST(an_execution_that_cannot_start_is_an_error_message),
		RIG_TEST(a_socket_loses_no_message_without_a_word),
		RIG_TEST(a_revoked_key_takes_what_it_opened_along),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
