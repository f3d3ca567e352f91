#include "e2b/connect.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "json/jw.h"

static void every_code_has_the_name_and_status_of_the_protocol(void **state)
{
	static const struct {
		enum connect_code code;
		const char *name;
		int status;
	} rows[] = {
		{ CONNECT_CANCELED, "canceled", 499 },
		{ CONNECT_UNKNOWN, "unknown", 500 },
		{ CONNECT_INVALID_ARGUMENT, "invalid_argument", 400 },
		{ CONNECT_DEADLINE_EXCEEDED, "deadline_exceeded", 504 },
		{ CONNECT_NOT_FOUND, "not_found", 404 },
		{ CONNECT_ALREADY_EXISTS, "already_exists", 409 },
		{ CONNECT_PERMISSION_DENIED, "permission_denied", 403 },
		{ CONNECT_RESOURCE_EXHAUSTED, "resource_exhausted", 429 },
		{ CONNECT_FAILED_PRECONDITION, "failed_precondition", 400 },
		{ CONNECT_ABORTED, "aborted", 409 },
		{ CONNECT_OUT_OF_RANGE, "out_of_range", 400 },
		{ CONNECT_UNIMPLEMENTED, "unimplemented", 501 },
		{ CONNECT_INTERNAL, "internal", 500 },
		{ CONNECT_UNAVAILABLE, "unavailable", 503 },
		{ CONNECT_DATA_LOSS, "data_loss", 500 },
		{ CONNECT_UNAUTHENTICATED, "unauthenticated", 401 },
	};

	(void)state;
	assert_int_equal(sizeof(rows) / sizeof(rows[0]), CONNECT_CODE_COUNT - 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(rows[i].code, i + 1);
		assert_string_equal(connect_name(rows[i].code), rows[i].name);
		assert_int_equal(connect_status(rows[i].code), rows[i].status);
	}
}

static void every_status_of_ours_means_a_code(void **state)
{
	(void)state;
	assert_int_equal(connect_code_of(200), CONNECT_OK);
	assert_int_equal(connect_code_of(204), CONNECT_OK);
	assert_int_equal(connect_code_of(400), CONNECT_INVALID_ARGUMENT);
	assert_int_equal(connect_code_of(401), CONNECT_UNAUTHENTICATED);
	assert_int_equal(connect_code_of(404), CONNECT_NOT_FOUND);
	assert_int_equal(connect_code_of(418), CONNECT_INVALID_ARGUMENT);
	assert_int_equal(connect_code_of(429), CONNECT_RESOURCE_EXHAUSTED);
	assert_int_equal(connect_code_of(502), CONNECT_UNAVAILABLE);
	assert_int_equal(connect_code_of(599), CONNECT_INTERNAL);
	assert_int_equal(connect_code_of(302), CONNECT_INTERNAL);
}

static void only_json_is_spoken(void **state)
{
	static const char *const others[] = { NULL,
					      "",
					      ";",
					      "application/proto",
					      "application/connect+proto",
					      "application/grpc",
					      "application/jsonx",
					      "text/json" };
	enum connect_kind kind;

	(void)state;
	assert_int_equal(connect_kind_of("application/json", &kind), 0);
	assert_int_equal(kind, CONNECT_UNARY);
	assert_int_equal(connect_kind_of("Application/Connect+JSON ; charset=utf-8", &kind), 0);
	assert_int_equal(kind, CONNECT_STREAM);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(connect_kind_of(others[i], &kind), -EPROTONOSUPPORT);
}

static void a_timeout_is_digits_and_none_is_none(void **state)
{
	static const char *const bad[] = { "1s", "-1", "+1", " 1", "1.5", "12345678901", "0x10" };
	uint64_t ms = 7;

	(void)state;
	assert_int_equal(connect_timeout(NULL, &ms), 0);
	assert_int_equal(ms, 0);
	assert_int_equal(connect_timeout("", &ms), 0);
	assert_int_equal(connect_timeout("0", &ms), 0);
	assert_int_equal(ms, 0);
	assert_int_equal(connect_timeout("9999999999", &ms), 0);
	assert_int_equal(ms, 9999999999);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(connect_timeout(bad[i], &ms), -EINVAL);
}

static void an_interval_that_cannot_be_read_is_none(void **state)
{
	(void)state;
	assert_int_equal(connect_keepalive_ms("50"), 50000);
	assert_int_equal(connect_keepalive_ms("3600"), 3600000);
	assert_int_equal(connect_keepalive_ms("3601"), 0);
	assert_int_equal(connect_keepalive_ms("0"), 0);
	assert_int_equal(connect_keepalive_ms("-5"), 0);
	assert_int_equal(connect_keepalive_ms("x"), 0);
	assert_int_equal(connect_keepalive_ms(NULL), 0);
}

