#include "launch/box.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "launch/landlock.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define SAFE_FD 16 /* above every number with a meaning in holt-init */

int box_id_map(const struct box_plan *plan, char *dst, size_t size)
{
	uint32_t last = BOX_ID_COUNT - 1;

	if (plan->rootless)
		return str_format(dst, size, "%u 0 1\n", BOX_USER);
	return str_format(dst, size, "0 %u %u\n65534 %u 1\n", plan->uid_base, last,
			  plan->uid_base + last);
}

static int raise_all_caps(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data) < 0)
		return -errno;
	for (int i = 0; i < 2; i++)
		data[i].effective = data[i].permitted;
	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

int box_become_owner(const struct box_plan *plan, struct err *err)
{
	uid_t id = plan->uid_base;

	if (plan->rootless)
		return 0;
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || syscall(SYS_setgroups, 0, NULL) < 0 ||
	    syscall(SYS_setresgid, id, id, id) < 0 || syscall(SYS_setresuid, id, id, id) < 0 ||
	    raise_all_caps() < 0)
		return err_sys(err, errno, "take the box's outer id");
	return 0;
}

int box_limit_watches(int proc_fd, struct err *err)
{
	int r = fd_write_file_at(proc_fd, "sys/user/max_inotify_instances", "32");

	if (r == 0)
		r = fd_write_file_at(proc_fd, "sys/user/max_inotify_watches", "16384");
	return r < 0 && r != -ENOENT ? err_sys(err, r, "limit of file watches") : 0;
}

int box_become_root(const struct box_plan *plan, struct err *err)
{
	uid_t id = plan->rootless ? BOX_USER : 0;

	/* Raw calls: glibc's would also walk threads, and this may run in a forked interpreter. */
	if (!plan->rootless && syscall(SYS_setgroups, 0, NULL) < 0)
		return err_sys(err, errno, "drop groups");
	if (syscall(SYS_setresgid, id, id, id) < 0 || syscall(SYS_setresuid, id, id, id) < 0)
		return err_sys(err, errno, "take the box's root id");
	return 0;
}

static int set_rlimits(const struct box_plan *plan, struct err *err)
{
	const struct limits *l = &plan->limits;
	bool no_pids = plan->unenforced & CONTROLLER_PIDS;
	bool no_memory = plan->unenforced & CONTROLLER_MEMORY;
	const struct {
		int what;
		rlim_t value;
	} rows[] = {
		{ RLIMIT_CORE, CORE_LIMIT },
		{ RLIMIT_NOFILE, l->nofile },
		{ RLIMIT_MEMLOCK, 64u << 10 },
		{ RLIMIT_MSGQUEUE, 64u << 10 },
		{ RLIMIT_SIGPENDING, 1024 },
		{ RLIMIT_RTPRIO, 0 },
		{ RLIMIT_NICE, 0 },
		/* Where no cgroup counts: processes of the user namespace, memory of each process.
		 */
		{ RLIMIT_NPROC, no_pids ? l->pids : RLIM_INFINITY },
		{ RLIMIT_DATA, no_memory ? l->memory_bytes : RLIM_INFINITY },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct rlimit want = { rows[i].value, rows[i].value }, have;

		if (getrlimit(rows[i].what, &have) == 0 && have.rlim_max < want.rlim_max)
			want = (struct rlimit){ have.rlim_max, have.rlim_max };
		if (setrlimit(rows[i].what, &want) < 0)
			return err_sys(err, errno, "resource limit %d", rows[i].what);
	}
	return 0;
}

#define LOCKED_BITS                                                                       \
	(SECBIT_NOROOT_LOCKED | SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED | \
	 SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

/* What PID 1 needs to start programs as the box's user. */
#define INIT_CAPS (1u << CAP_SETUID | 1u << CAP_SETGID | 1u << CAP_KILL)
/* With TEMPLATE_SUDO, what the box's root has over files and processes of the box: the kernel lets
 * him use it on nothing that belongs to an id outside of the box's own. */
#define ROOT_CAPS \
	(INIT_CAPS | 1u << CAP_CHOWN | 1u << CAP_DAC_OVERRIDE | 1u << CAP_FOWNER | 1u << CAP_FSETID)

static int drop_bounding(uint32_t keep, struct err *err)
{
	for (int cap = 0;; cap++) {
		if (cap < 32 && (keep >> cap & 1))
			continue;
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return errno == EINVAL && cap > CAP_SETPCAP
				       ? 0
				       : err_sys(err, errno, "drop capability %d", cap);
	}
}

/* Ambient is what survives exec without a privileged id. */
static int raise_ambient(uint32_t mask, struct err *err)
{
	for (int cap = 0; cap < 32; cap++)
		if ((mask >> cap & 1) && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) < 0)
			return err_sys(err, errno, "keep capability %d", cap);
	return 0;
}

