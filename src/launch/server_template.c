/* Templates and their pools, as the client defines them: at any time. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "launch/launch.h"
#include "launch/server.h"
#include "launch/sysdirs.h"
#include "launch/template.h"
#include "launch/zygote.h"

/* Boxes that wait would be handed out as what is defined next: they go, and those that are being
 * made for the pool go when they are ready. Claimed ones need nothing of it. */
static void clear_template(struct launch *l, struct template *t)
{
	t->generation++;
	if (t->mount_ns < 0)
		return;
	LIST_FOREACH (&t->ready, b, struct box, pool_link)
		boxes_destroy(l, b);
	zygote_stop(l, t);
	t->mount_ns = fd_close(t->mount_ns);
	t->fittings_ns = fd_close(t->fittings_ns);
	t->disk = disk_use_free(l, t->disk);
	free(t->preload);
	t->preload = NULL;
	poolsize_init(&t->size, 0, 0, 0);
}

/* Takes what is its own. */
static void define_template(struct launch *l, const struct template_spec *spec, char *preload,
			    struct disk_use *disk, int mount_ns)
{
	struct template *t = &l->templates[spec->id];

	clear_template(l, t);
	t->spec = *spec;
	t->spec.layers = (struct layer_list){ 0 }; /* borrowed from the request: disk has them */
	t->preload = preload;
	t->spec.preload = preload;
	(void)str_copy(t->preload_node, sizeof(t->preload_node), spec->preload_node); /* as well */
	t->spec.preload_node = t->preload_node;
	t->why[0] = '\0';
	(void)str_copy(t->writable, sizeof(t->writable), spec->writable); /* fits: checked */
	t->spec.writable = t->writable;
	t->disk = disk;
	t->mount_ns = mount_ns;
	t->profile = spec->level == LEVEL_HIGH || (spec->flags & TEMPLATE_STRICT_CALLS)
			     ? PROFILE_HIGH
			     : PROFILE_STANDARD;
	t->failures = 0;
}

/* NULL in *ret: it has none. */
static int use_layers(struct launch *l, const struct template_spec *spec, struct disk_use **ret,
		      struct err *err)
{
	struct disk_use *u;
	int r;

	*ret = NULL;
	if (spec->layers.count == 0)
		return 0;
	r = disk_check(l, err);
	if (r < 0)
		return r;
	u = calloc(1, sizeof(*u));
	if (!u)
		return err_sys(err, ENOMEM, "layers of a template");
	r = disk_use_layers(l, u, &spec->layers, err);
	if (r < 0)
		u = disk_use_free(l, u);
	*ret = u;
	return r;
}

