/* Files, archives and watches over HTTP. */
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

#define BOX "/api/v1/sandboxes/box"
#define FILES BOX "/files"

static int setup(void **state)
{
	int r = rig_setup(state);
	struct api_rig *rig = *state;

	if (r < 0)
		return r;
	(void)service_add(&rig->service, "sandboxofanns0000000", "ann", "box");
	(void)service_put(&rig->service, "/workspace", ENTRY_DIR, "", 0);
	(void)service_put(&rig->service, "/workspace/b.txt", ENTRY_FILE, "0123456789", 10);
	(void)service_put(&rig->service, "/workspace/a.txt", ENTRY_FILE, "", 0);
	return 0;
}

static void a_directory_is_listed_by_name(void **state)
{
	struct api_rig *rig = *state;
	struct rig_answer a;
	const char *first, *second;

	rig_ask(rig, rig->viewer, "GET " FILES, "", NULL, &a);
	assert_int_equal(a.status, 200);
	first = strstr(buf_str(&a.body),
		       "{\"path\":\"/workspace/a.txt\",\"type\":\"file\",\"size\":0,"
		       "\"mode\":\"0644\",\"uid\":1000");
	second = strstr(buf_str(&a.body), "\"path\":\"/workspace/b.txt\"");
	assert_non_null(first);
	assert_true(second > first);
	assert_non_null(strstr(buf_str(&a.body), "\"truncated\":false"));
	rig_answer_done(&a);
	rig_expect(rig, rig->user, "GET " FILES "?path=/nope", NULL, 404, "not_found");
	rig_expect(rig, rig->user, "GET " FILES "?path=nope", NULL, 400, "\"field\":\"path\"");
	rig_expect(rig, rig->user, "GET " FILES "?depth=0", NULL, 400, "\"field\":\"depth\"");
	rig_expect(rig, rig->user, "GET " FILES "?depth=65", NULL, 400, "\"field\":\"depth\"");
}

static void a_file_is_read_whole_or_in_part(void **state)
{
	static const struct {
		const char *headers;
		int status;
		const char *body, *content_range;
	} rows[] = {
		{ "", 200, "0123456789", NULL },
		{ "Range: bytes=2-4\r\n", 206, "234", "bytes 2-4/10" },
		{ "Range: bytes=7-\r\n", 206, "789", "bytes 7-9/10" },
		{ "Range: bytes=-2\r\n", 206, "89", "bytes 8-9/10" },
		{ "Range: bytes=0-1,4-5\r\n", 200, "0123456789", NULL },
		{ "Range: bytes=10-\r\n", 416, NULL, "bytes */10" },
		{ "Range: bytes=2-4\r\nIf-Range: \"other\"\r\n", 200, "0123456789", NULL },
		{ "If-None-Match: \"other\"\r\n", 200, "0123456789", NULL },
		{ "If-None-Match: *\r\n", 304, "", NULL },
	};
	struct api_rig *rig = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rig_answer a;
		const char *range;

		rig_ask(rig, rig->viewer, "GET " FILES "/workspace/b.txt", rows[i].headers, NULL,
			&a);
		assert_int_equal(a.status, rows[i].status);
		if (rows[i].body)
			assert_string_equal(buf_str(&a.body), rows[i].body);
		range = rig_header(&a, "Content-Range");
		assert_int_equal(!range, !rows[i].content_range);
		if (range)
			assert_string_equal(range, rows[i].content_range);
		if (a.status == 200 || a.status == 206) {
			assert_string_equal(rig_header(&a, "Accept-Ranges"), "bytes");
			assert_string_equal(rig_header(&a, "X-Content-Type-Options"), "nosniff");
			assert_string_equal(rig_header(&a, "Last-Modified"),
					    "Sun, 06 Nov 1994 08:49:37 GMT");
		}
		rig_answer_done(&a);
	}
}

