#include "mcpc/stdio.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/parse.h"
#include "check.h"
#include "loop/loop.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))
#define PATIENCE_MS 60000u

struct rig {
	struct loop *loop;
	struct loop_timer *patience;
	struct stdio_yard yard;
	struct mcpc_transport *t;
	struct buf got; /* the last message */
	unsigned n_messages, n_lost, wanted;
	struct err lost;
	bool is_empty;
};

static void give_up(void *user)
{
	(void)user;
	fail_msg("nothing has happened for too long");
}

static void on_message(void *user, const char *text, size_t n)
{
	struct rig *f = user;

	assert_int_equal(text[n], '\0');
	buf_clear(&f->got);
	assert_int_equal(buf_append(&f->got, text, n), 0);
	if (++f->n_messages == f->wanted)
		loop_stop(f->loop);
}

static void on_failed(void *user, const char *id, int status, const char *body, size_t n,
		      const struct err *err)
{
	(void)user, (void)id, (void)status, (void)body, (void)n, (void)err;
	fail();
}

static void on_lost(void *user, const struct err *err)
{
	struct rig *f = user;

	f->n_lost++;
	f->lost = *err;
	loop_stop(f->loop);
}

static const struct mcpc_transport_events events = { on_message, on_failed, on_lost };

static void on_empty(void *user)
{
	struct rig *f = user;

	f->is_empty = true;
	loop_stop(f->loop);
}

static int setup(void **state)
{
	struct rig *f = calloc(1, sizeof(*f));
	struct err err = { 0 };

	(void)signal(SIGPIPE, SIG_IGN); /* as the program does */
	assert_non_null(f);
	assert_int_equal(loop_create(&f->loop, &err), 0);
	assert_int_equal(loop_timer_create(f->loop, give_up, NULL, &f->patience), 0);
	loop_timer_start(f->patience, PATIENCE_MS, 0);
	stdio_yard_init(&f->yard, f->loop, NULL);
	f->yard.grace_ms = 50;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct rig *f = *state;

	stdio_yard_done(&f->yard);
	f->patience = loop_timer_free(f->patience);
	(void)loop_free(f->loop);
	buf_done(&f->got);
	free(f);
	return 0;
}

/* A shell's script as a server. */
static void begin(struct rig *f, const char *script, struct jv_pairs env)
{
	const char *argv[] = { "sh", "-c", script };
	struct stdio_spec spec = {
		.name = "it", .argv = argv, .argc = 3, .env = env, .cwd = "/", .template = ""
	};
	struct err err = { 0 };

	assert_int_equal(stdio_host_open(&f->yard, &spec, &f->t, &err), 0);
	f->t->events = &events;
	f->t->user = f;
}

static void start(struct rig *f, const char *script)
{
	begin(f, script, (struct jv_pairs){ 0 });
}

static int say(struct rig *f, const char *text, size_t n, struct err *err)
{
	return f->t->ops->send(f->t, &(struct mcpc_send){ .text = text, .len = n }, err);
}

static void wait_for(struct rig *f, unsigned n_messages)
{
	f->wanted = n_messages;
	if (f->n_messages < n_messages)
		loop_run(f->loop);
	assert_int_equal(f->n_messages, n_messages);
}

static void wait_for_end(struct rig *f)
{
	f->yard.empty = on_empty;
	f->yard.user = f;
	f->t->ops->close(f->t);
	while (!f->is_empty)
		loop_run(f->loop);
}

static void lines_are_messages_both_ways(void **state)
{
	struct rig *f = *state;
	struct err err = { 0 };

	start(f, "exec cat");
	assert_int_equal(say(f, "{\"a\":1}", 7, &err), 0);
	assert_int_equal(say(f, "{\"b\":2}", 7, &err), 0);
	wait_for(f, 2);
	assert_string_equal(buf_str(&f->got), "{\"b\":2}");
	wait_for_end(f);
	assert_int_equal(f->n_lost, 0);
}

