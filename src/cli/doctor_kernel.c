/* What the kernel must offer. Each row is tried in a child of its own, not read from a version. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/landlock.h"
#include "base/parse.h"
#include "base/str.h"
#include "cli/doctor.h"

#define KERNEL_MAJOR 5u
#define KERNEL_MINOR 12u /* mount_setattr */
#ifndef MFD_EXEC
#define MFD_EXEC 0x10u
#endif

static bool release_part(struct str *rest, char sep, uint32_t *ret)
{
	struct str part;
	char text[16];

	return str_split(rest, sep, &part) &&
	       str_format(text, sizeof(text), "%.*s", (int)strspn(part.data, "0123456789"),
			  part.data) == 0 &&
	       parse_u32(text, 0, UINT32_MAX, ret) == 0;
}

static void check_kernel(struct finding *f)
{
	uint32_t major = 0, minor = 0;
	struct utsname u;
	struct str rest;

	(void)uname(&u);
	rest = str_of(u.release);
	if (!release_part(&rest, '.', &major) || !release_part(&rest, '.', &minor)) {
		finding_set(f, HEALTH_WARN, "'%.60s' is no version that can be read", u.release);
	} else if (major < KERNEL_MAJOR || (major == KERNEL_MAJOR && minor < KERNEL_MINOR)) {
		finding_set(f, HEALTH_FAIL, "%.60s is too old: boxes need Linux %u.%u", u.release,
			    KERNEL_MAJOR, KERNEL_MINOR);
		finding_mend(f, "install a newer kernel and reboot");
	} else {
		finding_set(f, HEALTH_OK, "Linux %.60s", u.release);
	}
}

static void check_user_sysctls(struct finding *f)
{
	bool root = geteuid() == 0;

	if (doctor_sysctl("/proc/sys/user/max_user_namespaces", 1) == 0) {
		finding_set(f, HEALTH_FAIL, "user.max_user_namespaces is 0: no box can be made");
		finding_mend(f, "sysctl -w user.max_user_namespaces=15000");
	} else if (!root && doctor_sysctl("/proc/sys/kernel/unprivileged_userns_clone", 1) == 0) {
		finding_set(f, HEALTH_FAIL, "ordinary users may not make user namespaces");
		finding_mend(f,
			     "sudo sysctl -w kernel.unprivileged_userns_clone=1 (or run as root)");
	} else if (!root &&
		   doctor_sysctl("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 0) > 0) {
		finding_set(f, HEALTH_WARN,
			    "AppArmor takes the rights away that a user namespace gives");
		finding_mend(f, "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 "
				"(or run as root)");
	} else {
		finding_set(f, HEALTH_OK, "allowed%s", root ? " (running as root)" : "");
	}
}

static int try_namespace(const void *arg)
{
	return doctor_unshare(*(const int *)arg);
}

static const struct {
	int flag;
	const char *name;
} namespaces[] = {
	{ CLONE_NEWUSER, "user" },     { CLONE_NEWPID, "pid" }, { CLONE_NEWNS, "mount" },
	{ CLONE_NEWNET, "network" },   { CLONE_NEWIPC, "ipc" }, { CLONE_NEWUTS, "uts" },
	{ CLONE_NEWCGROUP, "cgroup" },
};

static void check_namespaces(struct finding *f)
{
	char made[120] = "";
	size_t n = 0;

	for (size_t i = 0; i < sizeof(namespaces) / sizeof(namespaces[0]); i++) {
		int e = doctor_try(try_namespace, &namespaces[i].flag);

		if (e) {
			finding_set(f, HEALTH_FAIL, "a %s namespace cannot be made: %s",
				    namespaces[i].name, strerror(e));
			finding_mend(f,
				     e == ENOSPC
					     ? "raise user.max_*_namespaces with sysctl -w"
					     : "run as root, or allow user namespaces (see above); "
					       "in a container: --privileged or a weaker seccomp");
			return;
		}
		n += (size_t)snprintf(made + n, sizeof(made) - n, "%s%s", n ? ", " : "",
				      namespaces[i].name);
	}
	finding_set(f, HEALTH_OK, "%s", made);
}

/* Overlay with everything on a tmpfs of our own. */
static int try_overlay(const void *arg)
{
	static const char options[] = "lowerdir=/usr,upperdir=/tmp/u,workdir=/tmp/w,userxattr";
	int e = doctor_unshare(CLONE_NEWNS);

	(void)arg;
	if (e)
		return e;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", "/tmp", "tmpfs", 0, "size=1m") < 0 || mkdir("/tmp/u", 0755) < 0 ||
	    mkdir("/tmp/w", 0755) < 0 || mkdir("/tmp/m", 0755) < 0)
		return errno;
	return mount("overlay", "/tmp/m", "overlay", 0, options) < 0 ? errno : 0;
}

static void check_overlay(struct finding *f)
{
	int e = doctor_try(try_overlay, NULL);

	if (e) {
		finding_set(f, HEALTH_WARN, "templates with a writable root do not work: %s",
			    strerror(e));
		finding_mend(f, "modprobe overlay (Linux 5.11 or newer for ordinary users)");
	} else {
		finding_set(f, HEALTH_OK, "writable roots work");
	}
}

