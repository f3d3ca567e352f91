#include "launch/box_layers.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "launch/mounts.h"

#define PLACE BOX_DISK "/l" /* layer n is at PLACE/<letter> */
#define MNT BOX_DISK "/mnt"

static void name_layer(char dst[2], int i)
{
	dst[0] = (char)('a' + i);
	dst[1] = '\0';
}

int layers_attach(const struct box_plan *plan, struct err *err)
{
	char path[sizeof(PLACE "/x")];
	int r = 0;

	if (plan->n_layers == 0)
		return 0;
	if (mkdir(PLACE, 0700) < 0)
		return err_sys(err, errno, "place of layers");
	for (int i = 0; i < plan->n_layers && r == 0; i++) {
		char name[2];

		name_layer(name, i);
		(void)str_format(path, sizeof(path), PLACE "/%s", name);
		if (mkdir(path, 0700) < 0)
			return err_sys(err, errno, "place of layers");
		r = mounts_attach(plan->layer_fds[i], path, err);
	}
	return r;
}

/* The directory of that name in layer i, if it has one. */
static int append_layer(char *dst, size_t size, int i, const char *name, struct err *err)
{
	size_t len = strlen(dst);
	struct stat st;
	char layer[2], path[32];

	name_layer(layer, i);
	if (str_format(path, sizeof(path), "%s/%s", layer, name) < 0)
		return err_set(err, EINVAL, "layer directory %s", name);
	if (fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	return str_format(dst + len, size - len, "%s:", path) < 0
		       ? err_set(err, E2BIG, "too many layers")
		       : 0;
}

int layers_below(const struct box_plan *plan, const struct overlay *o, char *dst, size_t size,
		 struct err *err)
{
	/* A root of layers begins with an image. Our own files lie over it, as over a directory;
	 * what was built on it lies over ours. */
	bool has_image = plan->root == ROOT_LAYERS && strcmp(o->name, "root") == 0;
	size_t len;
	int r = 0;

	dst[0] = '\0';
	if (plan->n_layers > 0 && chdir(PLACE) < 0)
		return err_sys(err, errno, "enter the layers");
	for (int i = plan->n_layers - 1; i >= (has_image ? 1 : 0) && r == 0; i--)
		r = append_layer(dst, size, i, o->name, err);
	len = strlen(dst);
	if (r == 0 && o->lower && str_format(dst + len, size - len, "%s:", o->lower) < 0)
		r = err_set(err, E2BIG, "too many layers");
	if (r == 0 && has_image)
		r = append_layer(dst, size, 0, o->name, err);
	len = strlen(dst);
	if (r == 0 && str_format(dst + len, size - len, "%s", o->second ? o->second : BOX_NOTHING))
		r = err_set(err, E2BIG, "too many layers");
	return r;
}

/* One step down, made if it is not there. What layers hold is a stranger's: no link is followed. */
static int step(int dir, const char *name, uid_t owner, struct err *err)
{
	int fd;

	if (mkdirat(dir, name, 0755) == 0) {
		if (fchownat(dir, name, owner, owner, AT_SYMLINK_NOFOLLOW) < 0)
			return err_sys(err, errno, "place of a mount");
	} else if (errno != EEXIST) {
		return err_sys(err, errno, "place of a mount");
	}
	fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_sys(err, errno, "place of a mount: '%.60s'", name) : fd;
}

int layers_make_path(const char *path, uid_t owner, struct err *err)
{
	_close_ int dir = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct str rest = str_of(path + 1), part = { 0 };

	if (dir < 0)
		return err_sys(err, errno, "place of a mount");
	while (str_split(&rest, '/', &part)) {
		char name[TEMPLATE_WRITABLE_MAX + 1];
		int next;

		(void)str_format(name, sizeof(name), "%.*s", (int)part.len, part.data);
		next = step(dir, name, owner, err);
		if (next < 0)
			return next;
		(void)close(dir);
		dir = next;
	}
	return TAKE_FD(dir);
}

/* Its /mnt is the box's own, with nothing in it but volumes. */
static int cover_mnt(struct err *err)
{
	_close_ int there = openat(AT_FDCWD, "mnt", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (there < 0)
		return err_sys(err, errno, "place of volumes: /mnt");
	if (mkdir(MNT, 0755) < 0)
		return err_sys(err, errno, "place of volumes");
	return mounts_bind(MNT, "mnt", err);
}

static bool is_in_mnt(const char *path)
{
	return strncmp(path, "/mnt/", 5) == 0;
}

int layers_add_volumes(const struct box_plan *plan, uid_t owner, struct err *err)
{
	bool has_mnt = false;
	int r = 0;

	for (int i = 0; i < plan->n_volumes && r == 0; i++) {
		_close_ int at = -1;

		if (is_in_mnt(plan->volume_paths[i]) && !has_mnt) {
			has_mnt = true;
			r = cover_mnt(err);
		}
		if (r == 0)
			r = at = layers_make_path(plan->volume_paths[i], owner, err);
		if (r < 0)
			return r;
		r = move_mount(plan->volume_fds[i], "", at, "",
			       MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0
			    ? err_sys(err, errno, "mount a volume")
			    : 0;
	}
	return r;
}
