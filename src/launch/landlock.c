#include "launch/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "spec/launch.h"

/* Rights that came after the headers of the oldest system we build on. */
#define ACCESS_REFER (1ull << 13)       /* ABI 2 */
#define ACCESS_TRUNCATE (1ull << 14)    /* ABI 3 */
#define ACCESS_IOCTL_DEV (1ull << 15)   /* ABI 5 */
#define SCOPE_ABSTRACT_UNIX (1ull << 0) /* ABI 6 */
#define SCOPE_SIGNAL (1ull << 1)

struct ruleset_attr {
	uint64_t handled_fs, handled_net, scoped;
};

#define WRITE_BASE                                                       \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | \
	 LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR | \
	 LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |     \
	 LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |   \
	 LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM)

/* Where a box may write. Devices: only what the minimal /dev holds. */
static const char *const writable[] = {
	"/tmp", "/workspace", "/home/user", "/mnt", "/dev", "/proc"
};

uint32_t landlock_abi(void)
{
	long r = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return r > 0 ? (uint32_t)r : 0;
}

static uint64_t write_rights(uint32_t abi)
{
	uint64_t rights = WRITE_BASE;

	if (abi >= 2)
		rights |= ACCESS_REFER;
	if (abi >= 3)
		rights |= ACCESS_TRUNCATE;
	return rights;
}

static int allow(int ruleset, const char *path, uint64_t rights)
{
	struct landlock_path_beneath_attr rule = { .allowed_access = rights };
	_close_ int fd = open(path, O_PATH | O_CLOEXEC | O_DIRECTORY);

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno; /* a template need not have them all */
	rule.parent_fd = fd;
	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		return -errno;
	return 0;
}

static int allow_paths(int ruleset, const char *paths, uint64_t rights)
{
	struct str rest = str_of(paths), one = { 0 };
	char path[TEMPLATE_WRITABLE_MAX + 1];
	int r = 0;

	while (r == 0 && str_split(&rest, ':', &one)) {
		(void)str_format(path, sizeof(path), "%.*s", (int)one.len, one.data);
		r = allow(ruleset, path, rights);
	}
	return r;
}

int landlock_apply(uint32_t abi, bool writable_root, const char *paths, struct err *err)
{
	bool is_all = writable_root && paths[0] == '\0';
	struct ruleset_attr attr = { .handled_fs = write_rights(abi) };
	size_t size = abi >= 6 ? sizeof(attr) : abi >= 4 ? 16 : 8;
	_close_ int ruleset = -1;
	int r = 0;

	if (abi == 0)
		return 0;
	if (abi >= 6)
		attr.scoped = SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL;
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	if (ruleset < 0)
		return err_sys(err, errno, "landlock ruleset");
	if (is_all)
		r = allow(ruleset, "/", attr.handled_fs);
	for (size_t i = 0; i < sizeof(writable) / sizeof(writable[0]) && !is_all && r == 0; i++)
		r = allow(ruleset, writable[i], attr.handled_fs);
	if (r == 0 && writable_root)
		r = allow_paths(ruleset, paths, attr.handled_fs);
	if (r < 0)
		return err_sys(err, r, "landlock rule");
	if (syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		return err_sys(err, errno, "landlock restrict");
	return 0;
}
