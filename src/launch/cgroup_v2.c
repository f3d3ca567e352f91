/* cgroup v2: one hierarchy, in which a group has either processes or controlled children. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"
#include "launch/cgroup_impl.h"
#include "launch/cgroup_parse.h"
#include "launch/process.h"

static const struct {
	const char *name;
	unsigned bit;
} controllers[] = {
	{ "memory", CONTROLLER_MEMORY },
	{ "pids", CONTROLLER_PIDS },
	{ "cpu", CONTROLLER_CPU },
	{ "cpuset", CONTROLLER_CPUSET },
};
#define N_CONTROLLERS (sizeof(controllers) / sizeof(controllers[0]))

static unsigned bits_of(int dir, const char *file)
{
	struct str rest, word;
	unsigned bits = 0;
	char text[512];

	if (cgroup_read(dir, ".", file, text, sizeof(text)) < 0)
		return 0;
	rest = str_of(text);
	while (str_split(&rest, ' ', &word))
		for (size_t i = 0; i < N_CONTROLLERS; i++)
			if (str_is(word, controllers[i].name))
				bits |= controllers[i].bit;
	return bits;
}

/* One by one: a controller that cannot be had must not cost the others. */
static int switch_controllers(int dir, unsigned bits, char sign)
{
	int r, bad = 0;

	for (size_t i = 0; i < N_CONTROLLERS; i++) {
		char text[16];

		if (!(bits & controllers[i].bit))
			continue;
		(void)str_format(text, sizeof(text), "%c%s", sign, controllers[i].name);
		r = cgroup_write(dir, ".", "cgroup.subtree_control", text);
		if (r < 0)
			bad = r;
	}
	return bad;
}

/* Whom we may take along out of our own group: ourselves, the program that started us with what it
 * has started (a keeper with its daemon), and the init of a container. Anyone else in there has not
 * asked to be moved. */
static bool is_ours(pid_t pid)
{
	return pid == getpid() || pid == 1 || process_descends(pid, getppid());
}

static int may_evacuate(int own, struct err *err)
{
	_free_ pid_t *pids = NULL;
	size_t n = 0, strangers = 0;
	int r;

	r = cgroup_read_procs(own, ".", &pids, &n);
	if (r < 0)
		return err_sys(err, r, "read cgroup.procs");
	for (size_t i = 0; i < n; i++)
		strangers += !is_ours(pids[i]);
	if (strangers > 0)
		return err_set(err, EBUSY,
			       "%zu other processes share our control group: start it in its own, "
			       "as with systemd-run --scope -p Delegate=yes (--user)",
			       strangers);
	return 0;
}

/* A group with processes cannot have controllers for its children, so we move into a leaf. The leaf
 * is no one launcher's: the next one is started from inside it, and may live at the same time. */
static int evacuate(int own, struct err *err)
{
	int r;

	r = may_evacuate(own, err);
	if (r < 0)
		return r;
	if (mkdirat(own, CGROUP_LEAF, 0755) < 0 && errno != EEXIST)
		return err_sys(err, errno, "make control group %s", CGROUP_LEAF);
	r = cgroup_move_all(own, ".", own, CGROUP_LEAF);
	if (r < 0)
		return err_sys(err, r, "move to control group %s", CGROUP_LEAF);
	return 0;
}

/* The root of the hierarchy, which has no type, may have processes and controlled children. */
static bool must_be_empty(int own)
{
	char first[2];

	if (faccessat(own, "cgroup.type", F_OK, 0) < 0)
		return false;
	return cgroup_read(own, ".", "cgroup.procs", first, sizeof(first)) != 0;
}

/* Empties the group first: to enable only cpu or pids over processes would succeed, and make the
 * group a threaded one, whose children take no processes at all. */
static int enable(int own, unsigned want, struct err *err)
{
	unsigned off = want & ~bits_of(own, "cgroup.subtree_control");
	int r;

	if (!off)
		return 0;
	r = must_be_empty(own) ? evacuate(own, err) : 0;
	if (r < 0)
		return r;
	r = switch_controllers(own, off, '+');
	if (r < 0)
		return err_sys(err, r, "enable controllers below our control group");
	return 0;
}

