#include "spec/launch.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>

#include "base/err.h"
#include "base/machine.h"
#include "base/str.h"

#define TEMPLATE_FLAGS                                                        \
	(TEMPLATE_WRITABLE_ROOT | TEMPLATE_WARM_PYTHON | TEMPLATE_WARM_NODE | \
	 TEMPLATE_STRICT_CALLS | TEMPLATE_STRICT_PROC | TEMPLATE_OWN_PRELOAD | TEMPLATE_SUDO)
#define LAUNCH_FLAGS LAUNCH_COLD
#define BOX_FLAGS (BOX_WARM | BOX_WARM_PYTHON | BOX_WARM_NODE)
#define CONTROLLERS                                                                  \
	(CONTROLLER_MEMORY | CONTROLLER_PIDS | CONTROLLER_CPU | CONTROLLER_FREEZER | \
	 CONTROLLER_CPUSET)

static const struct limits built_in = {
	.memory_bytes = LIMIT_MEMORY_DEFAULT,
	.inodes = LIMIT_INODES_DEFAULT,
	.cpu_milli = LIMIT_CPU_DEFAULT,
	.pids = LIMIT_PIDS_DEFAULT,
	.nofile = LIMIT_NOFILE_DEFAULT,
};

static uint64_t pick(uint64_t asked, uint64_t base, uint64_t fallback)
{
	if (asked)
		return asked;
	return base ? base : fallback;
}

uint32_t spec_nofile_max(bool is_rootless)
{
	struct rlimit own;

	if (!is_rootless || getrlimit(RLIMIT_NOFILE, &own) < 0 ||
	    own.rlim_max / 2 > LIMIT_NOFILE_MAX)
		return LIMIT_NOFILE_MAX;
	return (uint32_t)(own.rlim_max / 2);
}

uint32_t spec_nofile_default(bool is_rootless)
{
	uint32_t max = spec_nofile_max(is_rootless);

	return max < LIMIT_NOFILE_DEFAULT ? max : LIMIT_NOFILE_DEFAULT;
}

static uint64_t pick_disk(uint64_t base, uint64_t memory)
{
	uint64_t half = memory / 2;

	/* A request for less memory alone must not fail over a disk that it never named. */
	if (base)
		return base <= memory ? base : half;
	return half < LIMIT_DISK_DEFAULT ? half : LIMIT_DISK_DEFAULT;
}

static struct limits filled(const struct limits *l, const struct limits *base)
{
	const struct limits *d = &built_in;
	struct limits f;

	f.memory_bytes = pick(l->memory_bytes, base->memory_bytes, d->memory_bytes);
	f.disk_bytes = l->disk_bytes ? l->disk_bytes : pick_disk(base->disk_bytes, f.memory_bytes);
	f.inodes = (uint32_t)pick(l->inodes, base->inodes, d->inodes);
	f.cpu_milli = (uint32_t)pick(l->cpu_milli, base->cpu_milli, d->cpu_milli);
	f.cpu_mask = pick(l->cpu_mask, base->cpu_mask, 0);
	f.pids = (uint32_t)pick(l->pids, base->pids, d->pids);
	f.nofile = (uint32_t)pick(l->nofile, base->nofile, d->nofile);
	return f;
}

static int check_limits(const struct limits *l, struct err *err)
{
	const struct {
		const char *name, *why;
		uint64_t value, min, max;
	} rows[] = {
		{ "memory_bytes", "", l->memory_bytes, LIMIT_MEMORY_MIN, LIMIT_MEMORY_MAX },
		{ "disk_bytes", "; files live in memory, so disk must not exceed memory_bytes",
		  l->disk_bytes, LIMIT_DISK_MIN, l->memory_bytes },
		{ "inodes", "", l->inodes, LIMIT_INODES_MIN, LIMIT_INODES_MAX },
		{ "cpu_milli", "", l->cpu_milli, LIMIT_CPU_MIN, LIMIT_CPU_MAX },
		{ "pids", "", l->pids, LIMIT_PIDS_MIN, LIMIT_PIDS_MAX },
		{ "nofile", "", l->nofile, LIMIT_NOFILE_MIN, LIMIT_NOFILE_MAX },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].value < rows[i].min || rows[i].value > rows[i].max)
			return err_set(
				err, EINVAL,
				"limit %s is %" PRIu64 ", allowed are %" PRIu64 " to %" PRIu64 "%s",
				rows[i].name, rows[i].value, rows[i].min, rows[i].max, rows[i].why);
	}
	return 0;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void spec_limits_of_machine(const struct machine *m, bool is_rootless, struct limits *ret)
{
	uint64_t memory = least_of(m->memory_bytes, LIMIT_MEMORY_MAX);

	*ret = (struct limits){
		.memory_bytes = memory,
		.disk_bytes = memory,
		.inodes = LIMIT_INODES_MAX,
		.cpu_milli = (uint32_t)least_of((uint64_t)m->cpus * 1000, LIMIT_CPU_MAX),
		.pids = (uint32_t)least_of(m->processes / 8 * 7, LIMIT_PIDS_MAX),
		.nofile = spec_nofile_max(is_rootless),
	};
}

