#include "mcpc/servers.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "check.h"
#include "fault.h"
#include "loop/loop.h"
#include "json/jw.h"

#define PATIENCE_MS 100000u
#define CLOCKS_MS 20 /* that the wall's may be off */
#define FAULTY "\"command\":\"/usr/bin/python3\",\"args\":[\"-u\",\"" MCP_SERVER "\"],\"host\":true"

struct rig {
	struct loop *loop;
	struct loop_timer *patience, *look;
	struct mcpc_servers *all;
	struct mcpc_server_info info; /* of the first, but for its texts */
	char error[256];
	bool (*is_there)(struct rig *f); /* what is waited for */
	unsigned n_done, n_progress, n_changed;
	struct err err;
	long rpc_code;
	struct buf text; /* of the last result */
	bool is_error, is_stopped;
	int64_t seen_ms;
	char approval[ID_LEN + 1], asked[64], method[64];
	size_t n_approvals;
	struct mcpc_watch watch;
};

static const struct principal ann = { .owner = "ann", .key_id = "k", .role = ROLE_USER };

static void give_up(void *user)
{
	(void)user;
	fail_msg("nothing has happened for too long");
}

static void see(void *user, const struct mcpc_server_info *info)
{
	struct rig *f = user;

	f->info = *info;
	(void)str_copy(f->error, sizeof(f->error), info->error);
}

static void look(void *user)
{
	struct rig *f = user;

	mcpc_servers_each(f->all, see, f);
	if (f->is_there(f))
		loop_stop(f->loop);
}

static void wait_until(struct rig *f, bool (*is_there)(struct rig *f))
{
	f->is_there = is_there;
	loop_timer_start(f->look, 1, 5);
	loop_run(f->loop);
	loop_timer_stop(f->look);
}

static bool is_ready(struct rig *f)
{
	return f->info.state == MCPC_SERVER_READY;
}

static bool is_waiting(struct rig *f)
{
	return f->info.state == MCPC_SERVER_WAITING && f->error[0] != '\0';
}

static bool is_done(struct rig *f)
{
	return f->n_done > 0;
}

static void changed(void *user, const char *server)
{
	struct rig *f = user;

	assert_string_equal(server, "it");
	f->n_changed++;
}

static int setup(void **state)
{
	struct rig *f = calloc(1, sizeof(*f));
	struct err err = { 0 };

	(void)signal(SIGPIPE, SIG_IGN); /* as the program does */
	assert_non_null(f);
	assert_int_equal(loop_create(&f->loop, &err), 0);
	assert_int_equal(loop_timer_create(f->loop, give_up, NULL, &f->patience), 0);
	assert_int_equal(loop_timer_create(f->loop, look, f, &f->look), 0);
	loop_timer_start(f->patience, PATIENCE_MS, 0);
	f->watch = (struct mcpc_watch){ .changed = changed, .user = f };
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct rig *f = *state;

	f->all = mcpc_servers_free(f->all);
	f->patience = loop_timer_free(f->patience);
	f->look = loop_timer_free(f->look);
	(void)loop_free(f->loop);
	buf_done(&f->text);
	free(f);
	return 0;
}

/* One server, "it", with these fields. */
static void start(struct rig *f, const char *fields)
{
	struct mcpc_servers_deps deps = { .loop = f->loop, .version = "1", .approval_ms = 60000 };
	struct buf b = { 0 };
	struct err err = { 0 };

	assert_int_equal(buf_printf(&b, "{\"mcpServers\":{\"it\":{%s}}}", fields), 0);
	assert_int_equal(mcpc_servers_create(&deps, b.data, b.len, &f->all, &err), 0);
	buf_done(&b);
	mcpc_servers_watch(f->all, &f->watch);
	mcpc_servers_start(f->all);
}

static void ready(struct rig *f, const char *fields)
{
	start(f, fields);
	wait_until(f, is_ready);
}

