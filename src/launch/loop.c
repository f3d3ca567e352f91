#include "launch/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"
#include "launch/copy.h"

#define TOOL_FD 3
#define TRIES 64
#define PREFIX "loop"

static void run_child(const char *const paths[2], char *const argv[], int image)
{
	char *envp[] = { NULL };
	int nothing = open("/dev/null", O_RDWR);

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	image = fcntl(image, F_DUPFD, 16);
	if (nothing < 0 || image < 0)
		_exit(126);
	for (int fd = 0; fd < 3; fd++)
		(void)dup2(nothing, fd);
	if (dup2(image, TOOL_FD) < 0 || syscall(SYS_close_range, TOOL_FD + 1, ~0u, 0) < 0)
		_exit(126);
	for (int i = 0; i < 2; i++)
		(void)execve(paths[i], argv, envp);
	_exit(127);
}

int loop_run_tool(const char *const paths[2], char *const argv[], int image, const char *package,
		  struct err *err)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		run_child(paths, argv, image);
	if (pid < 0)
		return err_sys(err, errno, "%s", paths[0]);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_sys(err, errno, "%s", paths[0]);
	if (!WIFEXITED(status))
		return err_set(err, EIO, "%s was killed by signal %d", paths[0], WTERMSIG(status));
	if (WEXITSTATUS(status) == 127)
		return err_set(err, EOPNOTSUPP, "%s is needed: there is no %s", package, paths[0]);
	return WEXITSTATUS(status);
}

int loop_attach(int image, char path[LOOP_PATH_SIZE], struct err *err)
{
	_close_ int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	struct loop_config config = { .fd = (uint32_t)image,
				      .info = { .lo_flags = LO_FLAGS_AUTOCLEAR } };

	if (control < 0)
		return err_sys(err, errno, "/dev/loop-control");
	for (int i = 0; i < TRIES; i++) {
		_close_ int loop = -1;
		int n = ioctl(control, LOOP_CTL_GET_FREE);

		if (n < 0)
			return err_sys(err, errno, "find a loop device");
		(void)str_format(path, LOOP_PATH_SIZE, "/dev/" PREFIX "%d", n);
		loop = open(path, O_RDWR | O_CLOEXEC);
		if (loop < 0)
			return err_sys(err, errno, "%s", path);
		if (ioctl(loop, LOOP_CONFIGURE, &config) == 0)
			return TAKE_FD(loop);
		if (errno != EBUSY) /* another was faster */
			return err_sys(err, errno, "%s", path);
	}
	return err_set(err, EAGAIN, "no loop device is free");
}

int loop_grow(int loop, struct err *err)
{
	return ioctl(loop, LOOP_SET_CAPACITY, 0) < 0 ? err_sys(err, errno, "size of a loop device")
						     : 0;
}

struct search {
	struct stat image;
	char *path;
	int found; /* owned; -1 */
};

/* Asked while it is open: from then on it keeps what it has. */
static int look(void *arg, int dir, const char *name)
{
	struct search *s = arg;
	struct loop_info64 info;
	uint32_t n;
	_close_ int loop = -1;

	if (s->found >= 0 || strncmp(name, PREFIX, strlen(PREFIX)) != 0 ||
	    parse_u32(name + strlen(PREFIX), 0, 1u << 20, &n) < 0)
		return 0;
	loop = openat(dir, name, O_RDONLY | O_CLOEXEC);
	if (loop < 0 || ioctl(loop, LOOP_GET_STATUS64, &info) < 0 ||
	    info.lo_inode != s->image.st_ino || info.lo_device != s->image.st_dev)
		return 0;
	(void)str_format(s->path, LOOP_PATH_SIZE, "/dev/" PREFIX "%u", n);
	s->found = TAKE_FD(loop);
	return 0;
}

int loop_find(int image, char path[LOOP_PATH_SIZE], struct err *err)
{
	struct search s = { .path = path, .found = -1 };
	_close_ int dev = open("/dev", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (dev < 0 || fstat(image, &s.image) < 0)
		return err_sys(err, errno, "loop devices");
	r = copy_each_name(dev, look, &s, err);
	if (r < 0) {
		(void)fd_close(s.found);
		return r;
	}
	return s.found < 0 ? -ENOENT : s.found;
}
