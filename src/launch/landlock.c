#include "launch/landlock.h"

#include <errno.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/landlock.h"
#include "base/str.h"
#include "spec/launch.h"

/* Where a box may write. Devices: only what the minimal /dev holds. */
static const char *const writable[] = {
	"/tmp", "/workspace", "/home/user", "/mnt", "/dev", "/proc"
};

/* A template need not have them all. */
static int allow(int rules, const char *path, uint64_t rights)
{
	int r = landlock_allow(rules, path, rights);

	return r == -ENOENT ? 0 : r;
}

static int allow_paths(int rules, const char *paths, uint64_t rights)
{
	struct str rest = str_of(paths), one = { 0 };
	char path[TEMPLATE_WRITABLE_MAX + 1];
	int r = 0;

	while (r == 0 && str_split(&rest, ':', &one)) {
		(void)str_format(path, sizeof(path), "%.*s", (int)one.len, one.data);
		r = allow(rules, path, rights);
	}
	return r;
}

int landlock_apply(uint32_t abi, bool writable_root, const char *paths, struct err *err)
{
	bool is_all = writable_root && paths[0] == '\0';
	uint64_t rights = landlock_known(abi, LANDLOCK_WRITING);
	_close_ int rules = -1;
	int r = 0;

	if (abi == 0)
		return 0;
	rules = landlock_create(abi, rights);
	if (rules < 0)
		return err_sys(err, rules, "landlock ruleset");
	if (is_all)
		r = allow(rules, "/", rights);
	for (size_t i = 0; i < sizeof(writable) / sizeof(writable[0]) && !is_all && r == 0; i++)
		r = allow(rules, writable[i], rights);
	if (r == 0 && writable_root)
		r = allow_paths(rules, paths, rights);
	if (r < 0)
		return err_sys(err, r, "landlock rule");
	r = landlock_restrict(rules);
	return r < 0 ? err_sys(err, r, "landlock restrict") : 0;
}
