#include "launch/zygote_child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "launch/mounts.h"
#include "launch/zygote.h"
#include "spec/warm.h"

#define SAFE_FD 16

/* A box's user namespace has settings of its own below /proc/sys/user, to be made by its first
 * process; the template's copy of /proc is read-only as all of its tree. */
static int allow_settings(struct err *err)
{
	struct mount_attr attr = { .attr_clr = MOUNT_ATTR_RDONLY };

	if (mount_setattr(AT_FDCWD, "/proc", 0, &attr, sizeof(attr)) < 0)
		return err_sys(err, errno, "settings of user namespaces");
	return 0;
}

/* In the launcher's pid namespace, so that a box it forks is an orphan of the launcher's; the rest
 * is its own. The template's tree has no /proc, but a user namespace may mount one only where one
 * is. */
static int make_namespaces(const struct zygote_child *how, struct err *err)
{
	static const struct fs_option hide[] = { { "hidepid", "invisible" } };
	int flags = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;
	_close_ int proc = -1;

	if (setns(how->mount_ns, CLONE_NEWNS) < 0)
		return err_sys(err, errno, "the template's mounts");
	if (unshare(flags | (how->on_host_net ? 0 : CLONE_NEWNET)) < 0)
		return err_sys(err, errno, "namespaces");
	if (how->plan.rootless) /* cannot make one, and the template has a copy */
		return allow_settings(err);
	proc = mounts_new("proc", hide, 1, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
			  err);
	return proc < 0 ? proc : mounts_attach(proc, "/proc", err);
}

static int confine(const struct zygote_child *how, struct err *err)
{
	struct box_plan plan = how->plan;

	/* A box's own limits come later and may be higher; Landlock would forbid it to mount. */
	plan.limits.nofile = UINT32_MAX;
	plan.landlock_abi = 0;
	return box_confine(&plan, false, err);
}

static int place_descriptors(const struct zygote_child *how, struct err *err)
{
	int sock = fcntl(how->sock, F_DUPFD_CLOEXEC, SAFE_FD);
	int lib = fcntl(how->lib_fd, F_DUPFD_CLOEXEC, SAFE_FD);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (sock < 0 || lib < 0 || null < 0)
		return err_sys(err, errno, "descriptors of the interpreter");
	for (int fd = 0; fd < 3; fd++)
		if (dup2(null, fd) < 0)
			return err_sys(err, errno, "standard streams");
	if (dup2(sock, ZYGOTE_SOCK_FD) < 0 || dup2(lib, ZYGOTE_LIB_FD) < 0)
		return err_sys(err, errno, "descriptors of the interpreter");
	return syscall(SYS_close_range, ZYGOTE_LIB_FD + 1, ~0u, CLOSE_RANGE_CLOEXEC) < 0
		       ? err_sys(err, errno, "close descriptors")
		       : 0;
}

static int exec_python(const struct zygote_child *how, struct err *err)
{
	char load[48], mode[TEMPLATE_PRELOAD_MAX + 32], path[PATH_MAX];
	char *argv[] = { (char *)(uintptr_t) "python3", NULL };
	char *envp[] = { load,
			 mode,
			 (char *)(uintptr_t) "PATH=" WARM_PATH,
			 (char *)(uintptr_t) "HOME=" WARM_HOME,
			 (char *)(uintptr_t) "LANG=" WARM_LANG,
			 NULL };
	struct str rest = STR(WARM_PATH), dir;

	(void)str_format(load, sizeof(load), "LD_PRELOAD=/proc/self/fd/%d", ZYGOTE_LIB_FD);
	if (str_format(mode, sizeof(mode), "HOLT_WARM=zygote:%s", how->preload) < 0)
		return err_set(err, E2BIG, "preload: more than %d bytes", TEMPLATE_PRELOAD_MAX);
	while (str_split(&rest, ':', &dir)) {
		(void)str_format(path, sizeof(path), "%.*s/python3", (int)dir.len, dir.data);
		(void)execve(path, argv, envp);
	}
	return err_sys(err, errno, "start the template's python3");
}

static int become(const struct zygote_child *how, struct err *err)
{
	sigset_t none;
	int r = make_namespaces(how, err);

	if (r == 0 && chdir("/") < 0)
		r = err_sys(err, errno, "enter the template");
	if (r == 0)
		r = place_descriptors(how, err);
	if (r == 0)
		r = box_become_owner(&how->plan, err); /* box_confine() drops the capabilities */
	if (r == 0)
		r = confine(how, err);
	if (r < 0)
		return r;
	(void)signal(SIGPIPE, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	return exec_python(how, err);
}

void zygote_child_run(const struct zygote_child *how)
{
	struct err err = { 0 };
	struct warm_failed f = { 0 };

	(void)become(how, &err);
	f.code = err.code;
	(void)str_format(f.text, sizeof(f.text), "%.*s", (int)sizeof(f.text) - 1, err.text);
	(void)send(how->sock, &f, sizeof(f), MSG_NOSIGNAL);
	(void)send(ZYGOTE_SOCK_FD, &f, sizeof(f), MSG_NOSIGNAL);
	_exit(1);
}
