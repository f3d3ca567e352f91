/* The same claims for v1 and v2, on the kernel's own control groups. What a machine lacks is
 * skipped and said so; `make test-vm` runs the v2 half with every controller. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cgroup_rig.h"
#include "check.h"
#include "fault.h"
#include "launch/cgroup_impl.h"

#define MIB (1ull << 20)
#define STRANGER 65532u
#define LIMITS ((struct limits){ .memory_bytes = 64 * MIB, .pids = 20, .cpu_milli = 1000 })
static const char *const kind_names[] = { "none", "v1", "v2" };

static void need(const struct rig *rig, unsigned bits)
{
	unsigned missing;

	if (!rig->all) {
		print_message("cgroup %s is not usable here\n", kind_names[rig->kind]);
		skip();
	}
	missing = cgroups_missing(rig->all) & bits;
	if (missing) {
		print_message("cgroup %s lacks controllers %#x here\n", kind_names[rig->kind],
			      missing);
		skip();
	}
}

static struct cgroup *make(const struct rig *rig, const struct limits *l)
{
	struct err err = { 0 };
	struct cgroup *cg = NULL;

	if (rig->ops->make(rig->all, &cg, &err) < 0 || rig->ops->limit(cg, l, &err) < 0)
		fail_msg("%s", err.text);
	return cg;
}

static struct box_usage usage(const struct rig *rig, struct cgroup *cg)
{
	struct box_usage u = { 0 };
	struct err err = { 0 };

	if (rig->ops->usage(cg, &u, &err) < 0)
		fail_msg("%s", err.text);
	return u;
}

static int place_of(const struct rig *rig, enum hierarchy h)
{
	return rig->all->place[rig->kind == CGROUP_V2 ? HIER_UNIFIED : h].dir;
}

/* What the children do. */

static void body_hog(void *arg)
{
	size_t n = *(const size_t *)arg;
	char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (size_t i = 0; i < n; i += 4096)
		((volatile char *)p)[i] = 1;
}

struct holder {
	size_t bytes;
	atomic_int ready;
};

static void body_hold(void *arg)
{
	struct holder *h = arg;

	body_hog(&h->bytes);
	atomic_store(&h->ready, 1);
	(void)pause();
}

static void body_count(void *arg)
{
	for (;;)
		atomic_fetch_add((atomic_ulong *)arg, 1);
}

static void body_count_twice(void *arg)
{
	if (fork() == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		body_count((atomic_ulong *)arg + 1);
	}
	body_count(arg);
}

static void body_pause(void *arg)
{
	(void)arg;
	for (;;)
		(void)pause();
}

/* Ends with the number of children it could start. */
static void body_fork_20(void *arg)
{
	pid_t pids[20];
	int n = 0;

	(void)arg;
	while (n < 20 && (pids[n] = fork()) > 0)
		n++;
	if (n < 20 && pids[n] == 0)
		body_pause(NULL);
	if (n < 20 && errno != EAGAIN)
		_exit(98);
	for (int i = 0; i < n; i++) {
		(void)kill(pids[i], SIGKILL);
		(void)waitpid(pids[i], NULL, 0);
	}
	_exit(n);
}

/* Limits */

static void a_process_above_the_memory_limit_is_killed_and_counted(void **state)
{
	struct rig *rig = *state;
	size_t n = 64 * MIB;
	struct box_usage u;
	struct cgroup *cg;
	int status;

	need(rig, CONTROLLER_MEMORY);
	cg = make(rig, &(struct limits){ 16 * MIB, .pids = 20, .cpu_milli = 1000 });
	status = rig_wait(rig_spawn(rig, cg, body_hog, &n));
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	u = usage(rig, cg);
	assert_int_equal(u.oom_kills, 1);
	assert_in_range(u.memory_peak_bytes, 8 * MIB, 16 * MIB);
	rig->ops->destroy(cg);
}