static void a_long_message_goes_through_both_pipes(void **state)
{
	struct rig *f = *state;
	size_t n = 3u << 20;
	char *text = malloc(n);
	struct err err = { 0 };

	assert_non_null(text);
	memset(text, 'x', n);
	text[0] = '{';
	start(f, "exec cat");
	assert_int_equal(say(f, text, n, &err), 0);
	wait_for(f, 1);
	assert_int_equal(f->got.len, n);
	assert_memory_equal(f->got.data, text, n);
	free(text);
	wait_for_end(f);
}

static void a_line_without_an_end_is_too_much_at_some_point(void **state)
{
	struct rig *f = *state;

	start(f, "printf '{'; head -c 20000000 /dev/zero | tr '\\0' x; sleep 1000");
	loop_run(f->loop);
	assert_int_equal(f->n_lost, 1);
	assert_int_equal(f->lost.code, EMSGSIZE);
	assert_string_equal(f->lost.text, "the server has sent a line of more than 16777216 bytes");
	wait_for_end(f);
}

static void a_few_words_between_messages_are_forgiven(void **state)
{
	struct rig *f = *state;

	start(f, "echo hello; echo; echo '  {\"a\":1}'; exec sleep 1000");
	wait_for(f, 1);
	assert_string_equal(buf_str(&f->got), "  {\"a\":1}");
	wait_for_end(f);
}

static void a_program_that_speaks_no_mcp_is_given_up(void **state)
{
	struct rig *f = *state;

	start(f, "yes");
	loop_run(f->loop);
	assert_int_equal(f->lost.code, EPROTO);
	assert_int_equal(f->n_messages, 0);
	wait_for_end(f);
}

static void an_end_says_how_and_what_was_said_last_but_no_secret(void **state)
{
	const struct jv_pair env[] = { { "TOKEN", "s3cr3t-value" }, { "X", "1" } };
	struct rig *f = *state;

	f->yard.grace_ms = 60000; /* how it ended is told by another process */
	begin(f, "echo first >&2; echo \"bad token $TOKEN, 1 of 1\" >&2; exit 3",
	      (struct jv_pairs){ env, LEN(env) });
	loop_run(f->loop);
	assert_int_equal(f->n_lost, 1);
	assert_int_equal(f->lost.code, EPIPE);
	assert_string_equal(f->lost.text,
			    "the server has ended with exit code 3: bad token ***, 1 of 1");
	wait_for_end(f);
}

static void what_a_server_wrote_before_its_end_still_comes(void **state)
{
	struct rig *f = *state;

	f->yard.grace_ms = 60000; /* how it ended is told by another process */
	start(f, "echo '{\"last\":1}'; kill -9 $$");
	while (f->n_lost == 0)
		loop_run(f->loop);
	assert_int_equal(f->n_messages, 1);
	assert_string_equal(buf_str(&f->got), "{\"last\":1}");
	assert_string_equal(f->lost.text, "the server was ended by signal 9");
	wait_for_end(f);
}

static void its_environment_holds_what_everybody_needs_and_its_own(void **state)
{
	const struct jv_pair env[] = { { "OWN", "yes" } };
	struct rig *f = *state;

	assert_int_equal(setenv("HOLT_API_KEY", "a key of ours", 1), 0);
	begin(f, "echo \"{$OWN,$HOLT_API_KEY,${PATH:+path},$PWD}\"; exec sleep 1000",
	      (struct jv_pairs){ env, 1 });
	wait_for(f, 1);
	assert_string_equal(buf_str(&f->got), "{yes,,path,/}");
	assert_int_equal(unsetenv("HOLT_API_KEY"), 0);
	wait_for_end(f);
}