/* What has a most, by its name in settings. */
struct limit_row {
	const char *name, *unit;
	uint64_t value, max;
};
#define LIMIT_ROWS 6

static void list_limits(const struct limits *l, const struct limits *max,
			struct limit_row ret[LIMIT_ROWS])
{
	const struct limit_row rows[LIMIT_ROWS] = {
		{ "memory", " bytes", l->memory_bytes, max->memory_bytes },
		{ "disk", " bytes", l->disk_bytes, max->disk_bytes },
		{ "inodes", "", l->inodes, max->inodes },
		{ "cpu", "/1000 cores", l->cpu_milli, max->cpu_milli },
		{ "pids", "", l->pids, max->pids },
		{ "nofile", "", l->nofile, max->nofile },
	};

	memcpy(ret, rows, sizeof(rows));
}

int spec_check_max(const struct limits *l, const struct limits *max, struct err *err)
{
	struct limit_row rows[LIMIT_ROWS];

	list_limits(l, max, rows);
	for (size_t i = 0; i < LIMIT_ROWS; i++) {
		if (rows[i].max == 0 || rows[i].value <= rows[i].max)
			continue;
		return err_set(err, ERANGE,
			       "%s of %" PRIu64 "%s is more than a sandbox may have here: at most "
			       "%" PRIu64,
			       rows[i].name, rows[i].value, rows[i].unit, rows[i].max);
	}
	return 0;
}

void spec_clamp_limits(struct limits *l, const struct limits *max)
{
	struct limit_row rows[LIMIT_ROWS];

	list_limits(l, max, rows);
	for (size_t i = 0; i < LIMIT_ROWS; i++)
		if (rows[i].max > 0)
			rows[i].value = least_of(rows[i].value, rows[i].max);
	l->memory_bytes = rows[0].value;
	l->disk_bytes = rows[1].value;
	l->inodes = (uint32_t)rows[2].value;
	l->cpu_milli = (uint32_t)rows[3].value;
	l->pids = (uint32_t)rows[4].value;
	l->nofile = (uint32_t)rows[5].value;
}

int spec_fill_limits(struct limits *l, const struct limits *base, struct err *err)
{
	struct limits f = filled(l, base ? base : &built_in);
	int r = check_limits(&f, err);

	if (r == 0)
		*l = f;
	return r;
}

static int check_choices(const struct template_spec *t, struct err *err)
{
	const struct {
		const char *name;
		uint32_t value, count;
	} rows[] = {
		{ "root", t->root, ROOT_KIND_COUNT },
		{ "level", t->level, LEVEL_COUNT },
		{ "net", t->net, NET_COUNT },
	};

	if (t->id < 1 || t->id > TEMPLATE_MAX)
		return err_set(err, EINVAL, "template id is %" PRIu32 ", allowed are 1 to %d",
			       t->id, TEMPLATE_MAX);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].value >= rows[i].count)
			return err_set(err, EINVAL,
				       "template %s is %" PRIu32 ", allowed are 0 to %" PRIu32,
				       rows[i].name, rows[i].value, rows[i].count - 1);
	}
	if ((t->flags & ~(uint32_t)TEMPLATE_FLAGS) != 0)
		return err_set(err, EINVAL, "template flags are 0x%" PRIx32 ", known are 0x%x",
			       t->flags, (unsigned)TEMPLATE_FLAGS);
	return 0;
}

