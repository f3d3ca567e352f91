/* Bytes nobody can guess, from the kernel's source: no state of ours that a fork could copy. */
#pragma once

#include <stddef.h>

/* Always succeeds: without a random source there is nothing safe left to do, so it ends the
 * process. */
void random_bytes(void *dst, size_t n);
