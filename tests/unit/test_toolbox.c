/* Tools: from a call to its sandbox, and back. The test is the box. */
#include "check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "auth/principal.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/str.h"
#include "config/config.h"
#include "fault.h"
#include "sandbox/registry.h"
#include "sandbox_rig.h"
#include "tools/toolbox.h"
#include "json/jw.h"

#define OUTPUT 64u

struct rig {
	struct sandbox_rig box;
	struct config config;
	struct tools *all;
};

struct heard { /* a call, and what came of it */
	struct tool_call t;
	struct jv_doc *doc, *told;
	int done, progress;
};

static void on_done(struct tool_call *t)
{
	LIST_ENTRY(t, struct heard, t)->done++;
}

static void on_progress(struct tool_call *t, double at, double total, const char *text)
{
	(void)at, (void)total, (void)text;
	LIST_ENTRY(t, struct heard, t)->progress++;
}

static const struct tool_call_ops ops = { .done = on_done };
static const struct tool_call_ops telling = { .done = on_done, .progress = on_progress };

static void open_rig(struct rig *r)
{
	struct tools_deps deps;
	struct err err = { 0 };

	memset(r, 0, sizeof(*r));
	rig_open(&r->box);
	r->config.mcp_output_bytes = OUTPUT;
	r->config.exec_timeout_ms = 30000;
	r->config.exec_timeout_max_ms = 3600000;
	deps = (struct tools_deps){ .loop = r->box.loop,
				    .config = &r->config,
				    .sandboxes = r->box.all,
				    .store = &r->box.store };
	assert_int_equal(tools_create(&deps, &r->all, &err), 0);
}

static void close_rig(struct rig *r)
{
	r->all = tools_free(r->all);
	rig_close(&r->box);
}

static void begin_as(struct rig *r, struct heard *h, const char *tool, const char *arguments)
{
	const struct tool *found = tools_find(r->all, h->t.is_bound, tool);
	struct jv root = { 0 };

	assert_non_null(found);
	if (arguments) {
		assert_int_equal(jv_parse(arguments, strlen(arguments), 1 << 20, &h->doc, NULL), 0);
		root = jv_root(h->doc);
	}
	h->t.all = r->all;
	h->t.arena = arena_create(1 << 20);
	assert_non_null(h->t.arena);
	if (!h->t.ops)
		h->t.ops = &ops;
	h->t.state = "";
	tools_call(&h->t, found, root);
	assert_int_equal(h->done, 0); /* nothing from inside the call */
}

static void begin(struct rig *r, struct heard *h, const char *tool, const char *arguments)
{
	(void)str_copy(h->t.who.owner, sizeof(h->t.who.owner), "ann");
	h->t.who.scopes = scope_of_role(ROLE_USER);
	h->t.home = "mcp-one";
	begin_as(r, h, tool, arguments);
}

static void heard_done(struct heard *h)
{
	tool_call_done(&h->t);
	h->t.arena = arena_free(h->t.arena);
	h->doc = jv_free(h->doc);
	h->told = jv_free(h->told);
}

static void assert_failed(struct heard *h, const char *says)
{
	assert_int_equal(h->done, 1);
	assert_int_equal(h->t.outcome, TOOL_FAILED);
	if (!strstr(buf_str(&h->t.content), says))
		fail_msg("'%s' does not say '%s'", buf_str(&h->t.content), says);
}

/* What was told, as a document. */
static struct jv told(struct heard *h)
{
	if (!h->told)
		assert_int_equal(jv_parse(h->t.structured.data, h->t.structured.len, 1 << 20,
					  &h->told, NULL),
				 0);
	return jv_root(h->told);
}

static const char *member(struct heard *h, const char *key)
{
	return jv_text(jv_get(told(h), key));
}

static struct fake_box *box_of(struct rig *r, const struct heard *h)
{
	struct fake_box *box = rig_box(&r->box, h->t.box_id);

	assert_non_null(box);
	return box;
}

/* It runs in its box; the id of it there. */
static uint32_t run_until_started(struct rig *r, struct heard *h)
{
	struct rd payload;
	uint32_t id;

	rig_run(&r->box);
	id = rig_expect(&r->box, box_of(r, h), G_EXEC, &payload);
	rig_say_started(box_of(r, h), id, 7);
	rig_run(&r->box);
	assert_int_equal(h->done, 0);
	assert_true(id_is_valid(h->t.execution_id));
	return id;
}