static void a_version_that_the_client_has_is_not_sent_again(void **state)
{
	struct api_rig *rig = *state;
	struct rig_answer a;
	char etag[80], headers[160];

	rig_ask(rig, rig->user, "HEAD " FILES "/workspace/b.txt", "", NULL, &a);
	assert_int_equal(a.status, 200);
	assert_int_equal(a.body.len, 0);
	assert_string_equal(rig_header(&a, "Content-Length"), "10");
	(void)str_copy(etag, sizeof(etag), rig_header(&a, "ETag"));
	rig_answer_done(&a);
	(void)str_format(headers, sizeof(headers), "If-None-Match: W/%s\r\n", etag);
	rig_ask(rig, rig->user, "GET " FILES "/workspace/b.txt", headers, NULL, &a);
	assert_int_equal(a.status, 304);
	assert_int_equal(a.body.len, 0);
	assert_string_equal(rig_header(&a, "ETag"), etag);
	rig_answer_done(&a);
	(void)str_format(headers, sizeof(headers), "Range: bytes=0-0\r\nIf-Range: %s\r\n", etag);
	rig_ask(rig, rig->user, "GET " FILES "/workspace/b.txt", headers, NULL, &a);
	assert_int_equal(a.status, 206);
	rig_answer_done(&a);
	(void)service_put(&rig->service, "/workspace/b.txt", ENTRY_FILE, "new", 3);
	rig_ask(rig, rig->user, "GET " FILES "/workspace/b.txt", headers, NULL, &a);
	assert_int_equal(a.status, 200);
	assert_string_equal(buf_str(&a.body), "new");
	rig_answer_done(&a);
}

static void what_a_path_is_can_be_asked(void **state)
{
	struct api_rig *rig = *state;

	rig_expect(rig, rig->user, "GET " FILES "/workspace?stat=1", NULL, 200,
		   "{\"path\":\"/workspace\",\"type\":\"directory\"");
	rig_expect(rig, rig->user, "GET " FILES "/workspace", NULL, 409, "archive?path=");
	rig_expect(rig, rig->user, "GET " FILES "/nope", NULL, 404, "not_found");
	rig_expect(rig, rig->user, "GET " FILES "/a%00b", NULL, 400, "invalid_request");
	rig_expect(rig, rig->user, "GET " FILES "/workspace/a.txt", NULL, 200, NULL);
}

static void a_large_file_flows_and_a_slow_client_holds_it_back(void **state)
{
	struct api_rig *rig = *state;
	size_t n = 8 << 20;
	char *data = malloc(n);
	struct rig_conn c;

	assert_non_null(data);
	memset(data, 'z', n);
	(void)service_put(&rig->service, "/workspace/big", ENTRY_FILE, data, n);
	free(data);
	rig->service.chunk = 32 << 10;
	rig_connect(rig, &c);
	rig_slow(&c, true);
	rig_request(&c, rig->user, "GET " FILES "/workspace/big", "Connection: close\r\n", -1);
	for (int i = 0; i < 20; i++)
		rig_settle(rig);
	assert_int_equal(rig->service.held, 1);
	rig_slow(&c, false);
	rig_until_closed(&c);
	assert_true(c.in.len > n);
	rig_disconnect(&c);
}

static void a_file_that_cannot_be_read_to_its_end_is_cut_off(void **state)
{
	static const char *const paths[] = { FILES "/workspace/b.txt",
					     BOX "/archive?path=/workspace/b.txt" };
	struct api_rig *rig = *state;
	char what[128];

	rig->service.chunk = 4;
	rig->service.read_fails_at = 4;
	for (size_t i = 0; i < 2; i++) {
		struct rig_conn c;

		rig_connect(rig, &c);
		(void)str_format(what, sizeof(what), "GET %s", paths[i]);
		rig_request(&c, rig->user, what, "", -1);
		rig_until_closed(&c);
		assert_false(rig_has(&c, "0123456789"));
		assert_false(rig_has(&c, "\r\n0\r\n\r\n")); /* no clean end of a chunked one */
		rig_disconnect(&c);
	}
	/* Before the first byte there is still time for a proper answer. */
	rig->service.read_fails_at = 1;
	rig->service.chunk = 1000;
	rig_expect(rig, rig->user, "GET " BOX "/archive?path=/nope", NULL, 404, "not_found");
}

