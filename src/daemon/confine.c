#include "daemon/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/landlock.h"
#include "base/log.h"
#include "base/str.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#elif defined(__has_feature)
#define IS_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define IS_SANITIZED false
#endif

#define READ LANDLOCK_READ_FILE
#define READ_TREE (LANDLOCK_READ_FILE | LANDLOCK_READ_DIR)
#define SOCKET (LANDLOCK_MAKE_SOCK | LANDLOCK_REMOVE_FILE)

/* Of the machine, what libraries read: names and addresses, whom to trust, the time, themselves.
 * Nothing here is of a person, or tells of what else runs. What is not there is passed over. */
static const struct {
	const char *path;
	uint64_t rights;
} of_the_machine[] = {
	{ "/etc/hosts", READ },
	{ "/etc/resolv.conf", READ },
	{ "/etc/nsswitch.conf", READ },
	{ "/etc/host.conf", READ },
	{ "/etc/gai.conf", READ },
	{ "/etc/services", READ },
	{ "/etc/protocols", READ },
	{ "/etc/localtime", READ },
	{ "/etc/ld.so.cache", READ },
	{ "/etc/ssl/openssl.cnf", READ },
	{ "/etc/ssl/cert.pem", READ },
	{ "/etc/ssl/certs", READ_TREE },
	{ "/etc/pki/tls", READ_TREE },
	{ "/etc/pki/ca-trust", READ_TREE },
	{ "/etc/ca-certificates", READ_TREE },
	{ "/usr/share/ca-certificates", READ_TREE },
	{ "/usr/local/share/ca-certificates", READ_TREE },
	{ "/usr/share/zoneinfo", READ_TREE },
	{ "/usr/lib", READ_TREE },
	{ "/usr/lib32", READ_TREE },
	{ "/usr/lib64", READ_TREE },
	{ "/usr/local/lib", READ_TREE },
	{ "/lib", READ_TREE },
	{ "/lib64", READ_TREE },
	{ "/dev/null", READ | LANDLOCK_WRITE_FILE },
	{ "/dev/urandom", READ },
	{ "/proc/self", READ_TREE },
	{ "/proc/cpuinfo", READ },
	{ "/proc/loadavg", READ },
	{ "/proc/meminfo", READ },
	{ "/proc/stat", READ },
	{ "/proc/sys/vm/overcommit_memory", READ },
	{ "/sys/devices/system/cpu", READ_TREE },
};

/* Replaced as a whole by who keeps them: where links lead out of /etc, the directory there is of
 * that one purpose. */
static const char *const replaced[] = { "/etc/hosts", "/etc/resolv.conf", NULL };

/* ---- namespaces ---- */

/* The directory of a path; false: it is too long. */
static bool parent_of(const char *path, char ret[PATH_MAX])
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return str_copy(ret, PATH_MAX, ".") == 0;
	return str_format(ret, PATH_MAX, "%.*s", slash == path ? 1 : (int)(slash - path), path) ==
	       0;
}

static int set_attributes(int dir_fd, const char *path, unsigned flags, uint64_t attributes)
{
	struct mount_attr attr = { .attr_set = attributes | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV };

	return syscall(SYS_mount_setattr, dir_fd, path, AT_RECURSIVE | flags, &attr, sizeof(attr)) <
			       0
		       ? -errno
		       : 0;
}

/* The tree as it is, mounted upon itself: what is set of the mount around it does not hold there.
 * What is written is not run, nor mapped to be. */