static void done(void *user, const struct mcpc_outcome *o)
{
	const char *text = jv_text(jv_get(jv_at(jv_get(o->result, "content"), 0), "text"));
	struct rig *f = user;

	f->n_done++;
	f->err = o->err;
	f->rpc_code = o->rpc_code;
	f->is_error = false;
	(void)jv_bool(jv_get(o->result, "isError"), &f->is_error);
	buf_clear(&f->text);
	assert_int_equal(buf_puts(&f->text, text ? text : ""), 0);
}

static void progressed(void *user, double at, double total, const char *text)
{
	struct rig *f = user;

	(void)at, (void)text;
	assert_int_equal((int)total, 3);
	f->n_progress++;
}

static int begin(struct rig *f, const char *tool, const char *arguments, uint64_t timeout_ms,
		 struct mcpc_use **ret)
{
	struct mcpc_tool_call call = { .server = "it",
				       .tool = tool,
				       .arguments = arguments,
				       .who = &ann,
				       .timeout_ms = timeout_ms,
				       .done = done,
				       .progress = progressed,
				       .user = f };

	f->n_done = 0;
	f->err = (struct err){ 0 };
	return mcpc_servers_call(f->all, &call, ret, &f->err);
}

static void call(struct rig *f, const char *tool, const char *arguments)
{
	assert_int_equal(begin(f, tool, arguments, 0, NULL), 0);
	assert_int_equal(f->n_done, 0); /* never from inside */
	wait_until(f, is_done);
	assert_int_equal(f->n_done, 1);
}

static void a_tool_is_called_and_its_answer_told(void **state)
{
	struct rig *f = *state;

	ready(f, FAULTY);
	assert_int_equal(f->info.n_tools, 15);
	assert_int_equal(f->n_changed, 1);
	call(f, "echo", "{\"text\":\"hello\"}");
	assert_int_equal(f->err.code, 0);
	assert_string_equal(buf_str(&f->text), "hello");
	assert_false(f->is_error);
	call(f, "fail", NULL);
	assert_int_equal(f->err.code, 0);
	assert_true(f->is_error);
	call(f, "progress", NULL);
	assert_int_equal(f->n_progress, 3);
}

static void a_call_waits_for_a_server_that_is_being_connected(void **state)
{
	struct rig *f = *state;

	start(f, FAULTY);
	call(f, "echo", "{\"text\":\"early\"}");
	assert_string_equal(buf_str(&f->text), "early");
}

static void what_cannot_be_called_is_refused_at_once(void **state)
{
	struct rig *f = *state;
	struct mcpc_tool_call other = {
		.server = "another", .tool = "x", .who = &ann, .done = done, .user = f
	};

	ready(f, FAULTY ",\"tools\":{\"deny\":[\"cra*\"]}");
	assert_int_equal(begin(f, "nothing", NULL, 0, NULL), -ENOENT);
	assert_string_equal(f->err.text, "the server 'it' has no tool 'nothing'");
	assert_int_equal(begin(f, "crash", NULL, 0, NULL), -EPERM);
	assert_string_equal(f->err.text, "the tool it.crash is not allowed here");
	assert_int_equal(begin(f, "echo", "[]", 0, NULL), -EINVAL);
	assert_int_equal(begin(f, "echo", "{", 0, NULL), -EINVAL);
	assert_int_equal(mcpc_servers_call(f->all, &other, NULL, &f->err), -ENOENT);
	assert_int_equal(f->n_done, 0);
}

static void arguments_that_the_schema_refuses_are_not_sent(void **state)
{
	struct rig *f = *state;

	start(f, FAULTY);
	call(f, "echo", "{\"text\":5}"); /* its schema comes later, and counts all the same */
	assert_int_equal(f->err.code, EINVAL);
	assert_string_equal(f->err.text, "text: want a string");
	assert_int_equal(begin(f, "echo", "{\"text\":null}", 0, NULL), -EINVAL);
	call(f, "echo", "{\"text\":\"5\",\"more\":1}"); /* the schema does not forbid it */
	assert_string_equal(buf_str(&f->text), "5");
}

static void arguments_have_an_end(void **state)
{
	struct rig *f = *state;
	size_t n = MCPC_ARGUMENTS_MAX + 1;
	char *json = calloc(1, n + 1);

	assert_non_null(json);
	memset(json, ' ', n);
	ready(f, FAULTY);
	assert_int_equal(begin(f, "echo", json, 0, NULL), -E2BIG);
	free(json);
}

