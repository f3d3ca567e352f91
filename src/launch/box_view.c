#include "launch/box_view.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "launch/box_layers.h"
#include "launch/mounts.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define TEXT_MAX 8192
#define CPUS_MAX 256u /* lines of /proc/stat: what fits */
#define VIEW BOX_DISK "/cgroup"
#define GROUP "sys/fs/cgroup"
#define PERIOD_US 100000u

/* ---- texts ---- */

/* Used and free memory are not counted here: all of it reads as free. */
static int write_meminfo(const struct limits *l, char *text)
{
	static const char *const full[] = { "MemTotal", "MemFree", "MemAvailable" };
	static const char *const none[] = { "Buffers",  "Cached",    "SwapCached",   "Active",
					    "Inactive", "SwapTotal", "SwapFree",     "Dirty",
					    "Shmem",    "Slab",      "SReclaimable", "SUnreclaim" };
	size_t n = 0;

	for (size_t i = 0; i < COUNT(full); i++)
		n += (size_t)snprintf(text + n, TEXT_MAX - n, "%s:%*llu kB\n", full[i],
				      (int)(23 - strlen(full[i])),
				      (unsigned long long)(l->memory_bytes >> 10));
	for (size_t i = 0; i < COUNT(none); i++)
		n += (size_t)snprintf(text + n, TEXT_MAX - n, "%s:%*d kB\n", none[i],
				      (int)(23 - strlen(none[i])), 0);
	return (int)n;
}

/* As many as it takes to use the limit, but no more than there are. */
static unsigned count_cpus(const struct limits *l)
{
	unsigned want = (l->cpu_milli + 999) / 1000, have;
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return want < CPUS_MAX ? want : CPUS_MAX;
	have = (unsigned)CPU_COUNT(&set);
	want = want < have ? want : have;
	return want < CPUS_MAX ? want : CPUS_MAX;
}

/* The machine's start stays: times of processes are counted from it. */
static int write_stat(const struct limits *l, char *text)
{
	struct timespec now, up;
	unsigned cpus = count_cpus(l);
	size_t n = (size_t)snprintf(text, TEXT_MAX, "cpu  0 0 0 0 0 0 0 0 0 0\n");

	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)clock_gettime(CLOCK_BOOTTIME, &up);
	for (unsigned i = 0; i < cpus; i++)
		n += (size_t)snprintf(text + n, TEXT_MAX - n, "cpu%u 0 0 0 0 0 0 0 0 0 0\n", i);
	n += (size_t)snprintf(text + n, TEXT_MAX - n,
			      "intr 0\nctxt 0\nbtime %lld\nprocesses 1\nprocs_running 1\n"
			      "procs_blocked 0\nsoftirq 0\n",
			      (long long)(now.tv_sec - up.tv_sec));
	return (int)n;
}

/* One for each box: programs tell a machine's starts apart by it. */
static int write_boot_id(const struct limits *l, char *text)
{
	unsigned char b[16];

	(void)l;
	if (getrandom(b, sizeof(b), 0) != sizeof(b))
		return -EIO;
	b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
	b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
	return snprintf(text, TEXT_MAX,
			"%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x\n",
			b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11],
			b[12], b[13], b[14], b[15]);
}

static int write_memory_max(const struct limits *l, char *text)
{
	return snprintf(text, TEXT_MAX, "%llu\n", (unsigned long long)l->memory_bytes);
}

static int write_cpu_max(const struct limits *l, char *text)
{
	return snprintf(text, TEXT_MAX, "%llu %u\n",
			(unsigned long long)l->cpu_milli * PERIOD_US / 1000, PERIOD_US);
}

struct file {
	const char *from; /* in the box's tmpfs */
	const char *path; /* in the box */
	int (*write)(const struct limits *l, char text[TEXT_MAX]);
	bool is_limit; /* it says how much there is */
};

static const struct file proc_files[] = {
	{ BOX_DISK "/meminfo", "proc/meminfo", write_meminfo, true },
	{ BOX_DISK "/stat", "proc/stat", write_stat, true },
	{ BOX_DISK "/boot_id", "proc/sys/kernel/random/boot_id", write_boot_id, false },
};