static int keep_writable(const char *path, int *ret_fd)
{
	*ret_fd = (int)syscall(SYS_open_tree, AT_FDCWD, path,
			       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	return *ret_fd < 0 ? -errno : set_attributes(*ret_fd, "", AT_EMPTY_PATH, MOUNT_ATTR_NOEXEC);
}

static int put_back(int fd, const char *path)
{
	if (fd < 0)
		return 0;
	return syscall(SYS_move_mount, fd, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno
											    : 0;
}

static int make_read_only(const struct confinement *c)
{
	_close_ int data = -1, beside = -1;
	char dir[PATH_MAX];
	bool listens = c->listens_at && parent_of(c->listens_at, dir);
	/* What the machine mounts later is seen here as well, and nothing of ours there. */
	int r = mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 ? -errno : 0;

	if (r == 0)
		r = keep_writable(c->data_dir, &data);
	if (r == 0 && listens)
		r = keep_writable(dir, &beside);
	if (r == 0)
		r = set_attributes(AT_FDCWD, "/", 0, MOUNT_ATTR_RDONLY);
	if (r == 0 && listens)
		r = put_back(beside, dir);
	return r < 0 ? r : put_back(data, c->data_dir);
}

int confine_apart(const struct confinement *c, struct err *err)
{
	int r = unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS) < 0 ? -errno : 0;

	if (r == 0)
		r = make_read_only(c);
	return r < 0 ? err_sys(err, r, "namespaces of the daemon") : 0;
}

/* ---- files ---- */

/* Not there, or not to be reached by us: then it cannot be read either. */
static bool is_absent(int r)
{
	return r == -ENOENT || r == -EACCES || r == -ENOTDIR || r == -ELOOP || r == -ENAMETOOLONG;
}

static int allow(int rules, const char *path, uint64_t rights, struct err *err)
{
	int r = landlock_allow(rules, path, rights);

	return r == 0 || is_absent(r) ? 0 : err_sys(err, r, "Landlock: '%s'", path);
}

/* May all of a directory be read for the sake of one file in it? Not of one that holds anything and
 * everything: at the top, shared, or what the state directory lies in. */
static bool is_of_one_purpose(const char *dir, const char *data_dir)
{
	return strchr(dir + 1, '/') && !confinement_is_beneath(data_dir, dir) &&
	       !confinement_is_shared(dir);
}

/* A rule is for a file, not for its name: one that is put into its place later is another. So the
 * directories that it lies in are readable as well, as it is named and where links lead. */
static int allow_replaced(int rules, const char *path, const char *data_dir, struct err *err)
{
	_free_ char *real = realpath(path, NULL);
	const char *names[] = { path, real };
	int r = allow(rules, path, READ, err);

	for (size_t i = 0; i < 2 && r == 0; i++) {
		char named[PATH_MAX];
		_free_ char *dir = NULL;

		if (names[i] && parent_of(names[i], named))
			dir = realpath(named, NULL);
		if (dir && is_of_one_purpose(dir, data_dir))
			r = allow(rules, dir, READ_TREE, err);
	}
	return r;
}

static int allow_named(int rules, const struct confinement *c, uint32_t abi, struct err *err)
{
	_free_ char *data_dir = realpath(c->data_dir, NULL);
	char dir[PATH_MAX];
	int r;

	if (!data_dir)
		return err_sys(err, errno, "'%s'", c->data_dir);
	r = allow(rules, data_dir, landlock_known(abi, READ_TREE | LANDLOCK_WRITING), err);
	for (size_t i = 0; c->trees[i] && r == 0; i++)
		r = allow(rules, c->trees[i], READ_TREE, err);
	for (size_t i = 0; c->files[i] && r == 0; i++)
		r = allow_replaced(rules, c->files[i], data_dir, err);
	for (size_t i = 0; replaced[i] && r == 0; i++)
		r = allow_replaced(rules, replaced[i], data_dir, err);
	if (r == 0 && c->listens_at && parent_of(c->listens_at, dir))
		r = allow(rules, dir, SOCKET, err);
	return r;
}

static int allow_machine(int rules, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < sizeof(of_the_machine) / sizeof(of_the_machine[0]) && r == 0; i++)
		r = allow(rules, of_the_machine[i].path, of_the_machine[i].rights, err);
	/* A sanitizer's report names lines, which stand in the program. */
	if (IS_SANITIZED && r == 0)
		r = allow(rules, "/proc/self/exe", READ, err);
	return r;
}

static int confine_files(const struct confinement *c, struct err *err)
{
	uint32_t abi = landlock_abi();
	_close_ int rules = -1;
	int r;

	if (abi == 0) {
		log_warn("daemon",
			 "this kernel has no Landlock: the daemon can read what its account can; "
			 "see holt doctor");
		return 0;
	}
	rules = landlock_create(abi, landlock_known(abi, LANDLOCK_ALL));
	if (rules < 0)
		return err_sys(err, rules, "Landlock");
	r = allow_named(rules, c, abi, err);
	if (r == 0)
		r = allow_machine(rules, err);
	if (r < 0)
		return r;
	r = landlock_restrict(rules);
	return r < 0 ? err_sys(err, r, "Landlock") : 0;
}

int confine_self(const struct confinement *c, struct err *err)
{
	const struct rlimit none = { 0, 0 };
	int r;

	if (setrlimit(RLIMIT_CORE, &none) < 0)
		return err_sys(err, errno, "no core dumps");
	r = confine_files(c, err);
	return r < 0 ? r : confine_calls(IS_SANITIZED, c->listens_at != NULL, err);
}