static bool is_back(struct rig *f)
{
	return f->info.state == MCPC_SERVER_READY && f->info.restarts == 1;
}

static void a_crash_fails_what_is_under_way_and_the_server_comes_back(void **state)
{
	struct rig *f = *state;

	ready(f, FAULTY ",\"env\":{\"TOKEN\":\"s3cr3t\"}");
	call(f, "crash", NULL);
	assert_int_equal(f->err.code, EPIPE);
	assert_string_equal(f->err.text, "the server has ended with exit code 3: about to crash "
					 "with ***");
	wait_until(f, is_back);
	call(f, "echo", "{\"text\":\"again\"}");
	assert_string_equal(buf_str(&f->text), "again");
}

static void a_call_that_hangs_ends_with_its_time(void **state)
{
	struct rig *f = *state;

	ready(f, FAULTY);
	assert_int_equal(begin(f, "hang", NULL, 100, NULL), 0);
	wait_until(f, is_done);
	assert_int_equal(f->err.code, ETIMEDOUT);
	assert_string_equal(f->err.text, "the call of it.hang took longer than 100 ms");
}

static void who_cancels_hears_nothing(void **state)
{
	struct mcpc_use *use = NULL;
	struct rig *f = *state;

	ready(f, FAULTY);
	assert_int_equal(begin(f, "hang", NULL, 0, &use), 0);
	mcpc_servers_cancel(use);
	mcpc_servers_each(f->all, see, f);
	assert_int_equal(f->info.n_under_way, 0);
	assert_int_equal(f->n_done, 0);
}

static void a_flood_of_notifications_and_lines_that_are_none_do_no_harm(void **state)
{
	struct rig *f = *state;

	ready(f, FAULTY);
	call(f, "flood", NULL);
	assert_string_equal(buf_str(&f->text), "done");
	call(f, "junk", NULL);
	assert_string_equal(buf_str(&f->text), "done");
}

static void a_giant_line_loses_the_server(void **state)
{
	struct rig *f = *state;

	ready(f, FAULTY);
	call(f, "giant", NULL);
	assert_int_equal(f->err.code, EPIPE);
	assert_string_equal(f->err.text, "the server has sent a line of more than 16777216 bytes");
	wait_until(f, is_back);
}

static bool has_grown(struct rig *f)
{
	return mcpc_servers_find(f->all, "it", "sprout") != NULL;
}

static void a_list_that_changes_is_read_again(void **state)
{
	struct rig *f = *state;

	ready(f, FAULTY);
	call(f, "grow", "{\"name\":\"sprout\"}");
	wait_until(f, has_grown);
	assert_int_equal(f->n_changed, 2);
	call(f, "sprout", NULL);
	assert_string_equal(buf_str(&f->text), "new");
}

/* Another failure than the last that was seen. */
static bool has_failed_again(struct rig *f)
{
	return is_waiting(f) && f->info.since_ms != f->seen_ms;
}

static void one_that_dies_at_once_is_tried_again_less_and_less_often(void **state)
{
	struct rig *f = *state;

	start(f, "\"command\":\"/usr/bin/python3\",\"args\":[\"" MCP_SERVER
		 "\",\"--die-at-start\"],\"host\":true");
	for (int64_t pause_ms = 0; pause_ms <= 2 * MCPC_RETRY_MIN_MS;
	     pause_ms += MCPC_RETRY_MIN_MS) {
		wait_until(f, has_failed_again);
		assert_true(f->info.since_ms - f->seen_ms >= pause_ms - CLOCKS_MS);
		f->seen_ms = f->info.since_ms;
	}
	assert_string_equal(f->error, "the server has ended with exit code 4: cannot find my data");
}