/* A /proc of our own: refused where parts of the outer one are covered, as in most containers. */
static int try_proc(const void *arg)
{
	int e = doctor_unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID), status;
	pid_t pid;

	(void)arg;
	if (e)
		return e;
	pid = fork();
	if (pid < 0)
		return errno;
	if (pid == 0)
		_exit(mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0
			      ? errno
			      : 0);
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

static void check_proc(struct finding *f)
{
	int e = doctor_try(try_proc, NULL);

	if (e) {
		finding_set(f, geteuid() == 0 ? HEALTH_WARN : HEALTH_FAIL,
			    "a box cannot have its own /proc: %s", strerror(e));
		finding_mend(f, "in a container: docker run --security-opt systempaths=unconfined; "
				"elsewhere unmount what covers parts of /proc");
	} else {
		finding_set(f, HEALTH_OK, "can be mounted in a user namespace");
	}
}

static void check_seccomp(struct finding *f)
{
	uint32_t action = SECCOMP_RET_KILL_PROCESS;

	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) < 0) {
		finding_set(f, HEALTH_FAIL, "system calls cannot be filtered: %s", strerror(errno));
		finding_mend(f, "boot a kernel with CONFIG_SECCOMP_FILTER");
	} else {
		finding_set(f, HEALTH_OK, "filters work");
	}
}

static void check_landlock(struct finding *f)
{
	uint32_t abi = landlock_abi();

	if (abi == 0) {
		finding_set(f, HEALTH_WARN,
			    "not there: the daemon can read the files of its account, and boxes "
			    "have their mounts alone (%s)",
			    strerror(errno));
		finding_mend(f, "boot with lsm=landlock,... on Linux 5.13 or newer");
	} else {
		finding_set(f, HEALTH_OK, "ABI %u", abi);
	}
}

static long call_openat2(void)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };

	return syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof(how));
}

static long call_pidfd_open(void)
{
	return syscall(SYS_pidfd_open, getpid(), 0);
}

static long call_close_range(void)
{
	return syscall(SYS_close_range, 1000000u, 1000001u, 0);
}

static long call_open_tree(void)
{
	return syscall(SYS_open_tree, AT_FDCWD, "/", O_CLOEXEC);
}

/* Asked for nothing, so that "wrong argument" is the good answer. */
static long call_clone3(void)
{
	long r = syscall(SYS_clone3, NULL, 0);

	return r < 0 && errno == EINVAL ? 0 : r;
}

static long call_mount_setattr(void)
{
	long r = syscall(SYS_mount_setattr, -1, "", 0, NULL, 0);

	return r < 0 && (errno == EINVAL || errno == EBADF) ? 0 : r;
}

static const struct {
	const char *name;
	long (*call)(void);
} calls[] = {
	{ "openat2", call_openat2 },     { "pidfd_open", call_pidfd_open },
	{ "clone3", call_clone3 },       { "close_range", call_close_range },
	{ "open_tree", call_open_tree }, { "mount_setattr", call_mount_setattr },
};

static int try_call(const void *arg)
{
	const size_t *i = arg;

	return calls[*i].call() < 0 ? errno : 0;
}

static void check_calls(struct finding *f)
{
	char found[120] = "";
	size_t n = 0;

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		int e = doctor_try(try_call, &i);

		if (e) {
			finding_set(f, HEALTH_FAIL, "%s is refused: %s", calls[i].name,
				    strerror(e));
			finding_mend(f,
				     "Linux 5.12 or newer; in a container a seccomp profile that "
				     "allows it");
			return;
		}
		n += (size_t)snprintf(found + n, sizeof(found) - n, "%s%s", n ? ", " : "",
				      calls[i].name);
	}
	finding_set(f, HEALTH_OK, "%s", found);
}

static void check_memfd(struct finding *f)
{
	_close_ int fd = memfd_create("holt-doctor", MFD_CLOEXEC | MFD_EXEC);

	if (fd < 0 && errno == EINVAL) {
		finding_set(f, HEALTH_OK, "programs run from memory (older kernel)");
	} else if (fd < 0) {
		finding_set(f, HEALTH_FAIL, "programs cannot run from memory: %s", strerror(errno));
		finding_mend(f, "sysctl -w vm.memfd_noexec=1");
	} else {
		finding_set(f, HEALTH_OK, "programs run from memory");
	}
}

const struct check doctor_kernel_checks[] = {
	{ "kernel", check_kernel },
	{ "user namespaces", check_user_sysctls },
	{ "namespaces", check_namespaces },
	{ "system calls", check_calls },
	{ "seccomp", check_seccomp },
	{ "landlock", check_landlock },
	{ "overlayfs", check_overlay },
	{ "/proc", check_proc },
	{ "memfd", check_memfd },
	{ "kernel modules", doctor_check_modules },
	{ "core handler", doctor_check_cores },
	{ 0 },
};
