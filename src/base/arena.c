#include "base/arena.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is not handed out, or not any more, is poisoned where AddressSanitizer runs: who looks at it
 * after a reset is found at once, and not when the next request has written there. */
#if defined(__has_feature)
#define IS_ADDRESS_SANITIZED __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define IS_ADDRESS_SANITIZED 1
#else
#define IS_ADDRESS_SANITIZED 0
#endif
#if IS_ADDRESS_SANITIZED
#include <sanitizer/asan_interface.h>
#define POISON(p, n) __asan_poison_memory_region(p, n)
#define UNPOISON(p, n) __asan_unpoison_memory_region(p, n)
#else
#define POISON(p, n) ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

#define ALIGN 16u
#define BLOCK_MIN ((size_t)4096)
#define BLOCK_MAX ((size_t)64 << 10)

struct block {
	struct block *next; /* owned */
	size_t len, cap;
	_Alignas(ALIGN) char data[];
};

struct arena {
	struct block *head; /* owned; the block that is being filled */
	size_t used, max;
	size_t next_size; /* of the next block: doubles up to BLOCK_MAX */
};

static bool round_up(size_t n, size_t *ret)
{
	if (n > SIZE_MAX - (ALIGN - 1))
		return false;
	*ret = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	return true;
}

struct arena *arena_create(size_t max)
{
	struct arena *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	/* Rounded like the pieces, so that one piece of exactly max bytes fits. */
	if (!round_up(max, &a->max))
		a->max = SIZE_MAX & ~(size_t)(ALIGN - 1);
	a->next_size = BLOCK_MIN;
	return a;
}

static void free_blocks(struct block *b)
{
	struct block *next;

	for (; b; b = next) {
		next = b->next;
		UNPOISON(b->data, b->cap);
		free(b);
	}
}

struct arena *arena_free(struct arena *a)
{
	if (!a)
		return NULL;
	free_blocks(a->head);
	free(a);
	return NULL;
}

void arena_reset(struct arena *a)
{
	struct block *b = a->head;

	a->used = 0;
	a->next_size = BLOCK_MIN;
	if (b && b->cap <= BLOCK_MAX) {
		free_blocks(b->next);
		b->next = NULL;
		UNPOISON(b->data, b->len);
		memset(b->data, 0, b->len); /* what is handed out is zeroed */
		POISON(b->data, b->len);
		b->len = 0;
	} else {
		free_blocks(b);
		a->head = NULL;
	}
}

static struct block *block_create(size_t cap)
{
	struct block *b;

	if (cap > SIZE_MAX - sizeof(*b))
		return NULL;
	b = calloc(1, sizeof(*b) + cap);
	if (!b)
		return NULL;
	b->cap = cap;
	POISON(b->data, cap);
	return b;
}

/* A piece of half a block or more gets its own, behind the head: the head goes on being filled. */
static struct block *block_for(struct arena *a, size_t n)
{
	struct block *b = a->head;
	bool own = n >= a->next_size / 2;

	if (b && b->cap - b->len >= n)
		return b;
	b = block_create(own ? n : a->next_size);
	if (!b)
		return NULL;
	if (own && a->head) {
		b->next = a->head->next;
		a->head->next = b;
		return b;
	}
	b->next = a->head;
	a->head = b;
	if (!own && a->next_size < BLOCK_MAX)
		a->next_size *= 2;
	return b;
}

void *arena_alloc(struct arena *a, size_t n)
{
	size_t wanted = n;
	struct block *b;
	void *p;

	/* An empty piece has its own address too, so it counts as one unit. */
	if (!round_up(n ? n : 1, &n) || n > a->max - a->used)
		return NULL;
	b = block_for(a, n);
	if (!b)
		return NULL;
	p = b->data + b->len;
	UNPOISON(p, wanted);
	b->len += n;
	a->used += n;
	return p;
}

void *arena_array(struct arena *a, size_t count, size_t size)
{
	size_t n;

	if (__builtin_mul_overflow(count, size, &n))
		return NULL;
	return arena_alloc(a, n);
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
	char *p = n < SIZE_MAX ? arena_alloc(a, n + 1) : NULL;

	if (p && n > 0)
		memcpy(p, s, n);
	return p;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap;
	char *p;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return NULL;
	p = arena_alloc(a, (size_t)n + 1);
	if (!p)
		return NULL;
	va_start(ap, fmt);
	(void)vsnprintf(p, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return p;
}

size_t arena_used(const struct arena *a)
{
	return a->used;
}
