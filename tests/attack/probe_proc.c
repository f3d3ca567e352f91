/* /proc, /sys and the control groups: what can be written, and what can be seen. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "probe.h"

static bool is_null_device(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

/* Only opened, never written. */
static int sysctls(int argc, char **argv)
{
	static const char *const files[] = {
		"/proc/sys/kernel/core_pattern",
		"/proc/sys/kernel/modprobe",
		"/proc/sys/kernel/hotplug",
		"/proc/sys/kernel/poweroff_cmd",
		"/proc/sys/kernel/core_pipe_limit",
		"/proc/sys/kernel/hostname",
		"/proc/sys/kernel/domainname",
		"/proc/sys/kernel/ns_last_pid",
		"/proc/sys/kernel/panic",
		"/proc/sys/kernel/sysrq",
		"/proc/sys/kernel/pid_max",
		"/proc/sys/kernel/threads-max",
		"/proc/sys/kernel/randomize_va_space",
		"/proc/sys/kernel/usermodehelper/bset",
		"/proc/sys/kernel/shmmax",
		"/proc/sys/kernel/msgmax",
		"/proc/sys/kernel/sem",
		"/proc/sys/kernel/keys/maxkeys",
		"/proc/sys/fs/binfmt_misc/register",
		"/proc/sys/fs/binfmt_misc/status",
		"/proc/sys/fs/suid_dumpable",
		"/proc/sys/fs/file-max",
		"/proc/sys/fs/mqueue/queues_max",
		"/proc/sys/fs/inotify/max_user_watches",
		"/proc/sys/net/ipv4/ip_forward",
		"/proc/sys/net/ipv4/ping_group_range",
		"/proc/sys/net/core/somaxconn",
		"/proc/sys/net/ipv4/ip_unprivileged_port_start",
		"/proc/sys/user/max_user_namespaces",
		"/proc/sys/user/max_net_namespaces",
		"/proc/sys/vm/overcommit_memory",
		"/proc/sys/vm/drop_caches",
		"/proc/sys/vm/panic_on_oom",
		"/proc/sys/vm/swappiness",
		"/proc/sysrq-trigger",
		"/proc/irq/0/smp_affinity",
		"/proc/mtrr",
		"/proc/acpi/wakeup",
		"/proc/scsi/scsi",
		"/proc/kcore",
		"/proc/kmem",
		"/proc/timer_stats",
		"/proc/bus/pci/00/00.0",
		"/proc/fs/xfs/stat",
		"/proc/asound/card0",
		"/proc/tty/drivers",
	};

	(void)argc, (void)argv;
	for (size_t i = 0; i < COUNT(files); i++) {
		int fd = open(files[i], O_WRONLY | O_CLOEXEC | O_NONBLOCK);

		if (fd >= 0 && !is_null_device(fd))
			return broken("%s opens for writing", files[i]);
		if (fd >= 0)
			(void)close(fd);
	}
	return held("none of %zu files opens", COUNT(files));
}

static int sysctl_tree(const char *dir, int depth)
{
	DIR *d = depth > 8 ? NULL : opendir(dir);
	int found = 0;

	for (struct dirent *e = d ? readdir(d) : NULL; e && !found; e = readdir(d)) {
		char path[512];
		int fd;

		if (e->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd >= 0) {
			if (!is_null_device(fd)) { /* what a mask puts there takes everything */
				(void)broken("%s opens for writing", path);
				found = 1;
			}
			(void)close(fd);
		} else if (errno == EISDIR) {
			found = sysctl_tree(path, depth + 1);
		}
	}
	if (d)
		(void)closedir(d);
	return found;
}

/* The whole of /proc/sys, and what else stands in /proc beside the processes. */
static int all_sysctls(int argc, char **argv)
{
	static const char *const trees[] = { "/proc/sys",    "/proc/irq",  "/proc/fs",
					     "/proc/acpi",   "/proc/bus",  "/proc/tty",
					     "/proc/driver", "/proc/scsi", "/proc/net" };

	(void)argc, (void)argv;
	for (size_t i = 0; i < COUNT(trees); i++)
		if (sysctl_tree(trees[i], 0))
			return PROBE_BROKEN;
	return held("nothing below %zu directories opens for writing", COUNT(trees));
}

/* Files of one's own process that bear on more than oneself. */
static int own_files(int argc, char **argv)
{
	static const char *const files[] = {
		"/proc/self/uid_map",   "/proc/self/gid_map",     "/proc/self/attr/current",
		"/proc/self/attr/exec", "/proc/1/oom_score_adj",  "/proc/1/oom_adj",
		"/proc/1/uid_map",      "/proc/1/setgroups",      "/proc/1/coredump_filter",
		"/proc/1/comm",         "/proc/1/loginuid",       "/proc/1/sched",
		"/proc/1/autogroup",    "/proc/1/timens_offsets",
	};
	int fd;

	(void)argc, (void)argv;
	for (size_t i = 0; i < COUNT(files); i++) {
		fd = open(files[i], O_WRONLY | O_CLOEXEC);
		/* The maps open, but take no second write. */
		if (fd >= 0 && (i > 3 || write(fd, "0 0 1\n", 6) >= 0))
			return broken("%s takes a write", files[i]);
	}
	fd = open("/proc/1/timerslack_ns",
		  O_WRONLY | O_CLOEXEC); /* open to all, checked on write */
	if (fd >= 0 && write(fd, "50000", 5) == 5)
		return broken("the timers of PID 1 can be slowed down");
	fd = open("/proc/1/attr/current", O_WRONLY | O_CLOEXEC); /* the same */
	if (fd >= 0 && write(fd, "x", 1) == 1)
		return broken("the label of PID 1 can be changed");
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0 && write(fd, "-1000", 5) == 5)
		return broken("can make itself safe from the memory killer");
	return held("neither the maps nor PID 1's files take a write");
}