static void what_cannot_be_started_is_told_as_the_server_s_error(void **state)
{
	struct rig *f = *state;

	start(f, "\"command\":\"no-such-program\",\"host\":true");
	wait_until(f, is_waiting);
	assert_string_equal(f->error, "command: there is no program 'no-such-program'");
	assert_int_equal(begin(f, "echo", NULL, 0, NULL), -EAGAIN);
	assert_string_equal(f->err.text, "the server 'it' is not there now: command: there is no "
					 "program 'no-such-program'");
}

/* ---- approvals ---- */

static void see_approval(void *user, const struct mcpc_approval *a)
{
	struct rig *f = user;

	f->n_approvals++;
	(void)str_copy(f->approval, sizeof(f->approval), a->id);
	(void)str_copy(f->asked, sizeof(f->asked), a->arguments);
	(void)str_copy(f->method, sizeof(f->method), a->method);
}

static size_t approvals(struct rig *f, const char *owner)
{
	f->n_approvals = 0;
	mcpc_approvals_each(f->all, owner, see_approval, f);
	return f->n_approvals;
}

static bool is_asked(struct rig *f)
{
	return approvals(f, NULL) > 0;
}

static void a_call_that_is_asked_about_waits_for_a_yes(void **state)
{
	struct rig *f = *state;
	struct err err = { 0 };

	ready(f, FAULTY ",\"tools\":{\"ask\":[\"echo\"]}");
	assert_int_equal(begin(f, "echo", "{\"text\":\"please\"}", 0, NULL), 0);
	assert_int_equal(approvals(f, "bob"), 0);
	assert_int_equal(approvals(f, "ann"), 1);
	assert_string_equal(f->asked, "{\"text\":\"please\"}");
	assert_int_equal(mcpc_approval_decide(f->all, f->approval, "bob", true, NULL, &ann, &err),
			 -ENOENT);
	assert_int_equal(mcpc_approval_decide(f->all, f->approval, "ann", true, NULL, &ann, &err),
			 0);
	wait_until(f, is_done);
	assert_string_equal(buf_str(&f->text), "please");
	assert_int_equal(approvals(f, NULL), 0);
	assert_int_equal(mcpc_approval_decide(f->all, f->approval, "ann", true, NULL, &ann, &err),
			 -ENOENT);
}

static void a_no_is_a_no(void **state)
{
	struct rig *f = *state;
	struct err err = { 0 };

	ready(f, FAULTY ",\"tools\":{\"ask\":[\"echo\"]}");
	assert_int_equal(begin(f, "echo", NULL, 0, NULL), 0);
	assert_int_equal(approvals(f, NULL), 1);
	assert_int_equal(mcpc_approval_decide(f->all, f->approval, NULL, false, NULL, &ann, &err),
			 0);
	wait_until(f, is_done);
	assert_int_equal(f->err.code, EPERM);
	assert_string_equal(f->err.text, "the call of it.echo was not approved");
}

static void silence_is_a_no_too(void **state)
{
	struct rig *f = *state;

	ready(f, FAULTY ",\"tools\":{\"ask\":[\"echo\"]}");
	assert_int_equal(begin(f, "echo", NULL, 50, NULL), 0);
	wait_until(f, is_done);
	assert_true(f->err.code == EPERM || f->err.code == ETIMEDOUT);
	assert_int_equal(approvals(f, NULL), 0);
}

static void a_server_may_ask_when_its_row_says_so(void **state)
{
	struct rig *f = *state;
	struct err err = { 0 };

	ready(f, FAULTY ",\"elicitation\":\"ask\"");
	assert_int_equal(begin(f, "ask", NULL, 0, NULL), 0);
	wait_until(f, is_asked);
	assert_string_equal(f->method, "elicitation/create");
	assert_int_equal(approvals(f, "ann"), 0); /* only admins know whose it is */
	(void)approvals(f, NULL);
	assert_int_equal(mcpc_approval_decide(f->all, f->approval, NULL, true, NULL, &ann, &err),
			 -EINVAL);
	assert_int_equal(mcpc_approval_decide(f->all, f->approval, NULL, true, "{\"name\":\"Ada\"}",
					      &ann, &err),
			 0);
	wait_until(f, is_done);
	assert_string_equal(buf_str(&f->text),
			    "{\"action\": \"accept\", \"content\": {\"name\": \"Ada\"}}");
}