/* ---- the table ---- */

struct seen {
	struct rig *r;
	bool is_bound;
	size_t n;
	const char *names[64];
};

static void see(void *user, const struct tool *tool)
{
	struct seen *s = user;
	struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct jv_doc *doc = NULL;
	struct jv in;

	for (size_t i = 0; i < s->n; i++)
		assert_string_not_equal(s->names[i], tool->name);
	s->names[s->n++] = tool->name;
	jw_object_begin(&w);
	tools_write(s->r->all, &w, tool, s->is_bound);
	jw_object_end(&w);
	assert_int_equal(jw_end(&w), 0);
	assert_int_equal(jv_parse(b.data, b.len, b.len, &doc, NULL), 0);
	in = jv_get(jv_root(doc), "inputSchema");
	assert_string_equal(jv_text(jv_get(in, "type")), "object");
	assert_int_equal(jv_kind(jv_get(jv_get(in, "properties"), "sandbox_id")) != JV_ABSENT &&
				 tool->flags & TOOL_IN_BOX,
			 tool->flags & TOOL_IN_BOX && !s->is_bound);
	assert_true(jv_len(jv_get(jv_root(doc), "description")) > 0);
	for (size_t i = 0; i < tool->n_in; i++) /* whoever reads it has no other page */
		assert_non_null(tool->in[i].help);
	jv_free(doc);
	buf_done(&b);
}

static void every_tool_is_described_and_has_a_name_of_its_own(void **state)
{
	struct rig r;
	struct seen free_caller = { .r = &r }, bound = { .r = &r, .is_bound = true };

	(void)state;
	open_rig(&r);
	tools_each(r.all, false, see, &free_caller);
	tools_each(r.all, true, see, &bound);
	assert_true(free_caller.n > bound.n && bound.n > 10);
	assert_null(tools_find(r.all, true, "sandbox_create"));
	assert_null(tools_find(r.all, false, "no_such"));
	close_rig(&r);
}

static void more_tables_than_there_is_room_for_are_refused(void **state)
{
	static const struct tool_table none = { NULL, 0 };
	const struct tool_table *many[TOOLS_TABLES_MAX + 2] = { NULL };
	struct tools_deps deps = { .more = many };
	struct tools *all = NULL;
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i <= TOOLS_TABLES_MAX; i++)
		many[i] = &none;
	assert_int_equal(tools_create(&deps, &all, &err), -E2BIG);
	assert_null(all);
}

/* ---- refusals ---- */

static void wrong_arguments_are_told_by_name_and_make_no_sandbox(void **state)
{
	static const struct {
		const char *tool, *arguments, *says;
	} cases[] = {
		{ "exec", NULL, "command" },
		{ "exec", "{}", "command" },
		{ "exec", "{\"command\":\"\"}", "command" },
		{ "exec", "{\"command\":1}", "command" },
		{ "exec", "{\"command\":\"x\",\"cmd\":1}", "cmd" },
		{ "read_file", "{\"path\":\"x\",\"offset\":0}", "offset" },
		{ "write_file", "{\"path\":\"x\"}", "content" },
		{ "list_dir", "{\"path\":7}", "path" },
		{ "sandbox_fork", "{\"count\":65}", "count" },
		{ "search_files", "{\"context\":21,\"name\":\"x\"}", "context" },
	};
	struct rig r;

	(void)state;
	open_rig(&r);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct heard h = { 0 };

		begin(&r, &h, cases[i].tool, cases[i].arguments);
		rig_run(&r.box);
		assert_failed(&h, cases[i].says);
		heard_done(&h);
	}
	rig_assert_nothing_left(&r.box);
	close_rig(&r);
}

