#include "warm/memory.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE ((size_t)2 << 20)
#define REGION (16 * HUGE) /* addresses set aside for arenas; beyond it they come as ever */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* PyObjectArenaAllocator */
struct arena_allocator {
	void *ctx;
	void *(*alloc)(void *ctx, size_t size);
	void (*free)(void *ctx, void *ptr, size_t size);
};

struct memory {
	char *heap;   /* the first huge page of the heap */
	char *region; /* of REGION bytes, aligned */
	size_t used;  /* bytes handed out */
	size_t open;  /* bytes that may be used already */
};

static char *align_up(char *p)
{
	return (char *)(((uintptr_t)p + HUGE - 1) & ~(HUGE - 1));
}

static bool open_up_to(struct memory *m, size_t end)
{
	if (end <= m->open)
		return true;
	if (mprotect(m->region + m->open, end - m->open, PROT_READ | PROT_WRITE) < 0)
		return false;
	m->open = end;
	return true;
}

static void *plain_alloc(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void *arena_alloc(void *ctx, size_t size)
{
	struct memory *m = ctx;
	char *p;

	if (size > REGION - m->used || !open_up_to(m, m->used + size))
		return plain_alloc(size);
	p = m->region + m->used;
	m->used += size;
	return p;
}

/* Addresses of the region are not used twice; the memory goes back. */
static void arena_free(void *ctx, void *ptr, size_t size)
{
	struct memory *m = ctx;

	if ((char *)ptr >= m->region && (char *)ptr < m->region + REGION)
		(void)madvise(ptr, size, MADV_DONTNEED);
	else
		(void)munmap(ptr, size);
}

static void set_arenas(struct memory *m)
{
	struct arena_allocator ours = { m, arena_alloc, arena_free };
	void (*set)(struct arena_allocator *);
	void *found = dlsym(RTLD_DEFAULT, "PyObject_SetArenaAllocator");

	if (!found)
		return;
	memcpy(&set, &found, sizeof(set));
	set(&ours);
}

/* NOTE: static, because it is the memory of the interpreter's own memory: it lives as long. */
struct memory *memory_prepare(void)
{
	static struct memory m;
	char *space;

	m.heap = align_up(sbrk(0));
	space = mmap(NULL, REGION + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		     -1, 0);
	if (space == MAP_FAILED)
		return NULL;
	m.region = align_up(space);
	set_arenas(&m);
	return &m;
}

void memory_collapse(struct memory *m)
{
	size_t heap, arenas;
	char *end;

	if (!m)
		return;
	end = sbrk(0);
	heap = end > m->heap ? (size_t)(end - m->heap) & ~(HUGE - 1) : 0;
	arenas = (m->used + HUGE - 1) & ~(HUGE - 1);
	if (heap > 0)
		(void)madvise(m->heap, heap, MADV_COLLAPSE);
	if (arenas > 0 && open_up_to(m, arenas))
		(void)madvise(m->region, arenas, MADV_COLLAPSE);
}