static void what_the_row_does_not_offer_is_declined(void **state)
{
	struct rig *f = *state;

	ready(f, FAULTY);
	call(f, "ask", NULL);
	assert_string_equal(buf_str(&f->text), "{\"action\": \"decline\"}");
	call(f, "sample", NULL);
	assert_string_equal(buf_str(&f->text), "{\"code\": -1, \"message\": \"sampling is declined "
					       "by whoever runs this client\"}");
	call(f, "roots", NULL);
	assert_non_null(strstr(buf_str(&f->text), "-32601"));
}

static void roots_are_the_row_s(void **state)
{
	struct rig *f = *state;

	ready(f, FAULTY ",\"roots\":[{\"uri\":\"file:///srv\",\"name\":\"srv\"}]");
	call(f, "roots", NULL);
	assert_string_equal(buf_str(&f->text),
			    "{\"roots\": [{\"uri\": \"file:///srv\", \"name\": \"srv\"}]}");
}

/* ---- finding ---- */

static bool note_name(void *user, const struct mcpc_tool *tool)
{
	struct buf *b = user;

	assert_int_equal(buf_printf(b, "%s%s", b->len ? "," : "", tool->name), 0);
	return true;
}

static void found(struct rig *f, const char *query, size_t limit, const char *want)
{
	struct buf b = { 0 };

	mcpc_servers_search(f->all, NULL, query, limit, note_name, &b);
	assert_string_equal(buf_str(&b), want);
	buf_done(&b);
}

static void tools_are_found_by_words(void **state)
{
	struct rig *f = *state;

	ready(f, FAULTY ",\"tools\":{\"deny\":[\"giant\"]}");
	found(f, "", 3, "echo,env,who");
	found(f, "ENVIRONMENT variable", 10, "env");
	found(f, "roots", 10, "roots");
	found(f, "seventeen", 10, "");      /* what is denied is not there */
	found(f, "what to say", 1, "echo"); /* a parameter's description */
	found(f, "zzz", 10, "");
	found(f, "answers writes", 2, "flood,junk"); /* who has more of the words comes first */
}

static void a_tool_is_written_in_as_much_detail_as_wanted(void **state)
{
	const struct mcpc_tool *tool;
	struct rig *f = *state;
	struct buf b = { 0 };
	struct jw w;

	ready(f, FAULTY ",\"tools\":{\"ask\":[\"who\"]}");
	tool = mcpc_servers_find(f->all, "it", "who");
	assert_non_null(tool);
	w = jw_begin(&b);
	mcpc_tool_write(&w, tool, MCPC_NAME);
	assert_int_equal(jw_end(&w), 0);
	assert_string_equal(buf_str(&b), "{\"server\":\"it\",\"name\":\"who\"}");
	buf_clear(&b);
	w = jw_begin(&b);
	mcpc_tool_write(&w, tool, MCPC_FULL);
	assert_int_equal(jw_end(&w), 0);
	assert_string_equal(buf_str(&b),
			    "{\"server\":\"it\",\"name\":\"who\",\"title\":\"\",\"description\":"
			    "\"Who it runs as, and where\",\"policy\":\"ask\",\"inputSchema\":"
			    "{\"type\":\"object\",\"properties\":{}}}");
	buf_done(&b);
}

/* ---- the whole ---- */

static void stopped(void *user)
{
	struct rig *f = user;

	f->is_stopped = true;
	loop_stop(f->loop);
}

static void at_the_end_all_that_was_started_has_ended(void **state)
{
	struct rig *f = *state;

	ready(f, FAULTY);
	assert_int_equal(begin(f, "hang", NULL, 0, NULL), 0);
	mcpc_servers_stop(f->all, stopped, f);
	assert_false(f->is_stopped);
	assert_int_equal(f->n_done, 1);
	assert_int_equal(f->err.code, ECANCELED);
	while (!f->is_stopped)
		loop_run(f->loop);
	assert_int_equal(begin(f, "echo", NULL, 0, NULL), -EAGAIN);
}