static int is_closed(const char *path)
{
	char some[256];

	return slurp(path, some, sizeof(some)) <= 0;
}

/* Absent, unreadable, or empty: what tells about the kernel, the boot and the disks. */
static int kernel_files(int argc, char **argv)
{
	static const char *const files[] = {
		"/proc/kcore",
		"/proc/kmsg",
		"/proc/kallsyms",
		"/proc/keys",
		"/proc/key-users",
		"/proc/timer_list",
		"/proc/sched_debug",
		"/proc/slabinfo",
		"/proc/config.gz",
		"/proc/cmdline",
		"/proc/modules",
		"/proc/vmallocinfo",
		"/proc/pagetypeinfo",
		"/proc/kpageflags",
		"/proc/kpagecount",
		"/proc/kpagecgroup",
		"/proc/bootconfig",
		"/proc/latency_stats",
		"/proc/interrupts",
		"/proc/diskstats",
		"/proc/partitions",
		"/proc/locks",
		"/proc/driver/rtc",
		"/proc/scsi/scsi",
		"/proc/bus/pci/devices",
		"/proc/bus/input/devices",
		"/proc/acpi/wakeup",
		"/proc/fs/ext4",
		"/proc/sys/kernel/random/boot_id",
		"/proc/1/environ",
	};

	(void)argc, (void)argv;
	for (size_t i = 0; i < COUNT(files); i++)
		if (!is_closed(files[i]))
			return broken("%s can be read", files[i]);
	return held("%zu files tell nothing", COUNT(files));
}

static int sys_tree(int argc, char **argv)
{
	static const char *const paths[] = {
		"/sys/kernel",
		"/sys/kernel/debug",
		"/sys/kernel/tracing",
		"/sys/kernel/security",
		"/sys/firmware",
		"/sys/firmware/efi",
		"/sys/fs/cgroup",
		"/sys/fs/bpf",
		"/sys/kernel/uevent_helper",
		"/sys/power/state",
		"/sys/class/net",
		"/sys/block",
		"/sys/devices",
		"/sys/module",
		"/sys/class/dmi/id/product_serial",
		"/sys/bus",
		"/sys/kernel/mm",
		"/sys/hypervisor",
		"/sys/kernel/config",
		"/sys/fs/fuse",
		"/sys/kernel/notes",
		"/sys/kernel/vmcoreinfo",
		"/sys/devices/virtual/dmi",
	};

	(void)argc, (void)argv;
	for (size_t i = 0; i < COUNT(paths); i++)
		if (access(paths[i], F_OK) == 0)
			return broken("%s is there", paths[i]);
	return held("%zu paths of /sys are absent", COUNT(paths));
}

/* No control group file system anywhere, and paths that begin at the box's own group. */
static int cgroups(int argc, char **argv)
{
	static const char *const files[] = { "release_agent", "cgroup.procs",
					     "tasks",         "notify_on_release",
					     "devices.allow", "memory.limit_in_bytes",
					     "memory.max" };
	static const char *const dirs[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/memory",
					    "/cgroup",        "/dev/cgroup",
					    "/run/cgroup",    "/sys/fs/cgroup/unified" };
	char text_[8192], path[128];

	(void)argc, (void)argv;
	for (size_t d = 0; d < COUNT(dirs); d++)
		for (size_t i = 0; i < COUNT(files); i++) {
			(void)snprintf(path, sizeof(path), "%s/%s", dirs[d], files[i]);
			if (access(path, F_OK) == 0)
				return broken("%s is there", path);
		}
	if (slurp("/proc/self/mountinfo", text_, sizeof(text_)) > 0 && strstr(text_, " - cgroup"))
		return broken("a control group file system is mounted");
	if (slurp("/proc/self/cgroup", text_, sizeof(text_)) <= 0)
		return held("control groups are not even named");
	for (char *p = text_; (p = strchr(p, '\n')); p++)
		if (p == text_ || p[-1] != '/')
			return broken("a control group's path is seen: %.200s", text_);
	return held("every control group is /");
}

const struct probe probes_proc[] = {
	{ "sysctls", sysctls },
	{ "all-sysctls", all_sysctls },
	{ "own-files", own_files },
	{ "kernel-files", kernel_files },
	{ "sys-tree", sys_tree },
	{ "cgroups", cgroups },
	{ NULL, NULL },
};
