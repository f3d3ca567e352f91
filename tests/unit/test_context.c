#include "check.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "fault.h"
#include "sandbox/context_impl.h"
#include "sandbox_rig.h"

struct context_told {
	int calls;
	struct context *c;
	struct err err;
};

static void on_context(void *user, struct context *c, const struct err *err)
{
	struct context_told *t = user;

	t->calls++;
	t->c = c;
	t->err = err ? *err : (struct err){ 0 };
}

struct run_told {
	int ends;
	enum context_status status;
	bool truncated, state_lost;
	int64_t exit_code;
	char reason[240], text[2048]; /* events in order */
};

static void on_event(void *user, const struct context_event *e)
{
	static const char names[] = "oerdx";
	struct run_told *t = user;
	size_t at = strlen(t->text);

	assert_int_equal(t->ends, 0);
	if (e->type != CONTEXT_END) {
		(void)snprintf(t->text + at, sizeof(t->text) - at, "%c(%.*s)", names[e->type],
			       (int)e->len, e->data);
		return;
	}
	t->ends++;
	t->status = e->end->status;
	t->truncated = e->end->truncated;
	t->state_lost = e->end->state_lost;
	t->exit_code = e->end->exit_code;
	(void)snprintf(t->reason, sizeof(t->reason), "%s", e->end->reason);
}

/* A sandbox with one context, and the test as its interpreter. */
struct play {
	struct sandbox_rig rig;
	struct sandbox *sb;
	struct fake_box *box;
	struct context *c;
	uint32_t id; /* of the interpreter's execution */
	uint64_t said[2];
	char sandbox_id[ID_LEN + 1];
};

static void take_start(struct play *p)
{
	struct guest_exec e;
	struct rd payload;

	p->id = rig_expect(&p->rig, p->box, G_EXEC, &payload);
	assert_int_equal(guest_get_exec(&payload, &e), 0);
	assert_true(e.flags & EXEC_STDIN && e.flags & EXEC_KEEP);
	assert_int_equal(e.timeout_ms, 0);
	p->said[0] = p->said[1] = 0;
	rig_say_started(p->box, p->id, 7);
	rig_run(&p->rig);
}

static void play_open(struct play *p, enum context_language language)
{
	struct context_request req = { .language = language, .name = "calc", .cwd = "/tmp" };
	struct context_told t = { 0 };
	struct sandbox_info info;

	memset(p, 0, sizeof(*p));
	rig_open(&p->rig);
	p->sb = rig_create(&p->rig, "box");
	sandbox_info(p->sb, &info);
	(void)snprintf(p->sandbox_id, sizeof(p->sandbox_id), "%s", info.id);
	p->box = rig_box(&p->rig, info.id);
	context_create(p->sb, &req, on_context, &t);
	rig_run(&p->rig);
	assert_int_equal(t.calls, 0);
	take_start(p);
	assert_int_equal(t.calls, 1);
	assert_int_equal(t.err.code, 0);
	p->c = t.c;
	assert_ptr_equal(context_find(p->sb, "calc"), p->c);
}

static void start_run(struct play *p, const char *code, struct run_told *t,
		      struct context_run **ret)
{
	struct context_code what = { .code = code, .len = strlen(code) };
	struct context_run *run = NULL;
	struct err err = { 0 };

	memset(t, 0, sizeof(*t));
	if (context_run(p->c, &what, on_event, t, &run, &err) < 0)
		fail_msg("%s", err.text);
	if (ret)
		*ret = run;
	rig_run(&p->rig);
}

/* What the interpreter is asked to do: the word before the token; *code is behind the head. */
static void take_request(struct play *p, char token[ID_LEN + 1], char *code, size_t size)
{
	struct wire_head head;
	struct rd payload;
	char text[512];
	size_t n;

	do
		assert_true(rig_recv(&p->rig, p->box, &head, &payload));
	while (head.type == G_CREDIT || head.type == G_ACK);
	assert_int_equal(head.type, G_STDIN);
	n = (size_t)(payload.end - payload.p);
	assert_true(n > 1 && n < sizeof(text));
	memcpy(text, payload.p, n);
	assert_int_equal(text[n - 1], '\0');
	if (text[0] == '\0') { /* cuts off what an earlier life may have begun */
		assert_int_equal(sscanf(text + 1, "mark %20s", token), 1);
		return;
	}
	assert_int_equal(sscanf(text, "run %20s", token), 1);
	(void)snprintf(code, size, "%s", strchr(text, '\n') + 1);
}

