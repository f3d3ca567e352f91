#include "check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sandbox/registry.h"
#include "sandbox_rig.h"

struct listed {
	int calls;
	size_t n;
	bool more;
	char names[8][SANDBOX_NAME_MAX + 1], last_id[ID_LEN + 1];
	int64_t last_ms;
	enum sandbox_state states[8];
	struct err err;
};

static void on_list(void *user, const struct sandbox_info *infos, size_t n, bool more,
		    const struct err *err)
{
	struct listed *l = user;

	l->calls++;
	l->n = n;
	l->more = more;
	l->err = err ? *err : (struct err){ 0 };
	for (size_t i = 0; i < n && i < 8; i++) {
		(void)snprintf(l->names[i], sizeof(l->names[i]), "%s", infos[i].name);
		(void)snprintf(l->last_id, sizeof(l->last_id), "%s", infos[i].id);
		l->last_ms = infos[i].created_ms;
		l->states[i] = infos[i].state;
	}
}

static void lists_are_newest_first_in_pages_and_filtered(void **state)
{
	const struct sandbox_pair red[] = { { "colour", "red" } };
	struct sandbox_rig rig;
	struct listed l = { 0 };
	struct told t = { 0 };
	struct sandbox_filter f = { .owner = "ann", .limit = 3 };
	struct sandbox_patch patch = { .has_metadata = true, .metadata = red, .n_metadata = 1 };

	(void)state;
	rig_open(&rig);
	for (int c = 'a'; c < 'f'; c++) {
		struct sandbox *sb = rig_create(&rig, (char[]){ (char)c, '\0' });

		if (c == 'b') {
			sandbox_patch(sb, &patch, rig_told, &t);
			rig_run(&rig);
		}
		rig_pass(&rig, c == 'c' ? 0 : 10); /* c and d are of one moment */
	}
	sandbox_list(rig.all, &f, on_list, &l);
	assert_int_equal(l.calls, 0);
	rig_run(&rig);
	assert_int_equal(l.n, 3);
	assert_true(l.more);
	assert_string_equal(l.names[0], "e");
	f.before_ms = l.last_ms;
	f.before_id = (char[ID_LEN + 1]){ 0 };
	memcpy((char *)f.before_id, l.last_id, ID_LEN);
	sandbox_list(rig.all, &f, on_list, &l);
	rig_run(&rig);
	assert_int_equal(l.n, 2);
	assert_false(l.more);
	assert_string_equal(l.names[0], "b");
	assert_string_equal(l.names[1], "a");
	f = (struct sandbox_filter){
		.owner = "ann", .metadata = red, .n_metadata = 1, .limit = 10
	};
	sandbox_list(rig.all, &f, on_list, &l);
	rig_run(&rig);
	assert_int_equal(l.n, 1);
	assert_string_equal(l.names[0], "b");
	f = (struct sandbox_filter){ .owner = "bob", .limit = 10 };
	sandbox_list(rig.all, &f, on_list, &l);
	rig_run(&rig);
	assert_int_equal(l.n, 0);
	rig_close(&rig);
}

static void lists_of_ended_ones_come_from_the_store(void **state)
{
	struct sandbox_rig rig;
	struct listed l = { 0 };
	struct told t = { 0 };
	struct sandbox_filter f = { .owner = "ann", .limit = 8 };

	(void)state;
	rig_open(&rig);
	(void)rig_create(&rig, "a");
	rig_pass(&rig, 10);
	sandbox_delete(rig_create(&rig, "b"), "deleted", rig_told, &t);
	rig_run(&rig);
	f.states = 1u << SANDBOX_STOPPED | 1u << SANDBOX_FAILED;
	sandbox_list(rig.all, &f, on_list, &l);
	rig_run(&rig);
	assert_int_equal(l.n, 1);
	assert_string_equal(l.names[0], "b");
	f.states |= 1u << SANDBOX_RUNNING;
	sandbox_list(rig.all, &f, on_list, &l);
	rig_run(&rig);
	assert_int_equal(l.n, 2);
	assert_int_equal(l.states[0], SANDBOX_STOPPED);
	assert_int_equal(l.states[1], SANDBOX_RUNNING);
	rig_close(&rig);
}

struct got {
	int calls;
	enum sandbox_state state;
	char name[SANDBOX_NAME_MAX + 1];
	size_t n_env;
	struct err err;
};

static void on_get(void *user, const struct sandbox_info *info, const struct err *err)
{
	struct got *g = user;

	g->calls++;
	g->err = err ? *err : (struct err){ 0 };
	if (!info)
		return;
	g->state = info->state;
	g->n_env = info->n_env;
	(void)snprintf(g->name, sizeof(g->name), "%s", info->name);
}