static void without_any_servers_there_is_nothing(void **state)
{
	struct mcpc_servers_deps deps = { 0 };
	struct rig *f = *state;
	struct err err = { 0 };

	deps.loop = f->loop;
	assert_int_equal(mcpc_servers_create(&deps, NULL, 0, &f->all, &err), 0);
	assert_false(mcpc_servers_any(f->all));
	mcpc_servers_start(f->all);
	mcpc_servers_stop(f->all, stopped, f);
	loop_run(f->loop);
	assert_true(f->is_stopped);
}

static void a_file_that_is_no_such_thing_is_refused_whole(void **state)
{
	static const char *const bad[] = { "", "[]", "{}", "{\"mcpServers\":[]}",
					   "{\"mcpServers\":{\"a\":{},\"a\":{}}}" };
	struct mcpc_servers_deps deps = { 0 };
	struct rig *f = *state;

	deps.loop = f->loop;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct err err = { 0 };

		assert_int_equal(mcpc_servers_create(&deps, bad[i], strlen(bad[i]), &f->all, &err),
				 -EINVAL);
		assert_null(f->all);
	}
}

static int create_once(void *arg)
{
	static const char json[] =
		"{\"mcpServers\":{\"a\":{\"command\":\"x\",\"args\":[\"${A:-b}\"],\"env\":{\"K\":"
		"\"v\"},\"network\":[\"a.example\"]},\"b\":{\"url\":\"https://"
		"a\",\"headers\":{\"H\":"
		"\"v\"},\"disabled\":true}}}";
	struct mcpc_servers_deps deps = { .loop = arg };
	struct mcpc_servers *all = NULL;
	struct err err = { 0 };
	int r = mcpc_servers_create(&deps, json, sizeof(json) - 1, &all, &err);

	assert_true((r == 0) == (all != NULL));
	(void)mcpc_servers_free(all);
	return r;
}

static void without_memory_nothing_is_made(void **state)
{
	struct rig *f = *state;

	assert_true(fault_each(create_once, f->loop) > 4);
}

static void a_wrong_row_does_not_stop_the_others(void **state)
{
	struct rig *f = *state;

	start(f, "\"command\":7},\"two\":{\"command\":\"x\",\"disabled\":true},\"three\":{" FAULTY);
	mcpc_servers_unwatch(&f->watch);
	wait_until(f, is_ready); /* the last of them */
	assert_true(mcpc_servers_any(f->all));
	assert_int_equal(begin(f, "echo", NULL, 0, NULL), -EAGAIN);
	assert_string_equal(f->err.text, "the server 'it' is not configured rightly");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_tool_is_called_and_its_answer_told),
		TEST(a_call_waits_for_a_server_that_is_being_connected),
		TEST(what_cannot_be_called_is_refused_at_once),
		TEST(arguments_that_the_schema_refuses_are_not_sent),
		TEST(arguments_have_an_end),
		TEST(a_crash_fails_what_is_under_way_and_the_server_comes_back),
		TEST(a_call_that_hangs_ends_with_its_time),
		TEST(who_cancels_hears_nothing),
		TEST(a_flood_of_notifications_and_lines_that_are_none_do_no_harm),
		TEST(a_giant_line_loses_the_server),
		TEST(a_list_that_changes_is_read_again),
		TEST(one_that_dies_at_once_is_tried_again_less_and_less_often),
		TEST(what_cannot_be_started_is_told_as_the_server_s_error),
		TEST(a_call_that_is_asked_about_waits_for_a_yes),
		TEST(a_no_is_a_no),
		TEST(silence_is_a_no_too),
		TEST(a_server_may_ask_when_its_row_says_so),
		TEST(what_the_row_does_not_offer_is_declined),
		TEST(roots_are_the_row_s),
		TEST(tools_are_found_by_words),
		TEST(a_tool_is_written_in_as_much_detail_as_wanted),
		TEST(at_the_end_all_that_was_started_has_ended),
		TEST(without_any_servers_there_is_nothing),
		TEST(a_file_that_is_no_such_thing_is_refused_whole),
		TEST(without_memory_nothing_is_made),
		TEST(a_wrong_row_does_not_stop_the_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