static void say(struct play *p, int stream, const char *text)
{
	size_t n = strlen(text);

	rig_say_output(p->box, p->id, stream, p->said[stream - 1], text, n);
	p->said[stream - 1] += n;
	rig_run(&p->rig);
}

static void say_frame(struct play *p, int stream, const char *token, char kind, const char *body)
{
	char text[512];

	(void)snprintf(text, sizeof(text), "\x1e%s%c%04zx%s", token, kind, strlen(body), body);
	say(p, stream, text);
}

static void say_end(struct play *p, const char *token)
{
	say_frame(p, 2, token, 'e', "");
	say_frame(p, 1, token, 'e', "{\"count\":1,\"exitCode\":0}");
}

static enum context_state state_of(const struct context *c)
{
	struct context_info info;

	context_info(c, &info);
	return info.state;
}

static void play_close(struct play *p)
{
	rig_close(&p->rig);
}

/* ---- */

static void a_run_tells_what_was_written_and_shown_and_ends_when_both_streams_have(void **state)
{
	char token[ID_LEN + 1], code[64];
	struct run_told t;
	struct play p;

	(void)state;
	play_open(&p, CONTEXT_PYTHON);
	start_run(&p, "1+1", &t, NULL);
	assert_int_equal(state_of(p.c), CONTEXT_BUSY);
	take_request(&p, token, code, sizeof(code));
	assert_string_equal(code, "1+1");
	say(&p, 1, "hi\n");
	say(&p, 2, "oops\n");
	say_frame(&p, 1, token, 'r', "{\"text\":\"2\"}");
	say_frame(&p, 1, token, 'e', "{\"count\":1}");
	assert_int_equal(t.ends, 0); /* standard error may have more */
	say(&p, 2, "more");
	say_frame(&p, 2, token, 'e', "");
	assert_int_equal(t.ends, 1);
	assert_int_equal(p.sb->usage.executions, 1); /* as an execution does */
	assert_int_equal(t.status, CONTEXT_OK);
	assert_string_equal(t.text, "o(hi\n)e(oops\n)r({\"text\":\"2\"})e(more)");
	assert_int_equal(state_of(p.c), CONTEXT_IDLE);
	say(&p, 1, "between two runs"); /* nobody's */
	play_close(&p);
}

static void runs_go_one_after_the_other_and_the_line_has_an_end(void **state)
{
	struct run_told t[CONTEXT_QUEUE_MAX + 1], none = { 0 };
	struct context_code what = { .code = "x", .len = 1 };
	struct context_run *run = NULL;
	char token[ID_LEN + 1], code[64], text[16];
	struct err err = { 0 };
	struct play p;

	(void)state;
	play_open(&p, CONTEXT_PYTHON);
	for (size_t i = 0; i < CONTEXT_QUEUE_MAX + 1; i++) {
		(void)snprintf(text, sizeof(text), "cell %zu", i);
		start_run(&p, text, &t[i], NULL);
	}
	assert_int_equal(context_run(p.c, &what, on_event, &none, &run, &err), -EAGAIN);
	for (size_t i = 0; i < CONTEXT_QUEUE_MAX + 1; i++) {
		(void)snprintf(text, sizeof(text), "cell %zu", i);
		take_request(&p, token, code, sizeof(code));
		assert_string_equal(code, text);
		assert_int_equal(t[i].ends, 0);
		say_end(&p, token);
		assert_int_equal(t[i].ends, 1);
	}
	play_close(&p);
}

static void an_old_token_says_nothing_about_another_run(void **state)
{
	char first[ID_LEN + 1], second[ID_LEN + 1], code[64];
	struct run_told a, b;
	struct play p;

	(void)state;
	play_open(&p, CONTEXT_PYTHON);
	start_run(&p, "a", &a, NULL);
	take_request(&p, first, code, sizeof(code));
	say_end(&p, first);
	start_run(&p, "b", &b, NULL);
	take_request(&p, second, code, sizeof(code));
	assert_string_not_equal(first, second);
	say_end(&p, first); /* a child of the first that goes on, or one that lies */
	assert_int_equal(b.ends, 0);
	say_end(&p, second);
	assert_int_equal(b.ends, 1);
	play_close(&p);
}