static void whoever_lacks_a_scope_is_refused(void **state)
{
	struct heard looks = { 0 }, writes = { 0 };
	struct rig r;

	(void)state;
	open_rig(&r);
	(void)str_copy(looks.t.who.owner, sizeof(looks.t.who.owner), "ann");
	looks.t.who.scopes = scope_of_role(ROLE_VIEWER);
	looks.t.home = "mcp-one";
	begin_as(&r, &looks, "exec", "{\"command\":\"true\"}");
	rig_run(&r.box);
	assert_failed(&looks, "exec");
	/* May run, but has nothing to run in, and may not make it. */
	(void)str_copy(writes.t.who.owner, sizeof(writes.t.who.owner), "ann");
	writes.t.who.scopes = SCOPE_EXEC;
	writes.t.home = "mcp-one";
	begin_as(&r, &writes, "exec", "{\"command\":\"true\"}");
	rig_run(&r.box);
	assert_failed(&writes, "sandbox:write");
	heard_done(&looks);
	heard_done(&writes);
	rig_assert_nothing_left(&r.box);
	close_rig(&r);
}

static void a_token_of_one_sandbox_is_good_for_no_other(void **state)
{
	struct heard other = { 0 }, own = { 0 }, made = { 0 };
	struct sandbox *mine, *another;
	char arguments[128];
	struct rig r;

	(void)state;
	open_rig(&r);
	mine = rig_create(&r.box, "mine");
	another = rig_create(&r.box, "another");
	(void)str_copy(other.t.who.sandbox_id, sizeof(other.t.who.sandbox_id), mine->id);
	(void)str_format(arguments, sizeof(arguments),
			 "{\"command\":\"true\",\"sandbox_id\":\"%s\"}", another->id);
	begin(&r, &other, "exec", arguments);
	rig_run(&r.box);
	assert_failed(&other, "sandbox_id");
	(void)str_copy(made.t.who.sandbox_id, sizeof(made.t.who.sandbox_id), mine->id);
	begin(&r, &made, "sandbox_create", NULL); /* found by a door that did not look */
	rig_run(&r.box);
	assert_failed(&made, "one sandbox only");
	(void)str_copy(own.t.who.sandbox_id, sizeof(own.t.who.sandbox_id), mine->id);
	begin(&r, &own, "exec", "{\"command\":\"true\"}");
	(void)run_until_started(&r, &own);
	assert_string_equal(own.t.box_id, mine->id);
	tools_leave(&own.t);
	heard_done(&other);
	heard_done(&made);
	heard_done(&own);
	close_rig(&r);
}

static void another_owners_sandbox_is_not_there(void **state)
{
	struct heard h = { 0 };
	struct sandbox *sb;
	char arguments[128];
	struct rig r;

	(void)state;
	open_rig(&r);
	sb = rig_create(&r.box, "web");
	(void)str_format(arguments, sizeof(arguments),
			 "{\"path\":\"/etc/passwd\",\"sandbox_id\":\"%s\"}", sb->id);
	(void)str_copy(h.t.who.owner, sizeof(h.t.who.owner), "bob");
	h.t.who.scopes = scope_of_role(ROLE_USER);
	h.t.home = "mcp-bob";
	begin_as(&r, &h, "read_file", arguments);
	rig_run(&r.box);
	assert_failed(&h, "there is no sandbox");
	rig_expect_nothing(&r.box, rig_box(&r.box, sb->id));
	heard_done(&h);
	close_rig(&r);
}

/* ---- one's own sandbox ---- */

static void calls_at_once_share_the_sandbox_that_is_made_for_the_first(void **state)
{
	struct heard one = { 0 }, two = { 0 };
	struct rd payload;
	struct rig r;

	(void)state;
	open_rig(&r);
	begin(&r, &one, "exec", "{\"command\":\"one\"}");
	begin(&r, &two, "exec", "{\"command\":\"two\"}");
	rig_run(&r.box);
	assert_int_equal(r.box.fake.live, 1);
	assert_string_equal(one.t.box_id, two.t.box_id);
	assert_int_equal(one.t.is_new_box + two.t.is_new_box, 1);
	(void)rig_expect(&r.box, box_of(&r, &one), G_EXEC, &payload);
	(void)rig_expect(&r.box, box_of(&r, &one), G_EXEC, &payload);
	tools_leave(&one.t);
	tools_leave(&two.t);
	rig_run(&r.box);
	assert_int_equal(one.done + two.done, 0);
	rig_death(&r.box); /* what waits for the box's word goes with it */
	heard_done(&one);
	heard_done(&two);
	r.all = tools_free(r.all);
	rig_birth(&r.box);
	rig_close(&r.box);
}