/* mask: what is kept over the exec of holt-init, and nothing else. is_root: by being root, as is
 * anything that root of this box runs from then on; otherwise nobody is root by his id. */
static int set_caps(uint32_t mask, bool is_root, struct err *err)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { 0 } };
	unsigned bits = LOCKED_BITS | (is_root ? 0 : SECBIT_NOROOT);
	int r;

	data[0].permitted = mask;
	data[0].inheritable = is_root ? 0 : mask;
	data[0].effective = mask | 1u << CAP_SETPCAP;
	data[0].permitted |= 1u << CAP_SETPCAP; /* for the securebits, gone below */
	if (syscall(SYS_capset, &head, data) < 0)
		return err_sys(err, errno, "set capabilities");
	/* After the inheritable set, which may hold only what is bounded. */
	r = drop_bounding(is_root ? mask : 0, err);
	if (r == 0 && !is_root)
		r = raise_ambient(mask, err);
	if (r < 0)
		return r;
	if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0)
		return err_sys(err, errno, "lock securebits");
	data[0].permitted = data[0].effective = mask;
	if (syscall(SYS_capset, &head, data) < 0)
		return err_sys(err, errno, "drop capabilities");
	return 0;
}

static int set_filter(const struct box_plan *plan, struct err *err)
{
	struct sock_fprog prog = { .len = plan->filter_len,
				   .filter = (struct sock_filter *)(uintptr_t)plan->filter };

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
		return err_sys(err, errno, "system call filter");
	return 0;
}

int box_confine(const struct box_plan *plan, bool keep_caps, struct err *err)
{
	/* Without privilege the box has no root. */
	bool is_root = keep_caps && !plan->rootless && (plan->flags & TEMPLATE_SUDO);
	int r = set_rlimits(plan, err);

	if (r == 0)
		r = set_caps(is_root ? ROOT_CAPS : keep_caps ? INIT_CAPS : 0, is_root, err);
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = err_sys(err, errno, "no new privileges");
	if (r == 0)
		r = landlock_apply(plan->landlock_abi, plan->flags & TEMPLATE_WRITABLE_ROOT,
				   plan->writable, err);
	return r < 0 ? r : set_filter(plan, err);
}

/* Moves a descriptor out of the way of the fixed numbers. */
static int lift(int fd)
{
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, SAFE_FD);
}

/* holt-init's arguments, and the texts of some. */
struct init_args {
	char *argv[5];
	char preload[sizeof("--preload=") + TEMPLATE_PRELOAD_MAX];
	char node[sizeof("--node=") + TEMPLATE_PRELOAD_MAX];
};

static void fill_args(const struct box_plan *plan, bool has_python, struct init_args *ret)
{
	int n = 0;

	ret->argv[n++] = (char *)(uintptr_t) "holt-init";
	(void)str_format(ret->preload, sizeof(ret->preload), "--preload=%s", plan->preload);
	(void)str_format(ret->node, sizeof(ret->node), "--node=%s", plan->preload_node);
	if (has_python)
		ret->argv[n++] = (char *)(uintptr_t) "--python";
	else if (plan->lib_fd >= 0)
		ret->argv[n++] = ret->preload;
	if (plan->flags & TEMPLATE_WARM_NODE)
		ret->argv[n++] = ret->node;
	if (plan->flags & TEMPLATE_SUDO)
		ret->argv[n++] = (char *)(uintptr_t) "--sudo";
	ret->argv[n] = NULL;
}

int box_exec_init(const struct box_plan *plan, int sock, int python, struct err *err)
{
	char *envp[] = { NULL };
	int program = lift(plan->init_fd), nothing;
	int fourth = lift(python >= 0 ? python : plan->lib_fd);
	struct init_args args;

	sock = lift(sock);
	nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (program < 0 || sock < 0 || nothing < 0)
		return err_sys(err, errno, "prepare holt-init's descriptors");
	for (int fd = 0; fd < 3; fd++)
		if (dup2(nothing, fd) < 0)
			return err_sys(err, errno, "standard streams");
	if (dup2(sock, BOX_SOCK_FD) < 0 || (fourth >= 0 && dup2(fourth, BOX_PYTHON_FD) < 0))
		return err_sys(err, errno, "control socket");
	fill_args(plan, python >= 0, &args);
	if (syscall(SYS_close_range, fourth >= 0 ? 5 : 4, ~0u, 1u << 2 /* CLOEXEC */) < 0)
		return err_sys(err, errno, "close descriptors");
	(void)syscall(SYS_execveat, program, "", args.argv, envp, AT_EMPTY_PATH);
	return err_sys(err, errno, "start holt-init");
}