static void output_above_the_limit_is_cut_and_said_so(void **state)
{
	char token[ID_LEN + 1], code[64], line[1025];
	struct run_told t;
	struct play p;

	(void)state;
	play_open(&p, CONTEXT_PYTHON);
	p.rig.all->settings.output_keep = 1500;
	start_run(&p, "a", &t, NULL);
	take_request(&p, token, code, sizeof(code));
	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	say(&p, 1, line);
	say(&p, 1, line);
	say_end(&p, token);
	assert_int_equal(t.ends, 1);
	assert_true(t.truncated);
	assert_int_equal(strlen(t.text), 1500 + 2 * strlen("o()"));
	play_close(&p);
}

static void what_cannot_be_read_is_an_error_of_the_run(void **state)
{
	char token[ID_LEN + 1], code[64];
	struct run_told t;
	struct play p;

	(void)state;
	play_open(&p, CONTEXT_PYTHON);
	start_run(&p, "a", &t, NULL);
	take_request(&p, token, code, sizeof(code));
	say_frame(&p, 1, token, 'r', "{\"status\":\"ok\"}");
	say_end(&p, token);
	assert_int_equal(t.status, CONTEXT_RAISED);
	assert_non_null(strstr(t.text, "x({\"name\":\"ContextError\""));
	play_close(&p);
}

static void take_new_start(struct play *p)
{
	struct wire_head head;
	struct rd payload;

	do
		assert_true(rig_recv(&p->rig, p->box, &head, &payload));
	while (head.type == G_ACK);
	assert_int_equal(head.type, G_EXEC);
	p->id = head.id;
	p->said[0] = p->said[1] = 0;
	rig_say_started(p->box, p->id, 8);
	rig_run(&p->rig);
}

static void a_run_that_is_too_slow_is_interrupted_and_then_the_interpreter_begins_anew(void **state)
{
	char token[ID_LEN + 1], code[64];
	struct run_told t, waiting, after;
	struct rd payload;
	struct play p;

	(void)state;
	play_open(&p, CONTEXT_PYTHON);
	start_run(&p, "slow", &t, NULL);
	start_run(&p, "next", &waiting, NULL);
	take_request(&p, token, code, sizeof(code));
	context_overdue(p.c);
	rig_run(&p.rig);
	(void)rig_expect(&p.rig, p.box, G_SIGNAL, &payload);
	assert_int_equal(t.ends, 0);
	context_overdue(p.c);
	rig_run(&p.rig);
	assert_int_equal(t.ends, 1);
	assert_int_equal(t.status, CONTEXT_TIMED_OUT);
	assert_true(t.state_lost);
	assert_int_equal(waiting.status, CONTEXT_LOST);
	(void)rig_expect(&p.rig, p.box, G_CANCEL, &payload);
	rig_say_exit(p.box, p.id, SIGTERM, EXIT_SIGNALED | EXIT_CANCELLED);
	rig_run(&p.rig);
	take_new_start(&p);
	assert_int_equal(state_of(p.c), CONTEXT_IDLE);
	start_run(&p, "again", &after, NULL);
	take_request(&p, token, code, sizeof(code));
	say_end(&p, token);
	assert_int_equal(after.status, CONTEXT_OK);
	play_close(&p);
}

static void who_asks_for_a_restart_that_is_under_way_joins_it_and_only_one_is_made(void **state)
{
	struct context_told first = { 0 }, second = { 0 };
	char token[ID_LEN + 1], code[64];
	struct run_told t;
	struct rd payload;
	struct play p;

	(void)state;
	play_open(&p, CONTEXT_PYTHON);
	start_run(&p, "slow", &t, NULL);
	take_request(&p, token, code, sizeof(code));
	context_overdue(p.c); /* the interrupt */
	rig_run(&p.rig);
	(void)rig_expect(&p.rig, p.box, G_SIGNAL, &payload);
	context_overdue(p.c); /* and now it restarts by itself */
	rig_run(&p.rig);
	(void)rig_expect(&p.rig, p.box, G_CANCEL, &payload);
	context_restart(p.c, on_context, &first);
	context_restart(p.c, on_context, &second); /* one waits for it already */
	rig_run(&p.rig);
	assert_int_equal(first.calls, 0);
	assert_int_equal(second.err.code, EBUSY);
	rig_say_exit(p.box, p.id, SIGTERM, EXIT_SIGNALED | EXIT_CANCELLED);
	rig_run(&p.rig);
	take_new_start(&p);
	assert_int_equal(first.calls, 1);
	assert_int_equal(first.err.code, 0);
	assert_ptr_equal(first.c, p.c);
	assert_int_equal(state_of(p.c), CONTEXT_IDLE);
	start_run(&p, "next", &t, NULL);
	take_request(&p, token, code, sizeof(code)); /* and not a second end or start */
	assert_string_equal(code, "next");
	play_close(&p);
}