static void all_groups_together_stay_below_their_bound(void **state)
{
	struct rig *rig = *state;
	size_t n = 64 * MIB;
	struct cgroup *cg;
	int status;

	need(rig, CONTROLLER_MEMORY | CONTROLLER_PIDS);
	cg = make(rig, &(struct limits){ 256 * MIB, .pids = 20, .cpu_milli = 1000 });
	cgroups_bound(rig->all, 32 * MIB, 10);
	status = rig_wait(rig_spawn(rig, cg, body_hog, &n));
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	cgroups_bound(rig->all, 128 * MIB, 10);
	assert_int_equal(rig_wait(rig_spawn(rig, cg, body_hog, &n)), 0);
	rig->ops->destroy(cg);
}

static void a_process_below_it_lives(void **state)
{
	struct rig *rig = *state;
	size_t n = 24 * MIB;
	struct cgroup *cg;

	need(rig, CONTROLLER_MEMORY);
	cg = make(rig, &LIMITS);
	assert_int_equal(rig_wait(rig_spawn(rig, cg, body_hog, &n)), 0);
	assert_int_equal(usage(rig, cg).oom_kills, 0);
	rig->ops->destroy(cg);
}

static void a_memory_limit_below_what_is_in_use_is_refused_in_words(void **state)
{
	struct rig *rig = *state;
	struct holder *h = rig_shared(sizeof(*h));
	struct limits l = LIMITS;
	struct err err = { 0 };
	struct cgroup *cg;
	char want[160];
	pid_t pid;

	need(rig, CONTROLLER_MEMORY);
	cg = make(rig, &l);
	h->bytes = 32 * MIB;
	pid = rig_spawn(rig, cg, body_hold, h);
	RIG_UNTIL(atomic_load(&h->ready));
	l.memory_bytes = 16 * MIB;
	assert_int_equal(rig->ops->limit(cg, &l, &err), -EBUSY);
	(void)snprintf(want, sizeof(want),
		       "memory limit 16 MiB: write memory.%s: Device or resource busy",
		       rig->kind == CGROUP_V2 ? "max" : "limit_in_bytes");
	assert_string_equal(err.text, want);
	assert_int_equal(kill(pid, 0), 0);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0); /* alive: nobody was killed for it */
	rig_kill(pid);
	assert_int_equal(rig->ops->limit(cg, &l, &err), 0);
	rig->ops->destroy(cg);
	(void)munmap(h, sizeof(*h));
}

static void a_memory_limit_goes_up_and_down(void **state)
{
	struct rig *rig = *state;
	struct limits l = LIMITS;
	struct err err = { 0 };
	size_t n = 80 * MIB;
	struct cgroup *cg;

	need(rig, CONTROLLER_MEMORY);
	cg = make(rig, &l);
	l.memory_bytes = 128 * MIB;
	assert_int_equal(rig->ops->limit(cg, &l, &err), 0);
	assert_int_equal(rig_wait(rig_spawn(rig, cg, body_hog, &n)), 0);
	l.memory_bytes = 32 * MIB;
	assert_int_equal(rig->ops->limit(cg, &l, &err), 0);
	assert_true(WIFSIGNALED(rig_wait(rig_spawn(rig, cg, body_hog, &n))));
	rig->ops->destroy(cg);
}

static void forks_above_the_process_limit_fail_with_eagain(void **state)
{
	struct rig *rig = *state;
	struct cgroup *cg;
	int status;

	need(rig, CONTROLLER_PIDS);
	cg = make(rig, &(struct limits){ 64 * MIB, .pids = 6, .cpu_milli = 1000 });
	status = rig_wait(rig_spawn(rig, cg, body_fork_20, NULL));
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 5); /* and itself */
	rig->ops->destroy(cg);
}

static uint64_t throttled(const struct rig *rig, struct cgroup *cg)
{
	uint64_t n = 0;

	assert_int_equal(
		cgroup_read_key(place_of(rig, HIER_CPU), cg->name, "cpu.stat", "nr_throttled", &n),
		0);
	return n;
}

static void a_process_that_wants_more_cpu_is_throttled(void **state)
{
	struct rig *rig = *state;
	atomic_ulong *n = rig_shared(sizeof(*n));
	struct cgroup *cg;
	pid_t pid;

	need(rig, CONTROLLER_CPU);
	cg = make(rig, &(struct limits){ 64 * MIB, .pids = 20, .cpu_milli = 100 });
	pid = rig_spawn(rig, cg, body_count, n);
	RIG_UNTIL(throttled(rig, cg) > 2);
	rig_kill(pid);
	rig->ops->destroy(cg);
	(void)munmap(n, sizeof(*n));
}

