/* Volumes: a file system in a file, mounted by one box at a time.
 *
 * The lock on the image belongs to the open file that the loop device was given, so it lasts
 * exactly as long as the device has the image, whoever dies meanwhile; and the device lets go of it
 * when the last mount is gone, which is in the box's mount namespace alone. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/map.h"
#include "base/str.h"
#include "launch/copy.h"
#include "launch/job.h"
#include "launch/launch.h"
#include "launch/volume_image.h"

enum { FD_VOLUMES = JOB_FD, FD_VIEW };

/* A claim whose volumes are being mounted. */
struct waiting {
	uint32_t template_id, generation, claim_id;
	struct limits limits;
	char tag[TAG_MAX + 1];
	struct disk_use *disk; /* owned */
};

struct make_order {
	char id[ID_LEN + 1];
	uint64_t bytes;
};

static int check_privilege(const struct launch *l, struct err *err)
{
	int r = disk_check(l, err);

	if (r == 0 && l->rootless)
		r = err_set(err, EOPNOTSUPP,
			    "volumes need a launcher with root's rights: they are mounted by a "
			    "loop device");
	return r;
}

static bool has_volume(const struct disk_use *u, const char *id)
{
	for (uint32_t i = 0; u && i < u->n_volumes; i++)
		if (strcmp(u->volumes[i].id, id) == 0)
			return true;
	return false;
}

const char *volume_holder(const struct launch *l, const char *id)
{
	MAP_FOREACH (l->by_id, it) {
		const struct box *b = it.value;

		if (has_volume(b->disk, id))
			return b->id;
	}
	return "";
}

/* Nobody may touch it: a box has it, or a job. */
static int check_free(const struct launch *l, const char *id, struct err *err)
{
	const char *holder = volume_holder(l, id);

	if (holder[0])
		return err_set(err, EBUSY, "box %s has volume %s", holder, id);
	LIST_FOREACH (&l->jobs, j, struct job, node)
		if (strcmp(j->id, id) == 0 || (j->waiting && has_volume(j->waiting->disk, id)))
			return err_set(err, EBUSY, "volume %s is being made or mounted", id);
	return 0;
}

