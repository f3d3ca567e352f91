/* What the machine around the kernel must offer. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"
#include "cli/doctor.h"
#include "cli/outcome.h"
#include "config/config.h"

#define MEMORY_WANTED (512ull << 20)
#define DISK_WANTED (64ull << 20)
#define NOFILE_WANTED 4096u

static void check_cgroup(struct finding *f)
{
	struct statfs s;
	char text[256];

	if (statfs("/sys/fs/cgroup", &s) < 0) {
		finding_set(f, HEALTH_WARN, "not mounted: limits of boxes are not enforced");
		finding_mend(f, "mount -t cgroup2 none /sys/fs/cgroup");
	} else if (s.f_type != CGROUP2_SUPER_MAGIC) {
		finding_set(f, geteuid() == 0 ? HEALTH_OK : HEALTH_WARN, "version 1%s",
			    geteuid() == 0 ? "" : ": only root may set limits with it");
	} else if (fd_read_file_at(AT_FDCWD, "/sys/fs/cgroup/cgroup.controllers", text,
				   sizeof(text)) > 0) {
		text[strcspn(text, "\n")] = '\0';
		finding_set(f, HEALTH_OK, "version 2 with %.160s", text);
	} else {
		finding_set(f, HEALTH_WARN, "version 2 without controllers: no limits");
	}
}

static bool is_in_path(const char *name)
{
	static const char *const dirs[] = { "/usr/local/bin", "/usr/bin", "/bin" };
	char path[256];

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		if (str_format(path, sizeof(path), "%s/%s", dirs[i], name) == 0 &&
		    access(path, X_OK) == 0)
			return true;
	return false;
}

static void check_program(struct finding *f, const char *name, const char *package)
{
	if (is_in_path(name)) {
		finding_set(f, HEALTH_OK, "in the host template");
		return;
	}
	finding_set(f, HEALTH_WARN, "not in the host template: such code cannot run");
	finding_mend(f, "apt install %s", package);
}

static void check_python(struct finding *f)
{
	check_program(f, "python3", "python3");
}

static void check_node(struct finding *f)
{
	check_program(f, "node", "nodejs");
}

/* A line "name:   123 kB" of /proc/meminfo, in bytes; 0 when it is not there. */
static uint64_t meminfo(const char *name)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	_close_ int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	struct str rest, line, number;
	char text[32];
	uint64_t kb;

	if (fd < 0 || fd_slurp(fd, &b) < 0)
		return 0;
	rest = str_of(buf_str(&b));
	while (str_split(&rest, '\n', &line)) {
		if (!str_starts(line, name))
			continue;
		(void)str_split(&line, ':', &number);
		line = str_trim(line);
		(void)str_split(&line, ' ', &number);
		if (str_format(text, sizeof(text), "%.*s", (int)number.len, number.data) == 0 &&
		    parse_u64(text, 0, UINT64_MAX >> 10, &kb) == 0)
			return kb << 10;
	}
	return 0;
}

static void check_memory(struct finding *f)
{
	uint64_t bytes = meminfo("MemAvailable");
	char size[32];

	outcome_size(bytes, size);
	finding_set(f, bytes < MEMORY_WANTED ? HEALTH_WARN : HEALTH_OK, "%s free%s", size,
		    bytes < MEMORY_WANTED ? ": hardly room for a box" : "");
}

static void check_swap(struct finding *f)
{
	uint64_t bytes = meminfo("SwapTotal");
	bool v1 = access("/sys/fs/cgroup/memory/memory.limit_in_bytes", F_OK) == 0;
	bool counted = access("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes", F_OK) == 0;
	char size[32];

	outcome_size(bytes, size);
	if (bytes == 0) {
		finding_set(f, HEALTH_OK, "off");
	} else if (v1 && !counted) {
		finding_set(f, HEALTH_WARN, "%s that boxes can spill into: it is not counted",
			    size);
		finding_mend(f, "boot with swapaccount=1, or swapoff -a");
	} else {
		finding_set(f, HEALTH_OK, "%s; boxes get none of it", size);
	}
}

