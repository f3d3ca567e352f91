#include "cli/follow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "http_rig.h"

#define EVENTS "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
#define START "event: start\ndata: {\"executionId\":\"e1\",\"status\":\"running\"}\n\n"
#define OUT(id, b64) \
	"id: " id "\nevent: output\ndata: {\"stream\":\"stdout\",\"data\":\"" b64 "\"}\n\n"
#define END "event: end\ndata: {\"executionId\":\"e1\",\"exitCode\":0}\n\n"

struct world {
	struct http_rig rig;
	struct client client;
	struct follow f;
	struct buf log;
	struct err err;
	int holds;
};

static int on_start(void *user, struct jv execution)
{
	struct world *w = user;

	(void)execution;
	return buf_puts(&w->log, "start;");
}

static int on_output(void *user, int stream, const void *data, size_t n)
{
	struct world *w = user;

	w->f.hold = w->holds-- > 0;
	return buf_printf(&w->log, "%d:%.*s;", stream, (int)n, (const char *)data);
}

static int on_gap(void *user, uint64_t omitted)
{
	struct world *w = user;

	return buf_printf(&w->log, "gap %u;", (unsigned)omitted);
}

static int on_end(void *user, struct jv execution)
{
	struct world *w = user;
	int64_t code = -1;

	assert_int_equal(jv_i64(jv_get(execution, "exitCode"), &code), 0);
	return buf_printf(&w->log, "end %d;", (int)code);
}

static const struct follow_ops ops = {
	.start = on_start, .output = on_output, .gap = on_gap, .end = on_end
};

static void begin(struct world *w, const struct http_step *steps, size_t n)
{
	struct buf body = { .data = (char *)"{}", .len = 2 };

	*w = (struct world){ 0 };
	http_rig_start(&w->rig, steps, n);
	assert_int_equal(httpc_create(&(struct httpc_options){ .url = w->rig.url }, &w->client.http,
				      &w->err),
			 0);
	w->f = (struct follow){ .client = &w->client, .ops = &ops, .user = w, .sandbox = "s/1" };
	assert_int_equal(follow_start(&w->f, &body, &w->err), 0);
}

static int run(struct world *w)
{
	int r = 0;

	for (int i = 0; i < 500 && r == 0 && !w->f.over; i++)
		r = follow_turn(&w->f, NULL, 0, 50, &w->err);
	return r;
}

static void end(struct world *w)
{
	follow_done(&w->f);
	w->client.http = httpc_free(w->client.http);
	buf_done(&w->log);
	http_rig_done(&w->rig);
}

static void events_become_calls(void **state)
{
	static const struct http_step steps[] = {
		{ .answer = EVENTS START ": ping\n\n" OUT(
			  "2", "aGk=") "event: gap\ndata: {\"omitted\":7}\n\n"
				       "id: 12\nevent: output\n"
				       "data: {\"stream\":\"stderr\",\"data\":\"AP8=\"}\n\n"
				       "event: unknown\ndata: {}\n\n" END },
	};
	struct world w;

	(void)state;
	begin(&w, steps, 1);
	assert_int_equal(run(&w), 0);
	assert_string_equal(w.f.id, "e1");
	assert_string_equal(w.f.last, "12");
	/* "%.*s" ends at the NUL; that the byte came is seen by the length of its decoding. */
	assert_string_equal(w.log.data, "start;1:hi;gap 7;2:;end 0;");
	http_rig_stop(&w.rig);
	assert_non_null(
		strstr(w.rig.got.data, "POST /api/v1/sandboxes/s%2F1/executions?encoding=base64 "));
	end(&w);
}

static void a_connection_that_breaks_goes_on_from_the_last_event(void **state)
{
	static const struct http_step steps[] = {
		{ .answer = EVENTS START OUT("2", "aGk=") "id: 9\nevent: output\ndata: {\"str" },
		{ .answer = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n" },
		{ .answer = "" },
		{ .answer = EVENTS START OUT("4", "eW8=") END },
	};
	struct world w;

	(void)state;
	begin(&w, steps, 4);
	assert_int_equal(run(&w), 0);
	assert_string_equal(w.log.data, "start;1:hi;start;1:yo;end 0;");
	http_rig_stop(&w.rig);
	assert_non_null(
		strstr(w.rig.got.data,
		       "GET /api/v1/sandboxes/s%2F1/executions/e1/output?encoding=base64 "));
	assert_non_null(strstr(w.rig.got.data, "Last-Event-ID: 2\r\n"));
	assert_null(strstr(w.rig.got.data, "Last-Event-ID: 9\r\n"));
	end(&w);
}

static void what_never_began_is_not_tried_again(void **state)
{
	static const struct http_step steps[] = {
		{ .answer = EVENTS },
	};
	struct world w;

	(void)state;
	begin(&w, steps, 1);
	assert_int_equal(run(&w), -ECONNRESET);
	end(&w);
}

static void a_refusal_is_final(void **state)
{
	static const struct http_step steps[] = {
		{ .answer = EVENTS START },
		{ .answer = "HTTP/1.1 404 Not Found\r\nContent-Length: 37\r\n\r\n"
			    "{\"error\":{\"message\":\"it is not there\"}}" },
	};
	struct world w;

	(void)state;
	begin(&w, steps, 2);
	assert_int_equal(run(&w), -ENOENT);
	end(&w);
}

static void nothing_is_told_while_held(void **state)
{
	static const struct http_step steps[] = {
		{ .answer = EVENTS START OUT("2", "aGk="),
		  .more = OUT("4", "eW8=") END,
		  .more_after_ms = 200 },
	};
	struct world w;

	(void)state;
	begin(&w, steps, 1);
	w.holds = 1;
	for (int i = 0; i < 20; i++)
		assert_int_equal(follow_turn(&w.f, NULL, 0, 50, &w.err), 0);
	assert_string_equal(w.log.data, "start;1:hi;");
	follow_resume(&w.f);
	assert_int_equal(run(&w), 0);
	assert_string_equal(w.log.data, "start;1:hi;1:yo;end 0;");
	end(&w);
}

static void events_that_make_no_sense_end_it(void **state)
{
	static const char *const bad[] = {
		EVENTS "event: start\ndata: {}\n\n",
		EVENTS START "event: output\ndata: not json\n\n",
		EVENTS START "event: output\ndata: {\"stream\":\"stdout\",\"data\":\"***\"}\n\n",
		EVENTS START "event: output\ndata: {\"stream\":\"stdout\"}\n\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const struct http_step step = { .answer = bad[i] };
		struct world w;
		int r;

		begin(&w, &step, 1);
		r = run(&w);
		assert_true(r == -EPROTO || r == -EINVAL);
		assert_true(w.err.text[0] != '\0');
		end(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_become_calls),
		cmocka_unit_test(a_connection_that_breaks_goes_on_from_the_last_event),
		cmocka_unit_test(what_never_began_is_not_tried_again),
		cmocka_unit_test(a_refusal_is_final),
		cmocka_unit_test(nothing_is_told_while_held),
		cmocka_unit_test(events_that_make_no_sense_end_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
