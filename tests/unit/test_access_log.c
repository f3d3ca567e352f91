#include "telemetry/access_log.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "check.h"

static char line[16384];

/* The line behind its time; "" when there is none. */
static const char *logged(const struct access_entry *e)
{
	int ends[2], saved = dup(STDERR_FILENO);
	ssize_t n;

	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	(void)dup2(ends[1], STDERR_FILENO);
	access_log_write(e);
	(void)dup2(saved, STDERR_FILENO);
	n = read(ends[0], line, sizeof(line) - 1);
	line[n > 0 ? n : 0] = '\0';
	(void)close(ends[0]);
	(void)close(ends[1]);
	(void)close(saved);
	return n > 0 ? line + CLOCK_ISO_SIZE : "";
}

static const struct access_entry plain = {
	.request_id = "r1",
	.peer = "127.0.0.1:5000",
	.method = "GET",
	.path = "/api/v1/sandboxes",
	.status = 200,
	.bytes_out = 54,
	.took_us = 1500,
};

static void a_request_is_one_record(void **state)
{
	struct access_entry e = plain;

	(void)state;
	log_set_level(LOG_INFO);
	assert_string_equal(logged(&e),
			    "info http: request request=r1 peer=127.0.0.1:5000 method=GET "
			    "path=/api/v1/sandboxes status=200 bytes=54 ms=1.500\n");
	e.client_id = "mine";
	e.key_id = "k1";
	e.trace_id = "0af7";
	e.status = 0;
	assert_string_equal(logged(&e),
			    "info http: request request=r1 client_request=mine peer=127.0.0.1:5000 "
			    "key=k1 method=GET path=/api/v1/sandboxes status=0 bytes=54 ms=1.500 "
			    "trace_id=0af7\n");
}

static void the_query_is_never_logged(void **state)
{
	struct access_entry e = plain;

	(void)state;
	log_set_level(LOG_INFO);
	e.path = "/stream?token=holt_secret";
	assert_null(strstr(logged(&e), "secret"));
	assert_non_null(strstr(line, "path=/stream status"));
}

static void hostile_paths_stay_in_their_field(void **state)
{
	struct access_entry e = plain;
	char endless[5000];

	(void)state;
	log_set_level(LOG_INFO);
	e.path = "/x status=500\n\"";
	assert_non_null(strstr(logged(&e), "path=\"/x status=500\\n\\\"\" status=200"));
	memset(endless, 'a', sizeof(endless) - 1);
	endless[sizeof(endless) - 1] = '\0';
	e.path = endless;
	assert_non_null(strstr(logged(&e), "a status=200"));
	assert_true(strlen(line) < 500);
}

static void routine_requests_are_logged_when_they_fail(void **state)
{
	static const char *const paths[] = { "/healthz", "/readyz", "/metrics", "/health",
					     "/livez" };
	struct access_entry e = plain;

	(void)state;
	log_set_level(LOG_INFO);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		e.path = paths[i];
		e.status = 200;
		assert_string_equal(logged(&e), "");
		e.status = 503;
		assert_int_equal(strncmp(logged(&e), "info http: ", 11), 0);
		log_set_level(LOG_DEBUG);
		e.status = 200;
		assert_int_equal(strncmp(logged(&e), "debug http: ", 12), 0);
		log_set_level(LOG_INFO);
	}
	e.path = "/healthz/x";
	assert_int_equal(strncmp(logged(&e), "info http: ", 11), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_one_record),
		cmocka_unit_test(the_query_is_never_logged),
		cmocka_unit_test(hostile_paths_stay_in_their_field),
		cmocka_unit_test(routine_requests_are_logged_when_they_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