/* Our directory, with what it got for its children. */
static int divide(struct cgroups *all, struct err *err)
{
	struct cgroup_place *p = &all->place[HIER_UNIFIED];
	char type[32] = "";
	int r;

	r = cgroup_place_enter(p, all, err);
	if (r < 0)
		return r;
	(void)cgroup_read(p->dir, ".", "cgroup.type", type, sizeof(type));
	if (strcmp(type, "domain") != 0)
		return err_set(err, ENOTSUP,
			       "our control group is threaded: boxes cannot be in it");
	(void)switch_controllers(p->dir, bits_of(p->dir, "cgroup.controllers"), '+');
	all->missing = CONTROLLER_MEMORY | CONTROLLER_PIDS | CONTROLLER_CPU | CONTROLLER_CPUSET;
	all->missing &= ~bits_of(p->dir, "cgroup.subtree_control");
	if (faccessat(p->dir, "cgroup.freeze", F_OK, 0) < 0) /* since 5.2 */
		all->missing |= CONTROLLER_FREEZER;
	return 0;
}

/* bare: also without any controller (freezing and killing need none). */
int cgroup_v2_setup(struct cgroups *all, const struct cgroup_texts *t, bool bare, struct err *err)
{
	struct cgroup_place *p = &all->place[HIER_UNIFIED];
	char own[PATH_MAX];
	unsigned want;
	int r;

	r = cgroup_parse_dir(t->mountinfo, t->self, NULL, own, sizeof(own));
	if (r < 0)
		return err_set(err, -r, "no cgroup v2 is mounted with our own group in it");
	r = cgroup_place_open(p, own, CGROUP2_SUPER_MAGIC, err);
	if (r < 0)
		return r;
	all->ops = &cgroup_v2_ops;
	want = bits_of(p->own, "cgroup.controllers");
	if (!bare && !(want & ~CONTROLLER_CPUSET))
		return err_set(err, ENOTSUP, "cgroup v2 has no controllers for %s", own);
	r = enable(p->own, want, err);
	if (r < 0 && !cgroup_is_absence(r))
		return r;
	if (r < 0 && !bare && !bits_of(p->own, "cgroup.subtree_control"))
		return r;
	return divide(all, err);
}

/* Undoes evacuate(), unless another launcher still divides the group. */
void cgroup_v2_leave(struct cgroups *all)
{
	struct cgroup_place *p = &all->place[HIER_UNIFIED];
	_close_ int own = -1;

	if (p->own < 0 || faccessat(p->own, CGROUP_LEAF, F_OK, 0) < 0)
		return;
	own = fcntl(p->own, F_DUPFD_CLOEXEC, 0);
	cgroup_place_close(p, all);
	if (own < 0 || cgroup_place_is_shared(&(struct cgroup_place){ own, -1 }))
		return;
	if (switch_controllers(own, bits_of(own, "cgroup.subtree_control"), '-') < 0)
		return;
	if (cgroup_move_all(own, CGROUP_LEAF, own, ".") == 0)
		(void)unlinkat(own, CGROUP_LEAF, AT_REMOVEDIR);
}

static int dir_of(const struct cgroup *cg)
{
	return cg->all->place[HIER_UNIFIED].dir;
}

static bool has(const struct cgroup *cg, unsigned bit)
{
	return !(cg->all->missing & bit);
}

static void v2_destroy(struct cgroup *cg)
{
	if (!cg)
		return;
	(void)fd_close(cg->peak_fd);
	(void)cgroup_remove(dir_of(cg), cg->name);
	free(cg);
}

static int v2_make(struct cgroups *all, struct cgroup **ret, struct err *err)
{
	struct cgroup *cg = cgroup_new(all);
	int r;

	if (!cg)
		return err_sys(err, ENOMEM, "control group");
	if (mkdirat(dir_of(cg), cg->name, 0755) < 0) {
		r = err_sys(err, errno, "make control group");
		free(cg);
		return r;
	}
	if (has(cg, CONTROLLER_MEMORY)) {
		r = cgroup_write(dir_of(cg), cg->name, "memory.swap.max", "0");
		if (r < 0 && r != -ENOENT) { /* not there: the kernel was built without swap */
			v2_destroy(cg);
			return err_sys(err, r, "write memory.swap.max");
		}
	}
	*ret = cg;
	return 0;
}

/* v1 refuses a limit below what is in use; v2 takes it and kills. Refuse here as well. */
static int make_room(struct cgroup *cg, uint64_t bytes)
{
	uint64_t now;

	if (cgroup_read_u64(dir_of(cg), cg->name, "memory.current", &now) < 0 || now <= bytes)
		return 0;
	(void)cgroup_write_u64(dir_of(cg), cg->name, "memory.reclaim", now - bytes);
	if (cgroup_read_u64(dir_of(cg), cg->name, "memory.current", &now) < 0 || now <= bytes)
		return 0;
	return -EBUSY;
}

