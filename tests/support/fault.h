/* Allocations that fail on demand. Linked with --wrap, so the calls of our own code are counted
 * (those inside libc and other shared libraries are not) and the sanitizers still see the real
 * ones. Each thread has a count of its own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The n-th malloc, calloc, realloc, strdup or strndup from now fails, once; 0 means none. */
void fault_arm(size_t n);
/* Disarms; says whether the armed failure happened. */
bool fault_disarm(void);
/* Allocations since fault_arm(), the failed one included. */
size_t fault_count(void);

/* Runs fn with the first allocation failing, then the second, and so on, until a run makes all that
 * it wants. Each failing run must return -ENOMEM and the last one 0; leaks are the sanitizer's to
 * find. Returns how many runs failed. */
size_t fault_each(int (*fn)(void *arg), void *arg);
