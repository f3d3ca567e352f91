#include "daemon/starter.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "check.h"
#include "mcpc/stdio.h"

#define PATIENCE_MS 60000

static const char json[] = "{\"mcpServers\": {"
			   "\"cat\": {\"command\": \"cat\", \"host\": true},"
			   "\"ends\": {\"command\": \"sh\", \"args\": [\"-c\", \"echo $SAID; exit "
			   "3\"], \"host\": true,"
			   " \"env\": {\"SAID\": \"${HOLT_TEST_SAID}\"}},"
			   "\"off\": {\"command\": \"cat\", \"host\": true, \"disabled\": true},"
			   "\"lost\": {\"command\": \"no-such-program-anywhere\", \"host\": true},"
			   "\"boxed\": {\"command\": \"cat\"},"
			   "\"far\": {\"url\": \"https://x.example/mcp\"}}}";

struct rig {
	struct starter starter;
	struct buf json;
};

static int setup(void **state)
{
	struct rig *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->starter.sock = -1;
	f->json.max = sizeof(json);
	(void)setenv("HOLT_TEST_SAID", "hello", 1);
	assert_int_equal(buf_append(&f->json, json, sizeof(json) - 1), 0);
	assert_int_equal(starter_start(&f->json, NULL, &f->starter, NULL), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct rig *f = *state;

	starter_done(&f->starter);
	buf_done(&f->json);
	free(f);
	return 0;
}

/* What is asked for is a name: the rest of a spec is for the asker. */
static int ask(struct rig *f, const char *name, struct stdio_process *ret, struct err *err)
{
	struct stdio_spawner by = starter_spawner(&f->starter);
	const char *argv[] = { "/bin/false" };
	struct stdio_spec spec = { .name = name, .argv = argv, .argc = 1, .cwd = "/tmp" };

	return by.spawn(by.self, &spec, ret, err);
}

static ssize_t await(int fd, void *data, size_t n)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	return read(fd, data, n);
}

static void a_configured_server_is_started_as_it_is_configured(void **state)
{
	struct stdio_process p = STDIO_PROCESS_NONE;
	struct stdio_ended ended;
	char text[16] = "";

	assert_int_equal(ask(*state, "ends", &p, NULL), 0);
	assert_int_equal(await(p.out, text, sizeof(text)), 6);
	assert_string_equal(text, "hello\n");
	assert_int_equal(await(p.control, &ended, sizeof(ended)), sizeof(ended));
	assert_int_equal(ended.exit_code, 3);
	assert_int_equal(ended.signo, 0);
	stdio_process_close(&p);
}

static void it_is_ended_by_its_user(void **state)
{
	const uint8_t signo = SIGTERM;
	struct stdio_process p = STDIO_PROCESS_NONE;
	struct stdio_ended ended;
	char text[16];

	assert_int_equal(ask(*state, "cat", &p, NULL), 0);
	assert_int_equal(write(p.in, "x", 1), 1);
	assert_int_equal(await(p.out, text, sizeof(text)), 1);
	assert_int_equal(send(p.control, &signo, 1, 0), 1);
	assert_int_equal(await(p.control, &ended, sizeof(ended)), sizeof(ended));
	assert_int_equal(ended.signo, SIGTERM);
	stdio_process_close(&p);
}

static void it_ends_with_its_user(void **state)
{
	struct stdio_process p = STDIO_PROCESS_NONE;
	char text[16];

	assert_int_equal(ask(*state, "cat", &p, NULL), 0);
	p.control = fd_close(p.control);
	assert_int_equal(await(p.out, text, sizeof(text)), 0);
	stdio_process_close(&p);
}

static void nothing_else_is_started(void **state)
{
	static const struct {
		const char *name;
		int code;
	} cases[] = { { "other", ENOENT },     { "/bin/sh", ENOENT }, { "off", EINVAL },
		      { "boxed", EINVAL },     { "far", EINVAL },     { "lost", ENOENT },
		      { "mcpServers", ENOENT } };
	struct stdio_process p = STDIO_PROCESS_NONE;
	struct err err = { 0 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(ask(*state, cases[i].name, &p, &err), -cases[i].code);
		assert_int_equal(p.control, -1);
	}
	assert_int_equal(ask(*state, "cat", &p, &err), 0);
	stdio_process_close(&p);
}

static void a_name_that_is_too_long_is_none(void **state)
{
	struct stdio_process p = STDIO_PROCESS_NONE;
	char name[4096];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(ask(*state, name, &p, NULL), -ENOENT);
	assert_int_equal(ask(*state, "cat", &p, NULL), 0);
	stdio_process_close(&p);
}

/* Whoever has taken the daemon over asks and asks. */
static void so_many_of_one_server_run_at_a_time(void **state)
{
	struct stdio_process p[STARTER_LIVES_MAX + 1], other = STDIO_PROCESS_NONE;
	const uint8_t signo = SIGKILL;
	struct stdio_ended ended;
	struct err err = { 0 };

	for (size_t i = 0; i < STARTER_LIVES_MAX; i++)
		assert_int_equal(ask(*state, "cat", &p[i], NULL), 0);
	assert_int_equal(ask(*state, "cat", &p[STARTER_LIVES_MAX], &err), -EAGAIN);
	assert_non_null(strstr(err.text, "run already"));
	assert_int_equal(ask(*state, "ends", &other, NULL), 0); /* of another one there is none */
	/* it does not end by having its descriptors closed, but by ending */
	p[0].in = fd_close(p[0].in);
	p[0].out = fd_close(p[0].out);
	assert_int_equal(send(p[0].control, &signo, 1, 0), 1);
	assert_int_equal(await(p[0].control, &ended, sizeof(ended)), sizeof(ended));
	stdio_process_close(&p[0]);
	assert_int_equal(ask(*state, "cat", &p[0], NULL), 0);
	for (size_t i = 0; i < STARTER_LIVES_MAX; i++)
		stdio_process_close(&p[i]);
	stdio_process_close(&other);
}

static void a_server_is_started_so_often_and_no_more(void **state)
{
	struct stdio_process p = STDIO_PROCESS_NONE;
	struct stdio_ended ended;
	struct err err = { 0 };
	unsigned n = 0;

	while (n < 10 * STARTER_RATE && ask(*state, "ends", &p, &err) == 0) {
		assert_int_equal(await(p.control, &ended, sizeof(ended)), sizeof(ended));
		stdio_process_close(&p);
		n++;
	}
	assert_in_range(n, STARTER_RATE, 10 * STARTER_RATE - 1); /* it fills up meanwhile */
	assert_int_equal(err.code, EAGAIN);
	assert_non_null(strstr(err.text, "too often"));
	assert_int_equal(ask(*state, "cat", &p, NULL), 0);
	stdio_process_close(&p);
}

static void without_servers_there_is_none(void **state)
{
	struct starter s = { -1 };
	struct buf none = { 0 };
	struct stdio_process p = STDIO_PROCESS_NONE;
	struct rig f = { .starter = s };

	(void)state;
	assert_int_equal(starter_start(&none, NULL, &s, NULL), 0);
	assert_int_equal(s.sock, -1);
	assert_int_equal(ask(&f, "cat", &p, NULL), -EPIPE);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_configured_server_is_started_as_it_is_configured),
		TEST(it_is_ended_by_its_user),
		TEST(it_ends_with_its_user),
		TEST(nothing_else_is_started),
		TEST(a_name_that_is_too_long_is_none),
		TEST(so_many_of_one_server_run_at_a_time),
		TEST(a_server_is_started_so_often_and_no_more),
		cmocka_unit_test(without_servers_there_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
