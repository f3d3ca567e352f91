#include "sandbox/root_find.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "sandbox/registry.h"

#define ARCHIVE ".tar"
#define PART "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

static const char *without(const char *text, const char *begin)
{
	return strncmp(text, begin, strlen(begin)) == 0 ? text + strlen(begin) : text;
}

/* Parts that begin with a letter or digit, so that none is hidden or leads up; a colon also before
 * a registry's port, and before a digest's sum. */
static bool is_reference(const char *text)
{
	struct str rest = str_of(text), part;

	while (str_split(&rest, '/', &part)) {
		bool is_begin = true;

		for (size_t i = 0; i < part.len; i++) {
			bool is_mark = part.data[i] == ':' || part.data[i] == '@';

			if (is_begin ? !strchr(PART, part.data[i]) || strchr("._-", part.data[i])
				     : !is_mark && !strchr(PART, part.data[i]))
				return false;
			is_begin = is_mark;
		}
		if (is_begin) /* nothing, or nothing behind a mark */
			return false;
	}
	return text[0] != '\0' && text[strlen(text) - 1] != '/';
}

int root_reference_path(const char *reference, char *dst, size_t size)
{
	const char *name = without(without(reference, "docker.io/"), "library/");
	const char *last = strrchr(name, '/');
	bool has_tag = strpbrk(last ? last : name, ":@");

	if (!is_reference(name))
		return -EINVAL;
	return str_format(dst, size, "%s%s", name, has_tag ? "" : ":latest") < 0 ? -EINVAL : 0;
}

/* As image.c opens it later; O_PATH waits for nothing. */
static int look(int dir, const char *path, mode_t type)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					   RESOLVE_NO_MAGICLINKS };
	_close_ int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || (st.st_mode & S_IFMT) != type)
		return -ENOENT;
	return 0;
}

int root_find(struct sandboxes *all, const char *reference, struct root_found *ret)
{
	const char *root = all->settings.images_dir;
	char name[ROOT_PATH_MAX + 1 - sizeof(ARCHIVE)];
	_close_ int dir = -1;
	int r = root_reference_path(reference, name, sizeof(name));

	if (r < 0)
		return r;
	dir = root && root[0] ? open(root, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (dir < 0)
		return -ENOENT;
	ret->kind = ROOT_OF_OCI;
	r = str_format(ret->path, sizeof(ret->path), "%s" ARCHIVE, name);
	if (r == 0 && look(dir, ret->path, S_IFREG) == 0)
		return 0;
	ret->kind = ROOT_OF_DIR;
	(void)str_copy(ret->path, sizeof(ret->path), name); /* fits: it did before */
	return look(dir, ret->path, S_IFDIR);
}