static void a_client_that_leaves_stops_its_operation(void **state)
{
	struct api_rig *rig = *state;
	struct rig_conn c;

	rig_connect(rig, &c);
	rig_request(&c, rig->user, "PUT " FILES "/workspace/c.txt", "", 100);
	rig_send(&c, "half", 4);
	rig_settle(rig);
	rig_disconnect(&c);
	rig_settle(rig);
	assert_int_equal(rig->service.file_cancels, 1);
	assert_null(service_file(&rig->service, "/workspace/c.txt"));
	assert_true(list_is_empty(&rig->service.ops));
}

static void a_file_is_written_and_conditions_hold(void **state)
{
	struct api_rig *rig = *state;
	struct rig_answer a;
	struct service_file *f;
	char headers[160];

	rig_ask(rig, rig->user, "PUT " FILES "/workspace/d/c.txt", "", "hello", &a);
	assert_int_equal(a.status, 201);
	(void)str_format(headers, sizeof(headers), "If-Match: %s\r\n", rig_header(&a, "ETag"));
	assert_non_null(strstr(buf_str(&a.body),
			       "\"path\":\"/workspace/d/c.txt\",\"type\":\"file\","
			       "\"size\":5"));
	rig_answer_done(&a);
	f = service_file(&rig->service, "/workspace/d/c.txt");
	assert_string_equal(buf_str(&f->data), "hello");
	rig_ask(rig, rig->user, "PUT " FILES "/workspace/d/c.txt", headers, "again", &a);
	assert_int_equal(a.status, 200);
	rig_answer_done(&a);
	rig_ask(rig, rig->user, "PUT " FILES "/workspace/d/c.txt", headers, "late", &a);
	assert_int_equal(a.status, 412);
	assert_non_null(strstr(buf_str(&a.body), "conflict"));
	rig_answer_done(&a);
	rig_ask(rig, rig->user, "PUT " FILES "/workspace/d/c.txt", "If-None-Match: *\r\n", "x", &a);
	assert_int_equal(a.status, 412);
	rig_answer_done(&a);
	rig_ask(rig, rig->user, "PUT " FILES "/workspace/e", "If-None-Match: *\r\n", "x", &a);
	assert_int_equal(a.status, 201);
	rig_answer_done(&a);
	rig_ask(rig, rig->user, "PUT " FILES "/workspace/none", headers, "x", &a);
	assert_int_equal(a.status, 412);
	rig_answer_done(&a);
	assert_string_equal(buf_str(&f->data), "again");
	rig_expect(rig, rig->user, "PUT " FILES "/workspace/e?mode=888", "x", 400,
		   "\"field\":\"mode\"");
	rig_expect(rig, rig->user, "PUT " FILES "/workspace/e?mode=4755", "x", 400,
		   "\"field\":\"mode\"");
	rig_expect(rig, rig->user, "PUT " FILES "/workspace/e?mode=0755", "x", 200, NULL);
	rig_expect(rig, rig->user, "PUT " FILES "/workspace/empty", "", 201, "\"size\":0");
}

static void a_version_that_changes_during_the_upload_is_not_overwritten(void **state)
{
	struct api_rig *rig = *state;
	struct rig_answer a;
	char headers[160];

	rig_ask(rig, rig->user, "PUT " FILES "/workspace/v", "", "one", &a);
	assert_int_equal(a.status, 201);
	(void)str_format(headers, sizeof(headers), "If-Match: %s\r\n", rig_header(&a, "ETag"));
	rig_answer_done(&a);
	rig->service.overtakes = true;
	rig_ask(rig, rig->user, "PUT " FILES "/workspace/v", headers, "late", &a);
	assert_int_equal(a.status, 412);
	rig_answer_done(&a);
	assert_string_equal(buf_str(&service_file(&rig->service, "/workspace/v")->data), "one");
}

