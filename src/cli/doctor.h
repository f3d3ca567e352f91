/* What a machine must have for boxes, one row each. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum health { HEALTH_OK, HEALTH_WARN, HEALTH_FAIL };

struct finding {
	enum health health;
	char text[200]; /* what was found, and what it means when it is bad */
	char mend[240]; /* the command that mends it; "" when there is none */
};

struct check {
	const char *name;
	void (*run)(struct finding *f);
};

extern const struct check doctor_kernel_checks[]; /* both end with a NULL name */
extern const struct check doctor_machine_checks[];

void finding_set(struct finding *f, enum health health, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void finding_mend(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Runs fn in a child, so that what it changes about its process ends with it. 0 or a positive
 * errno. */
int doctor_try(int (*fn)(const void *arg), const void *arg);
/* Makes the namespaces, as an ordinary user inside a new user namespace whose root we are. */
int doctor_unshare(int flags);
/* Programs that the kernel starts by itself: whether a box can make it do so. The judges are for
 * tests: NULL: there is no such setting. */
void doctor_check_modules(struct finding *f);
void doctor_judge_modules(struct finding *f, const char *helper, long disabled);
void doctor_check_cores(struct finding *f);
void doctor_judge_cores(struct finding *f, const char *pattern, bool can_be_limited);
/* The number in a file of /proc/sys, or `missing`. */
long doctor_sysctl(const char *path, long missing);
