/* Control groups that outlive their launcher, for v1 and v2: left, not swept, entered again. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup_rig.h"
#include "check.h"
#include "fault.h"
#include "launch/cgroup_impl.h"

#define INSTANCE "abcdefghij0123456789"
#define MIB (1ull << 20)
#define LIMITS ((struct limits){ .memory_bytes = 64 * MIB, .pids = 20, .cpu_milli = 1000 })

static bool start(struct rig *rig)
{
	struct cgroups_options o = { .want = rig->kind, .instance = INSTANCE };

	rig->all = NULL;
	if (geteuid() != 0 || cgroups_open(&o, &rig->all, NULL) < 0)
		return false;
	rig->ops = cgroups_ops(rig->all);
	return true;
}

static int open_rig(void **state)
{
	(void)start(*state);
	return 0;
}

static bool keep_none(const char *name, void *arg)
{
	(void)name, (void)arg;
	return false;
}

static int close_rig(void **state)
{
	struct rig *rig = *state;

	if (rig->all)
		cgroups_prune(rig->all, keep_none, NULL);
	rig->all = cgroups_close(rig->all);
	return 0;
}

static struct rig *need(void **state)
{
	struct rig *rig = *state;

	if (!rig->all)
		skip();
	return rig;
}

static void body_pause(void *arg)
{
	if (arg)
		atomic_store((atomic_int *)arg, 1);
	for (;;)
		(void)pause();
}

static struct cgroup *make(const struct rig *rig)
{
	struct err err = { 0 };
	struct cgroup *cg = NULL;

	if (rig->ops->make(rig->all, &cg, &err) < 0 || rig->ops->limit(cg, &LIMITS, &err) < 0)
		fail_msg("%s", err.text);
	return cg;
}

/* The launcher goes, and the next one comes. */
static void restart(struct rig *rig)
{
	rig->all = cgroups_close(rig->all);
	assert_true(start(rig));
}

static bool has_group(const struct rig *rig, const char *name)
{
	return faccessat(rig->all->place[0].dir, name, F_OK, 0) == 0;
}

static void a_group_with_a_process_is_found_again_and_an_empty_one_is_gone(void **state)
{
	struct rig *rig = need(state);
	struct cgroup *full = make(rig), *empty = make(rig), *found = NULL, *next;
	pid_t pid = rig_spawn(rig, full, body_pause, NULL);
	struct cgroup_mark m, gone;
	struct box_usage u;

	cgroup_mark(full, &m);
	cgroup_mark(empty, &gone);
	assert_true(strcmp(m.name, gone.name) != 0);
	cgroup_forget(full);
	cgroup_forget(empty);
	restart(rig);
	assert_true(has_group(rig, m.name));
	assert_false(has_group(rig, gone.name));
	assert_int_equal(cgroup_open(rig->all, &m, pid, &found, NULL), 0);
	assert_int_equal(rig->ops->limit(found, &LIMITS, NULL), 0);
	assert_int_equal(rig->ops->usage(found, &u, NULL), 0);
	cgroups_prune(rig->all, keep_none, NULL); /* says which names are taken, too */
	assert_true(WIFSIGNALED(rig_wait(pid)));
	next = make(rig);
	cgroup_mark(next, &gone);
	assert_true(strcmp(m.name, gone.name) != 0);
	rig->ops->destroy(next);
	rig->ops->destroy(found);
}

static void what_does_not_hold_the_process_is_not_its_group(void **state)
{
	struct rig *rig = need(state);
	struct cgroup *cg = make(rig), *found = NULL;
	pid_t pid = rig_spawn(rig, cg, body_pause, NULL);
	struct cgroup_mark m, bad;

	cgroup_mark(cg, &m);
	assert_int_equal(cgroup_open(rig->all, &m, getpid(), &found, NULL), -ESTALE);
	bad = m;
	memcpy(bad.name, "ffff", 5);
	assert_int_equal(cgroup_open(rig->all, &bad, pid, &found, NULL), -ESTALE);
	memcpy(bad.name, "..", 3);
	assert_int_equal(cgroup_open(rig->all, &bad, pid, &found, NULL), -ESTALE);
	bad = m;
	bad.kind = 9;
	assert_int_equal(cgroup_open(rig->all, &bad, pid, &found, NULL), -ESTALE);
	assert_null(found);
	rig_kill(pid);
	rig->ops->destroy(cg);
}