/* While the STAT that goes before is answered, another makes the file. */
static void a_file_that_must_be_new_is_not_overwritten_in_a_race(void **state)
{
	struct api_rig *rig = *state;
	struct rig_conn c;

	rig_connect(rig, &c);
	rig_request(&c, rig->user, "PUT " FILES "/workspace/race", "If-None-Match: *\r\n", 4);
	rig_settle(rig);
	(void)service_put(&rig->service, "/workspace/race", ENTRY_FILE, "theirs", 6);
	rig_send(&c, "mine", 4);
	rig_until(&c, "HTTP/1.1 412");
	rig_disconnect(&c);
	assert_string_equal(buf_str(&service_file(&rig->service, "/workspace/race")->data),
			    "theirs");
}

static void an_upload_waits_for_the_box_and_arrives_whole(void **state)
{
	struct api_rig *rig = *state;
	size_t n = 2 << 20;
	char *data = malloc(n);
	struct service_file *f;
	struct rig_conn c;

	assert_non_null(data);
	for (size_t i = 0; i < n; i++)
		data[i] = (char)(i * 7 % 251);
	rig->service.window = 5000;
	rig_connect(rig, &c);
	rig_request(&c, rig->user, "PUT " FILES "/workspace/up", "", (long)n);
	rig_send(&c, data, n);
	rig_until(&c, "HTTP/1.1 201");
	rig_disconnect(&c);
	f = service_file(&rig->service, "/workspace/up");
	assert_int_equal(f->data.len, n);
	assert_memory_equal(f->data.data, data, n);
	free(data);
}

static void too_much_is_refused_before_or_on_the_way(void **state)
{
	struct api_rig *rig = *state;
	char data[4096];
	struct rig_conn c;

	memset(data, 'x', sizeof(data));
	rig_connect(rig, &c);
	rig_request(&c, rig->user, "PUT " FILES "/workspace/huge", "", (4 << 20) + 1);
	rig_until(&c, "HTTP/1.1 413");
	rig_disconnect(&c);
	rig_connect(rig, &c);
	rig_request(&c, rig->user, "PUT " FILES "/workspace/huge", "Transfer-Encoding: chunked\r\n",
		    -1);
	for (int i = 0; i < 1025 && !c.is_closed; i++) {
		rig_send(&c, "1000\r\n", 6);
		rig_send(&c, data, sizeof(data));
		rig_send(&c, "\r\n", 2);
	}
	rig_until(&c, "HTTP/1.1 413");
	rig_disconnect(&c);
	rig_settle(rig);
	assert_null(service_file(&rig->service, "/workspace/huge"));
	assert_true(list_is_empty(&rig->service.ops));
}

static void things_are_made_moved_and_removed(void **state)
{
	struct api_rig *rig = *state;

	rig_expect(rig, rig->user, "POST " FILES "/workspace/dir", "{\"op\":\"mkdir\"}", 201,
		   "{\"path\":\"/workspace/dir\",\"type\":\"directory\"");
	rig_expect(rig, rig->user, "POST " FILES "/workspace/b.txt",
		   "{\"op\":\"move\",\"to\":\"/workspace/dir/c\"}", 200,
		   "{\"path\":\"/workspace/dir/c\",\"type\":\"file\"");
	rig_expect(rig, rig->user, "POST " FILES "/workspace/x", "{\"op\":\"move\"}", 400,
		   "\"field\":\"to\"");
	rig_expect(rig, rig->user, "POST " FILES "/workspace/x",
		   "{\"op\":\"move\",\"to\":\"relative\"}", 400, "\"field\":\"to\"");
	rig_expect(rig, rig->user, "POST " FILES "/workspace/x", "{\"op\":\"mkdir\",\"to\":\"/a\"}",
		   400, "\"field\":\"to\"");
	rig_expect(rig, rig->user, "POST " FILES "/workspace/x",
		   "{\"op\":\"mkdir\",\"mode\":\"9\"}", 400, "\"field\":\"mode\"");
	rig_expect(rig, rig->user, "POST " FILES "/workspace/x", "{\"op\":\"burn\"}", 400,
		   "\"field\":\"op\"");
	rig_expect(rig, rig->user, "DELETE " FILES "/workspace/dir", NULL, 409, "conflict");
	rig_expect(rig, rig->user, "DELETE " FILES "/workspace/dir?recursive=1", NULL, 204, NULL);
	rig_expect(rig, rig->user, "DELETE " FILES "/workspace/dir", NULL, 404, NULL);
	rig_expect(rig, rig->user, "DELETE " FILES "/workspace/b?recursive=maybe", NULL, 400,
		   "\"field\":\"recursive\"");
}

