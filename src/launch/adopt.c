/* What an earlier launcher left in the state directory: boxes that live on are taken over, the rest
 * is cleared away. Records are believed in nothing that the kernel can be asked about. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "launch/launch.h"
#include "launch/process.h"
#include "launch/still.h"

#define CGROUP_TEXT_MAX (64u << 10)
#define KILLED_MS 200

/* A record and the process that it speaks of, which lives. */
struct found {
	struct record rec; /* borrows from data */
	int pidfd;         /* owned */
	char data[RECORD_MAX];
};

static void found_done(struct found *f)
{
	f->pidfd = fd_close(f->pidfd);
}

/* -ESTALE: there is no such box, or no more. -EPROTONOSUPPORT: another version wrote of it. */
static int find(const struct launch *l, const char *box, struct found *f)
{
	int r = state_read(&l->state, box, f->data, &f->rec);

	f->pidfd = -1;
	if (r == -ENOENT || r == -EINVAL || r == -EPROTO || r == -ELOOP)
		return -ESTALE;
	if (r < 0)
		return r;
	if (strcmp(f->rec.boot_id, l->state.boot_id) != 0)
		return -ESTALE;
	r = process_open(l->proc_fd, (pid_t)f->rec.pid, f->rec.start_ticks);
	if (r < 0)
		return r == -ESRCH || r == -EINVAL ? -ESTALE : r;
	f->pidfd = r;
	if (process_is_init(l->proc_fd, (pid_t)f->rec.pid))
		return 0;
	found_done(f); /* whatever it is, it is no box, and not ours to kill */
	return -ESTALE;
}

struct finding {
	const struct launch *l;
	char *place; /* owned */
};