/* One that listens to nothing, and what it has started. */
static void the_end_is_certain_and_takes_the_whole_group(void **state)
{
	struct rig *f = *state;
	struct buf pids = { 0 };
	uint32_t one, two;
	char *comma;

	start(f, "trap '' TERM; sleep 1000 & echo \"[$$,$!\"; while :; do sleep 1000; done");
	wait_for(f, 1);
	assert_int_equal(buf_puts(&pids, buf_str(&f->got) + 1), 0);
	comma = strchr(pids.data, ',');
	assert_non_null(comma);
	*comma = '\0';
	assert_int_equal(parse_u32(pids.data, 1, UINT32_MAX, &one), 0);
	assert_int_equal(parse_u32(comma + 1, 1, UINT32_MAX, &two), 0);
	assert_int_equal(kill((pid_t)two, 0), 0);
	wait_for_end(f);
	assert_int_equal(kill((pid_t)one, 0), -1);
	/* It is not our child: whoever reaps it may need a moment. */
	for (unsigned i = 0; i < 1000 && kill(-(pid_t)one, 0) == 0; i++)
		(void)usleep(10000);
	assert_int_equal(kill(-(pid_t)one, 0), -1);
	buf_done(&pids);
}

static void one_that_reads_nothing_is_not_written_to_for_ever(void **state)
{
	struct rig *f = *state;
	size_t n = 4u << 20;
	char *text = calloc(1, n + 1);
	struct err err = { 0 };
	int r = 0;

	assert_non_null(text);
	memset(text, ' ', n);
	start(f, "exec sleep 1000");
	for (unsigned i = 0; i < 8 && r == 0; i++)
		r = say(f, text, n, &err);
	assert_int_equal(r, -EAGAIN);
	assert_string_equal(err.text, "the server does not read what it is sent");
	free(text);
	wait_for_end(f);
}

static void a_server_that_closes_its_output_is_lost(void **state)
{
	struct rig *f = *state;

	start(f, "exec >&-; exec sleep 1000");
	loop_run(f->loop);
	assert_string_equal(f->lost.text, "the server has closed its output");
	wait_for_end(f);
}

static void what_cannot_be_started_says_why(void **state)
{
	const char *none[] = { "no-such-program-anywhere" }, *dir[] = { "/" };
	struct rig *f = *state;
	struct stdio_spec spec = { .name = "it", .argv = none, .argc = 1, .cwd = "" };
	struct err err = { 0 };

	assert_int_equal(stdio_host_open(&f->yard, &spec, &f->t, &err), -ENOENT);
	assert_string_equal(err.text, "command: there is no program 'no-such-program-anywhere'");
	spec.argv = dir;
	assert_int_equal(stdio_host_open(&f->yard, &spec, &f->t, &err), -EACCES);
	assert_true(list_is_empty(&f->yard.all));
}

static void what_is_left_at_the_end_of_the_yard_is_killed(void **state)
{
	struct rig *f = *state;

	start(f, "trap '' TERM; echo '{}'; while :; do sleep 1000; done");
	wait_for(f, 1);
	f->t->ops->close(f->t);
	stdio_yard_done(&f->yard); /* the loop runs no more */
	assert_true(list_is_empty(&f->yard.all));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lines_are_messages_both_ways),
		TEST(a_long_message_goes_through_both_pipes),
		TEST(a_line_without_an_end_is_too_much_at_some_point),
		TEST(a_few_words_between_messages_are_forgiven),
		TEST(a_program_that_speaks_no_mcp_is_given_up),
		TEST(an_end_says_how_and_what_was_said_last_but_no_secret),
		TEST(what_a_server_wrote_before_its_end_still_comes),
		TEST(its_environment_holds_what_everybody_needs_and_its_own),
		TEST(the_end_is_certain_and_takes_the_whole_group),
		TEST(one_that_reads_nothing_is_not_written_to_for_ever),
		TEST(a_server_that_closes_its_output_is_lost),
		TEST(what_cannot_be_started_says_why),
		TEST(what_is_left_at_the_end_of_the_yard_is_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