static void a_pinned_box_runs_on_its_cpus_alone(void **state)
{
	struct rig *rig = *state;
	struct limits l = LIMITS;
	struct err err = { 0 };
	struct cgroup *cg;
	cpu_set_t set;
	int before;
	pid_t pid;

	need(rig, CONTROLLER_CPUSET);
	cg = make(rig, &l);
	pid = rig_spawn(rig, cg, body_pause, NULL);
	assert_int_equal(sched_getaffinity(pid, sizeof(set), &set), 0);
	before = CPU_COUNT(&set);
	l.cpu_mask = 1;
	assert_int_equal(rig->ops->limit(cg, &l, &err), 0);
	assert_int_equal(sched_getaffinity(pid, sizeof(set), &set), 0);
	assert_true(CPU_COUNT(&set) == 1 && CPU_ISSET(0, &set));
	l.cpu_mask = 0;
	assert_int_equal(rig->ops->limit(cg, &l, &err), 0);
	assert_int_equal(sched_getaffinity(pid, sizeof(set), &set), 0);
	assert_int_equal(CPU_COUNT(&set), before);
	rig_kill(pid);
	rig->ops->destroy(cg);
}

static void a_limit_in_force_is_not_written_again(void **state)
{
	struct rig *rig = *state;
	struct limits l = LIMITS;
	struct err err = { 0 };
	struct cgroup *cg;
	uint64_t now = 0;

	need(rig, CONTROLLER_PIDS);
	cg = make(rig, &l);
	assert_int_equal(cgroup_write(place_of(rig, HIER_PIDS), cg->name, "pids.max", "7"), 0);
	assert_int_equal(rig->ops->limit(cg, &l, &err), 0);
	assert_int_equal(cgroup_read_u64(place_of(rig, HIER_PIDS), cg->name, "pids.max", &now), 0);
	assert_int_equal(now, 7);
	l.pids = 9;
	assert_int_equal(rig->ops->limit(cg, &l, &err), 0);
	assert_int_equal(cgroup_read_u64(place_of(rig, HIER_PIDS), cg->name, "pids.max", &now), 0);
	assert_int_equal(now, 9);
	rig->ops->destroy(cg);
}

/* Processes */

static void usage_counts_cpu_time_and_processes(void **state)
{
	struct rig *rig = *state;
	atomic_ulong *n = rig_shared(sizeof(*n));
	struct cgroup *cg;
	pid_t pid;

	need(rig, 0);
	cg = make(rig, &LIMITS);
	assert_int_equal(usage(rig, cg).cpu_us, 0);
	pid = rig_spawn(rig, cg, body_count, n);
	RIG_UNTIL(usage(rig, cg).cpu_us > 1000);
	if (!(cgroups_missing(rig->all) & CONTROLLER_PIDS))
		assert_int_equal(usage(rig, cg).pids, 1);
	rig_kill(pid);
	rig->ops->destroy(cg);
	(void)munmap(n, sizeof(*n));
}