int spec_check_template(const struct template_spec *t, struct err *err)
{
	const char *writable = t->writable ? t->writable : "";
	struct limits l = t->limits;
	int r = check_choices(t, err);

	if (r == 0)
		r = spec_check_preload(t, err);
	if (r < 0)
		return r;
	if (!spec_writable_is_valid(writable))
		return err_set(err, EINVAL, "template's writable paths '%.100s'", writable);
	if (writable[0] != '\0' && !(t->flags & TEMPLATE_WRITABLE_ROOT))
		return err_set(err, EINVAL, "writable paths are of a writable root");
	r = spec_check_layers(&t->layers, err);
	if (r == 0 && t->root == ROOT_LAYERS && t->layers.count == 0)
		r = err_set(err, EINVAL, "a template of layers needs at least one");
	return r < 0 ? r : spec_fill_limits(&l, NULL, err);
}

bool spec_tag_is_valid(const char *tag)
{
	size_t n = strspn(tag, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return tag[n] == '\0' && n <= TAG_MAX;
}

void launch_wr_limits(struct wr *w, const struct limits *l)
{
	wr_u64(w, l->memory_bytes);
	wr_u64(w, l->disk_bytes);
	wr_u32(w, l->inodes);
	wr_u32(w, l->cpu_milli);
	wr_u64(w, l->cpu_mask);
	wr_u32(w, l->pids);
	wr_u32(w, l->nofile);
}

void launch_rd_limits(struct rd *r, struct limits *ret)
{
	ret->memory_bytes = rd_u64(r);
	ret->disk_bytes = rd_u64(r);
	ret->inodes = rd_u32(r);
	ret->cpu_milli = rd_u32(r);
	ret->cpu_mask = rd_u64(r);
	ret->pids = rd_u32(r);
	ret->nofile = rd_u32(r);
}

void launch_wr_usage(struct wr *w, const struct box_usage *u)
{
	wr_u64(w, u->memory_bytes);
	wr_u64(w, u->memory_peak_bytes);
	wr_u64(w, u->cpu_us);
	wr_u32(w, u->oom_kills);
	wr_u32(w, u->pids);
}

void launch_rd_usage(struct rd *r, struct box_usage *ret)
{
	ret->memory_bytes = rd_u64(r);
	ret->memory_peak_bytes = rd_u64(r);
	ret->cpu_us = rd_u64(r);
	ret->oom_kills = rd_u32(r);
	ret->pids = rd_u32(r);
}

long launch_put_template(void *data, size_t cap, uint32_t id, const struct template_spec *t)
{
	struct wr w;

	wire_begin(&w, data, cap, L_TEMPLATE, id);
	wr_u32(&w, t->id);
	wr_u8(&w, t->root);
	wr_u8(&w, t->level);
	wr_u8(&w, t->net);
	wr_u32(&w, t->flags);
	launch_wr_limits(&w, &t->limits);
	wr_str(&w, t->preload);
	wr_str(&w, t->preload_node);
	wr_str(&w, t->writable);
	launch_wr_layers(&w, &t->layers);
	return wire_finish(&w);
}

/* Limits and preload are spec_check_template()'s: it can say what is wrong with them. */
int launch_get_template(struct rd *r, struct template_spec *ret)
{
	struct template_spec t;
	int n, layers;

	t.id = rd_u32(r);
	t.root = rd_u8(r);
	t.level = rd_u8(r);
	t.net = rd_u8(r);
	t.flags = rd_u32(r);
	launch_rd_limits(r, &t.limits);
	t.preload = rd_str(r);
	t.preload_node = rd_str(r);
	t.writable = rd_str(r);
	layers = launch_rd_layers(r, &t.layers);
	n = rd_end(r);
	if (n == 0)
		n = layers;
	if (n == 0)
		n = check_choices(&t, NULL);
	if (n == 0)
		*ret = t;
	return n;
}

static bool template_id_is_valid(uint32_t id)
{
	return id >= 1 && id <= TEMPLATE_MAX;
}

long launch_put_pool(void *data, size_t cap, uint32_t id, const struct pool_spec *p)
{
	struct wr w;

	wire_begin(&w, data, cap, L_POOL, id);
	wr_u32(&w, p->template_id);
	wr_u32(&w, p->min);
	wr_u32(&w, p->max);
	wr_u32(&w, p->quiet_ms);
	wr_u32(&w, p->utilization);
	return wire_finish(&w);
}

int launch_get_pool(struct rd *r, struct pool_spec *ret)
{
	struct pool_spec p;
	int n;

	p.template_id = rd_u32(r);
	p.min = rd_u32(r);
	p.max = rd_u32(r);
	p.quiet_ms = rd_u32(r);
	p.utilization = rd_u32(r);
	n = rd_end(r);
	if (n == 0 &&
	    (!template_id_is_valid(p.template_id) || p.min > p.max || p.utilization > 100))
		n = -EINVAL;
	if (n == 0)
		*ret = p;
	return n;
}

long launch_put_claim(void *data, size_t cap, uint32_t id, const struct launch_spec *s)
{
	struct wr w;

	wire_begin(&w, data, cap, L_CLAIM, id);
	wr_u32(&w, s->template_id);
	wr_u32(&w, s->flags);
	launch_wr_limits(&w, &s->limits);
	wr_str(&w, s->tag);
	launch_wr_layers(&w, &s->layers);
	launch_wr_volumes(&w, s->volumes, s->n_volumes);
	return wire_finish(&w);
}

int launch_get_claim(struct rd *r, struct launch_spec *ret)
{
	struct launch_spec s;
	int n, layers, volumes;

	s.template_id = rd_u32(r);
	s.flags = rd_u32(r);
	launch_rd_limits(r, &s.limits);
	s.tag = rd_str(r);
	layers = launch_rd_layers(r, &s.layers);
	volumes = layers < 0 ? layers : launch_rd_volumes(r, s.volumes, &s.n_volumes);
	n = rd_end(r);
	if (n == 0)
		n = volumes;
	if (n == 0 && (!template_id_is_valid(s.template_id) ||
		       (s.flags & ~(uint32_t)LAUNCH_FLAGS) != 0 || !spec_tag_is_valid(s.tag)))
		n = -EINVAL;
	if (n == 0)
		*ret = s;
	return n;
}

long launch_put_box(void *data, size_t cap, uint32_t id, const struct launch_box *b)
{
	struct wr w;

	wire_begin(&w, data, cap, L_BOX, id);
	wr_str(&w, b->id);
	wr_u32(&w, b->flags);
	wr_u32(&w, b->pid);
	launch_wr_limits(&w, &b->limits);
	for (size_t i = 0; i < STEP_COUNT; i++)
		wr_u64(&w, b->step_ns[i]);
	wr_str(&w, b->why);
	return wire_finish(&w);
}

int launch_get_box(struct rd *r, struct launch_box *ret)
{
	struct launch_box b;
	int n;

	b.id = rd_str(r);
	b.flags = rd_u32(r);
	b.pid = rd_u32(r);
	launch_rd_limits(r, &b.limits);
	for (size_t i = 0; i < STEP_COUNT; i++)
		b.step_ns[i] = rd_u64(r);
	b.why = rd_str(r);
	n = rd_end(r);
	if (n == 0 && (!id_is_valid(b.id) || (b.flags & ~(uint32_t)BOX_FLAGS) != 0 ||
		       strlen(b.why) > WHY_MAX))
		n = -EINVAL;
	if (n == 0)
		*ret = b;
	return n;
}

long launch_put_box_info(void *data, size_t cap, uint32_t id, const struct launch_box_info *b)
{
	struct wr w;

	wire_begin(&w, data, cap, L_BOX_IS, id);
	wr_str(&w, b->id);
	wr_str(&w, b->tag);
	wr_u32(&w, b->flags);
	wr_u32(&w, b->pid);
	launch_wr_limits(&w, &b->limits);
	wr_u8(&w, b->frozen);
	wr_u8(&w, b->adopted);
	return wire_finish(&w);
}

int launch_get_box_info(struct rd *r, struct launch_box_info *ret)
{
	struct launch_box_info b;
	int n;

	b.id = rd_str(r);
	b.tag = rd_str(r);
	b.flags = rd_u32(r);
	b.pid = rd_u32(r);
	launch_rd_limits(r, &b.limits);
	b.frozen = rd_u8(r);
	b.adopted = rd_u8(r);
	n = rd_end(r);
	if (n == 0 && (!id_is_valid(b.id) || !spec_tag_is_valid(b.tag) ||
		       (b.flags & ~(uint32_t)BOX_FLAGS) != 0 || b.frozen > 1 || b.adopted > 1))
		n = -EINVAL;
	if (n == 0)
		*ret = b;
	return n;
}

long launch_put_info(void *data, size_t cap, uint32_t id, const struct launch_info *i)
{
	struct wr w;

	wire_begin(&w, data, cap, L_INFO, id);
	wr_u32(&w, i->version);
	wr_u8(&w, i->rootless);
	wr_u8(&w, i->cgroup);
	wr_u32(&w, i->landlock_abi);
	wr_u32(&w, i->cgroup_missing);
	wr_u8(&w, i->persistent);
	wr_str(&w, i->cgroup_why);
	return wire_finish(&w);
}

int launch_get_info(struct rd *r, struct launch_info *ret)
{
	struct launch_info i = { 0 };
	const char *why;
	int n;

	i.version = rd_u32(r);
	i.rootless = rd_u8(r);
	i.cgroup = rd_u8(r);
	i.landlock_abi = rd_u32(r);
	i.cgroup_missing = rd_u32(r);
	i.persistent = rd_u8(r);
	why = rd_str(r);
	n = rd_end(r);
	if (n == 0 && (i.rootless > 1 || i.cgroup > CGROUP_V2 || i.persistent > 1 ||
		       (i.cgroup_missing & ~(uint32_t)CONTROLLERS) != 0 ||
		       str_copy(i.cgroup_why, sizeof(i.cgroup_why), why) < 0))
		n = -EINVAL;
	if (n == 0)
		*ret = i;
	return n;
}

long launch_put_pool_state(void *data, size_t cap, uint32_t id, const struct pool_state *s)
{
	struct wr w;

	wire_begin(&w, data, cap, L_POOL_IS, id);
	wr_u32(&w, s->ready);
	wr_u32(&w, s->building);
	wr_u32(&w, s->claimed);
	wr_u32(&w, s->target);
	wr_u64(&w, s->hits);
	wr_u64(&w, s->misses);
	wr_u64(&w, s->make_us);
	wr_u64(&w, s->given_up);
	wr_u32(&w, s->stuck);
	wr_str(&w, s->why);
	for (int i = 0; i < MISS_COUNT; i++)
		wr_u64(&w, s->missed[i]);
	return wire_finish(&w);
}

int launch_get_pool_state(struct rd *r, struct pool_state *ret)
{
	struct pool_state s = { 0 };
	const char *why;
	int n;

	s.ready = rd_u32(r);
	s.building = rd_u32(r);
	s.claimed = rd_u32(r);
	s.target = rd_u32(r);
	s.hits = rd_u64(r);
	s.misses = rd_u64(r);
	s.make_us = rd_u64(r);
	s.given_up = rd_u64(r);
	s.stuck = rd_u32(r);
	why = rd_str(r);
	for (int i = 0; i < MISS_COUNT; i++)
		s.missed[i] = rd_u64(r);
	n = rd_end(r);
	if (n == 0)
		n = str_copy(s.why, sizeof(s.why), why);
	if (n == 0)
		*ret = s;
	return n;
}

long launch_put_builds(void *data, size_t cap, uint32_t id, const struct build_state *s)
{
	struct wr w;

	wire_begin(&w, data, cap, L_BUILDS, id);
	wr_u32(&w, s->late);
	wr_u32(&w, s->stuck);
	wr_u64(&w, s->given_up);
	wr_u32(&w, s->ends_late);
	wr_u32(&w, s->uncounted);
	wr_str(&w, s->why);
	return wire_finish(&w);
}

int launch_get_builds(struct rd *r, struct build_state *ret)
{
	struct build_state s = { 0 };
	const char *why;
	int n;

	s.late = rd_u32(r);
	s.stuck = rd_u32(r);
	s.given_up = rd_u64(r);
	s.ends_late = rd_u32(r);
	s.uncounted = rd_u32(r);
	why = rd_str(r);
	n = rd_end(r);
	if (n == 0)
		n = str_copy(s.why, sizeof(s.why), why);
	if (n == 0)
		*ret = s;
	return n;
}