static void a_sandbox_that_is_used_does_not_end_in_the_middle_of_it(void **state)
{
	struct heard h = { 0 }, again = { 0 };
	struct sandbox_info info;
	struct sandbox *sb;
	int64_t until;
	struct rig r;

	(void)state;
	open_rig(&r);
	/* The clock of the service is the test's; what is left is seen by the machine's. */
	r.box.wall_ms = clock_wall_ms();
	begin(&r, &h, "process_start", "{\"command\":\"true\"}");
	rig_run(&r.box);
	sb = sandboxes_find(r.box.all, "mcp-one", "ann");
	assert_non_null(sb);
	sandbox_info(sb, &info);
	until = info.expires_ms;
	sandbox_patch(sb, &(struct sandbox_patch){ .has_timeout = true, .timeout_ms = 1000 },
		      rig_told, &(struct told){ 0 });
	rig_run(&r.box);
	sb->timeout_ms = info.timeout_ms; /* as if nearly all of it had gone by */
	begin(&r, &again, "process_list", NULL);
	rig_run(&r.box);
	assert_int_equal(again.done, 1);
	sandbox_info(sb, &info);
	assert_true(info.expires_ms >= until);
	rig_death(&r.box);
	heard_done(&h);
	heard_done(&again);
	r.all = tools_free(r.all);
	rig_birth(&r.box);
	rig_close(&r.box);
}

/* ---- running ---- */

static void a_command_tells_its_output_and_its_end(void **state)
{
	struct heard h = { .t.ops = &telling };
	struct jv code;
	int64_t exit_code = -1;
	uint32_t id;
	struct rig r;

	(void)state;
	open_rig(&r);
	begin(&r, &h, "exec", "{\"command\":\"echo\",\"timeout_ms\":5000}");
	id = run_until_started(&r, &h);
	rig_say_output(box_of(&r, &h), id, 1, 0, "hello\n", 6);
	rig_say_output(box_of(&r, &h), id, 2, 0, "\xff", 1);
	rig_say_exit(box_of(&r, &h), id, 3, EXIT_LEFTOVERS);
	rig_run(&r.box);
	assert_int_equal(h.done, 1);
	assert_int_equal(h.t.outcome, TOOL_DONE);
	assert_string_equal(member(&h, "stdout"), "hello\n");
	assert_string_equal(member(&h, "stderr"), "\xef\xbf\xbd");
	code = jv_get(told(&h), "exit_code");
	assert_int_equal(jv_i64(code, &exit_code), 0);
	assert_int_equal(exit_code, 3);
	assert_non_null(strstr(h.t.structured.data, "not UTF-8"));
	assert_non_null(strstr(h.t.structured.data, "still running"));
	heard_done(&h);
	close_rig(&r);
}

/* A command that writes three times what is told, until its rest is on its way to a file; the id of
 * that operation in the box. */
static uint32_t overflow(struct rig *r, struct heard *h)
{
	char line[3 * OUTPUT];
	struct wire_head head;
	struct guest_file f;
	struct rd payload;
	uint32_t id;

	memset(line, 'x', sizeof(line));
	begin(r, h, "exec", "{\"command\":\"much\"}");
	id = run_until_started(r, h);
	rig_say_output(box_of(r, h), id, 1, 0, line, sizeof(line));
	rig_say_exit(box_of(r, h), id, 0, 0);
	rig_run(&r->box);
	assert_int_equal(h->done, 0);
	do
		assert_true(rig_recv(&r->box, box_of(r, h), &head, &payload));
	while (head.type != G_FILE);
	assert_int_equal(guest_get_file(&payload, &f), 0);
	assert_int_equal(f.op, FILE_WRITE);
	assert_true(str_starts(str_of(f.path), "/workspace/.holt/output/"));
	return head.id;
}

static void what_is_too_much_for_a_model_goes_to_a_file(void **state)
{
	struct heard h = { 0 };
	uint8_t frame[64];
	uint32_t id;
	struct rig r;

	(void)state;
	open_rig(&r);
	id = overflow(&r, &h);
	rig_say(box_of(&r, &h), frame, guest_put_u64(frame, sizeof(frame), G_DONE, id, 192));
	rig_run(&r.box);
	assert_int_equal(h.done, 1);
	assert_true(str_starts(str_of(member(&h, "output_file")), "/workspace/.holt/output/"));
	assert_non_null(strstr(member(&h, "stdout"), "[... 128 bytes left out ...]"));
	heard_done(&h);
	close_rig(&r);
}

