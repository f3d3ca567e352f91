#include "launch/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"
#include "launch/cgroup_impl.h"

#define PROC_TEXT_MAX (16u << 20) /* machines with many mounts have long mountinfos */
#define ALL_CONTROLLERS                                                              \
	(CONTROLLER_MEMORY | CONTROLLER_PIDS | CONTROLLER_CPU | CONTROLLER_FREEZER | \
	 CONTROLLER_CPUSET)

CLEANUP_FUNC(struct cgroups *, cgroups_close)

static int read_proc(const char *path, struct buf *b, struct err *err)
{
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	int r;

	r = fd < 0 ? -errno : fd_slurp(fd, b);
	if (r < 0)
		return err_sys(err, r, "read %s", path);
	return 0;
}

static struct cgroups *new_cgroups(const char *instance)
{
	struct cgroups *all = calloc(1, sizeof(*all));
	char id[ID_LEN + 1];

	if (!all)
		return NULL;
	all->ops = &cgroup_none_ops;
	all->missing = ALL_CONTROLLERS;
	all->spawn_fd = -1;
	for (int h = 0; h < HIER_COUNT; h++)
		all->place[h] = (struct cgroup_place){ -1, -1 };
	id_make(id);
	all->keeps = instance != NULL;
	(void)snprintf(all->name, sizeof(all->name), "%s%s",
		       instance ? CGROUP_KEEP_PREFIX : CGROUP_PREFIX, instance ? instance : id);
	return all;
}

bool cgroup_is_absence(int r)
{
	return r == -ENOENT || r == -ENOTSUP || r == -EACCES || r == -EPERM || r == -EROFS ||
	       r == -EBUSY;
}

/* How many of the limits that matter are held. */
static int strength(const struct cgroups *all)
{
	return __builtin_popcount(~all->missing &
				  (CONTROLLER_MEMORY | CONTROLLER_PIDS | CONTROLLER_CPU));
}

static int open_kind(enum launch_cgroup kind, const struct cgroups_options *o,
		     const struct cgroup_texts *t, struct cgroups **ret, struct err *err)
{
	_cleanup_(cgroups_close_p) struct cgroups *all = new_cgroups(o->instance);
	int r;

	if (!all)
		return err_sys(err, ENOMEM, "control groups");
	if (kind == CGROUP_V2)
		r = cgroup_v2_setup(all, t, o->want == kind, err);
	else
		r = cgroup_v1_setup(all, t, err);
	if (r < 0)
		return r;
	*ret = TAKE(all);
	return 0;
}

/* Where to look, best first. Under systemd v2 a shell and what it starts share a group that must
 * not be divided; root may then make his groups beside systemd's, below the top, as other cgroup
 * managers do. */
static const struct {
	enum launch_cgroup kind;
	const char *self; /* instead of our own group; root only */
} choices[] = { { CGROUP_V2, NULL }, { CGROUP_V2, "0::/\n" }, { CGROUP_V1, NULL } };

/* Which of two reasons tells a person more: "not yours" before "not enough", and that before "not
 * there", which a machine with v2 says of v1. */
static int importance(const struct err *why)
{
	if (why->code == 0)
		return 0;
	if (why->code == ENOENT)
		return 1;
	return why->code == ENOTSUP ? 2 : 3;
}

/* Keeps the stronger of the two in *best. */
static void keep_stronger(struct cgroups **best, struct cgroups **one)
{
	struct cgroups *worse = *best;

	if (strength(*one) <= strength(*best))
		return;
	*best = *one;
	*one = worse;
}

/* A machine with both has each controller in one of them: the one that holds more is taken. */
static int open_best(const struct cgroups_options *o, const struct cgroup_texts *t,
		     struct cgroups **ret, struct err *err)
{
	_cleanup_(cgroups_close_p) struct cgroups *best = new_cgroups(o->instance);
	struct err why = { 0 };

	if (!best)
		return err_sys(err, ENOMEM, "control groups");
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
		_cleanup_(cgroups_close_p) struct cgroups *one = NULL;
		struct cgroup_texts at = { t->mountinfo,
					   choices[i].self ? choices[i].self : t->self };
		struct err e = { 0 };
		int r;

		if (choices[i].self && (geteuid() != 0 || strength(best) > 0))
			continue;
		r = open_kind(choices[i].kind, o, &at, &one, &e);
		if (r < 0 && !cgroup_is_absence(r))
			return err_set(err, -r, "%s", e.text);
		if (r == 0)
			keep_stronger(&best, &one);
		if (importance(&e) > importance(&why))
			why = e;
	}
	/* Where one kind serves in part, that the other is not there explains nothing. */
	if (best->missing && (why.code != ENOENT || strength(best) == 0))
		best->why = why;
	*ret = TAKE(best);
	return 0;
}

