#include "persist_rig.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"
#include "launch/cgroup_parse.h"
#include "launch/process.h"

/* In memory, unless the test is run to see that all holds on disk too. */
static uint64_t layers_bytes(void)
{
	const char *text = getenv("HOLT_TEST_LAYERS");
	uint64_t v = 0;

	assert_true(!text || parse_u64(text, 0, UINT64_MAX, &v) == 0);
	return v;
}

bool rig_is_on_disk(void)
{
	return layers_bytes() > 0;
}

int rig_check_disk(void)
{
	char known[4096] = "";
	const char *lack = NULL;

	if (!rig_is_on_disk())
		return 0;
	(void)fd_read_file_at(AT_FDCWD, "/proc/filesystems", known, sizeof(known));
	if (geteuid() != 0)
		lack = "root";
	else if (!strstr(known, "btrfs"))
		lack = "a kernel with btrfs";
	else if (access("/dev/loop-control", R_OK | W_OK) < 0)
		lack = "loop devices";
	else if (access("/usr/sbin/mkfs.btrfs", X_OK) < 0 && access("/sbin/mkfs.btrfs", X_OK) < 0)
		lack = "btrfs-progs";
	if (lack)
		print_message("skipped: layers on disk need %s\n", lack);
	return lack ? RIG_SKIP : 0;
}

static int try_start(struct rig *r)
{
	struct launcher_options o = { .program = getenv("HOLT_LAUNCH"),
				      .cgroup = r->cgroup,
				      .persistent = true,
				      .state_fd = r->dir_fd,
				      .layers_bytes = layers_bytes() };
	struct template_spec host = { .id = HOST, .preload = "" };
	int e = launcher_start(&o, &r->launcher, &r->err);

	return e < 0 ? e : launcher_template_sync(r->launcher, &host, -1, &r->err);
}

void rig_start(struct rig *r)
{
	if (try_start(r) < 0)
		fail_msg("start: %s", r->err.text);
	assert_int_equal(launcher_info(r->launcher)->persistent, 1);
}

static void remove_dir(struct rig *r)
{
	static const char *const own[] = { "lock", "instance" };

	for (size_t i = 0; i < 2; i++)
		(void)unlinkat(r->dir_fd, own[i], 0);
	(void)unlinkat(r->dir_fd, "layers", AT_REMOVEDIR);
	(void)unlinkat(r->dir_fd, "volumes", AT_REMOVEDIR);
	(void)unlinkat(r->dir_fd, "image", AT_REMOVEDIR);
	(void)unlinkat(r->dir_fd, "layers.img", 0);
	r->dir_fd = fd_close(r->dir_fd);
	assert_int_equal(rmdir(r->dir), 0);
}

