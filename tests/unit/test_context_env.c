/* A context's environment: in the store as long as the context lives, and no longer. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "sandbox/context.h"
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

struct kept {
	unsigned count;
	char text[256];
};

static void on_row(void *user, const struct object_row *row)
{
	struct kept *k = user;

	k->count++;
	(void)snprintf(k->text, sizeof(k->text), "%s", row->text);
}

static struct kept look(struct sandbox_rig *rig)
{
	struct kept k = { 0 };
	struct err err = { 0 };

	assert_int_equal(store_flush(&rig->store), 0);
	assert_int_equal(store_load_objects(&rig->store, "context", on_row, &k, &err), 0);
	return k;
}

/* The interpreter begins, and is told the variable TOKEN or not. */
static uint32_t take_start(struct sandbox_rig *rig, struct fake_box *box, const char *want)
{
	const char *found = "";
	struct guest_exec e;
	struct rd payload;
	uint32_t id = rig_expect(rig, box, G_EXEC, &payload);

	assert_int_equal(guest_get_exec(&payload, &e), 0);
	for (size_t i = 0; i < e.envc; i++)
		if (strncmp(e.envp[i], "TOKEN=", 6) == 0)
			found = e.envp[i] + 6;
	assert_string_equal(found, want);
	rig_say_started(box, id, 7);
	rig_run(rig);
	return id;
}

static struct context *make(struct sandbox_rig *rig, struct sandbox *sb, struct fake_box *box,
			    uint32_t *ret_id)
{
	static const struct sandbox_pair env[] = { { "TOKEN", "secret \"1\"" } };
	struct context_request req = {
		.language = CONTEXT_PYTHON, .name = "calc", .cwd = "", .env = env, .n_env = 1
	};
	struct context_told t = { 0 };

	context_create(sb, &req, on_context, &t);
	rig_run(rig);
	*ret_id = take_start(rig, box, "secret \"1\"");
	assert_int_equal(t.calls, 1);
	assert_int_equal(t.err.code, 0);
	return t.c;
}

/* Another process takes the box over, in which the interpreter runs on. */
static struct context *live_again(struct sandbox_rig *rig, const char *sandbox_id,
				  const struct guest_live *live)
{
	uint8_t frame[WIRE_FRAME_MAX];
	struct fake_box *box;
	struct sandbox *sb;

	rig_death(rig);
	rig_birth(rig);
	rig_ready(rig);
	rig_run(rig);
	box = rig_box(rig, sandbox_id);
	rig_say_ready(box, 1);
	rig_say(box, frame, guest_put_live(frame, sizeof(frame), live));
	rig_run(rig);
	sb = sandboxes_find(rig->all, "box", "ann");
	assert_non_null(sb);
	return context_find(sb, "calc");
}

static void restart(struct sandbox_rig *rig, struct context *c, struct fake_box *box, uint32_t id)
{
	struct context_told t = { 0 };
	struct wire_head head;
	struct rd payload;

	context_restart(c, on_context, &t);
	rig_run(rig);
	if (t.calls == 0) {
		do
			assert_true(rig_recv(rig, box, &head, &payload));
		while (head.type != G_CANCEL);
		rig_say_exit(box, id, 9, EXIT_SIGNALED | EXIT_CANCELLED);
		rig_run(rig);
		do
			assert_true(rig_recv(rig, box, &head, &payload));
		while (head.type != G_EXEC);
		rig_say_started(box, head.id, 8);
		rig_run(rig);
	}
	assert_int_equal(t.calls, 1);
	assert_int_equal(t.err.code, 0);
}

static void it_is_known_to_another_life_and_a_restart_has_it(void **state)
{
	char sandbox_id[ID_LEN + 1], tag[ID_LEN + 1];
	struct guest_live live = { .flags = LIVE_STDIN, .pid = 7 };
	struct context_info about;
	struct sandbox_info info;
	struct sandbox_rig rig;
	struct context *c;
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "box");
	sandbox_info(sb, &info);
	(void)snprintf(sandbox_id, sizeof(sandbox_id), "%s", info.id);
	c = make(&rig, sb, rig_box(&rig, sandbox_id), &live.id);
	context_info(c, &about);
	(void)snprintf(tag, sizeof(tag), "%s", about.execution_id);
	live.tag = tag;
	assert_int_equal(look(&rig).count, 1);
	assert_string_equal(look(&rig).text, "{\"TOKEN\":\"secret \\\"1\\\"\"}");
	c = live_again(&rig, sandbox_id, &live);
	assert_non_null(c);
	restart(&rig, c, rig_box(&rig, sandbox_id), live.id);
	assert_int_equal(look(&rig).count, 1);
	rig_close(&rig);
}

static void it_goes_with_the_context(void **state)
{
	struct sandbox_info info;
	struct sandbox_rig rig;
	struct fake_box *box;
	struct context *c;
	struct sandbox *sb;
	uint32_t id;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "box");
	sandbox_info(sb, &info);
	box = rig_box(&rig, info.id);
	c = make(&rig, sb, box, &id);
	context_delete(c);
	rig_run(&rig);
	rig_say_exit(box, id, 9, EXIT_SIGNALED | EXIT_CANCELLED);
	rig_run(&rig);
	assert_null(context_find(sb, "calc"));
	assert_int_equal(look(&rig).count, 0);
	rig_close(&rig);
}

static void it_goes_with_the_sandbox(void **state)
{
	struct told t = { 0 };
	struct sandbox_info info;
	struct sandbox_rig rig;
	struct sandbox *sb;
	uint32_t id;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "box");
	sandbox_info(sb, &info);
	(void)make(&rig, sb, rig_box(&rig, info.id), &id);
	sandbox_delete(sb, "deleted", rig_told, &t);
	rig_run(&rig);
	assert_int_equal(t.calls, 1);
	assert_int_equal(look(&rig).count, 0);
	rig_close(&rig);
}

static void what_belongs_to_no_context_is_swept(void **state)
{
	static const char *const ids[] = { "x", "aaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbbbbbb", "-" };
	struct sandbox_rig rig;

	(void)state;
	rig_open(&rig);
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		assert_int_equal(store_put_object(&rig.store,
						  &(struct object_row){ .kind = "context",
									.id = ids[i],
									.owner = "ann",
									.name = "",
									.text = "{\"A\":\"b\"}" },
						  NULL, NULL),
				 0);
	assert_int_equal(look(&rig).count, sizeof(ids) / sizeof(ids[0]));
	rig_death(&rig);
	rig_birth(&rig);
	rig_ready(&rig);
	rig_run(&rig);
	assert_int_equal(look(&rig).count, 0);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_known_to_another_life_and_a_restart_has_it),
		cmocka_unit_test(it_goes_with_the_context),
		cmocka_unit_test(it_goes_with_the_sandbox),
		cmocka_unit_test(what_belongs_to_no_context_is_swept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