static void a_file_that_cannot_be_written_is_said_and_the_result_comes(void **state)
{
	struct heard h = { 0 };
	uint8_t frame[128];
	uint32_t id;
	struct rig r;

	(void)state;
	open_rig(&r);
	id = overflow(&r, &h);
	rig_say(box_of(&r, &h), frame,
		guest_put_error(frame, sizeof(frame), id, ENOSPC, "no room"));
	rig_run(&r.box);
	assert_int_equal(h.done, 1);
	assert_int_equal(h.t.outcome, TOOL_DONE);
	assert_null(member(&h, "output_file"));
	assert_non_null(strstr(h.t.structured.data, "no room"));
	heard_done(&h);
	close_rig(&r);
}

static void a_sandbox_that_ends_meanwhile_is_said(void **state)
{
	struct heard h = { 0 };
	struct rig r;

	(void)state;
	open_rig(&r);
	begin(&r, &h, "exec", "{\"command\":\"sleep\"}");
	(void)run_until_started(&r, &h);
	fake_kill(&r.box.fake, box_of(&r, &h)->id, 9);
	rig_run(&r.box);
	assert_failed(&h, "interrupted");
	heard_done(&h);
	close_rig(&r);
}

/* ---- ending early ---- */

static void a_call_is_cancelled_wherever_it_is(void **state)
{
	struct heard early = { 0 }, making = { 0 }, running = { 0 };
	struct rd payload;
	uint32_t id;
	struct rig r;

	(void)state;
	open_rig(&r);
	begin(&r, &early, "exec", "{\"command\":\"x\"}");
	tools_cancel(&early.t);
	assert_int_equal(early.done, 0);
	rig_run(&r.box);
	assert_failed(&early, "cancelled");
	assert_int_equal(r.box.fake.live, 0);

	begin(&r, &making, "exec", "{\"command\":\"x\"}");
	rig_turn(&r.box); /* the sandbox is asked for */
	tools_cancel(&making.t);
	tools_cancel(&making.t); /* twice is once */
	rig_run(&r.box);
	assert_failed(&making, "cancelled");

	begin(&r, &running, "exec", "{\"command\":\"x\"}");
	id = run_until_started(&r, &running);
	tools_cancel(&running.t);
	assert_int_equal(running.done, 0);
	rig_run(&r.box);
	assert_int_equal(rig_expect(&r.box, box_of(&r, &running), G_CANCEL, &payload), id);
	rig_say_exit(box_of(&r, &running), id, 15, EXIT_CANCELLED | EXIT_SIGNALED);
	rig_run(&r.box);
	assert_int_equal(running.done, 1);
	assert_non_null(strstr(running.t.structured.data, "cancelled"));
	heard_done(&early);
	heard_done(&making);
	heard_done(&running);
	close_rig(&r);
}

static void a_file_operation_is_cancelled_in_its_box(void **state)
{
	static const char *const calls[][2] = {
		{ "read_file", "{\"path\":\"x\"}" },
		{ "write_file", "{\"path\":\"x\",\"content\":\"y\"}" },
		{ "list_dir", "{}" },
		{ "search_files", "{\"name\":\"*\"}" },
		{ "edit_file", "{\"path\":\"x\",\"old_text\":\"a\",\"new_text\":\"b\"}" },
	};
	struct rig r;

	(void)state;
	open_rig(&r);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct heard h = { 0 };
		struct wire_head head = { 0 };
		struct rd payload;

		begin(&r, &h, calls[i][0], calls[i][1]);
		rig_run(&r.box);
		(void)rig_expect(&r.box, box_of(&r, &h), G_FILE, &payload);
		tools_cancel(&h.t);
		assert_int_equal(h.done, 0);
		rig_run(&r.box);
		assert_failed(&h, "cancelled");
		while (rig_recv(&r.box, box_of(&r, &h), &head, &payload) && head.type != G_CANCEL)
			assert_int_equal(head.type, G_DATA);
		assert_int_equal(head.type, G_CANCEL);
		heard_done(&h);
	}
	close_rig(&r);
}