static void a_child_starts_inside_where_the_kernel_can(void **state)
{
	struct rig *rig = *state;
	_free_ pid_t *pids = NULL;
	struct cgroup *cg;
	size_t n = 0;
	pid_t pid;

	need(rig, 0);
	cg = make(rig, &LIMITS);
	if (rig->kind == CGROUP_V1)
		assert_int_equal(rig->ops->spawn_fd(cg), -1);
	else
		assert_true(rig->ops->spawn_fd(cg) >= 0);
	pid = rig_spawn(rig, cg, body_pause, NULL);
	assert_int_equal(cgroup_read_procs(place_of(rig, HIER_MEMORY), cg->name, &pids, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(pids[0], pid);
	rig_kill(pid);
	rig->ops->destroy(cg);
}

static void a_process_can_be_attached(void **state)
{
	struct rig *rig = *state;
	struct err err = { 0 };
	struct cgroup *cg;
	pid_t pid;

	need(rig, 0);
	cg = make(rig, &LIMITS);
	pid = fork();
	if (pid == 0)
		body_pause(NULL);
	assert_int_equal(rig->ops->attach(cg, pid, &err), 0);
	assert_int_equal(rig->ops->reset(cg), -EBUSY);
	rig_kill(pid);
	assert_true(rig->ops->attach(cg, pid, &err) < 0);
	assert_non_null(strstr(err.text, "No such process"));
	rig->ops->destroy(cg);
}

static void freezing_stops_every_process_and_thawing_starts_them(void **state)
{
	struct rig *rig = *state;
	atomic_ulong *n = rig_shared(2 * sizeof(*n));
	struct err err = { 0 };
	struct cgroup *cg;
	unsigned long a, b;
	pid_t pid;

	need(rig, CONTROLLER_FREEZER);
	cg = make(rig, &LIMITS);
	pid = rig_spawn(rig, cg, body_count_twice, n);
	RIG_UNTIL(atomic_load(&n[0]) && atomic_load(&n[1]));
	if (rig->ops->freeze(cg, true, &err) < 0)
		fail_msg("%s", err.text);
	a = atomic_load(&n[0]);
	b = atomic_load(&n[1]);
	(void)usleep(50000);
	assert_int_equal(atomic_load(&n[0]), a);
	assert_int_equal(atomic_load(&n[1]), b);
	assert_int_equal(rig->ops->freeze(cg, false, &err), 0);
	RIG_UNTIL(atomic_load(&n[0]) > a && atomic_load(&n[1]) > b);
	rig_kill(pid);
	rig->ops->destroy(cg);
	(void)munmap(n, 2 * sizeof(*n));
}

static void destroying_kills_what_is_left_even_frozen(void **state)
{
	struct rig *rig = *state;
	struct err err = { 0 };
	struct cgroup *cg;
	pid_t pid;

	need(rig, CONTROLLER_FREEZER);
	cg = make(rig, &LIMITS);
	pid = rig_spawn(rig, cg, body_pause, NULL);
	assert_int_equal(rig->ops->freeze(cg, true, &err), 0);
	rig->ops->destroy(cg);
	assert_int_equal(WTERMSIG(rig_wait(pid)), SIGKILL);
}

/* Reuse */

/* memory.peak can be started anew since 6.12. */
static bool can_reset_peak(const struct rig *rig)
{
	struct utsname u;
	unsigned major = 0, minor = 0;

	if (rig->kind != CGROUP_V2 || cgroups_missing(rig->all) & CONTROLLER_MEMORY)
		return true;
	assert_int_equal(uname(&u), 0);
	assert_int_equal(sscanf(u.release, "%u.%u", &major, &minor), 2);
	return major > 6 || (major == 6 && minor >= 12);
}

static void a_reset_group_shows_nothing_of_its_past(void **state)
{
	struct rig *rig = *state;
	atomic_ulong *count = rig_shared(sizeof(*count));
	struct box_usage u, none = { 0 };
	size_t n = 128 * MIB, small = 4 * MIB;
	struct cgroup *cg;
	pid_t pid;

	need(rig, 0);
	cg = make(rig, &LIMITS);
	pid = rig_spawn(rig, cg, body_count, count);
	RIG_UNTIL(usage(rig, cg).cpu_us > 1000);
	rig_kill(pid);
	if (!(cgroups_missing(rig->all) & CONTROLLER_MEMORY)) {
		(void)rig_wait(rig_spawn(rig, cg, body_hog, &n));
		assert_int_equal(usage(rig, cg).oom_kills, 1);
	}
	if (!can_reset_peak(rig)) {
		assert_int_equal(rig->ops->reset(cg), -EBUSY);
		goto out;
	}
	RIG_UNTIL(rig->ops->reset(cg) == 0); /* the kernel gives memory back in its own time */
	u = usage(rig, cg);
	assert_memory_equal(&u, &none, sizeof(u));
	if (!(cgroups_missing(rig->all) & CONTROLLER_MEMORY)) {
		assert_int_equal(rig_wait(rig_spawn(rig, cg, body_hog, &small)), 0);
		u = usage(rig, cg);
		assert_int_equal(u.oom_kills, 0);
		assert_in_range(u.memory_peak_bytes, 3 * MIB, 8 * MIB);
	}
out:
	rig->ops->destroy(cg);
	(void)munmap(count, sizeof(*count));
}

static void body_fill(void *arg)
{
	body_hog(&(size_t){ MIB });
	memset(arg, 1, 8 * MIB);
}

static void a_group_with_memory_still_charged_is_not_reset(void **state)
{
	struct rig *rig = *state;
	struct cgroup *cg;
	char *shared;

	need(rig, CONTROLLER_MEMORY);
	shared = rig_shared(8 * MIB); /* charged to whoever touches it first, until it is gone */
	cg = make(rig, &LIMITS);
	assert_int_equal(rig_wait(rig_spawn(rig, cg, body_fill, shared)), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(rig->ops->reset(cg), -EBUSY);
	(void)munmap(shared, 8 * MIB);
	if (can_reset_peak(rig))
		RIG_UNTIL(rig->ops->reset(cg) == 0);
	rig->ops->destroy(cg);
}

static void a_group_that_was_frozen_is_thawed_by_reset(void **state)
{
	struct rig *rig = *state;
	atomic_ulong *n = rig_shared(sizeof(*n));
	struct err err = { 0 };
	struct cgroup *cg;
	pid_t pid;

	need(rig, CONTROLLER_FREEZER);
	if (!can_reset_peak(rig))
		skip();
	cg = make(rig, &LIMITS);
	assert_int_equal(rig->ops->freeze(cg, true, &err), 0);
	RIG_UNTIL(rig->ops->reset(cg) == 0);
	pid = rig_spawn(rig, cg, body_count, n);
	RIG_UNTIL(atomic_load(n) > 0);
	rig_kill(pid);
	rig->ops->destroy(cg);
	(void)munmap(n, sizeof(*n));
}

/* Instances */

static void closing_leaves_no_directory(void **state)
{
	struct rig *rig = *state;
	struct cgroups *second = NULL;
	struct err err = { 0 };
	int before;

	need(rig, 0);
	before = rig_count_instances();
	assert_true(before > 0);
	assert_int_equal(
		cgroups_open(&(struct cgroups_options){ .want = rig->kind }, &second, &err), 0);
	assert_true(rig_count_instances() > before);
	assert_null(cgroups_close(second));
	assert_int_equal(rig_count_instances(), before);
	rig->all = cgroups_close(rig->all);
	assert_int_equal(rig_count_instances(), 0);
}

static void one_launcher_can_end_while_another_works(void **state)
{
	struct rig *rig = *state;
	struct rig second = { .kind = rig->kind };
	struct err err = { 0 };
	struct cgroup *cg;

	need(rig, 0);
	assert_int_equal(
		cgroups_open(&(struct cgroups_options){ .want = rig->kind }, &second.all, &err), 0);
	second.ops = cgroups_ops(second.all);
	assert_int_equal(cgroups_missing(second.all), cgroups_missing(rig->all));
	rig->all = cgroups_close(rig->all);
	cg = make(&second, &LIMITS);
	rig_kill(rig_spawn(&second, cg, body_pause, NULL));
	second.ops->destroy(cg);
	second.all = cgroups_close(second.all);
	assert_int_equal(rig_count_instances(), 0);
}

static void works_after_leaving_the_mounts_behind(void **state)
{
	struct rig *rig = *state;
	int status;
	pid_t pid;

	need(rig, 0);
	pid = fork();
	if (pid == 0) {
		struct rig in = *rig;
		struct err err = { 0 };
		struct cgroup *cg;

		if (cgroups_open(&(struct cgroups_options){ .want = rig->kind }, &in.all, &err) < 0)
			_exit(1);
		if (unshare(CLONE_NEWNS) < 0 ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
			_exit(2);
		if (umount2("/sys/fs/cgroup", MNT_DETACH) < 0 || umount2("/proc", MNT_DETACH) < 0)
			_exit(3);
		if (in.ops->make(in.all, &cg, &err) < 0 || in.ops->limit(cg, &LIMITS, &err) < 0)
			_exit(4);
		rig_kill(rig_spawn(&in, cg, body_pause, NULL));
		(void)usage(&in, cg);
		in.ops->destroy(cg);
		(void)cgroups_close(in.all);
		_exit(0);
	}
	status = rig_wait(pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

struct orphans {
	atomic_int started, ready;
	pid_t pids[3];
};

static void body_outlive(void *arg)
{
	struct orphans *o = arg;

	(void)prctl(PR_SET_PDEATHSIG, 0);
	atomic_fetch_add(&o->started, 1);
	body_pause(NULL);
}

/* A launcher with three boxes, one of them paused. */
static void hold_boxes(const struct rig *rig, struct orphans *o)
{
	struct rig in = { .kind = rig->kind, .ops = rig->ops };
	struct err err = { 0 };
	struct cgroup *cg;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (cgroups_open(&(struct cgroups_options){ .want = rig->kind }, &in.all, &err) < 0)
		_exit(1);
	for (int i = 0; i < 3; i++) {
		cg = make(&in, &LIMITS);
		o->pids[i] = rig_spawn(&in, cg, body_outlive, o);
	}
	RIG_UNTIL(atomic_load(&o->started) == 3); /* and without a copy of the holder's lock */
	if (in.ops->freeze(cg, true, &err) < 0)
		_exit(2);
	atomic_store(&o->ready, 1);
	body_pause(NULL);
}

static bool is_gone(int pidfd)
{
	return poll(&(struct pollfd){ .fd = pidfd, .events = POLLIN }, 1, 0) == 1;
}

static void what_a_killed_launcher_left_is_swept_and_what_a_living_one_has_is_not(void **state)
{
	struct rig *rig = *state;
	struct orphans *o = rig_shared(sizeof(*o));
	int pidfds[3], before;
	pid_t holder;

	need(rig, CONTROLLER_FREEZER);
	before = rig_count_instances();
	holder = fork();
	if (holder == 0)
		hold_boxes(rig, o);
	RIG_UNTIL(atomic_load(&o->ready));
	for (int i = 0; i < 3; i++) {
		pidfds[i] = (int)syscall(SYS_pidfd_open, o->pids[i], 0);
		assert_true(pidfds[i] >= 0);
	}
	assert_int_equal(cgroups_sweep(rig->all), 0);
	assert_true(rig_count_instances() > before);
	rig_kill(holder);
	assert_false(is_gone(pidfds[0]));
	assert_int_equal(cgroups_sweep(rig->all), 3);
	for (int i = 0; i < 3; i++) {
		assert_true(is_gone(pidfds[i]));
		(void)close(pidfds[i]);
	}
	assert_int_equal(rig_count_instances(), before);
	assert_int_equal(cgroups_sweep(rig->all), 0);
	(void)munmap(o, sizeof(*o));
}

/* Whose it is */

static int as_stranger(const struct rig *rig, int (*fn)(const struct rig *))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (setresgid(STRANGER, STRANGER, STRANGER) < 0 ||
		    setresuid(STRANGER, STRANGER, STRANGER) < 0)
			_exit(99);
		_exit(fn(rig));
	}
	status = rig_wait(pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int expect_none(const struct rig *rig)
{
	struct cgroups *all = NULL;
	struct cgroup *cg = NULL;
	struct err err = { 0 };
	int r = 0;

	(void)rig;
	if (cgroups_open(&(struct cgroups_options){ 0 }, &all, &err) < 0)
		return 1;
	if (cgroups_ops(all)->kind != CGROUP_NONE || cgroups_missing(all) != 0x1f)
		r = 2;
	else if (!strstr(cgroups_why(all), "control"))
		r = 3;
	else if (cgroups_ops(all)->make(all, &cg, &err) < 0 ||
		 cgroups_ops(all)->limit(cg, &LIMITS, &err) < 0 ||
		 cgroups_ops(all)->freeze(cg, true, &err) != -ENOTSUP)
		r = 4;
	cgroups_ops(all)->destroy(cg);
	(void)cgroups_close(all);
	return r;
}

static void a_user_without_a_group_of_their_own_is_told(void **state)
{
	struct rig *rig = *state;

	need(rig, 0);
	assert_int_equal(as_stranger(rig, expect_none), 0);
}

static int use_as_stranger(const struct rig *rig)
{
	struct rig in = { .kind = rig->kind };
	struct err err = { 0 };
	size_t n = 128 * MIB;
	struct cgroup *cg;
	int status;

	if (cgroups_open(&(struct cgroups_options){ .want = rig->kind }, &in.all, &err) < 0) {
		print_error("%s\n", err.text);
		return 1;
	}
	in.ops = cgroups_ops(in.all);
	if (cgroups_missing(in.all) & ~cgroups_missing(rig->all))
		return 2;
	cg = make(&in, &LIMITS);
	status = rig_wait(rig_spawn(&in, cg, body_hog, &n));
	if (!(cgroups_missing(in.all) & CONTROLLER_MEMORY) &&
	    (!WIFSIGNALED(status) || usage(&in, cg).oom_kills != 1))
		return 3;
	in.ops->destroy(cg);
	(void)cgroups_close(in.all);
	return 0;
}

static void a_delegated_group_serves_an_ordinary_user(void **state)
{
	struct rig *rig = *state;
	int r;

	need(rig, 0);
	rig_delegate(STRANGER);
	r = as_stranger(rig, use_as_stranger);
	rig_delegate(0);
	assert_int_equal(r, 0);
}

static int open_and_close(void *arg)
{
	struct cgroups *all = NULL;
	int r;

	r = cgroups_open(&(struct cgroups_options){ .want = *(enum launch_cgroup *)arg }, &all,
			 NULL);
	(void)cgroups_close(all);
	return r;
}

static void opening_survives_every_lack_of_memory(void **state)
{
	struct rig *rig = *state;
	enum launch_cgroup best = CGROUP_NONE;
	int before;

	need(rig, 0);
	before = rig_count_instances();
	assert_true(fault_each(open_and_close, &rig->kind) > 0);
	assert_true(fault_each(open_and_close, &best) > 0);
	assert_int_equal(rig_count_instances(), before);
}

static void a_kind_that_is_not_there_is_an_error_when_asked_for(void **state)
{
	struct rig *rig = *state;
	struct cgroups *all = NULL;
	struct err err = { 0 };

	if (rig->all)
		skip();
	assert_true(cgroups_open(&(struct cgroups_options){ .want = rig->kind }, &all, &err) < 0);
	assert_null(all);
	assert_true(err.text[0] != '\0');
}

static int open_rig(void **state)
{
	struct rig *rig = *state;
	struct err err = { 0 };

	rig->all = NULL;
	if (geteuid() != 0 ||
	    cgroups_open(&(struct cgroups_options){ .want = rig->kind }, &rig->all, &err) < 0)
		return 0;
	rig->ops = cgroups_ops(rig->all);
	return 0;
}

static int close_rig(void **state)
{
	struct rig *rig = *state;

	rig->all = cgroups_close(rig->all);
	return 0;
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
		BOTH(a_process_above_the_memory_limit_is_killed_and_counted),
		BOTH(all_groups_together_stay_below_their_bound),
		BOTH(a_process_below_it_lives),
		BOTH(a_memory_limit_below_what_is_in_use_is_refused_in_words),
		BOTH(a_memory_limit_goes_up_and_down),
		BOTH(forks_above_the_process_limit_fail_with_eagain),
		BOTH(a_process_that_wants_more_cpu_is_throttled),
		BOTH(a_pinned_box_runs_on_its_cpus_alone),
		BOTH(a_limit_in_force_is_not_written_again),
		BOTH(usage_counts_cpu_time_and_processes),
		BOTH(a_child_starts_inside_where_the_kernel_can),
		BOTH(a_process_can_be_attached),
		BOTH(freezing_stops_every_process_and_thawing_starts_them),
		BOTH(destroying_kills_what_is_left_even_frozen),
		BOTH(a_reset_group_shows_nothing_of_its_past),
		BOTH(a_group_with_memory_still_charged_is_not_reset),
		BOTH(a_group_that_was_frozen_is_thawed_by_reset),
		BOTH(closing_leaves_no_directory),
		BOTH(one_launcher_can_end_while_another_works),
		BOTH(works_after_leaving_the_mounts_behind),
		BOTH(what_a_killed_launcher_left_is_swept_and_what_a_living_one_has_is_not),
		BOTH(a_user_without_a_group_of_their_own_is_told),
		BOTH(a_delegated_group_serves_an_ordinary_user),
		BOTH(opening_survives_every_lack_of_memory),
		BOTH(a_kind_that_is_not_there_is_an_error_when_asked_for),
	};

	return cmocka_run_group_tests(tests, enter, leave);
}
