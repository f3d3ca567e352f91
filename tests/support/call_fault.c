#include "call_fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static struct call_fault *map_page(int fd)
{
	void *p = mmap(NULL, sizeof(struct call_fault), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

struct call_fault *call_fault_share(void)
{
	int fd = memfd_create("call-fault", 0);
	char path[64];

	if (fd < 0 || ftruncate(fd, sizeof(struct call_fault)) < 0)
		return NULL;
	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), fd);
	return setenv(CALL_FAULT_VARIABLE, path, 1) < 0 ? NULL : map_page(fd);
}

void call_fault_arm(struct call_fault *f, unsigned n, int code)
{
	f->fail_at = 0;
	f->count = 0;
	f->hit = n == 0 && f->hit; /* who disarms it may still ask */
	f->code = code;
	f->fail_at = n;
}