/* A process that runs; its id. */
static const char *start_process(struct rig *r, struct heard *h, uint32_t *ret_guest_id)
{
	struct rd payload;

	begin(r, h, "process_start", "{\"command\":\"server\"}");
	rig_run(&r->box);
	*ret_guest_id = rig_expect(&r->box, box_of(r, h), G_EXEC, &payload);
	rig_say_started(box_of(r, h), *ret_guest_id, 7);
	rig_run(&r->box);
	assert_int_equal(h->done, 1);
	return member(h, "process_id");
}

static void a_wait_for_a_process_ends_by_output_its_end_or_a_cancel(void **state)
{
	struct heard process = { 0 }, output = { 0 }, cancelled = { 0 }, ended = { 0 },
		     killed = { 0 };
	char look[128], more[128], end[64];
	struct rd payload;
	const char *name;
	uint32_t id;
	struct rig r;

	(void)state;
	open_rig(&r);
	name = start_process(&r, &process, &id);
	(void)str_format(look, sizeof(look), "{\"process_id\":\"%s\",\"wait_ms\":60000}", name);
	(void)str_format(more, sizeof(more),
			 "{\"process_id\":\"%s\",\"wait_ms\":60000,\"position\":2}", name);
	(void)str_format(end, sizeof(end), "{\"process_id\":\"%s\"}", name);

	begin(&r, &output, "process_output", look);
	rig_run(&r.box);
	assert_int_equal(output.done, 0);
	rig_say_output(box_of(&r, &process), id, 1, 0, "x\n", 2);
	rig_run(&r.box);
	assert_int_equal(output.done, 1);
	assert_string_equal(member(&output, "stdout"), "x\n");

	begin(&r, &cancelled, "process_output", more);
	rig_run(&r.box);
	assert_int_equal(cancelled.done, 0);
	tools_cancel(&cancelled.t);
	rig_run(&r.box);
	assert_failed(&cancelled, "cancelled");

	begin(&r, &ended, "process_output", more);
	begin(&r, &killed, "process_kill", end);
	rig_run(&r.box);
	assert_int_equal(ended.done + killed.done, 0);
	assert_int_equal(rig_expect(&r.box, box_of(&r, &process), G_CANCEL, &payload), id);
	rig_say_exit(box_of(&r, &process), id, 15, EXIT_CANCELLED | EXIT_SIGNALED);
	rig_run(&r.box);
	assert_int_equal(ended.done, 1);
	assert_int_equal(killed.done, 1);
	assert_string_equal(member(&killed, "status"), "cancelled");
	heard_done(&process);
	heard_done(&output);
	heard_done(&cancelled);
	heard_done(&ended);
	heard_done(&killed);
	close_rig(&r);
}

static void a_character_is_never_on_two_pages(void **state)
{
	/* One byte short of a page, then a character of three bytes. */
	struct heard process = { 0 }, first = { 0 }, second = { 0 };
	char text[OUTPUT + 8], look[64], more[96];
	struct jv position;
	uint64_t at = 0;
	const char *name;
	uint32_t id;
	struct rig r;

	(void)state;
	open_rig(&r);
	name = start_process(&r, &process, &id);
	memset(text, 'x', OUTPUT - 1);
	memcpy(text + OUTPUT - 1, "\xe2\x82\xac", 3);
	rig_say_output(box_of(&r, &process), id, 1, 0, text, OUTPUT + 2);
	rig_run(&r.box);
	(void)str_format(look, sizeof(look), "{\"process_id\":\"%s\"}", name);
	begin(&r, &first, "process_output", look);
	rig_run(&r.box);
	assert_int_equal(first.done, 1);
	assert_int_equal(strlen(member(&first, "stdout")), OUTPUT - 1);
	position = jv_get(told(&first), "position");
	assert_int_equal(jv_u64(position, &at), 0);
	assert_int_equal(at, OUTPUT - 1);
	(void)str_format(more, sizeof(more), "{\"process_id\":\"%s\",\"position\":%u}", name,
			 OUTPUT - 1);
	begin(&r, &second, "process_output", more);
	rig_run(&r.box);
	assert_string_equal(member(&second, "stdout"), "\xe2\x82\xac");
	heard_done(&process);
	heard_done(&first);
	heard_done(&second);
	rig_say_exit(rig_box(&r.box, sandboxes_find(r.box.all, "mcp-one", "ann")->id), id, 0, 0);
	rig_run(&r.box);
	close_rig(&r);
}

