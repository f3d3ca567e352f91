/* What an owner may have: every limit is reached, held across restarts, and given back. */
#include "check.h"

#include <errno.h>
#include <string.h>

#include "sandbox/registry.h"
#include "sandbox/snapshot.h"
#include "sandbox/template_own.h"
#include "sandbox_rig.h"

#define MIB ((uint64_t)1 << 20)
#define DAY_MS 86400000

static struct quota used(struct sandbox_rig *rig, const char *owner)
{
	struct quota q;

	quota_of(rig->all, owner, NULL, &q);
	return q;
}

static void begin(struct sandbox_rig *rig, const char *owner, struct told *t)
{
	struct sandbox_request req = rig_request("");

	req.owner = owner;
	req.limits = (struct limits){ .memory_bytes = 64 * MIB,
				      .disk_bytes = 16 * MIB,
				      .cpu_milli = 250 };
	*t = (struct told){ 0 };
	sandbox_create(rig->all, &req, rig_told, t);
}

static struct sandbox *make(struct sandbox_rig *rig, const char *owner)
{
	struct told t;

	begin(rig, owner, &t);
	rig_run(rig);
	assert_string_equal(t.err.text, "");
	return t.sb;
}

static void assert_refused(const struct err *err, enum quota_kind kind, uint64_t limit,
			   uint64_t in_use)
{
	struct quota_refusal q;

	assert_int_equal(err->code, QUOTA_ERRNO);
	assert_int_equal(quota_refusal(err, &q), 0);
	assert_int_equal(q.kind, kind);
	assert_int_equal(q.limit, limit);
	assert_int_equal(q.used, in_use);
}

static void refused(struct sandbox_rig *rig, const char *owner, enum quota_kind kind,
		    uint64_t limit, uint64_t in_use)
{
	struct told t;

	begin(rig, owner, &t);
	assert_int_equal(t.calls, 0);
	rig_run(rig);
	assert_int_equal(t.calls, 1);
	assert_null(t.sb);
	assert_refused(&t.err, kind, limit, in_use);
}

static void end(struct sandbox_rig *rig, struct sandbox *sb)
{
	struct told t = { 0 };

	sandbox_delete(sb, "done", rig_told, &t);
	rig_run(rig);
	assert_int_equal(t.calls, 1);
}

static void each_limit_on_sandboxes_is_reached_and_given_back(void **state)
{
	static const struct {
		enum quota_kind kind;
		uint64_t limit, in_use; /* that many of one's own fill it */
	} rows[] = {
		{ QUOTA_SANDBOXES, 2, 2 },
		{ QUOTA_CPU, 600, 500 },
		{ QUOTA_MEMORY, 128 * MIB, 128 * MIB },
		{ QUOTA_DISK, 47 * MIB, 32 * MIB },
		{ QUOTA_PIDS, 2 * LIMIT_PIDS_DEFAULT, 2 * LIMIT_PIDS_DEFAULT },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sandbox_rig rig;
		struct sandbox *first;

		rig_open(&rig);
		rig.all->settings.quota.v[rows[i].kind] = rows[i].limit;
		first = make(&rig, "ann");
		(void)make(&rig, "ann");
		refused(&rig, "ann", rows[i].kind, rows[i].limit, rows[i].in_use);
		(void)make(&rig, "bob"); /* another owner has a quota of their own */
		end(&rig, first);
		(void)make(&rig, "ann");
		refused(&rig, "ann", rows[i].kind, rows[i].limit, rows[i].in_use);
		rig_close(&rig);
	}
}

static void two_requests_at_once_do_not_share_the_last_place(void **state)
{
	struct told a, b, c;
	struct sandbox_rig rig;

	(void)state;
	rig_open(&rig);
	rig.all->settings.quota.v[QUOTA_SANDBOXES] = 2;
	begin(&rig, "ann", &a);
	begin(&rig, "ann", &b);
	begin(&rig, "ann", &c);
	rig_run(&rig);
	assert_non_null(a.sb);
	assert_non_null(b.sb);
	assert_refused(&c.err, QUOTA_SANDBOXES, 2, 2);
	rig_close(&rig);
}