static void one_is_found_alive_or_ended_by_its_owner_only(void **state)
{
	const struct sandbox_pair env[] = { { "A", "1" } };
	struct sandbox_request req = rig_request("web");
	struct sandbox_rig rig;
	struct told t = { 0 };
	struct got g = { 0 };
	char id[ID_LEN + 1];

	(void)state;
	rig_open(&rig);
	req.env = env;
	req.n_env = 1;
	sandbox_create(rig.all, &req, rig_told, &t);
	rig_run(&rig);
	memcpy(id, t.id, sizeof(id));
	sandbox_get(rig.all, "web", "ann", on_get, &g);
	assert_int_equal(g.calls, 0);
	rig_run(&rig);
	assert_int_equal(g.calls, 1);
	assert_int_equal(g.state, SANDBOX_RUNNING);
	sandbox_get(rig.all, id, "bob", on_get, &g);
	rig_run(&rig);
	assert_int_equal(g.err.code, ENOENT);
	sandbox_delete(t.sb, "deleted", rig_told, &t);
	rig_run(&rig);
	sandbox_get(rig.all, id, "ann", on_get, &g);
	rig_run(&rig);
	assert_int_equal(g.err.code, 0);
	assert_int_equal(g.state, SANDBOX_STOPPED);
	assert_string_equal(g.name, "web");
	assert_int_equal(g.n_env, 1);
	sandbox_get(rig.all, id, "bob", on_get, &g);
	rig_run(&rig);
	assert_int_equal(g.err.code, ENOENT);
	sandbox_get(rig.all, "web", "ann", on_get, &g);
	rig_run(&rig);
	assert_int_equal(g.err.code, ENOENT);
	sandbox_get(rig.all, id, NULL, on_get, &g);
	rig_run(&rig);
	assert_int_equal(g.err.code, 0);
	rig_close(&rig);
}

static void on_pool(void *user, const struct pool_state *s, const struct err *err)
{
	*(int *)user = err ? -err->code : (int)s->ready;
}

static void a_pool_is_asked_for_by_its_template(void **state)
{
	struct sandbox_rig rig;
	int ready = 0;

	(void)state;
	rig_open(&rig);
	rig.fake.pool.ready = 5;
	sandboxes_pool_state(rig.all, "python", on_pool, &ready);
	assert_int_equal(ready, 0);
	rig_run(&rig);
	assert_int_equal(ready, 5);
	sandboxes_pool_state(rig.all, "ruby", on_pool, &ready);
	rig_run(&rig);
	assert_int_equal(ready, -ENOENT);
	rig_close(&rig);
}

/* ---- the registry's own end ---- */

static void the_registry_may_go_while_everything_is_on_its_way(void **state)
{
	struct sandbox_request req = rig_request("");
	struct exec_request command = { .command = "true" };
	struct sandbox_filter f = { .states = 1u << SANDBOX_STOPPED, .limit = 3 };
	struct sandbox_rig rig;
	struct told t = { 0 };
	struct exec_told x = { 0 };
	struct listed l = { 0 };
	struct got g = { 0 };
	struct sandbox *sb;
	int ready = 0;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	sandbox_create(rig.all, &req, rig_told, &t);
	(void)fake_step(&rig.fake);
	sandbox_create(rig.all, &req, rig_told, &t);
	sandbox_pause(rig_create(&rig, "b"), rig_told, &t);
	t.calls = 0;
	sandbox_delete(sb, "deleted", rig_told, &t);
	exec_start(sb, &command, rig_exec_told, &x);
	sandbox_list(rig.all, &f, on_list, &l);
	sandbox_get(rig.all, "web", "ann", on_get, &g);
	sandbox_get(rig.all, sb->id, "bob", on_get, &g);
	sandboxes_pool_state(rig.all, "python", on_pool, &ready);
	rig_death(&rig);
	rig_run(&rig);
	assert_int_equal(t.calls, 0);
	assert_int_equal(x.calls, 0);
	assert_int_equal(l.calls + g.calls + ready, 0);
	rig_close(&rig);
}

static bool is_not(void *user, const struct sandbox *sb)
{
	return strcmp(sb->name, user) != 0;
}

static void lists_go_from_the_oldest_on_and_from_a_time_on(void **state)
{
	struct sandbox_filter f = { .owner = "ann", .limit = 2, .oldest_first = true };
	char want[] = "abcde", id[ID_LEN + 1];
	struct sandbox_rig rig;
	struct listed l = { 0 };
	size_t at = 0;

	(void)state;
	rig_open(&rig);
	for (int c = 'a'; c < 'f'; c++) {
		(void)rig_create(&rig, (char[]){ (char)c, '\0' });
		rig_pass(&rig, 10);
	}
	do {
		sandbox_list(rig.all, &f, on_list, &l);
		rig_run(&rig);
		for (size_t i = 0; i < l.n; i++)
			assert_int_equal(l.names[i][0], want[at++]);
		memcpy(id, l.last_id, sizeof(id));
		f.before_ms = l.last_ms;
		f.before_id = id;
	} while (l.more);
	assert_int_equal(at, 5);
	f = (struct sandbox_filter){ .owner = "ann", .limit = 10, .created_after = l.last_ms };
	sandbox_list(rig.all, &f, on_list, &l);
	rig_run(&rig);
	assert_int_equal(l.n, 1); /* that moment is part of it */
	assert_string_equal(l.names[0], "e");
	f = (struct sandbox_filter){
		.owner = "ann", .limit = 10, .also = is_not, .also_user = (char[]){ "c" }
	};
	sandbox_list(rig.all, &f, on_list, &l);
	rig_run(&rig);
	assert_int_equal(l.n, 4);
	f.states = 1u << SANDBOX_STOPPED; /* the store knows nothing of such questions */
	sandbox_list(rig.all, &f, on_list, &l);
	rig_run(&rig);
	assert_int_equal(l.err.code, EINVAL);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_are_newest_first_in_pages_and_filtered),
		cmocka_unit_test(lists_go_from_the_oldest_on_and_from_a_time_on),
		cmocka_unit_test(lists_of_ended_ones_come_from_the_store),
		cmocka_unit_test(one_is_found_alive_or_ended_by_its_owner_only),
		cmocka_unit_test(a_pool_is_asked_for_by_its_template),
		cmocka_unit_test(the_registry_may_go_while_everything_is_on_its_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
