#include "launch/record.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "base/id.h"
#include "base/str.h"
#include "launch/ids.h"
#include "spec/wire.h"

#define RECORD_TYPE 0x4852 /* "RH": no frame of a socket has it */
#define RECORD_VERSION 2

#define BOX_FLAGS (BOX_WARM | BOX_WARM_PYTHON | BOX_WARM_NODE)

static void wr_group(struct wr *w, const struct cgroup_mark *m)
{
	wr_u8(w, m->kind);
	wr_str(w, m->name);
	wr_u8(w, m->reused);
	wr_u64(w, m->memory_base);
	wr_u64(w, m->cpu_base_us);
	wr_u32(w, m->oom_base);
}

static int rd_group(struct rd *r, struct cgroup_mark *ret)
{
	const char *name;

	ret->kind = rd_u8(r);
	name = rd_str(r);
	ret->reused = rd_u8(r);
	ret->memory_base = rd_u64(r);
	ret->cpu_base_us = rd_u64(r);
	ret->oom_base = rd_u32(r);
	if (!cgroup_name_is_valid(name) || ret->kind > CGROUP_V2 || ret->reused > 1)
		return -EINVAL;
	return str_copy(ret->name, sizeof(ret->name), name);
}

long record_put(void *data, size_t cap, const struct record *rec)
{
	struct wr w;

	wire_begin(&w, data, cap, RECORD_TYPE, RECORD_VERSION);
	wr_str(&w, rec->id);
	wr_str(&w, rec->tag);
	wr_str(&w, rec->boot_id);
	wr_u32(&w, rec->pid);
	wr_u64(&w, rec->start_ticks);
	wr_group(&w, &rec->group);
	wr_u32(&w, rec->uid_base);
	wr_u8(&w, rec->root);
	wr_u8(&w, rec->level);
	wr_u8(&w, rec->net);
	wr_u32(&w, rec->template_flags);
	wr_u32(&w, rec->box_flags);
	launch_wr_limits(&w, &rec->limits);
	wr_u8(&w, rec->held);
	wr_u8(&w, rec->n_template);
	launch_wr_layers(&w, &rec->layers);
	launch_wr_volumes(&w, rec->volumes, rec->n_volumes);
	return wire_finish(&w);
}

static bool boot_id_is_valid(const char *s)
{
	return strlen(s) == BOOT_ID_LEN && strspn(s, "0123456789abcdef-") == BOOT_ID_LEN;
}

/* Complete and within bounds: what a claim was once given. */
static bool limits_are_valid(const struct limits *l)
{
	struct limits filled = *l;

	return spec_fill_limits(&filled, NULL, NULL) == 0 && memcmp(&filled, l, sizeof(*l)) == 0;
}

static int check(const struct record *rec)
{
	struct template_spec like = { .id = 1,
				      .root = rec->root,
				      .level = rec->level,
				      .net = rec->net,
				      .flags = rec->template_flags };

	if (!id_is_valid(rec->id) || !spec_tag_is_valid(rec->tag) ||
	    !boot_id_is_valid(rec->boot_id))
		return -EINVAL;
	if (rec->pid < 2 || rec->pid > INT_MAX || (rec->box_flags & ~(uint32_t)BOX_FLAGS) != 0)
		return -EINVAL;
	if (rec->uid_base != 0 && !ids_is_base(rec->uid_base))
		return -EINVAL;
	if (!limits_are_valid(&rec->limits) || rec->held > 1 || rec->n_template > rec->layers.count)
		return -EINVAL;
	if (rec->root == ROOT_LAYERS)
		like.layers = rec->layers;
	return spec_check_template(&like, NULL);
}

int record_get(const void *data, size_t n, struct record *ret)
{
	struct record rec = { 0 };
	struct wire_head head;
	struct rd r;
	int group, disk, e = wire_open(data, n, &head, &r);

	if (e < 0)
		return e;
	if (head.type != RECORD_TYPE)
		return -EPROTO;
	if (head.id != RECORD_VERSION)
		return -EPROTONOSUPPORT;
	rec.id = rd_str(&r);
	rec.tag = rd_str(&r);
	rec.boot_id = rd_str(&r);
	rec.pid = rd_u32(&r);
	rec.start_ticks = rd_u64(&r);
	group = rd_group(&r, &rec.group);
	rec.uid_base = rd_u32(&r);
	rec.root = rd_u8(&r);
	rec.level = rd_u8(&r);
	rec.net = rd_u8(&r);
	rec.template_flags = rd_u32(&r);
	rec.box_flags = rd_u32(&r);
	launch_rd_limits(&r, &rec.limits);
	rec.held = rd_u8(&r);
	rec.n_template = rd_u8(&r);
	disk = launch_rd_layers(&r, &rec.layers);
	if (disk == 0)
		disk = launch_rd_volumes(&r, rec.volumes, &rec.n_volumes);
	e = rd_end(&r);
	if (e == 0)
		e = group < 0 ? group : disk;
	if (e == 0)
		e = check(&rec);
	if (e == 0)
		*ret = rec;
	return e;
}