static void what_could_not_be_made_counts_nothing(void **state)
{
	struct quota none = { 0 }, now;
	struct sandbox_rig rig;
	struct told t;

	(void)state;
	rig_open(&rig);
	rig.faults.fail_in = 1;
	rig.faults.fail_with = ENOSPC;
	begin(&rig, "ann", &t);
	rig_run(&rig);
	assert_int_equal(t.err.code, ENOSPC);
	now = used(&rig, "ann");
	assert_memory_equal(&now, &none, sizeof(none));
	rig_close(&rig);
}

static void a_paused_sandbox_frees_its_processor_and_needs_it_again(void **state)
{
	struct sandbox_rig rig;
	struct sandbox *sb;
	struct told t = { 0 };

	(void)state;
	rig_open(&rig);
	rig.all->settings.quota.v[QUOTA_CPU] = 250;
	sb = make(&rig, "ann");
	refused(&rig, "ann", QUOTA_CPU, 250, 250);
	sandbox_pause(sb, rig_told, &t);
	rig_run(&rig);
	assert_int_equal(t.state, SANDBOX_PAUSED);
	assert_int_equal(used(&rig, "ann").v[QUOTA_CPU], 0);
	assert_int_equal(used(&rig, "ann").v[QUOTA_MEMORY], 64 * MIB);
	(void)make(&rig, "ann");
	t = (struct told){ 0 };
	sandbox_resume(sb, rig_told, &t);
	rig_run(&rig);
	assert_int_equal(t.calls, 1);
	assert_refused(&t.err, QUOTA_CPU, 250, 250);
	assert_int_equal(rig_state(sb), SANDBOX_PAUSED);
	/* Memory is allowed no more by now, but it has that already. */
	rig.all->settings.quota = (struct quota){ .v = { [QUOTA_MEMORY] = 1 } };
	t = (struct told){ 0 };
	sandbox_resume(sb, rig_told, &t);
	rig_run(&rig);
	assert_int_equal(t.state, SANDBOX_RUNNING);
	rig_close(&rig);
}

static void the_sums_are_right_again_after_a_restart(void **state)
{
	struct quota before, after;
	struct sandbox_rig rig;
	struct told t = { 0 };

	(void)state;
	rig_open(&rig);
	(void)make(&rig, "ann");
	sandbox_pause(make(&rig, "ann"), rig_told, &t);
	rig_run(&rig);
	end(&rig, make(&rig, "ann"));
	before = used(&rig, "ann");
	assert_int_equal(before.v[QUOTA_SANDBOXES], 2);
	assert_int_equal(before.v[QUOTA_CPU], 250);
	rig_death(&rig);
	rig_birth(&rig);
	rig_ready(&rig);
	rig_run(&rig);
	after = used(&rig, "ann");
	assert_memory_equal(&after, &before, sizeof(after));
	rig.all->settings.quota.v[QUOTA_SANDBOXES] = 2;
	refused(&rig, "ann", QUOTA_SANDBOXES, 2, 2);
	rig_close(&rig);
}

static void run(struct sandbox_rig *rig, struct sandbox *sb, struct exec_told *t)
{
	const struct exec_request req = { .kind = EXECUTION_COMMAND, .command = "true" };

	*t = (struct exec_told){ 0 };
	exec_start(sb, &req, rig_exec_told, t);
	rig_run(rig);
}

