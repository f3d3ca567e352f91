#include "cli/bench_bundle.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"

#define TMP "/tmp"
#define PREFIX "holt-bench."
#define OLD_S 3600

/* What `runc spec` writes, without limits, with the command in place of %s. */
static const char config[] =
	"{\"ociVersion\":\"1.0.2\",\"process\":{\"terminal\":false,"
	"\"user\":{\"uid\":1000,\"gid\":1000},\"args\":[%s],"
	"\"env\":[\"PATH=/usr/bin:/bin\"],\"cwd\":\"/\",\"noNewPrivileges\":true},"
	"\"root\":{\"path\":\"rootfs\",\"readonly\":true},\"hostname\":\"box\",\"mounts\":["
	"{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"},"
	"{\"destination\":\"/dev\",\"type\":\"tmpfs\",\"source\":\"tmpfs\","
	"\"options\":[\"nosuid\",\"strictatime\",\"mode=755\",\"size=65536k\"]},"
	"{\"destination\":\"/tmp\",\"type\":\"tmpfs\",\"source\":\"tmpfs\"},"
	"{\"destination\":\"/usr\",\"type\":\"bind\",\"source\":\"/usr\","
	"\"options\":[\"rbind\",\"ro\"]}],"
	"\"linux\":{\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"network\"},{\"type\":\"ipc\"},"
	"{\"type\":\"uts\"},{\"type\":\"mount\"}],"
	"\"maskedPaths\":[\"/proc/kcore\",\"/proc/keys\"],"
	"\"readonlyPaths\":[\"/proc/sys\",\"/proc/sysrq-trigger\"]}}\n";

static const struct {
	const char *name, *args;
} commands_of[] = {
	{ "true", "\"/bin/true\"" },
	{ "python", "\"/usr/bin/python3\",\"-c\",\"print(1)\"" },
};

static const char *const dirs[] = { "proc", "dev", "tmp", "usr", "etc", NULL };
static const struct {
	const char *name, *target;
} links[] = { { "bin", "usr/bin" }, { "lib", "usr/lib" }, { "lib64", "usr/lib64" } };

static int make_root(int bundle, struct err *err)
{
	_close_ int root = -1;

	if (mkdirat(bundle, "rootfs", 0755) < 0)
		return err_sys(err, errno, "rootfs");
	root = openat(bundle, "rootfs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; dirs[i]; i++)
		if (mkdirat(root, dirs[i], 0755) < 0)
			return err_sys(err, errno, "rootfs/%s", dirs[i]);
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		if (symlinkat(links[i].target, root, links[i].name) < 0)
			return err_sys(err, errno, "rootfs/%s", links[i].name);
	return 0;
}

static int make_one(int top, const char *name, const char *args, struct err *err)
{
	_close_ int dir = -1, file = -1;
	int r;

	if (mkdirat(top, name, 0755) < 0)
		return err_sys(err, errno, "%s", name);
	dir = openat(top, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = make_root(dir, err);
	if (r < 0)
		return r;
	file = openat(dir, "config.json", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (file < 0 || dprintf(file, config, args) < 0)
		return err_sys(err, errno, "%s/config.json", name);
	return 0;
}

int bundle_make(struct bundle *b, struct err *err)
{
	_close_ int top = -1;
	const char *dir;
	int r = 0;

	bundle_sweep(TMP);
	(void)str_format(b->dir, sizeof(b->dir), TMP "/" PREFIX "%d.XXXXXX", getpid());
	dir = mkdtemp(b->dir);
	if (!dir)
		return err_sys(err, errno, "temporary directory");
	(void)str_format(b->state, sizeof(b->state), "%s/state", dir);
	top = open(b->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top < 0 || mkdirat(top, "state", 0700) < 0)
		r = err_sys(err, errno, "%s", b->dir);
	for (size_t i = 0; r == 0 && i < sizeof(commands_of) / sizeof(commands_of[0]); i++)
		r = make_one(top, commands_of[i].name, commands_of[i].args, err);
	if (r < 0)
		bundle_remove(b);
	return r;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path) < 0 && errno != ENOENT ? -1 : 0;
}

void bundle_remove_tree(const char *dir)
{
	/* FTW_MOUNT: should a peer have left a mount behind, nothing below it is touched. */
	(void)nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

void bundle_remove(const struct bundle *b)
{
	bundle_remove_tree(b->dir);
}

/* "holt-bench.123.abcdef": the process, or 0 when the name has none. */
static pid_t owner_of(const char *name)
{
	struct str rest = str_of(name + strlen(PREFIX)), number;
	char text[16];
	uint32_t pid;

	if (!str_split(&rest, '.', &number) || rest.len == 0 ||
	    str_format(text, sizeof(text), "%.*s", (int)number.len, number.data) < 0 ||
	    parse_u32(text, 1, INT32_MAX, &pid) < 0)
		return 0;
	return (pid_t)pid;
}

static bool is_stale(int tmp, const char *name)
{
	pid_t pid = owner_of(name);
	struct stat st;

	if (fstatat(tmp, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode) ||
	    st.st_uid != geteuid())
		return false;
	if (pid > 0)
		return kill(pid, 0) < 0 && errno == ESRCH;
	return clock_wall_ms() / 1000 - st.st_mtim.tv_sec > OLD_S;
}

void bundle_sweep(const char *tmp)
{
	DIR *dir = opendir(tmp);
	char path[512];

	if (!dir)
		return;
	for (const struct dirent *e; (e = readdir(dir));)
		if (strncmp(e->d_name, PREFIX, strlen(PREFIX)) == 0 &&
		    is_stale(dirfd(dir), e->d_name) &&
		    str_format(path, sizeof(path), "%s/%s", tmp, e->d_name) == 0)
			bundle_remove_tree(path);
	(void)closedir(dir);
}