static int set_memory(struct cgroup *cg, uint64_t bytes, struct err *err)
{
	int r = 0;

	if (bytes == cg->set.memory_bytes || !has(cg, CONTROLLER_MEMORY))
		return 0;
	if (bytes < cg->set.memory_bytes)
		r = make_room(cg, bytes);
	if (r == 0)
		r = cgroup_write_u64(dir_of(cg), cg->name, "memory.max", bytes);
	if (r < 0)
		return cgroup_memory_error(err, r, bytes, "memory.max");
	cg->set.memory_bytes = bytes;
	return 0;
}

static int set_pids(struct cgroup *cg, uint32_t pids, struct err *err)
{
	int r;

	if (pids == cg->set.pids || !has(cg, CONTROLLER_PIDS))
		return 0;
	r = cgroup_write_u64(dir_of(cg), cg->name, "pids.max", pids);
	if (r < 0)
		return err_sys(err, r, "process limit %u: write pids.max", pids);
	cg->set.pids = pids;
	return 0;
}

static int set_cpu(struct cgroup *cg, uint32_t cpu_milli, struct err *err)
{
	struct cgroup_quota q = cgroup_quota(cpu_milli);
	char text[48];
	int r;

	if (cpu_milli == cg->set.cpu_milli || !has(cg, CONTROLLER_CPU))
		return 0;
	(void)str_format(text, sizeof(text), "%" PRIu64 " %" PRIu64, q.quota_us, q.period_us);
	r = cgroup_write(dir_of(cg), cg->name, "cpu.max", text);
	if (r < 0)
		return err_sys(err, r, "CPU limit %u/1000: write cpu.max", cpu_milli);
	cg->set.cpu_milli = cpu_milli;
	return 0;
}

static int set_cpus(struct cgroup *cg, uint64_t mask, struct err *err)
{
	char cpus[512];
	int r = 0;

	if (mask == cg->set.cpu_mask || !has(cg, CONTROLLER_CPUSET))
		return 0;
	cgroup_format_cpus(mask, cpus);
	if (!mask) /* all: an empty list is refused while there are processes */
		r = cgroup_read(dir_of(cg), ".", "cpuset.cpus.effective", cpus, sizeof(cpus));
	if (r >= 0)
		r = cgroup_write(dir_of(cg), cg->name, "cpuset.cpus", cpus);
	if (r < 0)
		return err_sys(err, r, "pin to CPUs %s: write cpuset.cpus", cpus);
	cg->set.cpu_mask = mask;
	return 0;
}

static int v2_limit(struct cgroup *cg, const struct limits *l, struct err *err)
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