/* 0 and no more is looked for once a place is found. */
static int find_place(void *arg, const char *box)
{
	_cleanup_(buf_done) struct buf text = { .max = CGROUP_TEXT_MAX };
	_cleanup_(found_done) struct found f = { .pidfd = -1 };
	struct finding *in = arg;
	_close_ int fd = -1;
	char path[24];
	int r;

	if (in->place || find(in->l, box, &f) < 0)
		return 0;
	(void)str_format(path, sizeof(path), "%u/cgroup", f.rec.pid);
	fd = openat(in->l->proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	r = fd_slurp(fd, &text);
	if (r == 0)
		r = cgroups_find(in->l->state.instance, buf_str(&text), &in->place);
	return r == -ENOMEM ? r : 0;
}

int adopt_find_groups(const struct launch *l, char **ret, struct err *err)
{
	struct finding in = { .l = l };
	int r;

	*ret = NULL;
	if (!state_is_open(&l->state))
		return 0;
	r = state_each(&l->state, find_place, &in, err);
	*ret = in.place;
	return r;
}

/* Layers are counted when they are known, which is later: disk_open(). */
static struct disk_use *disk_of(const struct record *rec)
{
	struct disk_use *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->n_template = rec->n_template;
	u->n_layers = rec->layers.count;
	for (uint32_t i = 0; i < u->n_layers; i++)
		(void)str_copy(u->layers[i], sizeof(u->layers[i]), rec->layers.ids[i]);
	u->n_volumes = rec->n_volumes;
	for (uint32_t i = 0; i < u->n_volumes; i++) {
		u->volumes[i].fd = -1;
		u->volumes[i].read_only = rec->volumes[i].read_only;
		(void)str_copy(u->volumes[i].id, sizeof(u->volumes[i].id), rec->volumes[i].id);
		(void)str_copy(u->volumes[i].path, sizeof(u->volumes[i].path),
			       rec->volumes[i].path);
	}
	return u;
}

static struct box *new_box(struct launch *l, const struct record *rec)
{
	struct box *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->source.ready = boxes_ended;
	b->state = BOX_CLAIMED;
	b->tmpl = &l->templates[0];
	b->plan = (struct box_plan){ .limits = rec->limits,
				     .root = rec->root,
				     .level = rec->level,
				     .net = rec->net,
				     .rootless = l->rootless,
				     .flags = rec->template_flags,
				     .uid_base = rec->uid_base };
	b->cell = CELL_NONE;
	b->pid = (pid_t)rec->pid;
	b->sock = b->net_fd = b->pidfd = b->listener = b->room_fd = -1;
	b->flags = rec->box_flags;
	b->start_ticks = rec->start_ticks;
	list_init(&b->pool_link);
	ending_turn_init(&b->turn);
	list_init(&b->build_link);
	if (rec->layers.count > 0 || rec->n_volumes > 0) {
		b->disk = disk_of(rec);
		if (!b->disk) {
			free(b);
			return NULL;
		}
	}
	b->held = rec->held;
	(void)str_copy(b->id, sizeof(b->id), rec->id);
	(void)str_copy(b->tag, sizeof(b->tag), rec->tag);
	return b;
}

/* The limits as they were written down: the last change to them may have been cut short, and the
 * process that shared the box's count with it is gone. */
static void settle(struct launch *l, struct box *b)
{
	struct err err = { 0 };

	b->frozen = cgroup_is_frozen(b->cell.cgroup);
	/* Nobody takes that snapshot any more. */
	if (b->held) {
		b->held = b->frozen = false;
		if (still_release(b, &err) < 0)
			b->frozen = cgroup_is_frozen(b->cell.cgroup);
		(void)persist_update(l, b, NULL);
	}
	if (cgroup_ops_of(b->cell.cgroup)->limit(b->cell.cgroup, &b->plan.limits, &err) < 0)
		log_warn("launch", "limits of an adopted box: %s", err.text);
}

/* Everything that can fail, in the order in which boxes_free() can undo it. */
static int take(struct launch *l, struct box *b, const struct record *rec, struct err *err)
{
	int r = cgroup_open(l->cgroups, &rec->group, b->pid, &b->cell.cgroup, err);

	if (r == 0 && !l->rootless) {
		r = ids_retake(&l->ids, rec->uid_base, err);
		if (r == 0)
			b->cell.uid_base = rec->uid_base;
	}
	if (r == 0)
		r = map_put(l->by_id, b->id, ID_LEN, b, NULL);
	if (r == 0)
		r = launch_watch(l, b->pidfd, &b->source, err);
	return r;
}

static bool is_stale(int r)
{
	return r == -ESTALE || r == -EBUSY || r == -EINVAL || r == -EPROTONOSUPPORT;
}

static int adopt(struct launch *l, struct found *f, struct err *err)
{
	struct box *b;
	int r;

	if (!state_has_socket(&l->state, f->rec.id))
		return err_set(err, ESTALE, "nobody could reach it");
	b = new_box(l, &f->rec);
	if (!b)
		return err_sys(err, ENOMEM, "box");
	b->pidfd = TAKE_FD(f->pidfd);
	r = take(l, b, &f->rec, err);
	if (r == 0) {
		b->tmpl->claimed_count++;
		settle(l, b);
		return 0;
	}
	f->pidfd = TAKE_FD(b->pidfd);
	launch_unwatch(l, f->pidfd);
	(void)map_remove(l->by_id, b->id, ID_LEN);
	cgroup_forget(b->cell.cgroup);
	if (b->cell.uid_base)
		ids_give(&l->ids, b->cell.uid_base);
	free(b->disk);
	free(b);
	return r;
}

struct visit {
	struct launch *l;
	struct err *err;
};

/* A failure of ours must not cost a box its life: then we do not start. */
static int visit(void *arg, const char *box)
{
	_cleanup_(found_done) struct found f = { .pidfd = -1 };
	struct visit *v = arg;
	struct err err = { 0 };
	int r = find(v->l, box, &f);

	if (r == 0)
		r = adopt(v->l, &f, &err);
	else if (r == -EPROTONOSUPPORT)
		(void)err_set(&err, -r, "its record is of another version");
	if (r == 0)
		return 0;
	if (!is_stale(r))
		return err_set(v->err, -r, "take over box %s: %s", box,
			       err.code ? err.text : strerror(-r));
	if (err.code)
		log_warn("launch", "box %s cannot be taken over: %s", box, err.text);
	if (f.pidfd >= 0) {
		process_kill(f.pidfd);
		(void)process_wait(f.pidfd, KILLED_MS);
	}
	state_remove(&v->l->state, box);
	return 0;
}

static bool is_adopted(const char *name, void *arg)
{
	const struct launch *l = arg;

	MAP_FOREACH (l->by_id, it) {
		const struct box *b = it.value;
		struct cgroup_mark m;

		cgroup_mark(b->cell.cgroup, &m);
		if (strcmp(m.name, name) == 0)
			return true;
	}
	return false;
}

int adopt_boxes(struct launch *l, struct err *err)
{
	struct visit v = { l, err };
	int r = state_each(&l->state, visit, &v, err);

	if (r == 0)
		cgroups_prune(l->cgroups, is_adopted, l);
	return r;
}