static void the_user_stands_before_the_colon(void **state)
{
	char user[CONNECT_USER_MAX + 1];

	(void)state;
	assert_int_equal(connect_user("Basic cm9vdDo=", user), 0);
	assert_string_equal(user, "root");
	assert_int_equal(connect_user("basic dXNlcjpwYXNz", user), 0); /* user:pass */
	assert_string_equal(user, "user");
	assert_int_equal(connect_user("Basic Og==", user), 0); /* ":" */
	assert_string_equal(user, "");
	assert_int_equal(connect_user(NULL, user), 0);
	assert_string_equal(user, "");
	assert_int_equal(connect_user("Bearer abc", user), 0);
	assert_string_equal(user, "");
	assert_int_equal(connect_user("Basic cm9vdA==", user), -EINVAL); /* no colon */
	assert_int_equal(connect_user("Basic !", user), -EINVAL);
	assert_int_equal(connect_user("Basic cgBvOg==", user), -EINVAL); /* a NUL */
	/* 64 bytes and the colon */
	assert_int_equal(connect_user("Basic YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFh"
				      "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYTo=",
				      user),
			 -EINVAL);
}

static void an_envelope_is_taken_when_all_of_it_is_there(void **state)
{
	static const char two[] = "\0\0\0\0\2{}\2\0\0\0\3abc";
	struct connect_envelope e = { 0 };

	(void)state;
	for (size_t n = 0; n < 7; n++)
		assert_int_equal(connect_next(two, n, 100, &e), 0);
	assert_int_equal(connect_next(two, sizeof(two) - 1, 100, &e), 7);
	assert_false(e.is_end);
	assert_int_equal(e.len, 2);
	assert_memory_equal(e.data, "{}", 2);
	assert_int_equal(connect_next(two + 7, sizeof(two) - 8, 100, &e), 8);
	assert_true(e.is_end);
	assert_memory_equal(e.data, "abc", 3);
}

static void an_envelope_above_the_limit_is_refused_before_it_is_there(void **state)
{
	struct connect_envelope e;

	(void)state;
	assert_int_equal(connect_next("\0\0\0\0\5", 5, 4, &e), -E2BIG);
	assert_int_equal(connect_next("\0\xff\xff\xff\xff", 5, 2u << 20, &e), -E2BIG);
	assert_int_equal(connect_next("\0\0\0\0\4", 5, 4, &e), 0);
}

static void unknown_flags_are_refused_at_the_first_byte(void **state)
{
	struct connect_envelope e;

	(void)state;
	assert_int_equal(connect_next("\1", 1, 4, &e), -EBADMSG); /* compressed */
	assert_int_equal(connect_next("\3", 1, 4, &e), -EBADMSG);
	assert_int_equal(connect_next("\x80", 1, 4, &e), -EBADMSG);
}

static void what_is_written_is_read_again(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct connect_envelope e;
	size_t at = connect_begin(&b);
	ssize_t n;

	(void)state;
	assert_int_equal(buf_puts(&b, "{\"a\":1}"), 0);
	assert_int_equal(connect_finish(&b, at), 0);
	assert_int_equal(connect_put_end(&b, CONNECT_OK, NULL), 0);
	assert_int_equal(connect_put_end(&b, CONNECT_NOT_FOUND, "no \"x\""), 0);
	n = connect_next(b.data, b.len, 100, &e);
	assert_int_equal(n, 12);
	assert_memory_equal(e.data, "{\"a\":1}", 7);
	buf_drop(&b, (size_t)n);
	n = connect_next(b.data, b.len, 100, &e);
	assert_true(n > 0 && e.is_end);
	assert_int_equal(e.len, 2);
	buf_drop(&b, (size_t)n);
	n = connect_next(b.data, b.len, 100, &e);
	assert_int_equal(n, b.len);
	assert_true(e.is_end);
	assert_string_equal(e.data,
			    "{\"error\":{\"code\":\"not_found\",\"message\":\"no \\\"x\\\"\"}}");
}

static void a_buffer_that_is_full_makes_no_half_envelope(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	size_t at;

	(void)state;
	buf_init(&b, 3);
	at = connect_begin(&b);
	assert_true(connect_finish(&b, at) < 0);
	buf_clear(&b);
	buf_init(&b, 8);
	assert_true(connect_put_end(&b, CONNECT_INTERNAL, "too much for it") < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_has_the_name_and_status_of_the_protocol),
		cmocka_unit_test(every_status_of_ours_means_a_code),
		cmocka_unit_test(only_json_is_spoken),
		cmocka_unit_test(a_timeout_is_digits_and_none_is_none),
		cmocka_unit_test(an_interval_that_cannot_be_read_is_none),
		cmocka_unit_test(the_user_stands_before_the_colon),
		cmocka_unit_test(an_envelope_is_taken_when_all_of_it_is_there),
		cmocka_unit_test(an_envelope_above_the_limit_is_refused_before_it_is_there),
		cmocka_unit_test(unknown_flags_are_refused_at_the_first_byte),
		cmocka_unit_test(what_is_written_is_read_again),
		cmocka_unit_test(a_buffer_that_is_full_makes_no_half_envelope),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
