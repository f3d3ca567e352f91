#include "launch/image.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"

#define IMAGE_MAX (16u << 20)
#define MFD_EXEC_BIT 0x10u /* newer kernels want it said */
#define SEALS (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)

static int find_beside(const char *name, char dst[PATH_MAX], struct err *err)
{
	ssize_t n = readlink("/proc/self/exe", dst, PATH_MAX - 1);
	char *slash;

	if (n <= 0)
		return err_sys(err, errno, "own program");
	dst[n] = '\0';
	slash = strrchr(dst, '/');
	if (!slash || str_copy(slash + 1, PATH_MAX - (size_t)(slash + 1 - dst), name) < 0)
		return err_set(err, EINVAL, "own program");
	return 0;
}

static int seal(const char *name, const struct buf *bytes, struct err *err)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create(name, flags | MFD_EXEC_BIT), r;

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, flags);
	if (fd < 0)
		return err_sys(err, errno, "memory for %s", name);
	r = fd_write_all(fd, bytes->data, bytes->len);
	if (r == 0 && fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		r = -errno;
	if (r == 0)
		return fd;
	(void)close(fd);
	return err_sys(err, r, "seal %s", name);
}

int image_load(const char *name, struct err *err)
{
	_cleanup_(buf_done) struct buf bytes = { .max = IMAGE_MAX };
	char path[PATH_MAX];
	_close_ int from = -1;
	int r = find_beside(name, path, err);

	if (r < 0)
		return r;
	from = open(path, O_RDONLY | O_CLOEXEC);
	r = from < 0 ? -errno : fd_slurp(from, &bytes);
	return r < 0 ? err_sys(err, r, "%.200s", path) : seal(name, &bytes, err);
}
