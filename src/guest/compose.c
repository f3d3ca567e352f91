/* Several files become one, which takes its name in one step; then they go. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "guest/ops.h"
#include "guest/path.h"
#include "guest/temp.h"

#define FOR_EACH_SOURCE(f, p) \
	for (const char *p = (f)->sources; p < (f)->sources + (f)->sources_len; p += strlen(p) + 1)

static int add_source(struct fileop *op, const char *path, int to, struct err *err)
{
	const struct guest_file *whole = op->f;
	struct guest_file one = *whole;
	_close_ int fd = -1;
	struct stat st;
	int r;

	one.path = path;
	op->f = &one;
	fd = files_open_regular(op, O_RDONLY, &st, err);
	op->f = whole;
	if (fd < 0)
		return fd;
	r = files_copy_bytes(op, fd, to);
	return r < 0 ? err_sys(err, r, "append '%.150s'", path) : 0;
}

/* What has been added is in the new file now; a source that is gone already is no loss. */
static void remove_sources(struct fileop *op)
{
	FOR_EACH_SOURCE(op->f, p)
	{
		_cleanup_(path_spot_done) struct path_spot spot = PATH_SPOT_NONE;

		if (strcmp(p, op->f->path) != 0 &&
		    path_locate(op->root_fd, p, false, &spot, NULL) == 0)
			(void)unlinkat(spot.dir, spot.name, 0);
	}
}

int files_compose(struct fileop *op, struct err *err)
{
	_cleanup_(path_spot_done) struct path_spot spot = PATH_SPOT_NONE;
	_cleanup_(temp_done) struct temp temp = TEMP_NONE;
	mode_t mode = 0644;
	int r = path_locate_target(op->root_fd, op->f->path, op->f->flags & FILE_PARENTS, &spot,
				   err);

	if (r == 0)
		r = files_check_old(op, &spot, &mode, err);
	if (r < 0)
		return r;
	r = temp_open(&temp, spot.dir);
	if (r < 0)
		return err_sys(err, r, "make a file beside '%.150s'", op->f->path);
	FOR_EACH_SOURCE(op->f, p)
	{
		r = add_source(op, p, temp.fd, err);
		if (r < 0)
			return r;
	}
	if (fchmod(temp.fd, mode) < 0)
		return err_sys(err, errno, "chmod '%.150s'", op->f->path);
	r = files_commit(op, &temp, &spot, "", err);
	if (r < 0)
		return r;
	remove_sources(op);
	return files_send_made(op, spot.dir, spot.name, op->f->path);
}
