/* The system call filter of a box: one table of names, compiled once per profile into a balanced
 * tree of number ranges in classic BPF. Installing costs about 2 us an instruction and happens in
 * every box, so the program is kept at a tree, and its size is watched by a test. */
#pragma once

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

struct err;

enum seccomp_profile {
	PROFILE_STANDARD,
	PROFILE_HIGH,   /* also without Internet sockets, memfds and System V objects */
	PROFILE_ZYGOTE, /* a template interpreter: may also make namespaces and mounts of its own */
	PROFILE_COUNT
};

#define SECCOMP_INSN_MAX 640

struct seccomp_filter {
	uint16_t len;
	struct sock_filter insn[SECCOMP_INSN_MAX];
};

/* Values of one argument, both ends included. */
struct span {
	uint32_t first, last;
};
/* The list in order. -EINVAL: of these spans no tree can be made: there is none, one ends before it
 * begins, one begins before another has ended, or one ends at the last number there is. */
int seccomp_sort(const struct span *list, size_t n, struct span *ret);

/* -E2BIG; -EINVAL: a list of arguments is wrong. */
int seccomp_build(enum seccomp_profile profile, struct seccomp_filter *ret, struct err *err);
/* What the filter answers to a call: the SECCOMP_RET_* value. For tests. */
uint32_t seccomp_verdict(const struct seccomp_filter *f, uint32_t arch, int nr,
			 const uint64_t args[6]);
