#include "cgroup_rig.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "check.h"
#include "launch/cgroup_parse.h"

static const char *const hierarchies[] = { "memory",  "pids",   "cpu", "cpuacct",
					   "freezer", "cpuset", NULL };
#define N_HIERARCHIES (sizeof(hierarchies) / sizeof(hierarchies[0]))

/* NOTE: a test is one process with one rig; a global saves every test a parameter. */
static char own[N_HIERARCHIES][PATH_MAX]; /* "" where there is none */
static char name[32];

static void group_path(size_t i, const char *file, char dst[PATH_MAX])
{
	assert_int_equal(str_format(dst, PATH_MAX, "%s/%s%s", own[i], name, file), 0);
}

static void inherit(size_t i, const char *file)
{
	char from[PATH_MAX], to[PATH_MAX], text[256];

	assert_int_equal(str_format(from, sizeof(from), "%s/%s", own[i], file), 0);
	group_path(i, "/", to);
	assert_int_equal(str_format(to, sizeof(to), "%s/%s/%s", own[i], name, file), 0);
	if (fd_read_file_at(AT_FDCWD, from, text, sizeof(text)) > 0)
		(void)fd_write_file_at(AT_FDCWD, to, text);
}

static void put_self(const char *dir)
{
	char path[PATH_MAX], pid[16];

	assert_int_equal(str_format(path, sizeof(path), "%s/cgroup.procs", dir), 0);
	assert_int_equal(str_format(pid, sizeof(pid), "%d", (int)getpid()), 0);
	assert_int_equal(fd_write_file_at(AT_FDCWD, path, pid), 0);
}

static void enter_one(size_t i, const char *mounts, const char *self)
{
	char dir[PATH_MAX];

	own[i][0] = '\0';
	if (cgroup_parse_dir(mounts, self, hierarchies[i], own[i], sizeof(own[i])) < 0) {
		own[i][0] = '\0';
		return;
	}
	group_path(i, "", dir);
	if (mkdir(dir, 0755) < 0 && errno == EEXIST) { /* mounted together with an earlier one */
		own[i][0] = '\0';
		return;
	}
	if (access(dir, F_OK) < 0) { /* read-only, as in a container */
		own[i][0] = '\0';
		return;
	}
	if (hierarchies[i] && strcmp(hierarchies[i], "cpuset") == 0) {
		inherit(i, "cpuset.mems");
		inherit(i, "cpuset.cpus");
	}
	put_self(dir);
}

bool rig_enter(void)
{
	static char mounts[1 << 20], self[1 << 16];

	if (geteuid() != 0) {
		print_message("control groups need root: skipping what uses them\n");
		return false;
	}
	(void)snprintf(name, sizeof(name), "holt-test.%d", (int)getpid());
	assert_true(fd_read_file_at(AT_FDCWD, "/proc/self/mountinfo", mounts, sizeof(mounts)) > 0);
	assert_true(fd_read_file_at(AT_FDCWD, "/proc/self/cgroup", self, sizeof(self)) >= 0);
	for (size_t i = 0; i < N_HIERARCHIES; i++)
		enter_one(i, mounts, self);
	return true;
}

void rig_leave(void)
{
	char dir[PATH_MAX];

	for (size_t i = 0; i < N_HIERARCHIES; i++) {
		if (!own[i][0])
			continue;
		put_self(own[i]);
		group_path(i, "", dir);
		if (rmdir(dir) < 0)
			print_error("%s stays: %s\n", dir, strerror(errno));
	}
}

void rig_delegate(uid_t uid)
{
	static const char *const files[] = { "", "/cgroup.procs", "/cgroup.subtree_control",
					     "/cgroup.threads" };
	char path[PATH_MAX];

	for (size_t i = 0; i < N_HIERARCHIES; i++) {
		for (size_t k = 0; own[i][0] && k < sizeof(files) / sizeof(files[0]); k++) {
			group_path(i, files[k], path);
			(void)!chown(path, uid, uid);
		}
	}
}

static int count_in(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d)))
		n += strncmp(e->d_name, "holt.", 5) == 0;
	if (d)
		(void)closedir(d);
	return n;
}

int rig_count_instances(void)
{
	char dir[PATH_MAX];
	int n = 0;

	for (size_t i = 0; i < N_HIERARCHIES; i++) {
		if (!own[i][0])
			continue;
		group_path(i, "", dir);
		n += count_in(dir);
	}
	return n;
}

static pid_t start(int group_fd)
{
	struct clone_args args = { .exit_signal = SIGCHLD };

	if (group_fd < 0)
		return fork();
	args.flags = CLONE_INTO_CGROUP;
	args.cgroup = (uint64_t)group_fd;
	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* Nothing of the parent's stays open: least of all the lock on its groups. */
static void child(int go, void (*body)(void *), void *arg)
{
	char c;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)dup2(go, 0);
	(void)syscall(SYS_close_range, 3, ~0u, 0);
	if (read(0, &c, 1) != 1)
		_exit(99);
	body(arg);
	_exit(0);
}

pid_t rig_spawn(const struct rig *rig, struct cgroup *cg, void (*body)(void *), void *arg)
{
	int fd = rig->ops->spawn_fd(cg), go[2];
	struct err err = { 0 };
	pid_t pid;

	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = start(fd);
	assert_true(pid >= 0);
	if (pid == 0)
		child(go[0], body, arg);
	if (fd < 0 && rig->ops->attach(cg, pid, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(write(go[1], "g", 1), 1);
	(void)close(go[0]);
	(void)close(go[1]);
	return pid;
}

int rig_wait(pid_t pid)
{
	int status = -1;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

void rig_kill(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	(void)rig_wait(pid);
}

void *rig_shared(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	return p;
}