static void an_interpreter_that_ends_fails_its_context_with_the_reason(void **state)
{
	struct context_code what = { .code = "x", .len = 1 };
	char token[ID_LEN + 1], code[64];
	struct context_run *run;
	struct context_info info;
	struct err err = { 0 };
	struct run_told t;
	struct play p;

	(void)state;
	play_open(&p, CONTEXT_PYTHON);
	start_run(&p, "import os; os._exit(3)", &t, NULL);
	take_request(&p, token, code, sizeof(code));
	say(&p, 1, "last words");
	rig_say_exit(p.box, p.id, 3, 0);
	rig_run(&p.rig);
	assert_int_equal(t.ends, 1);
	assert_int_equal(t.status, CONTEXT_LOST);
	assert_string_equal(t.text, "o(last words)");
	assert_string_equal(t.reason, "the interpreter exited with code 3");
	context_info(p.c, &info);
	assert_int_equal(info.state, CONTEXT_FAILED);
	assert_int_equal(context_run(p.c, &what, on_event, &t, &run, &err), -EBUSY);
	play_close(&p);
}

static void a_run_that_comes_while_a_failed_one_begins_anew_waits_for_it(void **state)
{
	struct context_code what = { .code = "x", .len = 1 };
	char token[ID_LEN + 1], code[64];
	struct context_told again = { 0 };
	struct run_told t = { 0 };
	struct context_run *run;
	struct play p;

	(void)state;
	play_open(&p, CONTEXT_PYTHON);
	rig_say_exit(p.box, p.id, 137, 0);
	rig_run(&p.rig);
	context_restart(p.c, on_context, &again);
	assert_int_equal(context_run(p.c, &what, on_event, &t, &run, NULL), 0);
	rig_run(&p.rig);
	take_new_start(&p);
	take_request(&p, token, code, sizeof(code));
	assert_int_equal(again.calls, 1);
	assert_int_equal(t.ends, 0);
	say_end(&p, token);
	assert_int_equal(t.status, CONTEXT_OK);
	play_close(&p);
}

static void deleting_ends_the_interpreter_and_all_that_waits(void **state)
{
	char token[ID_LEN + 1], code[64];
	struct run_told a, b;
	struct rd payload;
	struct play p;

	(void)state;
	play_open(&p, CONTEXT_BASH);
	start_run(&p, "a", &a, NULL);
	start_run(&p, "b", &b, NULL);
	take_request(&p, token, code, sizeof(code));
	context_delete(p.c);
	assert_null(context_find(p.sb, "calc"));
	assert_int_equal(a.ends, 0); /* not from inside the call */
	rig_run(&p.rig);
	assert_int_equal(a.status, CONTEXT_LOST);
	assert_int_equal(b.status, CONTEXT_LOST);
	(void)rig_expect(&p.rig, p.box, G_CANCEL, &payload);
	rig_say_exit(p.box, p.id, SIGTERM, EXIT_SIGNALED | EXIT_CANCELLED);
	rig_run(&p.rig);
	assert_int_equal(p.sb->n_contexts, 0);
	play_close(&p);
}

static void who_leaves_is_told_nothing_and_may_take_a_waiting_run_along(void **state)
{
	char token[ID_LEN + 1], code[64];
	struct context_run *first, *second;
	struct run_told a, b;
	struct play p;

	(void)state;
	play_open(&p, CONTEXT_PYTHON);
	start_run(&p, "a", &a, &first);
	start_run(&p, "b", &b, &second);
	take_request(&p, token, code, sizeof(code));
	context_run_leave(second, true);
	context_run_leave(first, false);
	say(&p, 1, "unheard");
	say_end(&p, token);
	assert_int_equal(a.ends + b.ends, 0);
	assert_string_equal(a.text, "");
	assert_int_equal(state_of(p.c), CONTEXT_IDLE);
	rig_expect_nothing(&p.rig, p.box);
	play_close(&p);
}