static bool exists(const struct launch *l, const char *id)
{
	return faccessat(l->disk.volumes, id, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int enter_view(struct err *err)
{
	if (setns(FD_VIEW, CLONE_NEWNS) < 0)
		return err_sys(err, errno, "enter the machine's mounts");
	return 0;
}

static int make(const void *arg, struct job_result *ret, int *ret_fds, size_t *ret_nfds,
		struct err *err)
{
	const struct make_order *o = arg;
	char temp[DISK_NAME_SIZE];
	_close_ int fd = -1;
	int r = enter_view(err);

	(void)ret;
	(void)ret_fds;
	(void)ret_nfds;
	disk_name(temp, DISK_NEW, o->id);
	if (r == 0) {
		fd = openat(FD_VOLUMES, temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    0600);
		r = fd < 0 ? err_sys(err, errno, "volume %s", o->id) : 0;
	}
	if (r == 0)
		r = image_make(fd, o->bytes, LAYER_BASE + BOX_USER, err);
	if (r == 0 && (fsync(fd) < 0 || renameat(FD_VOLUMES, temp, FD_VOLUMES, o->id) < 0 ||
		       fsync(FD_VOLUMES) < 0))
		r = err_sys(err, errno, "volume %s", o->id);
	if (r < 0)
		(void)unlinkat(FD_VOLUMES, temp, 0);
	return r;
}

static void made(struct launch *l, struct job *j, const struct job_result *r, int *fds, size_t nfds)
{
	struct err err = { 0 };

	(void)fds;
	(void)nfds;
	if (r->code == 0) {
		server_ok(l, j->request);
		return;
	}
	if (disk_discard(l->disk.volumes, j->id, true) == 0)
		disk_sweep(l);
	(void)err_set(&err, -r->code, "%s", r->text);
	server_failed(l, j->request, &err);
}

int volume_make(struct launch *l, const struct volume_spec *v, uint32_t request, struct err *err)
{
	struct job j = { .done = made, .request = request };
	struct make_order o = { .bytes = v->bytes };
	int fds[] = { l->disk.volumes, l->view_ns };
	int r = check_privilege(l, err);

	if (r < 0)
		return r;
	if (exists(l, v->id) || job_find(l, v->id, NULL))
		return err_set(err, EEXIST, "volume %s is there already", v->id);
	(void)str_copy(o.id, sizeof(o.id), v->id);
	(void)str_copy(j.id, sizeof(j.id), v->id);
	return job_start(l, &j, make, &o, fds, 2, err);
}

/* A box that has ended a moment ago lets go of it by and by: the kernel unmounts behind our back.
 */
static int wait_free(const void *arg, struct job_result *ret, int *ret_fds, size_t *ret_nfds,
		     struct err *err)
{
	const struct make_order *o = arg;
	_close_ int fd = openat(FD_VOLUMES, o->id, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	(void)ret;
	(void)ret_fds;
	(void)ret_nfds;
	return fd < 0 ? err_sys(err, errno, "volume %s", o->id) : image_lock(fd, err);
}

/* While the job had its lock nobody could mount it, and the job is still in the list. */
static void dropped(struct launch *l, struct job *j, const struct job_result *r, int *fds,
		    size_t nfds)
{
	struct err err = { 0 };
	int code = r->code == 0 ? disk_discard(l->disk.volumes, j->id, false) : 0;

	(void)fds;
	(void)nfds;
	if (r->code < 0) {
		(void)err_set(&err, -r->code, "%s", r->text);
		server_failed(l, j->request, &err);
	} else if (code < 0) {
		(void)err_sys(&err, code, "volume %s", j->id);
		server_failed(l, j->request, &err);
	} else {
		disk_sweep(l);
		server_ok(l, j->request);
	}
}

int volume_drop(struct launch *l, const char *id, uint32_t request, struct err *err)
{
	struct job j = { .done = dropped, .request = request };
	struct make_order o = { 0 };
	int fds[] = { l->disk.volumes };
	int r = check_privilege(l, err);

	if (r == 0 && !exists(l, id))
		r = err_set(err, ENOENT, "no volume '%s'", id);
	if (r == 0)
		r = check_free(l, id, err);
	if (r < 0)
		return r;
	(void)str_copy(o.id, sizeof(o.id), id);
	(void)str_copy(j.id, sizeof(j.id), id);
	return job_start(l, &j, wait_free, &o, fds, 1, err);
}

static int mount_all(const void *arg, struct job_result *ret, int *ret_fds, size_t *ret_nfds,
		     struct err *err)
{
	const struct disk_use *u = arg;
	int r = enter_view(err);

	(void)ret;
	for (uint32_t i = 0; i < u->n_volumes && r >= 0; i++) {
		_close_ int image =
			openat(FD_VOLUMES, u->volumes[i].id, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

		r = image < 0 ? err_sys(err, errno, "volume %s", u->volumes[i].id)
			      : image_mount(image, err);
		if (r >= 0)
			ret_fds[(*ret_nfds)++] = r;
	}
	return r < 0 ? r : 0;
}

static int go_on(struct launch *l, struct waiting *w, const struct job_result *r, int *fds,
		 size_t nfds, struct err *err)
{
	struct template *t = &l->templates[w->template_id];
	struct claim claim = { w->claim_id, w->tag, w->disk };

	if (r->code < 0)
		return err_set(err, -r->code, "%s", r->text);
	if (nfds != w->disk->n_volumes)
		return err_set(err, EIO, "not every volume was mounted");
	if (t->mount_ns < 0 || t->generation != w->generation)
		return err_set(err, EAGAIN, "its template was defined anew");
	for (uint32_t i = 0; i < w->disk->n_volumes; i++)
		w->disk->volumes[i].fd = TAKE_FD(fds[i]);
	w->disk = NULL;
	return boxes_create(l, t, &w->limits, &claim, err);
}

static void mounted(struct launch *l, struct job *j, const struct job_result *r, int *fds,
		    size_t nfds)
{
	struct err err = { 0 };

	if (go_on(l, j->waiting, r, fds, nfds, &err) < 0)
		server_failed(l, j->waiting->claim_id, &err);
	(void)disk_use_free(l, j->waiting->disk);
	free(j->waiting);
}

int volume_claim(struct launch *l, struct template *t, const struct limits *limits,
		 const struct claim *claim, struct err *err)
{
	_free_ struct waiting *w = calloc(1, sizeof(*w));
	struct job j = { .done = mounted };
	int fds[] = { l->disk.volumes, l->view_ns };
	int r = w ? check_privilege(l, err) : err_sys(err, ENOMEM, "claim");

	for (uint32_t i = 0; r == 0 && i < claim->disk->n_volumes; i++) {
		const char *id = claim->disk->volumes[i].id;

		r = exists(l, id) ? check_free(l, id, err)
				  : err_set(err, ENOENT, "no volume '%s'", id);
	}
	if (r < 0)
		return r;
	*w = (struct waiting){ .template_id = t->spec.id,
			       .generation = t->generation,
			       .claim_id = claim->id,
			       .limits = *limits,
			       .disk = claim->disk };
	(void)str_copy(w->tag, sizeof(w->tag), claim->tag);
	j.waiting = w;
	r = job_start(l, &j, mount_all, claim->disk, fds, 2, err);
	if (r == 0)
		(void)TAKE(w);
	return r;
}