/* The lowest layer of a root of layers: an image, like a directory. */
static int open_image(const struct launch *l, const struct template_spec *spec, struct err *err)
{
	const struct layer *lowest = disk_find(l, spec->layers.ids[0]);
	char path[ID_LEN + sizeof("/root")];
	int fd;

	if (!lowest)
		return err_set(err, ENOENT, "no layer '%s'", spec->layers.ids[0]);
	(void)str_format(path, sizeof(path), "%s/root", lowest->id);
	fd = openat(lowest->dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_sys(err, errno, "layer %s has no root", lowest->id) : fd;
}

/* Its mount namespace. */
static int build_template(struct launch *l, const struct template_spec *spec, int dir_fd,
			  struct err *err)
{
	struct template_context ctx = { l->view_ns, l->rootless, l->init_fd };
	_close_ int image = spec->root == ROOT_LAYERS ? open_image(l, spec, err) : -1;

	if (spec->root == ROOT_LAYERS && image < 0)
		return image;
	if (setns(l->view_ns, CLONE_NEWNS) < 0)
		return err_sys(err, errno, "enter the machine's mounts");
	return template_build(&ctx, spec, image < 0 ? dir_fd : image, err);
}

/* A daemon defines templates by layers and without a network, and can name directories that it may
 * not read, and sockets that it may not reach: what it may not, we do not for it. A client that
 * keeps no boxes is the user's own command. */
static int check_reach(const struct launch *l, const struct template_spec *spec, int dir_fd,
		       struct err *err)
{
	if ((spec->root == ROOT_DIR) != (dir_fd >= 0))
		return err_set(err, EINVAL,
			       "a directory template needs one directory, others none");
	if (dir_fd >= 0 && state_is_open(&l->state))
		return err_set(err, EPERM, "a daemon's templates are not made of directories");
	if (spec->net == NET_HOST && state_is_open(&l->state))
		return err_set(err, EPERM, "a daemon's boxes are not on the machine's network");
	return 0;
}

int server_on_template(struct launch *l, struct request *q, struct err *err)
{
	struct template_spec spec;
	struct disk_use *disk = NULL;
	_free_ char *preload = NULL;
	struct err why = { 0 };
	int r = launch_get_template(q->r, &spec);

	if (r == 0 && spec.limits.nofile == 0)
		spec.limits.nofile = spec_nofile_default(l->rootless);
	if (r == 0)
		r = server_fill_limits(l, &spec.limits, NULL, err);
	if (r == 0)
		r = spec_check_template(&spec, err);
	if (r == 0)
		r = check_reach(l, &spec, q->fd, err);
	if (r < 0)
		return r;
	preload = str_dup(str_of(spec.preload));
	if (!preload)
		return err_sys(err, ENOMEM, "template");
	r = use_layers(l, &spec, &disk, err);
	if (r == 0)
		r = build_template(l, &spec, q->fd, err);
	if (r < 0) {
		(void)disk_use_free(l, disk);
		return r;
	}
	define_template(l, &spec, TAKE(preload), disk, r);
	/* Without it boxes have no Python waiting, which their flags say. */
	r = disk || sysdirs_are_for(l, &spec) ? 0 : zygote_start(l, &l->templates[spec.id], &why);
	if (r < 0)
		log_warn("launch", "warm Python: %s", why.text);
	server_ok(l, q->id);
	return 0;
}

int server_on_template_drop(struct launch *l, struct request *q, struct err *err)
{
	uint32_t id = rd_u32(q->r);
	struct template *t = rd_end(q->r) < 0 ? NULL : server_template(l, id, err);

	if (!t)
		return err_result(err, EPROTO);
	clear_template(l, t);
	server_ok(l, q->id);
	return 0;
}

int server_on_pool(struct launch *l, struct request *q, struct err *err)
{
	struct pool_spec spec;
	struct template *t;
	int r = launch_get_pool(q->r, &spec);

	if (r < 0)
		return r;
	t = server_template(l, spec.template_id, err);
	if (!t)
		return -ENOENT;
	poolsize_change(&t->size, spec.min, spec.max, spec.quiet_ms);
	if (spec.utilization > 0)
		t->size.utilization = spec.utilization;
	t->failures = 0;
	server_ok(l, q->id);
	return 0;
}

int server_on_pool_state(struct launch *l, struct request *q, struct err *err)
{
	uint32_t id = rd_u32(q->r);
	struct template *t = rd_end(q->r) < 0 ? NULL : server_template(l, id, err);
	struct pool_state s;
	char frame[256 + WHY_MAX];

	if (!t)
		return err_result(err, EPROTO);
	s = (struct pool_state){ t->ready_count,
				 t->building_count,
				 t->claimed_count,
				 t->size.max ? poolsize_target(&t->size, clock_now_ms()) : 0,
				 t->hits,
				 t->missed[MISS_EMPTY] + t->missed[MISS_LIMITS] +
					 t->missed[MISS_FAILED],
				 t->size.make_us,
				 t->given_up,
				 t->stuck,
				 "",
				 { 0 } };
	memcpy(s.missed, t->missed, sizeof(s.missed));
	memcpy(s.why, t->why, sizeof(s.why));
	if (l->builds.state.uncounted > 0)
		(void)str_copy(s.why, sizeof(s.why), "file locks are not counted at present");
	if (l->builds.state.late > 0)
		memcpy(s.why, l->builds.state.why, sizeof(s.why));
	server_send(l, frame, launch_put_pool_state(frame, sizeof(frame), q->id, &s));
	return 0;
}