static void a_context_that_waits_does_not_keep_its_sandbox_from_being_idle(void **state)
{
	char token[ID_LEN + 1], code[64];
	struct run_told t;
	struct play p;

	(void)state;
	play_open(&p, CONTEXT_PYTHON);
	p.sb->idle_ms = 5000;
	start_run(&p, "a", &t, NULL);
	take_request(&p, token, code, sizeof(code));
	rig_pass(&p.rig, 10000);
	assert_int_equal(rig_state(p.sb), SANDBOX_RUNNING); /* it is busy */
	say_end(&p, token);
	rig_pass(&p.rig, 4000);
	assert_int_equal(rig_state(p.sb), SANDBOX_RUNNING);
	rig_pass(&p.rig, 2000);
	assert_null(sandboxes_find(p.rig.all, "box", "ann"));
	play_close(&p);
}

static void another_life_finds_the_context_again_and_waits_for_what_ran(void **state)
{
	char token[ID_LEN + 1], code[64], id[ID_LEN + 1];
	uint8_t frame[WIRE_FRAME_MAX];
	struct guest_live live = { .flags = LIVE_STDIN, .pid = 7 };
	struct context_info info;
	struct run_told t, later;
	struct play p;

	(void)state;
	play_open(&p, CONTEXT_PYTHON);
	start_run(&p, "slow", &t, NULL);
	take_request(&p, token, code, sizeof(code));
	context_info(p.c, &info);
	(void)snprintf(id, sizeof(id), "%s", info.execution_id);
	live.tag = id;
	live.id = p.id;
	rig_death(&p.rig);
	rig_birth(&p.rig);
	rig_ready(&p.rig);
	rig_run(&p.rig);
	p.box = rig_box(&p.rig, p.sandbox_id);
	rig_say_ready(p.box, 1);
	rig_say(p.box, frame, guest_put_live(frame, sizeof(frame), &live));
	rig_run(&p.rig);
	assert_int_equal(t.ends, 0); /* whoever asked is gone */
	p.sb = sandboxes_find(p.rig.all, "box", "ann");
	assert_non_null(p.sb);
	p.c = context_find(p.sb, "calc");
	assert_non_null(p.c);
	assert_int_equal(state_of(p.c), CONTEXT_BUSY);
	context_retry(p.c);
	rig_run(&p.rig);
	start_run(&p, "later", &later, NULL);
	take_request(&p, token, code, sizeof(code)); /* the mark */
	say(&p, 1, "of the first life");
	say_frame(&p, 1, token, 'm', "");
	take_request(&p, token, code, sizeof(code));
	assert_string_equal(code, "later");
	say_end(&p, token);
	assert_int_equal(later.status, CONTEXT_OK);
	assert_string_equal(later.text, "");
	play_close(&p);
}

struct retry { /* whoever hears that it failed makes another of the same name */
	struct context_told first, second;
	struct sandbox *sb;
	struct context_request req;
};

static void make_again(void *user, struct context *c, const struct err *err)
{
	struct retry *r = user;

	on_context(&r->first, c, err);
	context_create(r->sb, &r->req, on_context, &r->second);
}

static void a_start_that_failed_says_why_and_its_name_is_free(void **state)
{
	struct retry r = { .req = { .language = CONTEXT_JAVA, .name = "brew", .cwd = "" } };
	struct context_code what = { .code = "x", .len = 1 };
	struct context_run *run;
	struct run_told t = { 0 };
	struct play p;

	(void)state;
	play_open(&p, CONTEXT_PYTHON);
	r.sb = p.sb;
	context_create(p.sb, &r.req, make_again, &r);
	rig_run(&p.rig);
	take_start(&p);
	assert_int_equal(context_run(context_find(p.sb, "brew"), &what, on_event, &t, &run, NULL),
			 0);
	rig_say_exit(p.box, p.id, 127, 0);
	rig_run(&p.rig);
	assert_string_equal(r.first.err.text,
			    "java is not available in this template: it has no java");
	assert_string_equal(t.reason, r.first.err.text);
	assert_int_equal(r.second.calls, 0); /* on its way, not refused */
	assert_non_null(context_find(p.sb, "brew"));
	play_close(&p);
}