static void executions_are_counted_from_midnight_to_midnight(void **state)
{
	const struct exec_request bad = { .kind = EXECUTION_COMMAND };
	struct exec_told t;
	struct sandbox_rig rig;
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	rig.wall_ms = 20000LL * DAY_MS + DAY_MS - 2000;
	rig.all->settings.quota.v[QUOTA_EXECUTIONS] = 2;
	sb = make(&rig, "ann");
	t = (struct exec_told){ 0 };
	exec_start(sb, &bad, rig_exec_told, &t); /* never starts: does not count */
	rig_run(&rig);
	assert_int_equal(t.err.code, EINVAL);
	run(&rig, sb, &t);
	assert_int_equal(t.err.code, 0);
	exec_told_done(&t);
	run(&rig, sb, &t);
	assert_int_equal(t.err.code, 0);
	exec_told_done(&t);
	run(&rig, sb, &t);
	assert_refused(&t.err, QUOTA_EXECUTIONS, 2, 2);
	rig.wall_ms += 2000;
	run(&rig, sb, &t);
	assert_int_equal(t.err.code, 0);
	exec_told_done(&t);
	assert_int_equal(used(&rig, "ann").v[QUOTA_EXECUTIONS], 1);
	rig_close(&rig);
}

static void todays_executions_are_known_after_a_restart(void **state)
{
	struct usage_row row = { .owner = "ann", .sandbox_id = "s1", .executions = 7 };
	struct sandbox_rig rig;

	(void)state;
	rig_open(&rig);
	row.day = (int32_t)(rig.wall_ms / DAY_MS);
	assert_int_equal(store_put_usage(&rig.store, &row, NULL, NULL), 0);
	row.sandbox_id = "s2";
	assert_int_equal(store_put_usage(&rig.store, &row, NULL, NULL), 0);
	row.day--;
	assert_int_equal(store_put_usage(&rig.store, &row, NULL, NULL), 0);
	rig_death(&rig);
	rig_birth(&rig);
	assert_int_equal(used(&rig, "ann").v[QUOTA_EXECUTIONS], 14);
	assert_int_equal(used(&rig, "bob").v[QUOTA_EXECUTIONS], 0);
	rig_ready(&rig);
	rig_run(&rig);
	rig_close(&rig);
}

struct object_told {
	int calls;
	char id[ID_LEN + 1];
	struct err err;
};

static void on_object(void *user, struct object *o, const struct err *err)
{
	struct object_told *t = user;

	t->calls++;
	if (o)
		memcpy(t->id, o->id, sizeof(t->id));
	if (err)
		t->err = *err;
}

static void refused_volume(struct sandbox_rig *rig, uint64_t bytes, uint64_t in_use)
{
	struct object_told t = { 0 };

	volume_create(rig->all, "ann", "another", bytes, on_object, &t);
	rig_run(rig);
	assert_int_equal(t.calls, 1);
	assert_refused(&t.err, QUOTA_DISK, rig->all->settings.quota.v[QUOTA_DISK], in_use);
}

static void volumes_count_from_the_moment_that_they_are_asked_for(void **state)
{
	struct object_told a = { 0 }, b = { 0 }, gone = { 0 };
	struct sandbox_rig rig;

	(void)state;
	rig_open(&rig);
	rig.all->settings.quota.v[QUOTA_DISK] = 100 * MIB;
	volume_create(rig.all, "ann", "a", 60 * MIB, on_object, &a);
	volume_create(rig.all, "ann", "b", 60 * MIB, on_object, &b); /* the first is on its way */
	rig_run(&rig);
	assert_int_equal(a.err.code, 0);
	assert_refused(&b.err, QUOTA_DISK, 100 * MIB, 60 * MIB);
	(void)make(&rig, "ann"); /* 16 MiB of a sandbox */
	assert_int_equal(used(&rig, "ann").v[QUOTA_DISK], 76 * MIB);
	rig_death(&rig);
	rig_birth(&rig);
	rig_ready(&rig);
	rig_run(&rig);
	assert_int_equal(used(&rig, "ann").v[QUOTA_DISK], 76 * MIB);
	rig.all->settings.quota.v[QUOTA_DISK] = 100 * MIB;
	refused_volume(&rig, 60 * MIB, 76 * MIB);
	volume_delete(rig.all, a.id, on_object, &gone);
	rig_run(&rig);
	assert_int_equal(gone.err.code, 0);
	assert_int_equal(used(&rig, "ann").v[QUOTA_DISK], 16 * MIB);
	rig_close(&rig);
}