bool rig_open(struct rig *r, const char *cgroup)
{
	*r = (struct rig){ .cgroup = cgroup, .dir = "/tmp/holt-persist.XXXXXX" };
	assert_non_null(mkdtemp(r->dir));
	r->dir_fd = open(r->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(r->dir_fd >= 0);
	if (try_start(r) < 0) {
		print_message("%s: %s\n", cgroup, r->err.text);
		remove_dir(r);
		return false;
	}
	assert_int_equal(fd_read_file_at(r->dir_fd, "instance", r->instance, sizeof(r->instance)),
			 ID_LEN);
	return true;
}

void rig_kill(struct rig *r)
{
	assert_int_equal(kill(launcher_pid(r->launcher), SIGKILL), 0);
	r->launcher = launcher_stop(r->launcher);
}

void rig_stop(struct rig *r)
{
	r->launcher = launcher_stop(r->launcher);
}

/* NOTE: nftw() has no way to pass anything to its function. */
static const char *walk_name;
static int walk_found;

static int match(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type;
	walk_found += strstr(path + at->base, walk_name) != NULL;
	return 0;
}

static int count_groups(const struct rig *r)
{
	walk_name = r->instance;
	walk_found = 0;
	(void)nftw("/sys/fs/cgroup", match, 16, FTW_PHYS);
	return walk_found;
}

static bool is_empty_but_for_us(const struct rig *r)
{
	pid_t one;

	return rig_count_files(r) == 0 && count_groups(r) == 0 && rig_boxes(r, &one, 1) == 0;
}

void rig_close(struct rig *r)
{
	if (r->launcher)
		rig_stop(r);
	UNTIL(is_empty_but_for_us(r));
	remove_dir(r);
}

void rig_claim(struct rig *r, const struct launch_spec *spec, struct held *ret)
{
	if (launcher_claim_sync(r->launcher, spec, &ret->box, &r->err) < 0)
		fail_msg("claim: %s", r->err.text);
	assert_int_equal(guest_create(ret->box.sock, &ret->guest, &r->err), 0);
}

static void on_ready(void *user, const struct guest_ready *ready)
{
	(void)ready;
	*(bool *)user = true;
}

void rig_attach(struct rig *r, const char *id, struct held *ret)
{
	bool ready = false;

	if (launcher_attach_sync(r->launcher, id, &ret->box, &r->err) < 0)
		fail_msg("attach: %s", r->err.text);
	assert_string_equal(ret->box.id, id);
	assert_true(ret->box.pidfd >= 0);
	assert_int_equal(guest_create(ret->box.sock, &ret->guest, &r->err), 0);
	guest_set_hooks(ret->guest, &(struct guest_hooks){ .ready = on_ready }, &ready);
	for (int i = 0; i < 1000 && !ready; i++) {
		struct pollfd p = { guest_fd(ret->guest), POLLIN, 0 };

		(void)poll(&p, 1, 10);
		assert_int_equal(guest_dispatch(ret->guest), 0);
	}
	assert_true(ready);
	guest_set_hooks(ret->guest, &(struct guest_hooks){ 0 }, NULL);
}

void rig_drop(struct held *h)
{
	h->guest = guest_free(h->guest);
	h->box.pidfd = fd_close(h->box.pidfd);
}

void rig_destroy(struct rig *r, const char *id)
{
	if (launcher_destroy_sync(r->launcher, id, NULL, &r->err) < 0)
		fail_msg("destroy: %s", r->err.text);
}

void rig_run(struct rig *r, struct held *h, const struct guest_exec *e, const char *output)
{
	struct guest_result res = { 0 };

	if (guest_exec_sync(h->guest, e, NULL, 0, &res, &r->err) < 0)
		fail_msg("%s: %s", e->argc ? e->argv[e->argc - 1] : e->code, r->err.text);
	assert_string_equal(buf_str(&res.out), output);
	assert_int_equal(res.exit.code, 0);
	guest_result_done(&res);
}

void rig_expect(struct rig *r, struct held *h, const char *line, const char *output)
{
	struct guest_exec e = { .argc = 3,
				.argv = { "/bin/sh", "-c", line },
				.timeout_ms = 60000,
				.user = "",
				.cwd = "/",
				.code = "" };

	rig_run(r, h, &e, output);
}

struct listing {
	struct listed *boxes;
	size_t n;
};

static void each(void *user, const struct launch_box_info *box)
{
	struct listing *l = user;
	struct listed *to = &l->boxes[l->n++];

	assert_true(l->n <= BOXES_MAX);
	to->info = *box;
	assert_int_equal(str_copy(to->id, sizeof(to->id), box->id), 0);
	assert_int_equal(str_copy(to->tag, sizeof(to->tag), box->tag), 0);
}

size_t rig_list(struct rig *r, struct listed ret[BOXES_MAX])
{
	struct listing l = { ret, 0 };

	if (launcher_list_sync(r->launcher, each, &l, &r->err) < 0)
		fail_msg("list: %s", r->err.text);
	return l.n;
}

struct listed rig_only(struct rig *r)
{
	struct listed boxes[BOXES_MAX];

	assert_int_equal(rig_list(r, boxes), 1);
	return boxes[0];
}

bool rig_is_alive(pid_t pid)
{
	char path[32], text[512], *state;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return false;
	state = strrchr(text, ')');
	return state && state[2] != 'Z' && state[2] != 'X';
}

bool rig_has(const struct rig *r, const char *name)
{
	return faccessat(r->dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void rig_put(const struct rig *r, const char *name, const void *data, size_t n)
{
	_close_ int fd = openat(r->dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, data, n), 0);
}

int rig_count_files(const struct rig *r)
{
	DIR *d = opendir(r->dir);
	struct dirent *e;
	int n = 0;

	assert_non_null(d);
	while ((e = readdir(d)))
		n += e->d_name[0] != '.' && strcmp(e->d_name, "lock") != 0 &&
		     strcmp(e->d_name, "instance") != 0 && strcmp(e->d_name, "layers") != 0 &&
		     strcmp(e->d_name, "volumes") != 0 && strcmp(e->d_name, "image") != 0 &&
		     strcmp(e->d_name, "layers.img") != 0;
	(void)closedir(d);
	return n;
}

int rig_count_disk(const struct rig *r)
{
	static const char *const places[] = { "layers", "volumes" };
	int n = 0;

	for (size_t i = 0; i < 2; i++) {
		int fd = openat(r->dir_fd, places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		DIR *d = fd < 0 ? NULL : fdopendir(fd);
		struct dirent *e;

		while (d && (e = readdir(d)))
			n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
		if (d)
			(void)closedir(d);
	}
	return n;
}

bool rig_has_cgroups(const struct rig *r)
{
	return launcher_info(r->launcher)->cgroup != CGROUP_NONE;
}

static bool is_in_instance(const struct rig *r, int proc, const char *pid)
{
	char path[300], text[8192];

	return str_format(path, sizeof(path), "%s/cgroup", pid) == 0 &&
	       fd_read_file_at(proc, path, text, sizeof(text)) > 0 && strstr(text, r->instance);
}

size_t rig_boxes(const struct rig *r, pid_t *ret, size_t max)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	size_t n = 0;

	assert_non_null(d);
	while (n < max && (e = readdir(d))) {
		uint32_t pid;

		if (parse_u32(e->d_name, 1, 1u << 30, &pid) == 0 && rig_is_alive((pid_t)pid) &&
		    is_in_instance(r, dirfd(d), e->d_name) && process_is_init(dirfd(d), (pid_t)pid))
			ret[n++] = (pid_t)pid;
	}
	(void)closedir(d);
	return n;
}

uint32_t rig_uid_of(pid_t pid)
{
	char path[32], text[8192], *uid;
	unsigned v = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	assert_true(fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) > 0);
	uid = strstr(text, "\nUid:\t");
	assert_non_null(uid);
	assert_int_equal(sscanf(uid, "\nUid:\t%u", &v), 1);
	return v;
}

/* Calls fn with a directory in each hierarchy that boxes have groups in. */
static void each_group(pid_t pid, void (*fn)(const char *dir))
{
	static const char *const controllers[] = { "memory", "pids", "cpu", "cpuacct", NULL };
	static char mounts[1 << 20], self[1 << 16];

	(void)fd_read_file_at(AT_FDCWD, "/proc/self/mountinfo", mounts, sizeof(mounts));
	(void)fd_read_file_at(AT_FDCWD, "/proc/self/cgroup", self, sizeof(self));
	for (size_t i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++) {
		char own[PATH_MAX], dir[PATH_MAX];

		if (cgroup_parse_dir(mounts, self, controllers[i], own, sizeof(own)) == 0 &&
		    str_format(dir, sizeof(dir), "%s/holt-elsewhere.%d", own, (int)pid) == 0)
			fn(dir);
	}
}

static void enter(const char *dir)
{
	char path[PATH_MAX];

	if (mkdir(dir, 0755) == 0 && str_format(path, sizeof(path), "%s/cgroup.procs", dir) == 0)
		(void)fd_write_file_at(AT_FDCWD, path, "0");
}

static void leave(const char *dir)
{
	(void)rmdir(dir);
}

void rig_enter_groups(pid_t pid)
{
	each_group(pid, enter);
}

void rig_remove_groups(pid_t pid)
{
	each_group(pid, leave);
}