static void a_process_in_a_group_of_another_kind_is_neither_taken_nor_lost(void **state)
{
	struct rig *rig = need(state);
	struct cgroup_mark m = { .kind = rig->kind == CGROUP_V1 ? CGROUP_V2 : CGROUP_V1,
				 .name = "7" };
	struct cgroup *found = NULL;

	assert_int_equal(cgroup_open(rig->all, &m, getpid(), &found, NULL), -ENOTSUP);
	assert_null(found);
}

static void a_process_without_a_group_stays_without(void **state)
{
	struct rig *rig = need(state);
	struct cgroup_mark m = { .kind = CGROUP_NONE, .name = "7" };
	struct cgroup *found = NULL;

	assert_int_equal(cgroup_open(rig->all, &m, getpid(), &found, NULL), 0);
	assert_int_equal(cgroup_ops_of(found)->kind, CGROUP_NONE);
	assert_int_equal(cgroup_missing_of(found), 0x1f);
	assert_int_equal(cgroup_ops_of(found)->limit(found, &LIMITS, NULL), 0);
	cgroup_ops_of(found)->destroy(found);
	assert_int_equal(cgroups_ops(rig->all)->kind, rig->kind);
}

static bool keep_one(const char *name, void *arg)
{
	return strcmp(name, arg) == 0;
}

static void pruning_kills_all_but_what_is_kept(void **state)
{
	struct rig *rig = need(state);
	struct cgroup *a = make(rig), *b = make(rig);
	pid_t kept = rig_spawn(rig, a, body_pause, NULL),
	      lost = rig_spawn(rig, b, body_pause, NULL);
	struct cgroup_mark m;

	cgroup_mark(a, &m);
	cgroups_prune(rig->all, keep_one, m.name);
	assert_int_equal(waitpid(kept, NULL, WNOHANG), 0);
	assert_true(WIFSIGNALED(rig_wait(lost)));
	rig_kill(kept);
	rig->ops->destroy(a);
	rig->ops->destroy(b);
}

static void others_neither_sweep_nor_disturb_it(void **state)
{
	struct rig *rig = need(state);
	struct rig other = { .kind = rig->kind };
	struct cgroup *cg = make(rig), *theirs;
	pid_t pid = rig_spawn(rig, cg, body_pause, NULL);
	struct cgroup *found = NULL;
	struct cgroup_mark m;

	cgroup_mark(cg, &m);
	cgroup_forget(cg);
	rig->all = cgroups_close(rig->all);
	assert_int_equal(
		cgroups_open(&(struct cgroups_options){ .want = rig->kind }, &other.all, NULL), 0);
	other.ops = cgroups_ops(other.all);
	(void)cgroups_sweep(other.all);
	theirs = make(&other);
	other.ops->destroy(theirs);
	other.all = cgroups_close(other.all);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	assert_true(start(rig));
	assert_int_equal(cgroup_open(rig->all, &m, pid, &found, NULL), 0);
	assert_int_equal(rig->ops->limit(found, &LIMITS, NULL), 0);
	rig_kill(pid);
	rig->ops->destroy(found);
}

static struct rig *need_freezer(void **state)
{
	struct rig *rig = need(state);

	if (cgroups_missing(rig->all) & CONTROLLER_FREEZER)
		skip();
	return rig;
}

