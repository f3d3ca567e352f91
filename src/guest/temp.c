#include "guest/temp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/id.h"

#define TEMP_PREFIX ".holt-"
#define NOREPLACE 1 /* RENAME_NOREPLACE, which musl does not name */

void temp_name(struct temp *t, int dir)
{
	char id[ID_LEN + 1];

	id_make(id);
	(void)snprintf(t->name, sizeof(t->name), TEMP_PREFIX "%s", id);
	t->dir = dir;
	t->fd = -1;
}

bool temp_is_name(const char *name)
{
	size_t n = sizeof(TEMP_PREFIX) - 1;

	return strncmp(name, TEMP_PREFIX, n) == 0 && id_is_valid(name + n);
}

int temp_open(struct temp *t, int dir)
{
	temp_name(t, dir);
	t->fd = openat(dir, t->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (t->fd >= 0)
		return 0;
	t->name[0] = '\0';
	return -errno;
}

/* The way for file systems that cannot rename without replacing. */
static int link_new(struct temp *t, const char *name)
{
	return linkat(t->dir, t->name, t->dir, name, 0) < 0 ? -errno : 0;
}

int temp_rename(int from_dir, const char *from, int to_dir, const char *to, bool excl)
{
	unsigned flags = excl ? NOREPLACE : 0;

	return syscall(SYS_renameat2, from_dir, from, to_dir, to, flags) < 0 ? -errno : 0;
}

int temp_commit(struct temp *t, const char *name, bool excl)
{
	int r = temp_rename(t->dir, t->name, t->dir, name, excl);

	if (excl && (r == -EINVAL || r == -ENOSYS))
		return link_new(t, name); /* temp_done() takes the other name away */
	if (r < 0)
		return r;
	/* Between two names of one file (a link was made) rename() does nothing, and ours stays. */
	if (t->fd < 0)
		(void)unlinkat(t->dir, t->name, 0);
	t->name[0] = '\0';
	return 0;
}

void temp_done(struct temp *t)
{
	t->fd = fd_close(t->fd);
	if (t->name[0] != '\0')
		(void)unlinkat(t->dir, t->name, 0);
	t->name[0] = '\0';
}
