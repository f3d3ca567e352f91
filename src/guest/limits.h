/* Resource limits of another process, from the text of its /proc/<pid>/limits: prlimit() of others
 * is closed to everything in a box. */
#pragma once

#include <stdint.h>

#define LIMITS_TEXT_MAX 4096

/* The two numbers behind a label; RLIM_INFINITY for "unlimited". -EINVAL when they are not there.
 */
int limits_find(const char *text, const char *label, uint64_t *ret_soft, uint64_t *ret_hard);
/* Takes every limit of that text for our own, the marks of an execution among them; -errno. None is
 * taken of a text that does not have them all. */
int limits_take(const char *text);