static void a_frozen_group_is_found_frozen(void **state)
{
	struct rig *rig = need_freezer(state);
	atomic_int *started = rig_shared(sizeof(*started));
	struct cgroup *cg = make(rig), *found = NULL;
	pid_t pid = rig_spawn(rig, cg, body_pause, started);
	struct cgroup_mark m;

	RIG_UNTIL(atomic_load(started)); /* and without a copy of our lock */
	assert_false(cgroup_is_frozen(cg));
	assert_int_equal(rig->ops->freeze(cg, true, NULL), 0);
	cgroup_mark(cg, &m);
	cgroup_forget(cg);
	restart(rig);
	assert_int_equal(cgroup_open(rig->all, &m, pid, &found, NULL), 0);
	assert_true(cgroup_is_frozen(found));
	assert_int_equal(rig->ops->freeze(found, false, NULL), 0);
	assert_false(cgroup_is_frozen(found));
	rig_kill(pid);
	rig->ops->destroy(found);
	(void)munmap(started, sizeof(*started));
}

/* v1 enters the freezer only for a pause: a directory, then one process after the other. */
static void a_pause_that_was_cut_short_costs_no_box_and_is_made_up_for(void **state)
{
	struct rig *rig = need_freezer(state);
	atomic_int *started = rig_shared(2 * sizeof(*started));
	int dir = rig->all->place[HIER_FREEZER].dir;
	struct cgroup *cg, *found = NULL;
	struct cgroup_mark m;
	pid_t pid, other;

	if (rig->kind != CGROUP_V1)
		skip();
	cg = make(rig);
	pid = rig_spawn(rig, cg, body_pause, started);
	other = rig_spawn(rig, cg, body_pause, started + 1);
	RIG_UNTIL(atomic_load(started) && atomic_load(started + 1));
	cgroup_mark(cg, &m);
	cgroup_forget(cg);
	assert_int_equal(mkdirat(dir, m.name, 0755), 0);
	assert_int_equal(cgroup_open(rig->all, &m, pid, &found, NULL), 0);
	assert_false(cgroup_is_frozen(found));
	cgroup_forget(found);
	assert_int_equal(cgroup_write_u64(dir, m.name, "cgroup.procs", (uint64_t)pid), 0);
	assert_int_equal(cgroup_open(rig->all, &m, pid, &found, NULL), 0);
	assert_int_equal(rig->ops->freeze(found, true, NULL), 0);
	assert_int_equal(cgroup_lists(dir, m.name, other), 0);
	assert_int_equal(rig->ops->freeze(found, false, NULL), 0);
	rig_kill(pid);
	rig_kill(other);
	rig->ops->destroy(found);
	(void)munmap(started, 2 * sizeof(*started));
}

static void counters_go_on_from_where_they_were(void **state)
{
	struct rig *rig = need(state);
	struct cgroup *cg = make(rig), *found = NULL;
	pid_t pid = rig_spawn(rig, cg, body_pause, NULL);
	struct cgroup_mark m;
	struct box_usage before, after;

	assert_int_equal(rig->ops->usage(cg, &before, NULL), 0);
	cgroup_mark(cg, &m);
	m.cpu_base_us = m.memory_base = UINT64_MAX; /* nothing can be above */
	m.oom_base = UINT32_MAX;
	cgroup_forget(cg);
	restart(rig);
	assert_int_equal(cgroup_open(rig->all, &m, pid, &found, NULL), 0);
	assert_int_equal(rig->ops->usage(found, &after, NULL), 0);
	assert_int_equal(after.memory_bytes, 0);
	assert_int_equal(after.memory_peak_bytes, 0);
	assert_int_equal(after.oom_kills, 0);
	rig_kill(pid);
	rig->ops->destroy(found);
}

struct opening {
	struct cgroups *all;
	struct cgroup_mark m;
	pid_t pid;
};

static int open_and_forget(void *arg)
{
	struct opening *o = arg;
	struct cgroup *found = NULL;
	int r = cgroup_open(o->all, &o->m, o->pid, &found, NULL);

	cgroup_forget(found);
	return r;
}