static void an_archive_comes_and_goes(void **state)
{
	struct api_rig *rig = *state;
	struct rig_answer a;

	rig_ask(rig, rig->user, "GET " BOX "/archive?path=/workspace/b.txt", "", NULL, &a);
	assert_int_equal(a.status, 200);
	assert_string_equal(rig_header(&a, "Content-Type"), "application/x-tar");
	assert_string_equal(buf_str(&a.body), "0123456789");
	rig_answer_done(&a);
	rig_expect(rig, rig->user, "PUT " BOX "/archive?path=/workspace/in", "tar bytes", 200,
		   "{\"path\":\"/workspace/in\",\"count\":9}");
}

static void what_happens_to_files_is_told(void **state)
{
	struct api_rig *rig = *state;
	struct rig_conn c;

	rig_connect(rig, &c);
	rig_request(&c, rig->user, "GET " BOX "/watch?recursive=1", "", -1);
	rig_until(&c, "event: start\ndata: {\"path\":\"/workspace\"}\n");
	service_happened(&rig->service, EVENT_CREATE, "a/b");
	rig_until(&c, "event: create\ndata: {\"path\":\"a/b\"}\n");
	service_happened(&rig->service, EVENT_REMOVE, "bad \xff name\n");
	rig_until(&c, "event: remove\ndata: {\"path\":\"bad \xef\xbf\xbd name\\n\"}\n");
	service_happened(&rig->service, EVENT_OVERFLOW, "");
	rig_until(&c, "event: overflow\ndata: {}\n");
	rig_disconnect(&c);
	rig_settle(rig);
	assert_int_equal(rig->service.file_cancels, 1);
}

static void a_watcher_that_does_not_read_is_told_that_it_missed_some(void **state)
{
	struct api_rig *rig = *state;
	struct rig_conn c;

	rig_connect(rig, &c);
	rig_request(&c, rig->user, "GET " BOX "/watch", "", -1);
	rig_until(&c, "event: start");
	rig_slow(&c, true);
	for (int i = 0; i < 40000; i++)
		service_happened(&rig->service, EVENT_WRITE, "some/file/that/changes/all/the/time");
	rig_settle(rig);
	rig_slow(&c, false);
	rig_until(&c, "event: overflow");
	assert_true(c.in.len < 2 << 20);
	rig_disconnect(&c);
	rig_settle(rig);
}

#define RIG_TEST(f) cmocka_unit_test_setup_teardown(f, setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(a_directory_is_listed_by_name),
		RIG_TEST(a_file_is_read_whole_or_in_part),
		RIG_TEST(a_version_that_the_client_has_is_not_sent_again),
		RIG_TEST(what_a_path_is_can_be_asked),
		RIG_TEST(a_large_file_flows_and_a_slow_client_holds_it_back),
		RIG_TEST(a_file_that_cannot_be_read_to_its_end_is_cut_off),
		RIG_TEST(a_client_that_leaves_stops_its_operation),
		RIG_TEST(a_file_is_written_and_conditions_hold),
		RIG_TEST(a_version_that_changes_during_the_upload_is_not_overwritten),
		RIG_TEST(a_file_that_must_be_new_is_not_overwritten_in_a_race),
		RIG_TEST(an_upload_waits_for_the_box_and_arrives_whole),
		RIG_TEST(too_much_is_refused_before_or_on_the_way),
		RIG_TEST(things_are_made_moved_and_removed),
		RIG_TEST(an_archive_comes_and_goes),
		RIG_TEST(what_happens_to_files_is_told),
		RIG_TEST(a_watcher_that_does_not_read_is_told_that_it_missed_some),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
