#include "launch/volume_image.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "launch/mounts.h"

#define TOOL_FD 3
#define TOOL_PATH "/proc/self/fd/3"
#define LOCK_MS 3000 /* the box before may still be on its way out */
#define LOOP_TRIES 64

/* Of an ext4 superblock. */
#define SUPER_AT 1024
#define SUPER_SIZE 128
#define STATE_AT 0x3a
#define STATE_CLEAN 1u
#define INCOMPAT_AT 0x60
#define INCOMPAT_RECOVER 4u

/* A program of the machine's e2fsprogs, with nothing but the image and no environment. */
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

/* Its exit code, or -errno. */
static int run_tool(const char *const paths[2], char *const argv[], int image, struct err *err)
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
		return err_set(err, EOPNOTSUPP, "volumes need e2fsprogs: there is no %s", paths[0]);
	return WEXITSTATUS(status);
}

#define ARG(text) ((char *)(uintptr_t)(text))

int image_make(int image, uint64_t bytes, uint32_t owner, struct err *err)
{
	static const char *const paths[2] = { "/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4" };
	char extended[96];
	char *argv[] = { ARG("mkfs.ext4"), ARG("-q"), ARG("-F"), ARG("-m"), ARG("0"),
			 ARG("-E"),        extended,  NULL,      NULL };
	int r;

	(void)str_format(extended, sizeof(extended),
			 "root_owner=%u:%u,lazy_itable_init=1,lazy_journal_init=1,nodiscard", owner,
			 owner);
	argv[7] = ARG(TOOL_PATH);
	if (ftruncate(image, (off_t)bytes) < 0)
		return err_sys(err, errno, "size of a volume");
	r = run_tool(paths, argv, image, err);
	return r > 0 ? err_set(err, EIO, "mkfs.ext4 ended with code %d", r) : r;
}

static bool is_clean(int image)
{
	uint8_t super[SUPER_SIZE];
	uint16_t state;
	uint32_t incompat;

	if (pread(image, super, sizeof(super), SUPER_AT) != (ssize_t)sizeof(super))
		return false;
	memcpy(&state, super + STATE_AT, sizeof(state));
	memcpy(&incompat, super + INCOMPAT_AT, sizeof(incompat));
	return state == STATE_CLEAN && !(incompat & INCOMPAT_RECOVER);
}

static int check(int image, struct err *err)
{
	static const char *const paths[2] = { "/usr/sbin/e2fsck", "/sbin/e2fsck" };
	char *argv[] = { ARG("e2fsck"), ARG("-p"), ARG(TOOL_PATH), NULL };
	int r;

	if (is_clean(image))
		return 0;
	r = run_tool(paths, argv, image, err);
	/* 1 and 2: errors that were corrected. */
	return r > 2 ? err_set(err, EUCLEAN, "the volume is damaged: e2fsck ended with code %d", r)
	       : r < 0 ? r
		       : 0;
}

/* Where the image goes, its lock goes too. */
static int lock(int image, struct err *err)
{
	uint64_t deadline = clock_now_ms() + LOCK_MS;

	while (flock(image, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_sys(err, errno, "lock of a volume");
		if (clock_now_ms() >= deadline)
			return err_set(err, EBUSY, "the volume is mounted already");
		(void)poll(NULL, 0, 2);
	}
	return 0;
}

/* A loop device with the image, which lets go of it when nobody has the device any more. */
static int attach(int image, char path[32], struct err *err)
{
	_close_ int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	struct loop_config config = { .fd = (uint32_t)image,
				      .info = { .lo_flags = LO_FLAGS_AUTOCLEAR } };

	if (control < 0)
		return err_sys(err, errno, "/dev/loop-control");
	for (int i = 0; i < LOOP_TRIES; i++) {
		_close_ int loop = -1;
		int n = ioctl(control, LOOP_CTL_GET_FREE);

		if (n < 0)
			return err_sys(err, errno, "find a loop device");
		(void)str_format(path, 32, "/dev/loop%d", n);
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

int image_mount(int image, struct err *err)
{
	char path[32];
	struct fs_option options[] = { { "source", path },
				       { "discard", NULL },
				       { "errors", "remount-ro" } };
	_close_ int loop = -1;
	int r = lock(image, err);

	if (r == 0)
		r = check(image, err);
	if (r == 0)
		r = loop = attach(image, path, err);
	return r < 0 ? r
		     : mounts_new("ext4", options, sizeof(options) / sizeof(options[0]),
				  MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
}