static const struct file group_files[] = {
	{ VIEW "/memory.max", GROUP "/memory.max", write_memory_max, true },
	{ VIEW "/cpu.max", GROUP "/cpu.max", write_cpu_max, true },
};

/* What programs look for where control groups are of the first version. */
static const struct {
	const char *name, *target;
} group_links[] = {
	{ VIEW "/memory", "." },
	{ VIEW "/memory.limit_in_bytes", "memory.max" },
	{ VIEW "/memory.soft_limit_in_bytes", "memory.max" },
};

/* ---- building ---- */

static int make_file(const struct file *f, const struct limits *l, struct err *err)
{
	char text[TEXT_MAX];
	int n = f->write(l, text);
	_close_ int fd = n < 0 ? -1 : open(f->from, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);

	if (fd < 0 || write(fd, text, (size_t)n) != n)
		return err_sys(err, n < 0 ? -n : errno, "make %s", f->path);
	return 0;
}

static int mount_proc_files(const struct limits *l, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < COUNT(proc_files) && r == 0; i++) {
		r = make_file(&proc_files[i], l, err);
		if (r == 0)
			r = mounts_bind(proc_files[i].from, proc_files[i].path, err);
		if (r == -ENOENT) /* this kernel has no such file */
			r = 0;
	}
	return r;
}

static int make_group(const struct limits *l, struct err *err)
{
	int r = mkdir(VIEW, 0755) < 0 ? err_sys(err, errno, "make " GROUP) : 0;

	for (size_t i = 0; i < COUNT(group_files) && r == 0; i++)
		r = make_file(&group_files[i], l, err);
	for (size_t i = 0; i < COUNT(group_links) && r == 0; i++)
		if (symlink(group_links[i].target, group_links[i].name) < 0)
			r = err_sys(err, errno, "make " GROUP);
	return r;
}

/* Programs ask the list of mounts where the control groups are, so there is a real mount. If it has
 * the box's limits, it is what they read, and else our files in its place. */
static int mount_group(const struct limits *l, struct err *err)
{
	_close_ int fd = mounts_new(
		"cgroup2", NULL, 0,
		MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, NULL);
	int r;

	if (!mounts_is_dir(GROUP))
		return 0; /* the layers of the box have something else there */
	r = fd < 0 ? 0 : mounts_attach(fd, GROUP, err);
	if (r < 0 || (fd >= 0 && faccessat(AT_FDCWD, GROUP "/memory.max", F_OK, 0) == 0))
		return r;
	r = make_group(l, err);
	return r < 0 ? r : mounts_bind(VIEW, GROUP, err);
}

int view_mount(const struct limits *l, bool has_proc, struct err *err)
{
	int r = has_proc ? mount_proc_files(l, err) : 0;

	return r < 0 ? r : mount_group(l, err);
}

/* ---- changing ---- */

/* Nothing that a process of the box may have put there leads out of the box. */
static void rewrite(int root, const struct file *f, const struct limits *l)
{
	struct open_how how = { .flags = O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC,
				.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
	_close_ int fd = (int)syscall(SYS_openat2, root, f->path, &how, sizeof(how));
	char text[TEXT_MAX];
	struct stat st;
	int n;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	n = f->write(l, text);
	if (n > 0 && pwrite(fd, text, (size_t)n, 0) == n)
		(void)ftruncate(fd, n);
}

void view_change(int proc_fd, pid_t pid, const struct limits *l)
{
	char path[32];
	_close_ int root = -1;

	(void)str_format(path, sizeof(path), "%d/root", (int)pid);
	root = openat(proc_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < COUNT(proc_files) && root >= 0; i++)
		if (proc_files[i].is_limit)
			rewrite(root, &proc_files[i], l);
	for (size_t i = 0; i < COUNT(group_files) && root >= 0; i++)
		if (group_files[i].is_limit)
			rewrite(root, &group_files[i], l);
}
