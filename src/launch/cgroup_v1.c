/* cgroup v1: a hierarchy for each controller, some mounted together. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch/cgroup_impl.h"
#include "launch/cgroup_parse.h"

#define SOCKETS_PART 4 /* of the memory limit: one part in so many, on top of it */

static const struct {
	const char *controller;
	unsigned bit; /* what is missing without it */
} hierarchies[HIER_COUNT] = {
	[HIER_MEMORY] = { "memory", CONTROLLER_MEMORY },
	[HIER_PIDS] = { "pids", CONTROLLER_PIDS },
	[HIER_CPU] = { "cpu", CONTROLLER_CPU },
	[HIER_CPUACCT] = { "cpuacct", 0 },
	[HIER_FREEZER] = { "freezer", CONTROLLER_FREEZER },
	[HIER_CPUSET] = { "cpuset", CONTROLLER_CPUSET },
};

static bool has(const struct cgroups *all, enum hierarchy h)
{
	return all->place[h].dir >= 0;
}

static int write_one(struct cgroup *cg, enum hierarchy h, const char *file, uint64_t value)
{
	return cgroup_write_u64(cg->all->place[h].dir, cg->name, file, value);
}

/* A new cpuset has no CPU and no memory node, and takes no process until it has. */
static int fill_cpuset(int parent, int dir, const char *group)
{
	static const char *const files[] = { "cpuset.mems", "cpuset.cpus" };
	char text[512];
	int r;

	for (size_t i = 0; i < 2; i++) {
		r = cgroup_read(parent, ".", files[i], text, sizeof(text));
		if (r >= 0)
			r = cgroup_write(dir, group, files[i], text);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The place of a hierarchy already in use: cpu and cpuacct are mostly mounted together. */
static const struct cgroup_place *find_same(const struct cgroups *all, const struct cgroup_place *p)
{
	struct stat a, b;

	if (fstat(p->own, &a) < 0)
		return NULL;
	for (int h = 0; h < HIER_COUNT; h++) {
		const struct cgroup_place *q = &all->place[h];

		if (q != p && q->own >= 0 && fstat(q->own, &b) == 0 && a.st_dev == b.st_dev &&
		    a.st_ino == b.st_ino)
			return q;
	}
	return NULL;
}

static int setup_one(struct cgroups *all, enum hierarchy h, const struct cgroup_texts *t,
		     struct err *err)
{
	struct cgroup_place *p = &all->place[h];
	const struct cgroup_place *same;
	char own[PATH_MAX];
	int r;

	r = cgroup_parse_dir(t->mountinfo, t->self, hierarchies[h].controller, own, sizeof(own));
	if (r < 0)
		return err_set(err, -r, "cgroup v1 has no %s controller",
			       hierarchies[h].controller);
	r = cgroup_place_open(p, own, CGROUP_SUPER_MAGIC, err);
	if (r < 0)
		return r;
	same = find_same(all, p);
	if (same) {
		(void)close(p->own);
		*p = (struct cgroup_place){ -1, same->dir };
	} else {
		r = cgroup_place_enter(p, all, err);
		if (r < 0) {
			cgroup_place_close(p, all);
			return r;
		}
	}
	if (h != HIER_CPUSET)
		return 0;
	r = fill_cpuset(same ? same->own : p->own, p->dir, ".");
	return r < 0 ? err_sys(err, r, "inherit CPUs") : 0;
}

int cgroup_v1_setup(struct cgroups *all, const struct cgroup_texts *t, struct err *err)
{
	struct err first = { 0 };
	bool any = false;

	all->ops = &cgroup_v1_ops;
	all->missing = 0;
	for (int h = 0; h < HIER_COUNT; h++) { /* upwards: what is shared belongs to the lowest */
		struct err e = { 0 };
		int r = setup_one(all, (enum hierarchy)h, t, &e);

		if (r < 0 && first.code == 0)
			first = e;
		if (r < 0 && !cgroup_is_absence(r))
			return err_set(err, e.code, "%s", e.text);
		if (r < 0)
			all->missing |= hierarchies[h].bit;
		any |= r == 0 && h < HIER_EAGER;
	}
	if (!any)
		return err_set(err, first.code, "%s", first.text);
	all->has_memsw =
		has(all, HIER_MEMORY) &&
		faccessat(all->place[HIER_MEMORY].dir, "memory.memsw.limit_in_bytes", F_OK, 0) == 0;
	return 0;
}

/* Is there a directory of its own to make, enter and remove? */
static bool is_distinct(const struct cgroups *all, enum hierarchy h)
{
	return all->place[h].own >= 0;
}

static int make_dir(struct cgroup *cg, enum hierarchy h, struct err *err)
{
	const struct cgroup_place *p = &cg->all->place[h];

	if (mkdirat(p->dir, cg->name, 0755) < 0)
		return err_sys(err, errno, "make %s control group", hierarchies[h].controller);
	cg->joined |= 1u << h;
	return 0;
}

static void v1_destroy(struct cgroup *cg)
{
	if (!cg)
		return;
	for (int h = HIER_COUNT - 1; h >= 0; h--) /* the freezer thaws before the others wait */
		if (cg->joined & 1u << h)
			(void)cgroup_remove(cg->all->place[h].dir, cg->name);
	free(cg);
}

static int v1_make(struct cgroups *all, struct cgroup **ret, struct err *err)
{
	struct cgroup *cg = cgroup_new(all);
	int r = 0;

	if (!cg)
		return err_sys(err, ENOMEM, "control group");
	for (int h = 0; r == 0 && h < HIER_EAGER; h++)
		if (is_distinct(all, (enum hierarchy)h))
			r = make_dir(cg, (enum hierarchy)h, err);
	if (r == 0 && has(all, HIER_CPUSET) && !is_distinct(all, HIER_CPUSET))
		(void)fill_cpuset(all->place[HIER_CPUSET].dir, all->place[HIER_CPUSET].dir,
				  cg->name);
	/* Without swap accounting the next best is not to swap. */
	if (r == 0 && has(all, HIER_MEMORY) && !all->has_memsw)
		(void)write_one(cg, HIER_MEMORY, "memory.swappiness", 0);
	if (r < 0) {
		v1_destroy(cg);
		return r;
	}
	*ret = cg;
	return 0;
}

static enum hierarchy first_joined(const struct cgroup *cg)
{
	for (int h = 0; h < HIER_EAGER; h++)
		if (cg->joined & 1u << h)
			return (enum hierarchy)h;
	return HIER_EAGER; /* cannot be: setup demands one */
}

/* Enters a hierarchy that boxes are not in from their start. Whoever tried that before may have
 * been cut short at any step, so each is done again. */
static int join_late(struct cgroup *cg, enum hierarchy h, struct err *err)
{
	const struct cgroup_place *p = &cg->all->place[h];
	enum hierarchy from = first_joined(cg);
	int r = 0;

	if (!is_distinct(cg->all, h))
		return 0;
	if (!(cg->joined & 1u << h))
		r = make_dir(cg, h, err);
	if (r < 0)
		return r;
	r = h == HIER_CPUSET ? fill_cpuset(p->dir, p->dir, cg->name) : 0;
	if (r == 0)
		r = cgroup_move_all(cg->all->place[from].dir, cg->name, p->dir, cg->name);
	if (r < 0)
		return err_sys(err, r, "enter %s control group", hierarchies[h].controller);
	return 0;
}

/* Buffers of sockets are counted apart from the rest, and not at all without a limit. A kernel that
 * does not count them has no such file. */
static void set_socket_memory(struct cgroup *cg, uint64_t bytes)
{
	(void)write_one(cg, HIER_MEMORY, "memory.kmem.tcp.limit_in_bytes", bytes / SOCKETS_PART);
}

/* The limit with swap may never be below the one without: which goes first depends on the way. */
static int set_memory(struct cgroup *cg, uint64_t bytes, struct err *err)
{
	static const char *const files[] = { "memory.limit_in_bytes",
					     "memory.memsw.limit_in_bytes" };
	uint64_t old = cg->set.memory_bytes;
	size_t n = cg->all->has_memsw ? 2 : 1;
	size_t first = n == 2 && old && bytes > old;
	int r;

	if (bytes == old || !has(cg->all, HIER_MEMORY))
		return 0;
	for (size_t i = 0; i < n; i++) {
		const char *file = files[i == 0 ? first : 1 - first];

		r = write_one(cg, HIER_MEMORY, file, bytes);
		if (r < 0 && i > 0 && old)
			(void)write_one(cg, HIER_MEMORY, files[first], old);
		if (r < 0)
			return cgroup_memory_error(err, r, bytes, file);
	}
	set_socket_memory(cg, bytes);
	cg->set.memory_bytes = bytes;
	return 0;
}

static int set_pids(struct cgroup *cg, uint32_t pids, struct err *err)
{
	int r;

	if (pids == cg->set.pids || !has(cg->all, HIER_PIDS))
		return 0;
	r = write_one(cg, HIER_PIDS, "pids.max", pids + cg->residents);
	if (r < 0)
		return err_sys(err, r, "process limit %u: write pids.max", pids);
	cg->set.pids = pids;
	return 0;
}

static int set_cpu(struct cgroup *cg, uint32_t cpu_milli, struct err *err)
{
	struct cgroup_quota now = { .period_us = 0 }, q = cgroup_quota(cpu_milli);
	int r = 0;

	if (cpu_milli == cg->set.cpu_milli || !has(cg->all, HIER_CPU))
		return 0;
	if (cg->set.cpu_milli)
		now = cgroup_quota(cg->set.cpu_milli);
	if (q.period_us != now.period_us)
		r = write_one(cg, HIER_CPU, "cpu.cfs_period_us", q.period_us);
	if (r == 0)
		r = write_one(cg, HIER_CPU, "cpu.cfs_quota_us", q.quota_us);
	if (r < 0) {
		cg->set.cpu_milli = 0; /* unknown: the next call writes both */
		return err_sys(err, r, "CPU limit %u/1000: write cpu.cfs_quota_us", cpu_milli);
	}
	cg->set.cpu_milli = cpu_milli;
	return 0;
}

static int set_cpus(struct cgroup *cg, uint64_t mask, struct err *err)
{
	const struct cgroup_place *p = &cg->all->place[HIER_CPUSET];
	char cpus[CGROUP_CPUS_SIZE];
	int r;

	if (mask == cg->set.cpu_mask || cg->all->missing & CONTROLLER_CPUSET)
		return 0;
	r = join_late(cg, HIER_CPUSET, err);
	if (r < 0)
		return r;
	cgroup_format_cpus(mask, cpus);
	if (mask)
		r = cgroup_write(p->dir, cg->name, "cpuset.cpus", cpus);
	else
		r = fill_cpuset(p->dir, p->dir, cg->name);
	if (r < 0)
		return err_sys(err, r, "pin to CPUs %s: write cpuset.cpus", mask ? cpus : "of all");
	cg->set.cpu_mask = mask;
	return 0;
}

static int v1_limit(struct cgroup *cg, const struct limits *l, struct err *err)
{
	int r;

	r = set_memory(cg, l->memory_bytes, err);
	if (r == 0)
		r = set_pids(cg, l->pids, err);
	if (r == 0)
		r = set_cpu(cg, l->cpu_milli, err);
	if (r == 0)
		r = set_cpus(cg, l->cpu_mask, err);
	return r;
}

static int v1_spawn_fd(struct cgroup *cg)
{
	(void)cg;
	return -1;
}

static int v1_attach(struct cgroup *cg, pid_t pid, struct err *err)
{
	for (int h = 0; h < HIER_COUNT; h++) {
		int r;

		if (!(cg->joined & 1u << h))
			continue;
		r = write_one(cg, (enum hierarchy)h, "cgroup.procs", (uint64_t)pid);
		if (r < 0)
			return err_sys(err, r, "put process %d under %s control", (int)pid,
				       hierarchies[h].controller);
	}
	return 0;
}

static int v1_freeze(struct cgroup *cg, bool on, struct err *err)
{
	const char *want = on ? "FROZEN" : "THAWED";
	int dir = cg->all->place[HIER_FREEZER].dir;
	int r;

	if (dir < 0)
		return err_set(err, ENOTSUP, "pause: this machine has no freezer control group");
	if (!on && !(cg->joined & 1u << HIER_FREEZER) && is_distinct(cg->all, HIER_FREEZER))
		return 0; /* was never frozen */
	r = join_late(cg, HIER_FREEZER, err);
	if (r < 0)
		return r;
	r = cgroup_write(dir, cg->name, "freezer.state", want);
	if (r == 0)
		r = cgroup_wait_text(dir, cg->name, "freezer.state", want);
	if (r < 0 && on)
		(void)cgroup_write(dir, cg->name, "freezer.state", "THAWED");
	if (r < 0)
		return err_sys(err, r, "%s: freezer.state", on ? "pause" : "resume");
	return 0;
}

static uint64_t above(uint64_t value, uint64_t base)
{
	return value > base ? value - base : 0;
}

static int memory_usage(struct cgroup *cg, struct box_usage *u)
{
	int dir = cg->all->place[HIER_MEMORY].dir;
	uint64_t now, peak, kills;
	int r;

	r = cgroup_read_u64(dir, cg->name, "memory.usage_in_bytes", &now);
	if (r == 0)
		r = cgroup_read_u64(dir, cg->name, "memory.max_usage_in_bytes", &peak);
	if (r == 0)
		r = cgroup_read_key(dir, cg->name, "memory.oom_control", "oom_kill", &kills);
	if (r < 0)
		return r;
	u->memory_bytes = above(now, cg->memory_base);
	u->memory_peak_bytes = above(peak, cg->memory_base);
	u->oom_kills = (uint32_t)above(kills, cg->oom_base);
	return 0;
}

static int v1_usage(struct cgroup *cg, struct box_usage *ret, struct err *err)
{
	const struct cgroup_place *place = cg->all->place;
	struct box_usage u = { 0 };
	uint64_t cpu_ns = 0, pids = 0;
	int r = 0;

	if (has(cg->all, HIER_MEMORY))
		r = memory_usage(cg, &u);
	if (r == 0 && has(cg->all, HIER_CPUACCT))
		r = cgroup_read_u64(place[HIER_CPUACCT].dir, cg->name, "cpuacct.usage", &cpu_ns);
	if (r == 0 && has(cg->all, HIER_PIDS))
		r = cgroup_read_u64(place[HIER_PIDS].dir, cg->name, "pids.current", &pids);
	if (r < 0)
		return err_sys(err, r, "read usage of control group %s", cg->name);
	u.cpu_us = cpu_ns / 1000;
	u.pids = (uint32_t)above(pids, cg->residents);
	*ret = u;
	return 0;
}

/* pids.current also counts what is dying and no longer listed. */
static bool is_populated(struct cgroup *cg)
{
	uint64_t n = cg->residents + 1;
	char procs[16];

	if (has(cg->all, HIER_PIDS))
		return cgroup_read_u64(cg->all->place[HIER_PIDS].dir, cg->name, "pids.current",
				       &n) < 0 ||
		       n > cg->residents;
	if (cg->residents > 0)
		return true; /* cannot be told from a tenant's process: not reused */
	return cgroup_read(cg->all->place[first_joined(cg)].dir, cg->name, "cgroup.procs", procs,
			   sizeof(procs)) != 0;
}

static int reset_memory(struct cgroup *cg)
{
	int dir = cg->all->place[HIER_MEMORY].dir;
	/* What went to swap is still the tenant's. */
	const char *file =
		cg->all->has_memsw ? "memory.memsw.usage_in_bytes" : "memory.usage_in_bytes";
	uint64_t now, kills;
	int r;

	r = cgroup_read_u64(dir, cg->name, file, &now);
	if (r < 0 || now > CGROUP_RESIDUE)
		return -EBUSY;
	r = write_one(cg, HIER_MEMORY, "memory.max_usage_in_bytes", 0);
	if (r == 0)
		r = write_one(cg, HIER_MEMORY, "memory.failcnt", 0);
	if (r == 0)
		r = cgroup_read_key(dir, cg->name, "memory.oom_control", "oom_kill", &kills);
	if (r < 0)
		return -EBUSY;
	cg->memory_base = now;
	cg->oom_base = (uint32_t)kills;
	return 0;
}

static int v1_reset(struct cgroup *cg)
{
	int r = 0;

	if (is_populated(cg))
		return -EBUSY;
	if (cg->joined & 1u << HIER_FREEZER) {
		if (cg->residents > 0) /* they would have to leave it first */
			return -EBUSY;
		if (cgroup_remove(cg->all->place[HIER_FREEZER].dir, cg->name) < 0)
			return -EBUSY;
		cg->joined &= ~(1u << HIER_FREEZER);
	}
	if (has(cg->all, HIER_CPUACCT))
		r = write_one(cg, HIER_CPUACCT, "cpuacct.usage", 0);
	if (r == 0 && has(cg->all, HIER_MEMORY))
		r = reset_memory(cg);
	return r < 0 ? -EBUSY : 0;
}

const struct cgroup_ops cgroup_v1_ops = {
	.name = "v1",
	.kind = CGROUP_V1,
	.make = v1_make,
	.limit = v1_limit,
	.spawn_fd = v1_spawn_fd,
	.attach = v1_attach,
	.freeze = v1_freeze,
	.usage = v1_usage,
	.reset = v1_reset,
	.destroy = v1_destroy,
};