struct cgroups *cgroups_without(struct cgroups *all)
{
	if (!all->without)
		all->without = new_cgroups(NULL);
	return all->without;
}

static int open_none(struct cgroups **ret, struct err *err)
{
	struct cgroups *all = new_cgroups(NULL);

	if (!all)
		return err_sys(err, ENOMEM, "control groups");
	(void)err_set(&all->why, ENOTSUP, "control groups are switched off");
	*ret = all;
	return 0;
}

int cgroups_open(const struct cgroups_options *o, struct cgroups **ret, struct err *err)
{
	_cleanup_(buf_done) struct buf mounts = { .max = PROC_TEXT_MAX };
	_cleanup_(buf_done) struct buf self = { .max = PROC_TEXT_MAX };
	struct cgroup_texts t;
	int r;

	if (o->off)
		return open_none(ret, err);
	r = read_proc("/proc/self/mountinfo", &mounts, err);
	if (r == 0 && !o->self)
		r = read_proc("/proc/self/cgroup", &self, err);
	if (r < 0)
		return r;
	t = (struct cgroup_texts){ buf_str(&mounts), o->self ? o->self : buf_str(&self) };
	if (o->want == CGROUP_NONE)
		return open_best(o, &t, ret, err);
	return open_kind(o->want, o, &t, ret, err);
}

struct cgroups *cgroups_close(struct cgroups *all)
{
	bool was_v2;

	if (!all)
		return NULL;
	was_v2 = all->ops->kind == CGROUP_V2;
	all->spawn_fd = fd_close(all->spawn_fd);
	/* Last first: the freezer must have thawed what the others wait for. */
	for (int h = HIER_COUNT - 1; h >= 0; h--) {
		if (was_v2 && h == HIER_UNIFIED)
			cgroup_v2_leave(all);
		cgroup_place_close(&all->place[h], all);
	}
	free(all->without);
	free(all);
	return NULL;
}

static void write_bound(int dir, const char *file, uint64_t value)
{
	int r = dir < 0 ? 0 : cgroup_write_u64(dir, ".", file, value);

	if (r < 0)
		log_warn("launch", "no bound for all boxes together: write %s: %s", file,
			 strerror(-r));
}

void cgroups_bound(struct cgroups *all, uint64_t memory_bytes, uint32_t pids)
{
	bool is_v2 = all->ops->kind == CGROUP_V2;

	if (all->ops->kind == CGROUP_NONE)
		return;
	if (!(all->missing & CONTROLLER_MEMORY))
		write_bound(all->place[is_v2 ? HIER_UNIFIED : HIER_MEMORY].dir,
			    is_v2 ? "memory.max" : "memory.limit_in_bytes", memory_bytes);
	if (!(all->missing & CONTROLLER_PIDS))
		write_bound(all->place[is_v2 ? HIER_UNIFIED : HIER_PIDS].dir, "pids.max", pids);
}

const struct cgroup_ops *cgroups_ops(const struct cgroups *all)
{
	return all->ops;
}

const struct cgroup_ops *cgroup_ops_of(const struct cgroup *cg)
{
	return cg->all->ops;
}

unsigned cgroup_missing_of(const struct cgroup *cg)
{
	return cg->all->missing;
}

unsigned cgroups_missing(const struct cgroups *all)
{
	return all->missing;
}

const char *cgroups_why(const struct cgroups *all)
{
	return all->why.text;
}

int cgroups_sweep(struct cgroups *all)
{
	int most = 0;

	for (int h = HIER_COUNT - 1; h >= 0; h--) {
		int n = all->place[h].own >= 0 ? cgroup_place_sweep(&all->place[h], all->name) : 0;

		if (n > most) /* v1: one box has a directory in each */
			most = n;
	}
	return most;
}

struct cgroup *cgroup_new(struct cgroups *all)
{
	struct cgroup *cg = calloc(1, sizeof(*cg));

	if (!cg)
		return NULL;
	cg->all = all;
	cg->peak_fd = -1;
	(void)snprintf(cg->name, sizeof(cg->name), "%x", all->made++);
	return cg;
}

void cgroup_house(struct cgroup *cg, unsigned residents)
{
	cg->residents = residents;
}