static void a_name_is_there_once_and_contexts_are_counted(void **state)
{
	struct context_request req = { .name = "calc", .cwd = "" };
	struct context_told t = { 0 };
	struct play p;

	(void)state;
	play_open(&p, CONTEXT_PYTHON);
	context_create(p.sb, &req, on_context, &t);
	rig_run(&p.rig);
	assert_int_equal(t.err.code, EEXIST);
	req.name = "";
	for (unsigned i = 1; i < CONTEXTS_MAX; i++) {
		context_create(p.sb, &req, on_context, &t);
		rig_run(&p.rig);
		take_start(&p);
		assert_int_equal(t.err.code, 0);
	}
	context_create(p.sb, &req, on_context, &t);
	rig_run(&p.rig);
	assert_int_equal(t.err.code, EAGAIN);
	play_close(&p);
}

static void without_memory_nothing_is_made_and_nothing_is_left(void **state)
{
	struct context_request req = { .name = "other", .cwd = "" };
	struct context_code what = { .code = "x", .len = 1 };
	struct context_told t;
	struct context_run *run;
	struct run_told told;
	struct err err = { 0 };
	struct play p;
	bool is_failed = true;

	(void)state;
	play_open(&p, CONTEXT_PYTHON);
	for (size_t n = 1; is_failed; n++) {
		memset(&t, 0, sizeof(t));
		fault_arm(n);
		context_create(p.sb, &req, on_context, &t);
		is_failed = fault_disarm();
		rig_run(&p.rig);
		if (t.calls == 0) /* it went without */
			break;
		assert_int_not_equal(t.err.code, 0);
		assert_int_equal(p.sb->n_contexts, 1);
	}
	is_failed = true;
	for (size_t n = 1; is_failed; n++) {
		int r;

		memset(&told, 0, sizeof(told));
		fault_arm(n);
		r = context_run(p.c, &what, on_event, &told, &run, &err);
		is_failed = fault_disarm();
		if (r == 0)
			break;
		assert_int_equal(r, -ENOMEM);
		assert_int_equal(p.c->n_queued, 0);
	}
	play_close(&p);
}

static void variables_of_a_run_go_in_front_of_its_code(void **state)
{
	static const struct sandbox_pair env[] = { { "A", "x\\y\nz" }, { "B", "" } };
	static const struct sandbox_pair bad[] = { { "A=B", "x" } };
	struct context_code what = { .code = "go", .len = 2, .env = env, .n_env = 2 };
	char token[ID_LEN + 1], code[64];
	struct context_run *run = NULL;
	struct run_told told = { 0 };
	struct err err = { 0 };
	struct play p;

	(void)state;
	play_open(&p, CONTEXT_PYTHON);
	assert_int_equal(context_run(p.c, &what, on_event, &told, &run, &err), 0);
	rig_run(&p.rig);
	take_request(&p, token, code, sizeof(code));
	assert_string_equal(code, "A=x\\\\y\\nz\nB=\ngo");
	say(&p, 1, "out");
	say_end(&p, token);
	assert_int_equal(told.ends, 1);
	what.env = bad;
	what.n_env = 1;
	assert_int_equal(context_run(p.c, &what, on_event, &told, &run, &err), -EINVAL);
	play_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_run_tells_what_was_written_and_shown_and_ends_when_both_streams_have),
		cmocka_unit_test(runs_go_one_after_the_other_and_the_line_has_an_end),
		cmocka_unit_test(an_old_token_says_nothing_about_another_run),
		cmocka_unit_test(output_above_the_limit_is_cut_and_said_so),
		cmocka_unit_test(what_cannot_be_read_is_an_error_of_the_run),
		cmocka_unit_test(
			a_run_that_is_too_slow_is_interrupted_and_then_the_interpreter_begins_anew),
		cmocka_unit_test(
			who_asks_for_a_restart_that_is_under_way_joins_it_and_only_one_is_made),
		cmocka_unit_test(an_interpreter_that_ends_fails_its_context_with_the_reason),
		cmocka_unit_test(a_run_that_comes_while_a_failed_one_begins_anew_waits_for_it),
		cmocka_unit_test(deleting_ends_the_interpreter_and_all_that_waits),
		cmocka_unit_test(who_leaves_is_told_nothing_and_may_take_a_waiting_run_along),
		cmocka_unit_test(a_context_that_waits_does_not_keep_its_sandbox_from_being_idle),
		cmocka_unit_test(another_life_finds_the_context_again_and_waits_for_what_ran),
		cmocka_unit_test(a_start_that_failed_says_why_and_its_name_is_free),
		cmocka_unit_test(a_name_is_there_once_and_contexts_are_counted),
		cmocka_unit_test(without_memory_nothing_is_made_and_nothing_is_left),
		cmocka_unit_test(variables_of_a_run_go_in_front_of_its_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
