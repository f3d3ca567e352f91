#include "fault.h"

#include <errno.h>
#include <string.h>

#include "check.h"

#define RUNS_MAX 100000u

/* What the linker calls the functions and their replacements. */
void *__real_malloc(size_t n);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t n);
char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t n);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);

/* NOTE: mutable, because the replaced functions have no argument to hang it from. */
static _Thread_local struct {
	size_t count, fail_at;
	bool hit;
} state;

void fault_arm(size_t n)
{
	state.count = 0;
	state.fail_at = n;
	state.hit = false;
}

bool fault_disarm(void)
{
	bool hit = state.hit;

	state.fail_at = 0;
	return hit;
}

size_t fault_count(void)
{
	return state.count;
}

static bool fails(void)
{
	state.count++;
	if (state.fail_at == 0 || state.count != state.fail_at)
		return false;
	state.hit = true;
	errno = ENOMEM;
	return true;
}

void *__wrap_malloc(size_t n)
{
	return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	return fails() ? NULL : __real_realloc(p, n);
}

char *__wrap_strdup(const char *s)
{
	return fails() ? NULL : __real_strdup(s);
}

char *__wrap_strndup(const char *s, size_t n)
{
	return fails() ? NULL : __real_strndup(s, n);
}

size_t fault_each(int (*fn)(void *arg), void *arg)
{
	for (size_t n = 1; n < RUNS_MAX; n++) {
		bool hit;
		int r;

		fault_arm(n);
		r = fn(arg);
		hit = fault_disarm();
		if (!hit) {
			assert_int_equal(r, 0);
			return n - 1;
		}
		assert_int_equal(r, -ENOMEM);
	}
	fail_msg("still failing after %u runs", RUNS_MAX);
	return 0;
}
