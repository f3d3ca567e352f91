#include "guest/notes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "guest/path.h"

static int grow(struct notes *n)
{
	size_t room = n->room ? n->room * 2 : 64;
	struct note *grown;

	if (n->count < n->room)
		return 0;
	if (room > NOTES_MAX)
		return -E2BIG;
	grown = realloc(n->items, room * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	n->items = grown;
	n->room = room;
	return 0;
}

int notes_add(struct notes *n, const char *path, mode_t mode, struct timespec mtime)
{
	int r = grow(n);
	char *copy;

	if (r < 0)
		return r;
	copy = str_dup(str_of(path));
	if (!copy)
		return -ENOMEM;
	n->items[n->count] = (struct note){ copy, n->count, mode, mtime };
	n->count++;
	return 0;
}

/* The top itself is above everything, whatever else begins with a character before the dot. */
static const char *sorted_as(const struct note *n)
{
	return strcmp(n->path, ".") == 0 ? "" : n->path;
}

/* A path is behind every path that it begins with; of one path the newest comes first. */
static int deepest_first(const void *a, const void *b)
{
	const struct note *x = a, *y = b;
	int d = strcmp(sorted_as(y), sorted_as(x));

	return d != 0 ? d : (x->at < y->at) - (x->at > y->at);
}

static int apply(const struct note *n, int top, void (*become)(uint32_t uid, uint32_t gid))
{
	_close_ int fd = path_open_beneath(top, n->path, O_RDONLY | O_DIRECTORY);
	struct stat st;

	if (fd < 0) /* gone meanwhile, or a link's name by now: someone else's business */
		return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP ? 0 : fd;
	if (become && fstat(fd, &st) == 0)
		become(st.st_uid, st.st_gid);
	(void)futimens(fd, (struct timespec[]){ n->mtime, n->mtime });
	return fchmod(fd, n->mode) < 0 ? -errno : 0;
}

int notes_apply(struct notes *n, int top, void (*become)(uint32_t uid, uint32_t gid))
{
	int r = 0;

	if (n->count > 0)
		qsort(n->items, n->count, sizeof(n->items[0]), deepest_first);
	for (size_t i = 0; i < n->count; i++) {
		int one = 0;

		if (i == 0 || strcmp(n->items[i].path, n->items[i - 1].path) != 0)
			one = apply(&n->items[i], top, become);
		r = r < 0 ? r : one;
	}
	notes_done(n);
	return r;
}

void notes_done(struct notes *n)
{
	while (n->count > 0)
		free(n->items[--n->count].path);
	free(n->items);
	*n = (struct notes){ 0 };
}
