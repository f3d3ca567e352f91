/* What a program under test is linked with, beside --wrap for each function here: call_fault.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include "call_fault.h"

/* NOTE: mutable, because the replaced functions have no argument to hang it from. */
static struct call_fault *shared;

__attribute__((constructor)) static void find_page(void)
{
	const char *path = getenv(CALL_FAULT_VARIABLE);
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *p = fd < 0 ? MAP_FAILED
			 : mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	shared = p == MAP_FAILED ? NULL : p;
	if (fd >= 0)
		(void)close(fd);
}

static bool must_fail(void)
{
	if (!shared || shared->fail_at == 0 || ++shared->count != shared->fail_at)
		return false;
	shared->hit = true;
	errno = shared->code;
	return true;
}

/* The linker's names of a function and of what replaces it. Lists of arguments are passed as if
 * they had names. */
#define WRAP(type, name, parameters, arguments)                          \
	type __real_##name parameters;                                   \
	type __wrap_##name parameters;                                   \
	type __wrap_##name parameters                                    \
	{                                                                \
		return must_fail() ? (type)-1 : __real_##name arguments; \
	}

WRAP(long, syscall, (long n, long a, long b, long c, long d, long e, long f), (n, a, b, c, d, e, f))
WRAP(int, openat, (int dir, const char *path, int flags, mode_t mode), (dir, path, flags, mode))
WRAP(int, mkdirat, (int dir, const char *path, mode_t mode), (dir, path, mode))
WRAP(int, setns, (int fd, int kind), (fd, kind))
WRAP(int, unshare, (int flags), (flags))
WRAP(int, mount,
     (const char *from, const char *to, const char *type, unsigned long flags, const void *data),
     (from, to, type, flags, data))
WRAP(int, fsopen, (const char *type, unsigned flags), (type, flags))
WRAP(int, fsconfig, (int fd, unsigned cmd, const char *key, const void *value, int aux),
     (fd, cmd, key, value, aux))
WRAP(int, fsmount, (int fd, unsigned flags, unsigned attrs), (fd, flags, attrs))
WRAP(int, open_tree, (int dir, const char *path, unsigned flags), (dir, path, flags))
WRAP(int, move_mount, (int from, const char *name, int to, const char *as, unsigned flags),
     (from, name, to, as, flags))
WRAP(int, mount_setattr, (int dir, const char *path, unsigned flags, void *attr, size_t size),
     (dir, path, flags, attr, size))
WRAP(int, socketpair, (int family, int type, int protocol, int fds[2]),
     (family, type, protocol, fds))