static void what_is_left_goes_on_and_its_end_is_asked_for_later(void **state)
{
	struct heard left = { .t.is_durable = true }, later = { 0 }, none = { 0 };
	uint32_t id;
	struct rig r;

	(void)state;
	open_rig(&r);
	begin(&r, &left, "exec", "{\"command\":\"x\"}");
	id = run_until_started(&r, &left);
	assert_int_equal(rig_exec_row(&r.box, left.t.execution_id).r, 0); /* is in the store */
	tools_leave(&left.t);
	rig_say_output(box_of(&r, &left), id, 1, 0, "over\n", 5);
	rig_say_exit(box_of(&r, &left), id, 0, 0);
	rig_run(&r.box);
	assert_int_equal(left.done, 0);
	later.t = (struct tool_call){ .all = r.all, .arena = arena_create(1 << 20), .ops = &ops };
	later.t.who = left.t.who;
	tools_execution(&later.t, left.t.box_id, left.t.execution_id);
	rig_run(&r.box);
	assert_int_equal(later.done, 1);
	assert_string_equal(member(&later, "stdout"), "over\n");
	none.t = (struct tool_call){ .all = r.all, .arena = arena_create(1 << 20), .ops = &ops };
	(void)str_copy(none.t.who.owner, sizeof(none.t.who.owner), "bob");
	tools_execution(&none.t, left.t.box_id, left.t.execution_id);
	rig_run(&r.box);
	assert_failed(&none, "no such execution");
	heard_done(&left);
	heard_done(&later);
	heard_done(&none);
	close_rig(&r);
}

static void without_memory_a_call_still_ends_once(void **state)
{
	static const char *const calls[][2] = {
		{ "sandbox_list", "{}" },
		{ "process_list", "{}" },
		{ "sandbox_kill", "{}" },
	};
	struct rig r;

	(void)state;
	open_rig(&r);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		bool has_failed = true;

		for (size_t n = 1; has_failed && n < 400; n++) {
			struct heard h = { 0 };

			begin(&r, &h, calls[i][0], calls[i][1]);
			fault_arm(n);
			rig_run(&r.box);
			has_failed = fault_disarm();
			rig_pass(&r.box, 5000); /* what could not be written is tried again */
			rig_run(&r.box);
			assert_int_equal(h.done, 1);
			heard_done(&h);
		}
		assert_false(has_failed);
	}
	close_rig(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_tool_is_described_and_has_a_name_of_its_own),
		cmocka_unit_test(more_tables_than_there_is_room_for_are_refused),
		cmocka_unit_test(wrong_arguments_are_told_by_name_and_make_no_sandbox),
		cmocka_unit_test(whoever_lacks_a_scope_is_refused),
		cmocka_unit_test(a_token_of_one_sandbox_is_good_for_no_other),
		cmocka_unit_test(another_owners_sandbox_is_not_there),
		cmocka_unit_test(calls_at_once_share_the_sandbox_that_is_made_for_the_first),
		cmocka_unit_test(a_sandbox_that_is_used_does_not_end_in_the_middle_of_it),
		cmocka_unit_test(a_command_tells_its_output_and_its_end),
		cmocka_unit_test(what_is_too_much_for_a_model_goes_to_a_file),
		cmocka_unit_test(a_file_that_cannot_be_written_is_said_and_the_result_comes),
		cmocka_unit_test(a_sandbox_that_ends_meanwhile_is_said),
		cmocka_unit_test(a_call_is_cancelled_wherever_it_is),
		cmocka_unit_test(a_file_operation_is_cancelled_in_its_box),
		cmocka_unit_test(a_wait_for_a_process_ends_by_output_its_end_or_a_cancel),
		cmocka_unit_test(a_character_is_never_on_two_pages),
		cmocka_unit_test(what_is_left_goes_on_and_its_end_is_asked_for_later),
		cmocka_unit_test(without_memory_a_call_still_ends_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