static void check_disk(struct finding *f)
{
	struct statvfs s;
	uint64_t bytes;
	char size[32];

	if (statvfs("/var/tmp", &s) < 0 && statvfs("/", &s) < 0) {
		finding_set(f, HEALTH_WARN, "free space cannot be read: %s", strerror(errno));
		return;
	}
	bytes = (uint64_t)s.f_bavail * s.f_frsize;
	outcome_size(bytes, size);
	finding_set(f, bytes < DISK_WANTED ? HEALTH_WARN : HEALTH_OK, "%s free", size);
}

/* What layers_on: disk needs. It is a choice, so there is nothing to mend for who has not made it.
 */
static void check_layers(struct finding *f)
{
	static const char *const tools[] = { "/usr/sbin/mkfs.btrfs", "/sbin/mkfs.btrfs" };
	const char *lack = NULL;

	if (geteuid() != 0)
		lack = "it needs root";
	else if (access("/dev/loop-control", R_OK | W_OK) < 0)
		lack = "there are no loop devices";
	else if (access(tools[0], X_OK) < 0 && access(tools[1], X_OK) < 0)
		lack = "btrfs-progs is not installed";
	finding_set(f, HEALTH_OK, "layers_on: disk %s%s",
		    lack ? "is not possible: " : "is possible, if the kernel has btrfs",
		    lack ? lack : "");
}

static void check_nofile(struct finding *f)
{
	struct rlimit l;

	(void)getrlimit(RLIMIT_NOFILE, &l);
	finding_set(f, l.rlim_max < NOFILE_WANTED ? HEALTH_WARN : HEALTH_OK, "%llu%s",
		    (unsigned long long)l.rlim_max,
		    l.rlim_max < NOFILE_WANTED ? ": enough for a few hundred boxes at once" : "");
	if (l.rlim_max < NOFILE_WANTED)
		finding_mend(f, "ulimit -Hn 65536, or LimitNOFILE= of the service");
}

/* What the settings of here and now allow. */
static void check_ceilings(struct finding *f)
{
	_cleanup_(config_free_p) struct config *c = NULL;
	char most[32], quota[32], reserve[32];
	struct err err = { 0 };

	if (config_load(&(struct config_args){ 0 }, &c, &err) < 0) {
		finding_set(f, HEALTH_WARN, "the settings cannot be read: %.150s", err.text);
		return;
	}
	outcome_size(c->limits_max.memory_bytes, most);
	outcome_size(c->quota_memory_bytes, quota);
	outcome_size(c->reserve_bytes, reserve);
	finding_set(f, HEALTH_OK,
		    "a sandbox gets at most %s, %.4g cores, %u processes; a user's %s and %u "
		    "sandboxes; %s stay free",
		    most, c->limits_max.cpu_milli / 1000.0, c->limits_max.pids, quota,
		    c->quota_sandboxes, reserve);
	if (c->quota_memory_bytes == 0 || c->quota_sandboxes == 0 || c->quota_pids == 0) {
		finding_set(f, HEALTH_WARN,
			    "users have no quota on %s: one of them can take all of the machine",
			    c->quota_memory_bytes == 0 ? "memory"
			    : c->quota_sandboxes == 0  ? "sandboxes"
						       : "processes");
		finding_mend(
			f, "set quota_memory, quota_sandboxes and quota_pids, or leave them auto");
	}
}

const struct check doctor_machine_checks[] = {
	{ "cgroups", check_cgroup },    { "memory", check_memory },
	{ "swap", check_swap },         { "disk", check_disk },
	{ "layers", check_layers },     { "open files", check_nofile },
	{ "python3", check_python },    { "node", check_node },
	{ "ceilings", check_ceilings }, { 0 },
};
