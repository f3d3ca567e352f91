#include "guest/tar_layer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/walk.h"
#include "guest/notes.h"
#include "guest/ops.h"
#include "guest/path.h"
#include "guest/temp.h"

#define NOBODY 65534u
#define WIDE 0777
#define WHITEOUT ".wh."
#define OPAQUE ".wh..wh..opq"

/* Neither call says whether it was heard; the next one tells what is in force. */
static void become_one(long call, uint32_t id)
{
	(void)syscall(call, id);
	if ((uint32_t)syscall(call, -1) != id)
		(void)syscall(call, NOBODY);
}

void layer_become(uint32_t uid, uint32_t gid)
{
	become_one(SYS_setfsgid, gid);
	become_one(SYS_setfsuid, uid);
}

static int real_path(int fd, char *dst, size_t size)
{
	char proc[32];
	ssize_t n;

	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	n = readlink(proc, dst, size - 1);
	if (n < 0)
		return -errno;
	if ((size_t)n >= size - 1)
		return -ENAMETOOLONG;
	dst[n] = '\0';
	return 0;
}

int layer_path(int top, int dir, const char *name, char *dst, size_t size)
{
	char above[PATH_BYTES], path[PATH_BYTES];
	const char *below = path;
	size_t len;
	int r = real_path(top, above, sizeof(above));

	if (r == 0)
		r = real_path(dir, path, sizeof(path));
	if (r < 0)
		return r;
	len = strcmp(above, "/") == 0 ? 0 : strlen(above);
	if (strncmp(path, above, len) != 0 || (path[len] != '/' && path[len] != '\0'))
		return -ESTALE; /* not below it: somebody moved it */
	below += len;
	below += strspn(below, "/");
	r = str_format(dst, size, "%s%s%s", below, *below && *name ? "/" : "", name);
	if (r == 0 && dst[0] == '\0')
		r = str_copy(dst, size, ".");
	return r < 0 ? -ENAMETOOLONG : 0;
}

int layer_open_up(int top, int dir, struct notes *notes)
{
	char path[PATH_BYTES];
	struct stat st;
	int r;

	if (fstat(dir, &st) < 0)
		return -errno;
	if ((st.st_mode & WIDE) == WIDE)
		return 0;
	r = layer_path(top, dir, "", path, sizeof(path));
	if (r == 0)
		r = notes_add(notes, path, st.st_mode & 01777, st.st_mtim);
	if (r < 0)
		return r;
	layer_become(st.st_uid, st.st_gid);
	return path_chmod_fd(dir, WIDE);
}

static int move_all(int from, int to)
{
	struct dents d;
	struct dent e;
	int n, r;

	do { /* moving may make the stream skip some */
		d.at = d.len = 0;
		if (lseek(from, 0, SEEK_SET) < 0)
			return -errno;
		for (n = 0; (r = dents_next(&d, from, &e)) > 0; n++)
			if (renameat(from, e.name, to, e.name) < 0)
				return -errno;
	} while (r == 0 && n > 0);
	return r;
}

int layer_give_dir(const struct path_spot *s, uint32_t uid, uint32_t gid)
{
	_close_ int from = path_open_beneath(s->dir, s->name, O_RDONLY | O_DIRECTORY);
	_close_ int to = -1;
	struct temp temp = TEMP_NONE;
	struct stat st;
	int r;

	if (from < 0 || fstat(from, &st) < 0)
		return from < 0 ? from : -errno;
	layer_become(st.st_uid, st.st_gid);
	if (fchmod(from, WIDE) < 0) /* it may be from before */
		return -errno;
	layer_become(uid, gid);
	temp_name(&temp, s->dir);
	if (mkdirat(s->dir, temp.name, WIDE) < 0)
		return -errno;
	to = path_open_beneath(s->dir, temp.name, O_RDONLY | O_DIRECTORY);
	r = to < 0 ? to : move_all(from, to);
	if (r == 0 && (unlinkat(s->dir, s->name, AT_REMOVEDIR) < 0 ||
		       renameat(s->dir, temp.name, s->dir, s->name) < 0))
		r = -errno;
	return r;
}

bool layer_is_whiteout(const char *name)
{
	return strncmp(name, WHITEOUT, sizeof(WHITEOUT) - 1) == 0;
}

int layer_white_out(struct fileop *op, const struct path_spot *s, struct err *err)
{
	const char *name = s->name + sizeof(WHITEOUT) - 1;

	if (strcmp(s->name, OPAQUE) == 0)
		return files_empty_at(op, s->dir, err);
	return name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0
		       ? 0
		       : files_remove_at(op, s->dir, name, err);
}
