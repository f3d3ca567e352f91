/* Calls to the kernel that fail on demand, in a program linked with --wrap and in all that it
 * forks. The test and the program share a page: call_fault_share() in the test makes it, and the
 * program finds it by the variable that this sets. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#define CALL_FAULT_VARIABLE "HOLT_TEST_CALL_FAULT"

struct call_fault {
	atomic_uint count;   /* calls since the last call_fault_arm() */
	atomic_uint fail_at; /* which of them fails, once; 0: none */
	atomic_int code;     /* its errno */
	atomic_bool hit;
};

/* Inherited by what is started from now on. NULL: it cannot be made. */
struct call_fault *call_fault_share(void);
/* The n-th call from now fails with this errno. */
void call_fault_arm(struct call_fault *f, unsigned n, int code);