static void opening_survives_every_lack_of_memory(void **state)
{
	struct rig *rig = need(state);
	struct cgroup *cg = make(rig);
	pid_t pid = rig_spawn(rig, cg, body_pause, NULL);
	struct opening o = { .all = rig->all, .pid = pid };

	cgroup_mark(cg, &o.m);
	assert_true(fault_each(open_and_forget, &o) > 0);
	rig_kill(pid);
	rig->ops->destroy(cg);
}

static void the_place_is_read_from_a_box(void **state)
{
	static const struct {
		const char *box, *launcher;
	} rows[] = {
		{ "5:memory:/holtd." INSTANCE "/1f\n4:freezer:/\n0::/a b\n",
		  "5:memory:\n4:freezer:/\n0::/a b\n" },
		{ "0::/s.slice/x:y.scope/holtd." INSTANCE "/0\n", "0::/s.slice/x:y.scope\n" },
		{ "0::/x/holtd." INSTANCE "/0", "0::/x\n" },
	};
	static const char *const none[] = { "", "0::/\n", "0::/holt." INSTANCE "/0\n",
					    "0::/holtd.abcdefghij012345678x/0\n",
					    "0::/holtd." INSTANCE "\n" };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *got = NULL;

		assert_int_equal(cgroups_find(INSTANCE, rows[i].box, &got), 0);
		assert_string_equal(got, rows[i].launcher);
		free(got);
	}
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		char *got = NULL;

		assert_int_equal(cgroups_find(INSTANCE, none[i], &got), -ENOENT);
		assert_null(got);
	}
}

static void without_groups_any_name_is_as_good(void **state)
{
	struct cgroup_mark m = { .kind = CGROUP_NONE, .name = "7" };
	struct cgroups *all = NULL;
	struct cgroup *cg = NULL;

	(void)state;
	assert_int_equal(cgroups_open(&(struct cgroups_options){ .off = true }, &all, NULL), 0);
	assert_int_equal(cgroups_ops(all)->kind, CGROUP_NONE);
	assert_int_equal(cgroups_missing(all), 0x1f);
	assert_string_equal(cgroups_why(all), "control groups are switched off");
	assert_int_equal(cgroup_open(all, &m, 1, &cg, NULL), 0);
	assert_false(cgroup_is_frozen(cg));
	cgroup_forget(cg);
	(void)cgroups_close(all);
}

static int enter(void **state)
{
	(void)state;
	(void)rig_enter();
	return 0;
}

static int leave(void **state)
{
	(void)state;
	if (geteuid() == 0)
		rig_leave();
	return 0;
}

#define BOTH(f)                                             \
	{ "v1: " #f, f, open_rig, close_rig, &rigs[0] },    \
	{                                                   \
		"v2: " #f, f, open_rig, close_rig, &rigs[1] \
	}

int main(void)
{
	static struct rig rigs[] = { { .kind = CGROUP_V1 }, { .kind = CGROUP_V2 } };
	const struct CMUnitTest tests[] = {
		BOTH(a_group_with_a_process_is_found_again_and_an_empty_one_is_gone),
		BOTH(what_does_not_hold_the_process_is_not_its_group),
		BOTH(a_process_in_a_group_of_another_kind_is_neither_taken_nor_lost),
		BOTH(a_process_without_a_group_stays_without),
		BOTH(pruning_kills_all_but_what_is_kept),
		BOTH(others_neither_sweep_nor_disturb_it),
		BOTH(a_frozen_group_is_found_frozen),
		BOTH(a_pause_that_was_cut_short_costs_no_box_and_is_made_up_for),
		BOTH(counters_go_on_from_where_they_were),
		BOTH(opening_survives_every_lack_of_memory),
		cmocka_unit_test(the_place_is_read_from_a_box),
		cmocka_unit_test(without_groups_any_name_is_as_good),
	};

	return cmocka_run_group_tests(tests, enter, leave);
}
