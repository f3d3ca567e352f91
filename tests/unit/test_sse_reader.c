#include "httpc/sse_reader.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "check.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

struct log {
	struct buf text; /* "event|id|data;" an event */
	int stop_at, result;
};

static int keep(void *user, const struct sse_event *e)
{
	struct log *l = user;

	(void)buf_printf(&l->text, "%s|%s|%s;", e->event, e->id, e->data);
	assert_int_equal(strlen(e->data), e->len);
	return l->stop_at > 0 && --l->stop_at == 0 ? l->result : 0;
}

static int feed(struct sse_reader *r, const char *text, struct log *l)
{
	return sse_reader_feed(r, text, strlen(text), keep, l);
}

static void events_come_out_however_the_bytes_come_in(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "data: a\n\n", "message||a;" },
		{ "event: output\nid: 7\ndata: {\"x\":1}\n\n", "output|7|{\"x\":1};" },
		{ "data:a\rdata: b\r\rdata:c\r\n\r\n", "message||a\nb;message||c;" },
		{ ": comment\n\ndata\n\n", "message||;" },
		{ "event: x\n\ndata: y\n\n", "message||y;" }, /* without data it is no event */
		{ "id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n",
		  "message|1|a;message|1|b;message||c;" },
		{ "\xef\xbb\xbf"
		  "data: a\n\n",
		  "message||a;" },
		{ "\xef\xbb"
		  "data: a\n\ndata: b\n\n",
		  "message||b;" },
		{ "data:  two blanks\nretry: 10\nunknown: z\n\n", "message|| two blanks;" },
		{ "data: not ended\n", "" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < LEN(rows); i++) {
		for (size_t step = 1; step <= strlen(rows[i].in) + 1; step++) {
			struct sse_reader r;
			struct log l = { 0 };

			sse_reader_init(&r, 1000);
			for (size_t at = 0; at < strlen(rows[i].in); at += step) {
				size_t left = strlen(rows[i].in) - at;

				assert_int_equal(sse_reader_feed(&r, rows[i].in + at,
								 left < step ? left : step, keep,
								 &l),
						 0);
			}
			assert_string_equal(buf_str(&l.text), rows[i].out);
			buf_done(&l.text);
			sse_reader_done(&r);
		}
	}
}

static void an_id_with_a_nul_is_passed_over(void **state)
{
	static const char in[] = "id: 1\ndata: a\n\nid: 2\0003\ndata: b\n\n";
	struct sse_reader r;
	struct log l = { 0 };

	(void)state;
	sse_reader_init(&r, 1000);
	assert_int_equal(sse_reader_feed(&r, in, sizeof(in) - 1, keep, &l), 0);
	assert_string_equal(l.text.data, "message|1|a;message|1|b;");
	buf_done(&l.text);
	sse_reader_done(&r);
}

static void the_pause_before_the_next_connection_is_kept(void **state)
{
	static const struct {
		const char *in;
		int64_t ms;
	} rows[] = {
		{ "data: a\n\n", -1 },
		{ "retry: 500\n\n", 500 },
		{ "retry: 0\n", 0 },
		{ "retry: 1\nretry: 2\n", 2 },
		{ "retry: -1\n", -1 },
		{ "retry: 1s\n", -1 },
		{ "retry:\n", -1 },
		{ "retry: 99999999999999999999999\n", -1 },
		{ "retry: 7\nretry: x\n", 7 },
	};

	(void)state;
	for (size_t i = 0; i < LEN(rows); i++) {
		struct sse_reader r;
		struct log l = { 0 };

		sse_reader_init(&r, 1000);
		assert_int_equal(feed(&r, rows[i].in, &l), 0);
		assert_int_equal(r.retry_ms, rows[i].ms);
		sse_reader_done(&r);
		buf_done(&l.text);
	}
}

static void an_id_counts_once_its_event_has_ended(void **state)
{
	struct sse_reader r;
	struct log l = { 0 };

	(void)state;
	sse_reader_init(&r, 1000);
	assert_int_equal(feed(&r, "id: 1\n\n", &l), 0); /* also without data */
	assert_string_equal(r.last_id, "1");
	assert_int_equal(feed(&r, "id: 2\ndata: cut o", &l), 0);
	assert_string_equal(r.last_id, "1");
	assert_int_equal(feed(&r, "ff\n\n", &l), 0);
	assert_string_equal(r.last_id, "2");
	assert_string_equal(buf_str(&l.text), "message|2|cut off;");
	sse_reader_done(&r);
	buf_done(&l.text);
}

static void every_length_has_its_limit(void **state)
{
	char id[SSE_ID_MAX + 32], name[SSE_NAME_MAX + 32];
	struct log l = { 0 };
	struct sse_reader r;

	(void)state;
	sse_reader_init(&r, 10);
	assert_int_equal(feed(&r, "data: 1234\n", &l), 0); /* a line of ten */
	assert_int_equal(feed(&r, "data: 12345\n", &l), -E2BIG);
	sse_reader_done(&r);
	sse_reader_init(&r, 10);
	assert_int_equal(feed(&r, "data: 1234\ndata:1234\n\n", &l), 0); /* data of ten, with LFs */
	assert_int_equal(feed(&r, "data: 1234\ndata:12345\n", &l), -E2BIG);
	sse_reader_done(&r);
	sse_reader_init(&r, 10);
	assert_int_equal(feed(&r, "0123456789", &l), 0);
	assert_int_equal(feed(&r, "a", &l), -E2BIG);
	sse_reader_done(&r);

	for (size_t more = 0; more < 2; more++) {
		(void)snprintf(id, sizeof(id), "id:%0*d\n", (int)(SSE_ID_MAX + more), 0);
		(void)snprintf(name, sizeof(name), "event:%0*d\n", (int)(SSE_NAME_MAX + more), 0);
		sse_reader_init(&r, 1000);
		assert_int_equal(feed(&r, id, &l), more ? -E2BIG : 0);
		sse_reader_done(&r);
		sse_reader_init(&r, 1000);
		assert_int_equal(feed(&r, name, &l), more ? -E2BIG : 0);
		sse_reader_done(&r);
	}
	buf_done(&l.text);
}

static void the_reader_of_events_can_end_it(void **state)
{
	struct log l = { .stop_at = 2, .result = -EPIPE };
	struct sse_reader r;

	(void)state;
	sse_reader_init(&r, 100);
	assert_int_equal(feed(&r, "data:a\n\ndata:b\n\ndata:c\n\n", &l), -EPIPE);
	assert_string_equal(l.text.data, "message||a;message||b;");
	buf_done(&l.text);
	sse_reader_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_come_out_however_the_bytes_come_in),
		cmocka_unit_test(an_id_with_a_nul_is_passed_over),
		cmocka_unit_test(the_pause_before_the_next_connection_is_kept),
		cmocka_unit_test(an_id_counts_once_its_event_has_ended),
		cmocka_unit_test(every_length_has_its_limit),
		cmocka_unit_test(the_reader_of_events_can_end_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