static void a_volume_that_cannot_be_made_gives_back_what_it_took(void **state)
{
	struct object_told a = { 0 };
	struct sandbox_rig rig;

	(void)state;
	rig_open(&rig);
	rig.faults.fail_in = 1;
	rig.faults.fail_with = ENOSPC;
	volume_create(rig.all, "ann", "a", 60 * MIB, on_object, &a);
	rig_run(&rig);
	assert_int_equal(a.err.code, ENOSPC);
	assert_int_equal(used(&rig, "ann").v[QUOTA_DISK], 0);
	a = (struct object_told){ 0 };
	rig.fake.fail_in = 1;
	volume_create(rig.all, "ann", "a", 60 * MIB, on_object, &a);
	rig_run(&rig);
	assert_int_not_equal(a.err.code, 0);
	assert_int_equal(used(&rig, "ann").v[QUOTA_DISK], 0);
	rig_close(&rig);
}

static void snapshots_and_templates_count_with_what_they_keep(void **state)
{
	struct template_wish wish = { .owner = "ann", .name = "t", .from = "", .snapshot = "s" };
	struct object_told s = { 0 }, t = { 0 };
	struct sandbox_rig rig;
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	rig.fake.layer_bytes = 10 * MIB;
	sb = make(&rig, "ann");
	rig.all->settings.quota.v[QUOTA_DISK] = 37 * MIB;
	snapshot_create(sb, "s", on_object, &s);
	rig_run(&rig);
	assert_int_equal(s.err.code, 0);
	assert_int_equal(used(&rig, "ann").v[QUOTA_DISK], 26 * MIB);
	template_create(rig.all, &wish, on_object, &t);
	rig_run(&rig);
	assert_string_equal(t.err.text, "");
	assert_int_equal(used(&rig, "ann").v[QUOTA_DISK], 36 * MIB);
	s = (struct object_told){ 0 };
	snapshot_create(sb, "s2", on_object, &s);
	rig_run(&rig);
	assert_refused(&s.err, QUOTA_DISK, 37 * MIB, 36 * MIB);
	t.err.code = 0;
	template_create(rig.all, &wish, on_object, &t);
	rig_run(&rig);
	assert_refused(&t.err, QUOTA_DISK, 37 * MIB, 36 * MIB);
	rig_close(&rig);
}

static struct told change(struct sandbox_rig *rig, struct sandbox *sb,
			  void (*fn)(struct sandbox *sb, sandbox_cb cb, void *user))
{
	struct told t = { 0 };

	fn(sb, rig_told, &t);
	rig_run(rig);
	assert_int_equal(t.calls, 1);
	return t;
}

static void a_stopped_sandbox_keeps_its_place_and_its_disk_alone(void **state)
{
	struct sandbox_rig rig;
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	rig.all->settings.quota.v[QUOTA_SANDBOXES] = 1;
	sb = make(&rig, "ann");
	assert_int_equal(change(&rig, sb, sandbox_suspend).state, SANDBOX_SUSPENDED);
	assert_int_equal(used(&rig, "ann").v[QUOTA_SANDBOXES], 1);
	assert_int_equal(used(&rig, "ann").v[QUOTA_DISK], 16 * MIB);
	assert_int_equal(used(&rig, "ann").v[QUOTA_MEMORY], 0);
	assert_int_equal(rig.all->capacity.promised.v[QUOTA_MEMORY], 0);
	refused(&rig, "ann", QUOTA_SANDBOXES, 1, 1);
	assert_int_equal(change(&rig, sb, sandbox_start).state, SANDBOX_RUNNING);
	assert_int_equal(rig.all->capacity.promised.v[QUOTA_MEMORY], 64 * MIB);
	rig_close(&rig);
}

/* ---- the machine ---- */

