/* A layer of what a box has written. The box stands still, a job copies, the box goes on.
 *
 * The box's writable tmpfs lies below the mount on its /tmp (box_mount.c). To get there, a copy of
 * the box's mount namespace is made in which that mount is taken away; nothing of the box changes.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "launch/copy.h"
#include "launch/job.h"
#include "launch/launch.h"
#include "launch/process.h"
#include "launch/still.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define LINKS "links"

/* FD_OTHERS: layers that do not lie where new ones go. FD_DISK: the box's room, or its mounts. */
enum { FD_LAYERS = JOB_FD, FD_OTHERS, FD_DISK, FD_PROC };

/* Where a box writes, and as what a layer has it. */
static const struct place {
	const char *disk, *layer;
	uint32_t with; /* enum snapshot_flag; 0: unless it is for another purpose */
} places[] = {
	{ "workspace", "workspace", 0 },
	{ "home", "home", 0 },
	{ "workspace", "root", SNAPSHOT_AS_ROOT },
	{ "upper.root", "root", SNAPSHOT_ROOT },
	{ "upper.usr", "usr", SNAPSHOT_ROOT },
	{ "upper.bin", "bin", SNAPSHOT_ROOT },
	{ "upper.sbin", "sbin", SNAPSHOT_ROOT },
	{ "upper.lib", "lib", SNAPSHOT_ROOT },
	{ "upper.lib32", "lib32", SNAPSHOT_ROOT },
	{ "upper.lib64", "lib64", SNAPSHOT_ROOT },
	{ "upper.libx32", "libx32", SNAPSHOT_ROOT },
};

/* What the job is told. */
struct order {
	char id[ID_LEN + 1];
	uint32_t flags;
	bool has_room;
	pid_t stopped; /* the box stands still by a signal to this one; 0: frozen */
	struct copy_plan plan, below_plan; /* for what the box wrote, and for what is below */
	uint32_t n_below;                  /* layers to take along, bottom first */
	char below[LAYERS_MAX][ID_LEN + 1];
};

static bool is_meant(const struct place *p, uint32_t flags)
{
	if (p->with)
		return flags & p->with;
	return !(flags & SNAPSHOT_AS_ROOT);
}

/* In a process of its own: the way may lead into another user namespace. */
static int enter_disk(int mounts, struct err *err)
{
	_close_ int owner = ioctl(mounts, NS_GET_USERNS);
	int fd;

	/* The box of a warm interpreter owns its mounts itself. That this is our own namespace is
	 * an error to the kernel and none to us. */
	if (owner < 0 || (setns(owner, CLONE_NEWUSER) < 0 && errno != EINVAL))
		return err_sys(err, errno, "owner of a box's mounts");
	if (setns(mounts, CLONE_NEWNS) < 0 || unshare(CLONE_NEWNS) < 0)
		return err_sys(err, errno, "copy of a box's mounts");
	if (umount2("/tmp", MNT_DETACH) < 0)
		return err_sys(err, errno, "look below a box's /tmp");
	fd = open("/tmp", DIR_FLAGS);
	return fd < 0 ? err_sys(err, errno, "writable files of a box") : fd;
}

struct found {
	int code;
	char text[240];
};

static int open_disk(int mounts, struct err *err)
{
	struct found f = { .code = -EIO, .text = "writable files of a box: cut short" };
	struct statfs fs;
	size_t nfds = 1;
	int pair[2], fd = -1;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, errno, "writable files of a box");
	pid = fork();
	if (pid == 0) {
		struct err why = { 0 };

		fd = enter_disk(mounts, &why);
		f.code = fd < 0 ? fd : 0;
		(void)str_copy(f.text, sizeof(f.text), why.text);
		(void)fd_send(pair[1], &f, sizeof(f), &fd, fd < 0 ? 0 : 1);
		_exit(0);
	}
	(void)close(pair[1]);
	if (process_hear(pair[0], PROCESS_HELPER_MS) == 0)
		(void)fd_recv(pair[0], &f, sizeof(f), &fd, &nfds);
	else if (pid > 0)
		(void)kill(pid, SIGKILL);
	(void)close(pair[0]);
	if (pid > 0) /* one that does not end is reaped when it does */
		(void)process_reap(pid, PROCESS_KILLED_MS);
	if (f.code < 0 || nfds != 1)
		return err_set(err, f.code < 0 ? -f.code : EIO, "%s", f.text);
	if (fstatfs(fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC) {
		(void)close(fd);
		return err_set(err, ESTALE, "the box's files are not where they should be");
	}
	return fd;
}