/* Valid until the next call: one descriptor for all boxes instead of one for each. */
static int v2_spawn_fd(struct cgroup *cg)
{
	int *fd = &cg->all->spawn_fd;

	(void)fd_close(*fd);
	*fd = openat(dir_of(cg), cg->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *fd;
}

static int v2_attach(struct cgroup *cg, pid_t pid, struct err *err)
{
	int r = cgroup_write_u64(dir_of(cg), cg->name, "cgroup.procs", (uint64_t)pid);

	if (r < 0)
		return err_sys(err, r, "put process %d into its control group", (int)pid);
	return 0;
}

static int v2_freeze(struct cgroup *cg, bool on, struct err *err)
{
	int r;

	r = cgroup_write(dir_of(cg), cg->name, "cgroup.freeze", on ? "1" : "0");
	if (r == 0)
		r = cgroup_wait_text(dir_of(cg), cg->name, "cgroup.events",
				     on ? "frozen 1" : "frozen 0");
	if (r < 0 && on)
		(void)cgroup_write(dir_of(cg), cg->name, "cgroup.freeze", "0");
	if (r < 0)
		return err_sys(err, r, "%s: cgroup.freeze", on ? "pause" : "resume");
	return 0;
}

static int read_peak(struct cgroup *cg, uint64_t *ret)
{
	char text[32];
	ssize_t n;

	if (cg->peak_fd < 0)
		return cgroup_read_u64(dir_of(cg), cg->name, "memory.peak", ret);
	n = pread(cg->peak_fd, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return n < 0 ? -errno : -EIO;
	text[n - (text[n - 1] == '\n')] = '\0';
	return parse_u64(text, 0, UINT64_MAX, ret);
}

static uint64_t above(uint64_t value, uint64_t base)
{
	return value > base ? value - base : 0;
}

static int memory_usage(struct cgroup *cg, struct box_usage *u)
{
	uint64_t now, peak, kills;
	int r;

	r = cgroup_read_u64(dir_of(cg), cg->name, "memory.current", &now);
	if (r == 0)
		r = cgroup_read_key(dir_of(cg), cg->name, "memory.events", "oom_kill", &kills);
	if (r < 0)
		return r;
	r = read_peak(cg, &peak);
	if (r == -ENOENT) { /* before 5.19: the most we have seen */
		peak = now > cg->peak_bytes ? now : cg->peak_bytes;
		r = 0;
	}
	if (r < 0)
		return r;
	cg->peak_bytes = peak;
	u->memory_bytes = above(now, cg->memory_base);
	u->memory_peak_bytes = above(peak, cg->memory_base);
	u->oom_kills = (uint32_t)above(kills, cg->oom_base);
	return 0;
}

static int v2_usage(struct cgroup *cg, struct box_usage *ret, struct err *err)
{
	struct box_usage u = { 0 };
	uint64_t cpu_us = 0, pids = 0;
	int r;

	/* There is a cpu.stat without the cpu controller too. */
	r = cgroup_read_key(dir_of(cg), cg->name, "cpu.stat", "usage_usec", &cpu_us);
	if (r == 0 && has(cg, CONTROLLER_MEMORY))
		r = memory_usage(cg, &u);
	if (r == 0 && has(cg, CONTROLLER_PIDS))
		r = cgroup_read_u64(dir_of(cg), cg->name, "pids.current", &pids);
	if (r < 0)
		return err_sys(err, r, "read usage of control group %s", cg->name);
	u.cpu_us = above(cpu_us, cg->cpu_base_us);
	u.pids = (uint32_t)pids;
	*ret = u;
	return 0;
}

/* pids.current also counts what is dying and no longer "populates" the group. */
static bool is_populated(struct cgroup *cg)
{
	uint64_t n = 1;

	if (cgroup_read_key(dir_of(cg), cg->name, "cgroup.events", "populated", &n) < 0 || n > 0)
		return true;
	if (!has(cg, CONTROLLER_PIDS))
		return false;
	return cgroup_read_u64(dir_of(cg), cg->name, "pids.current", &n) < 0 || n > 0;
}

/* Since 6.12 a maximum can be started anew, but only for readers through the same descriptor, so
 * that one is kept. Before that, a used group shows its old peak for ever and cannot be used again.
 */
int cgroup_v2_reset_peak(struct cgroup *cg)
{
	char path[NAME_MAX];

	if (cg->peak_fd < 0) {
		(void)str_format(path, sizeof(path), "%s/memory.peak", cg->name);
		cg->peak_fd = openat(dir_of(cg), path, O_RDWR | O_CLOEXEC);
		if (cg->peak_fd < 0)
			return errno == ENOENT ? 0 : -EBUSY;
	}
	return pwrite(cg->peak_fd, "0\n", 2, 0) == 2 ? 0 : -EBUSY;
}

static int reset_memory(struct cgroup *cg)
{
	uint64_t now, kills;
	int r;

	r = cgroup_read_u64(dir_of(cg), cg->name, "memory.current", &now);
	if (r < 0 || now > CGROUP_RESIDUE || cgroup_v2_reset_peak(cg) < 0)
		return -EBUSY;
	r = cgroup_read_key(dir_of(cg), cg->name, "memory.events", "oom_kill", &kills);
	if (r < 0)
		return -EBUSY;
	cg->memory_base = now;
	cg->peak_bytes = now;
	cg->oom_base = (uint32_t)kills;
	return 0;
}

static int v2_reset(struct cgroup *cg)
{
	if (is_populated(cg))
		return -EBUSY;
	if (has(cg, CONTROLLER_FREEZER) &&
	    cgroup_write(dir_of(cg), cg->name, "cgroup.freeze", "0") < 0)
		return -EBUSY;
	if (has(cg, CONTROLLER_MEMORY) && reset_memory(cg) < 0)
		return -EBUSY;
	if (cgroup_read_key(dir_of(cg), cg->name, "cpu.stat", "usage_usec", &cg->cpu_base_us) < 0)
		return -EBUSY;
	return 0;
}

const struct cgroup_ops cgroup_v2_ops = {
	.name = "v2",
	.kind = CGROUP_V2,
	.make = v2_make,
	.limit = v2_limit,
	.spawn_fd = v2_spawn_fd,
	.attach = v2_attach,
	.freeze = v2_freeze,
	.usage = v2_usage,
	.reset = v2_reset,
	.destroy = v2_destroy,
};