static void each_promise_of_the_machine_is_reached_and_given_back(void **state)
{
	static const struct {
		enum quota_kind kind;
		uint64_t most; /* two sandboxes fit */
		const char *setting;
	} rows[] = {
		{ QUOTA_CPU, 600, "commit_cpu" },
		{ QUOTA_MEMORY, 128 * MIB, "commit_memory" },
		{ QUOTA_PIDS, 2 * LIMIT_PIDS_DEFAULT, "commit_pids" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sandbox_rig rig;
		struct sandbox *first;
		struct told t;

		rig_open(&rig);
		rig.all->settings.pool_max = 0;
		rig.all->settings.commit.v[rows[i].kind] = rows[i].most;
		first = make(&rig, "ann");
		(void)make(&rig, "bob"); /* whose they are makes no difference */
		begin(&rig, "cid", &t);
		rig_run(&rig);
		assert_int_equal(t.err.code, CAPACITY_ERRNO);
		assert_non_null(strstr(t.err.text, rows[i].setting));
		end(&rig, first);
		(void)make(&rig, "cid");
		rig_close(&rig);
	}
}

static bool use_is(void *user, struct machine_use *ret)
{
	*ret = *(struct machine_use *)user;
	return ret->memory_left > 0;
}

static void what_the_machine_has_left_decides_about_a_new_box_only(void **state)
{
	struct machine_use use = { 100 * MIB, 900 };
	struct sandbox_rig rig;
	struct sandbox *sb;
	struct told t;

	(void)state;
	rig_open(&rig);
	rig.all->settings.reserve_bytes = 36 * MIB;
	rig.all->settings.processes_max = 900 + LIMIT_PIDS_DEFAULT;
	rig.all->machine_use = use_is;
	rig.all->machine_user = &use;
	sb = make(&rig, "ann"); /* 64 MiB, and 36 are left */
	rig_pass(&rig, 1000);
	use.memory_left--;
	begin(&rig, "ann", &t);
	rig_run(&rig);
	assert_int_equal(t.err.code, CAPACITY_ERRNO);
	assert_non_null(strstr(t.err.text, "memory_reserve"));
	(void)change(&rig, sb, sandbox_pause);
	assert_int_equal(change(&rig, sb, sandbox_resume).state, SANDBOX_RUNNING);
	assert_int_equal(change(&rig, sb, sandbox_suspend).state, SANDBOX_SUSPENDED);
	assert_int_equal(change(&rig, sb, sandbox_start).err.code, CAPACITY_ERRNO);
	rig_pass(&rig, 1000);
	use = (struct machine_use){ 100 * MIB, 901 };
	assert_int_equal(change(&rig, sb, sandbox_start).err.code, CAPACITY_ERRNO);
	rig_pass(&rig, 1000);
	use.memory_left = 0; /* it cannot be read: then nothing is said */
	assert_int_equal(change(&rig, sb, sandbox_start).state, SANDBOX_RUNNING);
	rig_close(&rig);
}

static void nobody_gets_more_than_the_maximum_and_defaults_are_lowered_to_it(void **state)
{
	struct sandbox_request req = rig_request("");
	struct sandbox_info info;
	struct sandbox_rig rig;
	struct told t = { 0 };

	(void)state;
	rig_open(&rig);
	rig.all->settings.limits_max = (struct limits){ .memory_bytes = 32 * MIB, .pids = 20 };
	sandbox_create(rig.all, &req, rig_told, &t);
	rig_run(&rig);
	assert_string_equal(t.err.text, "");
	sandbox_info(t.sb, &info);
	assert_int_equal(info.limits.memory_bytes, 32 * MIB);
	assert_int_equal(info.limits.pids, 20);
	assert_true(info.limits.disk_bytes <= 32 * MIB);
	req.limits.memory_bytes = 32 * MIB + 1;
	t = (struct told){ 0 };
	sandbox_create(rig.all, &req, rig_told, &t);
	rig_run(&rig);
	assert_int_equal(t.err.code, EINVAL);
	assert_non_null(strstr(t.err.text, "limits_memory_max"));
	rig_close(&rig);
}

static void bobs_is_larger(void *user, const char *owner, struct quota *ret)
{
	(void)user;
	assert_int_equal(ret->v[QUOTA_SANDBOXES], 1);
	if (strcmp(owner, "bob") == 0)
		ret->v[QUOTA_SANDBOXES] = 2;
}

static void an_owner_may_have_a_quota_of_their_own(void **state)
{
	struct sandbox_rig rig;
	struct quota q;

	(void)state;
	rig_open(&rig);
	rig.all->settings.quota.v[QUOTA_SANDBOXES] = 1;
	rig.all->quota_of = bobs_is_larger;
	(void)make(&rig, "ann");
	(void)make(&rig, "bob");
	(void)make(&rig, "bob");
	refused(&rig, "ann", QUOTA_SANDBOXES, 1, 1);
	refused(&rig, "bob", QUOTA_SANDBOXES, 2, 2);
	quota_of(rig.all, "bob", &q, NULL);
	assert_int_equal(q.v[QUOTA_SANDBOXES], 2);
	rig_close(&rig);
}

static void other_things_can_be_counted_too(void **state)
{
	struct err err = { 0 };
	struct sandbox_rig rig;

	(void)state;
	rig_open(&rig);
	rig.all->settings.quota.v[QUOTA_DISK] = 100;
	assert_int_equal(quota_take(rig.all, "ann", QUOTA_DISK, 60, &err), 0);
	assert_int_equal(quota_take(rig.all, "ann", QUOTA_DISK, 41, &err), -QUOTA_ERRNO);
	assert_refused(&err, QUOTA_DISK, 100, 60);
	assert_int_equal(quota_take(rig.all, "ann", QUOTA_DISK, UINT64_MAX, &err), -QUOTA_ERRNO);
	quota_give(rig.all, "ann", QUOTA_DISK, 20);
	assert_int_equal(quota_take(rig.all, "ann", QUOTA_DISK, 60, &err), 0);
	quota_give(rig.all, "ann", QUOTA_DISK, UINT64_MAX);
	assert_int_equal(used(&rig, "ann").v[QUOTA_DISK], 0);
	rig_close(&rig);
}

static void what_is_no_refusal_is_not_read_as_one(void **state)
{
	static const char *const texts[] = { "",
					     "cpu",
					     "cpu:",
					     "cpu: limit",
					     "cpu: limit x",
					     "cpu: limit 1",
					     "cpu: limit 1, in use ",
					     "gpu: limit 1, in use 1",
					     "cpu: limit 99999999999999999999, in use 1" };
	struct quota_refusal q = { .limit = 5 };
	struct err err = { .code = QUOTA_ERRNO };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		(void)err_set(&err, QUOTA_ERRNO, "%s", texts[i]);
		assert_int_equal(quota_refusal(&err, &q), -EINVAL);
	}
	(void)err_set(&err, EDQUOT, "cpu: limit 1, in use 1");
	assert_int_equal(quota_refusal(&err, &q), -EINVAL);
	assert_int_equal(q.limit, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_limit_on_sandboxes_is_reached_and_given_back),
		cmocka_unit_test(two_requests_at_once_do_not_share_the_last_place),
		cmocka_unit_test(what_could_not_be_made_counts_nothing),
		cmocka_unit_test(a_paused_sandbox_frees_its_processor_and_needs_it_again),
		cmocka_unit_test(the_sums_are_right_again_after_a_restart),
		cmocka_unit_test(executions_are_counted_from_midnight_to_midnight),
		cmocka_unit_test(todays_executions_are_known_after_a_restart),
		cmocka_unit_test(volumes_count_from_the_moment_that_they_are_asked_for),
		cmocka_unit_test(a_volume_that_cannot_be_made_gives_back_what_it_took),
		cmocka_unit_test(snapshots_and_templates_count_with_what_they_keep),
		cmocka_unit_test(an_owner_may_have_a_quota_of_their_own),
		cmocka_unit_test(a_stopped_sandbox_keeps_its_place_and_its_disk_alone),
		cmocka_unit_test(each_promise_of_the_machine_is_reached_and_given_back),
		cmocka_unit_test(what_the_machine_has_left_decides_about_a_new_box_only),
		cmocka_unit_test(nobody_gets_more_than_the_maximum_and_defaults_are_lowered_to_it),
		cmocka_unit_test(other_things_can_be_counted_too),
		cmocka_unit_test(what_is_no_refusal_is_not_read_as_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