static int make_dir(int at, const char *name, struct err *err)
{
	int fd;

	if (mkdirat(at, name, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "directory of a layer");
	fd = openat(at, name, DIR_FLAGS);
	return fd < 0 ? err_sys(err, errno, "directory of a layer") : fd;
}

/* from/name, if it is there, becomes to/as or part of it. The links of one tree are not another's.
 */
static int copy_place(int from, const char *name, int to, const char *as,
		      const struct copy_plan *plan, struct job_result *ret, struct err *err)
{
	_close_ int in = openat(from, name, DIR_FLAGS);
	_close_ int out = -1, links = -1;
	struct copy_stats stats = { ret->bytes, ret->inodes, ret->skipped };
	int r;

	if (in < 0)
		return errno == ENOENT ? 0 : err_sys(err, errno, "writable files of a box");
	out = make_dir(to, as, err);
	links = out < 0 ? -1 : make_dir(to, LINKS, err);
	if (out < 0 || links < 0)
		return out < 0 ? out : links;
	r = copy_tree(in, out, links, plan, &stats, err);
	ret->bytes = stats.bytes;
	ret->inodes = stats.inodes;
	ret->skipped = stats.skipped;
	return r < 0 ? r : copy_remove(to, LINKS, err);
}

/* From the bottom up, each over what is there. */
static int copy_below(const struct order *o, int to, struct job_result *ret, struct err *err)
{
	int r = 0;

	for (uint32_t n = 0; n < o->n_below && r == 0; n++) {
		_close_ int from = openat(FD_LAYERS, o->below[n], DIR_FLAGS);

		if (from < 0 && errno == ENOENT)
			from = openat(FD_OTHERS, o->below[n], DIR_FLAGS);
		if (from < 0)
			return err_sys(err, errno, "layer %s", o->below[n]);
		for (size_t i = 0; i < COUNT(places) && r == 0; i++) {
			const struct place *p = &places[i];
			bool as_root = o->flags & SNAPSHOT_AS_ROOT;

			if (as_root == (p->with == SNAPSHOT_AS_ROOT))
				r = copy_place(from, as_root ? p->disk : p->layer, to, p->layer,
					       &o->below_plan, ret, err);
		}
	}
	return r;
}

static int copy_box(const struct order *o, int to, struct job_result *ret, struct err *err)
{
	_close_ int disk = -1;
	int r = o->stopped ? still_wait(FD_PROC, o->stopped, err) : 0;

	if (r == 0)
		r = disk = o->has_room ? FD_DISK : open_disk(FD_DISK, err);
	r = r < 0 ? r : 0;

	for (size_t i = 0; i < COUNT(places) && r == 0; i++)
		if (is_meant(&places[i], o->flags))
			r = copy_place(disk, places[i].disk, to, places[i].layer, &o->plan, ret,
				       err);
	return r;
}

/* Whole and, unless nobody asks for that, safe from a power cut before it has its name. */
static int commit(const struct order *o, int dir, const char *temp, const struct job_result *ret,
		  struct err *err)
{
	struct layer layer = { .bytes = ret->bytes,
			       .inodes = ret->inodes,
			       .skipped = ret->skipped,
			       .whole = o->flags & SNAPSHOT_WHOLE };
	bool sync = !(o->flags & SNAPSHOT_VOLATILE);
	int r;

	(void)str_copy(layer.id, sizeof(layer.id), o->id);
	r = disk_write_info(dir, &layer, err);
	if (r == 0 && sync && syncfs(dir) < 0)
		r = err_sys(err, errno, "write a layer to disk");
	if (r == 0 && renameat2(FD_LAYERS, temp, FD_LAYERS, o->id, RENAME_NOREPLACE) < 0)
		r = err_sys(err, errno, "layer %s", o->id);
	if (r == 0 && sync && fsync(FD_LAYERS) < 0)
		r = err_sys(err, errno, "write a layer to disk");
	return r;
}

static int take(const void *arg, struct job_result *ret, int *ret_fds, size_t *ret_nfds,
		struct err *err)
{
	const struct order *o = arg;
	char temp[DISK_NAME_SIZE];
	_close_ int dir = -1;
	int r;

	(void)ret_fds;
	(void)ret_nfds;
	(void)umask(0);
	disk_name(temp, DISK_NEW, o->id);
	if (mkdirat(FD_LAYERS, temp, 0755) < 0)
		return err_sys(err, errno, "layer %s", o->id);
	dir = openat(FD_LAYERS, temp, DIR_FLAGS);
	r = dir < 0 ? err_sys(err, errno, "layer %s", o->id) : copy_below(o, dir, ret, err);
	if (r == 0)
		r = copy_box(o, dir, ret, err);
	if (r == 0)
		r = commit(o, dir, temp, ret, err);
	if (r < 0)
		(void)copy_remove(FD_LAYERS, temp, NULL);
	return r;
}

/* The box goes on, unless it was paused meanwhile. */
static void release(struct launch *l, struct box *b)
{
	struct err err = { 0 };

	if (!b->held)
		return;
	b->held = false;
	if (still_release(b, &err) < 0)
		log_warn("launch", "box %s does not go on: %s", b->id, err.text);
	if (b->state == BOX_CLAIMED)
		(void)persist_update(l, b, NULL);
}

/* Written down first: whoever takes the box over lets it go on. */
static int hold(struct launch *l, struct box *b, uint32_t flags, struct err *err)
{
	int r;

	/* A sandbox of somebody mostly has something running. Who asks for a root has a box of his
	 * own for it. */
	if (still_is_by_signal(b) && !(flags & SNAPSHOT_AS_ROOT))
		return err_set(err, EOPNOTSUPP,
			       "a snapshot needs a cgroup freezer: see holt doctor");
	r = spawn_seed_is_in(&b->cell);
	if (r < 0)
		return err_sys(err, r, "snapshot");
	b->held = true;
	r = persist_update(l, b, err);
	if (r == 0)
		r = still_hold(b, err);
	if (r < 0)
		release(l, b);
	return r;
}

static void taken(struct launch *l, struct job *j, const struct job_result *r, int *fds,
		  size_t nfds)
{
	struct box *b = boxes_find(l, j->box_id);
	struct layer layer = { .bytes = r->bytes, .inodes = r->inodes, .skipped = r->skipped };
	struct err err = { 0 };
	char frame[256];

	(void)fds;
	(void)nfds;
	if (b)
		release(l, b);
	layer.whole = j->flags & SNAPSHOT_WHOLE;
	layer.dir = disk_layers(l);
	(void)str_copy(layer.id, sizeof(layer.id), j->id);
	if (r->code < 0)
		(void)err_set(&err, -r->code, "%s", r->text);
	else
		(void)disk_add(l, &layer, &err);
	if (err.code) {
		/* One that was killed has left something. */
		if (disk_discard(layer.dir, j->id, r->code < 0) == 0)
			disk_sweep(l);
		server_failed(l, j->request, &err);
		return;
	}
	server_send(l, frame,
		    launch_put_layer(frame, sizeof(frame), j->request,
				     &(struct layer_info){ .id = layer.id,
							   .bytes = layer.bytes,
							   .inodes = layer.inodes,
							   .skipped = layer.skipped,
							   .whole = layer.whole }));
}

/* Layers that have to be copied along: the chain would become too long, or they were asked for.
 * Those of the template are not: they come with it. */
static void order_below(const struct box *b, struct order *o)
{
	const struct disk_use *u = b->disk;
	bool is_full = u && u->n_layers == LAYERS_MAX;

	if (is_full || o->flags & SNAPSHOT_AS_ROOT)
		o->flags |= SNAPSHOT_WHOLE;
	if (!u || !(o->flags & SNAPSHOT_WHOLE))
		return;
	o->n_below = u->n_layers - u->n_template;
	memcpy(o->below, u->layers[u->n_template], o->n_below * sizeof(o->below[0]));
}

static void bound(const struct launch *l, const struct box *b, struct order *o)
{
	const struct limits *limits = &b->plan.limits;

	o->plan =
		(struct copy_plan){ .max_bytes = limits->disk_bytes, .max_inodes = limits->inodes };
	/* What is below was bounded when it was made; the box comes on top of it. */
	o->below_plan =
		(struct copy_plan){ .max_bytes = UINT64_MAX / 4, .max_inodes = UINT32_MAX / 4 };
	/* There inodes are bounded by the bytes that they take. */
	if (b->has_room)
		o->plan.max_inodes = UINT32_MAX / 4;
	if (o->n_below > 0) {
		o->plan.max_bytes += o->below_plan.max_bytes;
		o->plan.max_inodes += o->below_plan.max_inodes;
	}
	if (l->rootless)
		return;
	o->plan.ids = (struct copy_ids){ b->cell.uid_base, LAYER_BASE, BOX_ID_COUNT };
	o->below_plan.ids = (struct copy_ids){ LAYER_BASE, LAYER_BASE, BOX_ID_COUNT };
}

static int open_mounts(const struct launch *l, const struct box *b, struct err *err)
{
	char path[32];
	int fd;

	(void)str_format(path, sizeof(path), "%d/ns/mnt", (int)b->pid);
	fd = openat(l->proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == EACCES && l->rootless)
		return err_set(err, EOPNOTSUPP,
			       "its box was made before a restart: without root nobody can look "
			       "into it any more");
	return fd < 0 ? err_sys(err, errno, "mounts of a box") : fd;
}

int snapshot_start(struct launch *l, struct box *b, const struct snapshot_spec *s, uint32_t request,
		   struct err *err)
{
	struct order o = { .flags = s->flags, .has_room = b->has_room };
	struct job j = { .done = taken, .request = request };
	_close_ int disk = -1;
	int r = disk_check(l, err);

	if (r < 0)
		return r;
	if (disk_find(l, s->layer_id) || job_find(l, s->layer_id, NULL))
		return err_set(err, EEXIST, "layer %s is there already", s->layer_id);
	if (job_find(l, NULL, b->id))
		return err_set(err, EBUSY, "another snapshot of the box is being taken");
	r = disk = b->has_room ? room_open(l, b, err) : open_mounts(l, b, err);
	if (r < 0)
		return r;
	order_below(b, &o);
	bound(l, b, &o);
	(void)str_copy(o.id, sizeof(o.id), s->layer_id);
	(void)str_copy(j.id, sizeof(j.id), s->layer_id);
	(void)str_copy(j.box_id, sizeof(j.box_id), b->id);
	j.flags = o.flags;
	o.stopped = still_is_by_signal(b) ? b->pid : 0;
	r = hold(l, b, o.flags, err);
	if (r == 0) {
		int fds[] = { disk_layers(l), l->rooms.are_used ? l->disk.layers : l->rooms.layers,
			      disk, l->proc_fd };

		if (fds[1] < 0)
			fds[1] = fds[0];
		r = job_start(l, &j, take, &o, fds, 4, err);
		if (r < 0)
			release(l, b);
	}
	return r;
}

void snapshot_cancel(struct launch *l, struct box *b)
{
	struct job *j = b->held ? job_find(l, NULL, b->id) : NULL;

	if (j)
		job_cancel(l, j);
}
