#include "base/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

/* The kernel's interface, which is newer than the headers of some that build us. */
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif
#define ASK_VERSION 1u
#define RULE_PATH_BENEATH 1
#define SCOPE_ABSTRACT_UNIX (1ull << 0) /* ABI 6 */
#define SCOPE_SIGNAL (1ull << 1)

#define OF_FILES                                                                           \
	(LANDLOCK_EXECUTE | LANDLOCK_WRITE_FILE | LANDLOCK_READ_FILE | LANDLOCK_TRUNCATE | \
	 LANDLOCK_IOCTL_DEV)

struct ruleset_attr {
	uint64_t handled_fs, handled_net, scoped;
};

struct path_rule {
	uint64_t allowed;
	int32_t fd;
} __attribute__((packed));

uint32_t landlock_abi(void)
{
	long r = syscall(SYS_landlock_create_ruleset, NULL, 0, ASK_VERSION);

	return r > 0 ? (uint32_t)r : 0;
}

uint64_t landlock_known(uint32_t abi, uint64_t rights)
{
	uint64_t known = LANDLOCK_REFER - 1;

	if (abi >= 2)
		known |= LANDLOCK_REFER;
	if (abi >= 3)
		known |= LANDLOCK_TRUNCATE;
	if (abi >= 5)
		known |= LANDLOCK_IOCTL_DEV;
	return rights & known;
}

int landlock_create(uint32_t abi, uint64_t handled)
{
	struct ruleset_attr attr = { .handled_fs = handled };
	size_t size = abi >= 6   ? sizeof(attr)
		      : abi >= 4 ? offsetof(struct ruleset_attr, scoped)
				 : offsetof(struct ruleset_attr, handled_net);
	long r;

	if (abi >= 6)
		attr.scoped = SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL;
	r = syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	return r < 0 ? -errno : (int)r;
}

int landlock_allow(int rules, const char *path, uint64_t rights)
{
	_close_ int fd = open(path, O_PATH | O_CLOEXEC);
	struct path_rule rule = { .allowed = rights, .fd = fd };
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		rule.allowed &= OF_FILES;
	return syscall(SYS_landlock_add_rule, rules, RULE_PATH_BENEATH, &rule, 0) < 0 ? -errno : 0;
}

int landlock_restrict(int rules)
{
	return syscall(SYS_landlock_restrict_self, rules, 0) < 0 ? -errno : 0;
}
