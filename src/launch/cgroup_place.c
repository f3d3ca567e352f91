#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "launch/cgroup_impl.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
#define ENTER_MS 250u
#define ENTER_AGAIN_MS 5000u /* processes of the one before us may still be dying */
#define REMOVE_TRIES 64u     /* naps add up to about 0.3 s */
#define MOVE_ROUNDS 64u
#define MOVE_EAGER 4u /* rounds; then there are naps of MOVE_NAP between them */
#define MOVE_NAP 2u
#define KILL_CHUNK 64u

static void cleanup_closedir(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

int cgroup_place_open(struct cgroup_place *p, const char *own, long magic, struct err *err)
{
	_close_ int fd = open(own, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs;

	if (fd < 0)
		return err_sys(err, errno, "control group %s", own);
	if (fstatfs(fd, &fs) < 0)
		return err_sys(err, errno, "control group %s", own);
	if (fs.f_type != magic) /* something else is mounted over it */
		return err_set(err, ENOTSUP, "%s is not a control group file system", own);
	if (faccessat(fd, ".", W_OK, AT_EACCESS) < 0)
		return err_sys(err, errno, "control group %s is not ours to divide", own);
	p->own = TAKE_FD(fd);
	return 0;
}

/* Whoever sweeps takes the lock first. Between our mkdir and our lock the directory looks
 * abandoned, so it counts as ours only when it is still there with the lock held. */
static int enter_once(struct cgroup_place *p, const char *name)
{
	_close_ int fd = -1;
	struct stat held, there;

	if (mkdirat(p->own, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(p->own, name, DIR_FLAGS);
	if (fd < 0)
		return errno == ENOENT ? -EAGAIN : -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	if (fstat(fd, &held) < 0 || fstatat(p->own, name, &there, AT_SYMLINK_NOFOLLOW) < 0)
		return -EAGAIN;
	if (held.st_ino != there.st_ino)
		return -EAGAIN;
	p->dir = TAKE_FD(fd);
	return 0;
}

int cgroup_place_enter(struct cgroup_place *p, const struct cgroups *all, struct err *err)
{
	uint64_t deadline = clock_now_ms() + (all->keeps ? ENTER_AGAIN_MS : ENTER_MS);
	int r = enter_once(p, all->name);

	for (unsigned try = 0; r == -EAGAIN && clock_now_ms() < deadline; try++) {
		cgroup_nap(try);
		r = enter_once(p, all->name);
	}
	if (r < 0)
		return err_sys(err, r, "make control group %s", all->name);
	return 0;
}

static bool contains(const pid_t *pids, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

int cgroup_lists(int dir, const char *group, pid_t pid)
{
	_free_ pid_t *pids = NULL;
	size_t n = 0;
	int r = cgroup_read_procs(dir, group, &pids, &n);

	if (r < 0)
		return r;
	return contains(pids, n, pid) ? 0 : -ESRCH;
}

/* A pid that was read may belong to someone else by the time it is signalled. A pidfd cannot: it is
 * opened first, and used only if the group still lists the pid afterwards. */
static void kill_listed(int dir, const char *group, const pid_t *pids, size_t n)
{
	_free_ pid_t *now = NULL;
	int fds[KILL_CHUNK];
	size_t n_now = 0;

	for (size_t i = 0; i < n; i++)
		fds[i] = (int)syscall(SYS_pidfd_open, pids[i], 0);
	if (cgroup_read_procs(dir, group, &now, &n_now) < 0)
		n_now = 0;
	for (size_t i = 0; i < n; i++) {
		if (fds[i] >= 0 && contains(now, n_now, pids[i]))
			(void)syscall(SYS_pidfd_send_signal, fds[i], SIGKILL, NULL, 0);
		(void)fd_close(fds[i]);
	}
}

static void kill_group(int dir, const char *group)
{
	_free_ pid_t *pids = NULL;
	size_t n = 0;

	if (cgroup_write(dir, group, "cgroup.kill", "1") == 0) /* v2 since 5.14 */
		return;
	if (cgroup_read_procs(dir, group, &pids, &n) < 0)
		return;
	for (size_t i = 0; i < n; i += KILL_CHUNK)
		kill_listed(dir, group, pids + i, n - i < KILL_CHUNK ? n - i : KILL_CHUNK);
}

int cgroup_remove(int dir, const char *group)
{
	for (unsigned try = 0; try < REMOVE_TRIES; try++) {
		if (unlinkat(dir, group, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return 0;
		if (errno != EBUSY)
			return -errno;
		/* v1: what is frozen does not die. */
		(void)cgroup_write(dir, group, "freezer.state", "THAWED");
		kill_group(dir, group);
		cgroup_nap(try);
	}
	return -EBUSY;
}

static DIR *open_list(int dir)
{
	int fd = openat(dir, ".", DIR_FLAGS); /* an own one: reading moves the offset */
	DIR *d;

	if (fd < 0)
		return NULL;
	d = fdopendir(fd);
	if (!d)
		(void)close(fd);
	return d;
}

/* Is it a group, and not a file of the one we look into? */
static bool is_group(const struct dirent *e)
{
	return e->d_type == DT_DIR && e->d_name[0] != '.';
}

static void remove_empty_below(int dir)
{
	_cleanup_(cleanup_closedir) DIR *d = open_list(dir);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (is_group(e))
			(void)unlinkat(dir, e->d_name, AT_REMOVEDIR);
}

static int remove_below(int dir)
{
	_cleanup_(cleanup_closedir) DIR *d = open_list(dir);
	struct dirent *e;
	int n = 0;

	if (!d)
		return 0;
	while ((e = readdir(d)))
		if (is_group(e))
			n += cgroup_remove(dir, e->d_name) == 0;
	return n;
}

/* Ours, which are in hexadecimal. */
static uint32_t number_of(const char *name)
{
	uint32_t v = 0;

	if (!cgroup_name_is_valid(name))
		return 0;
	for (; *name; name++)
		v = v << 4 | (uint32_t)(*name <= '9' ? *name - '0' : *name - 'a' + 10);
	return v;
}

uint32_t cgroup_place_prune(const struct cgroup_place *p, bool (*keep)(const char *name, void *arg),
			    void *arg)
{
	_cleanup_(cleanup_closedir) DIR *d = open_list(p->dir);
	struct dirent *e;
	uint32_t next = 0;

	while (d && (e = readdir(d))) {
		if (!is_group(e))
			continue;
		if (number_of(e->d_name) >= next) /* also what cannot be removed keeps its name */
			next = number_of(e->d_name) + 1;
		if (!keep(e->d_name, arg))
			(void)cgroup_remove(p->dir, e->d_name);
	}
	return next;
}

void cgroup_place_close(struct cgroup_place *p, const struct cgroups *all)
{
	if (p->own >= 0) {
		if (p->dir >= 0 && all->keeps) {
			remove_empty_below(p->dir);
			(void)unlinkat(p->own, all->name, AT_REMOVEDIR);
		} else if (p->dir >= 0) {
			(void)remove_below(p->dir);
			(void)cgroup_remove(p->own, all->name);
		}
		(void)fd_close(p->dir);
		(void)fd_close(p->own);
	}
	*p = (struct cgroup_place){ -1, -1 };
}

/* "holt." and an id: "holt.service", "holt.main" are someone else's. */
static bool is_instance(const struct dirent *e, const char *prefix)
{
	size_t n = strlen(prefix);

	return e->d_type == DT_DIR && strncmp(e->d_name, prefix, n) == 0 &&
	       id_is_valid(e->d_name + n);
}

static int sweep_one(int own, const char *name)
{
	_close_ int fd = openat(own, name, DIR_FLAGS);
	int n;

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return 0;
	n = remove_below(fd);
	(void)cgroup_remove(own, name);
	return n;
}

int cgroup_place_sweep(const struct cgroup_place *p, const char *our_name)
{
	_cleanup_(cleanup_closedir) DIR *d = open_list(p->own);
	struct dirent *e;
	int n = 0;

	if (!d)
		return 0;
	while ((e = readdir(d)))
		if (is_instance(e, CGROUP_PREFIX) && strcmp(e->d_name, our_name) != 0)
			n += sweep_one(p->own, e->d_name);
	return n;
}

bool cgroup_place_is_shared(const struct cgroup_place *p)
{
	_cleanup_(cleanup_closedir) DIR *d = open_list(p->own);
	struct dirent *e;

	if (!d)
		return true;
	while ((e = readdir(d)))
		if (is_instance(e, CGROUP_PREFIX) || is_instance(e, CGROUP_KEEP_PREFIX))
			return true;
	return false;
}

static int move_listed(const pid_t *pids, size_t n, int to_dir, const char *to)
{
	for (size_t i = 0; i < n; i++) {
		int r = cgroup_write_u64(to_dir, to, "cgroup.procs", (uint64_t)pids[i]);

		if (r < 0 && r != -ESRCH)
			return r;
	}
	return 0;
}

/* Children of what was moved start in the new group, so each round leaves only the children of the
 * processes it had not reached yet. On v1 the two groups are in different hierarchies and the
 * source keeps its processes: then it is the target that must list them all. */
static int left_to_move(int from_dir, const char *from, int to_dir, const char *to)
{
	_free_ pid_t *a = NULL, *b = NULL;
	size_t na = 0, nb = 0;
	int r, left = 0;

	r = cgroup_read_procs(from_dir, from, &a, &na);
	if (r == 0)
		r = cgroup_read_procs(to_dir, to, &b, &nb);
	if (r < 0)
		return r;
	for (size_t i = 0; i < na; i++) {
		if (contains(b, nb, a[i]))
			continue;
		r = move_listed(&a[i], 1, to_dir, to);
		if (r < 0)
			return r;
		left++;
	}
	return left;
}

/* A process on its way out is moved no more but still listed, on a busy machine for a while. */
int cgroup_move_all(int from_dir, const char *from, int to_dir, const char *to)
{
	int r = 1;

	for (unsigned round = 0; r > 0 && round < MOVE_ROUNDS; round++) {
		if (round >= MOVE_EAGER)
			cgroup_nap(MOVE_NAP);
		r = left_to_move(from_dir, from, to_dir, to);
	}
	return r > 0 ? -EAGAIN : r;
}
