/* A Python that holt-init starts itself, for modules that only this box's files have. It runs the
 * template owner's code before anybody's program: as the box's user, and without his trust. */
#pragma once

#include <sys/types.h>

struct err;

/* Starts it with the modules to import ("numpy,json"). lib_fd (borrowed) is what makes an in-box
 * template of it: spec/warm.h. Its socket is the caller's. */
int python_start(int lib_fd, const char *modules, pid_t *ret_pid, int *ret_sock, struct err *err);
/* Waits for its first word, which is left in the socket. -ENOPKG when it cannot import them, and
 * -errno with a sentence when it says nothing that we know in that time. */
int python_wait(int sock, int timeout_ms, struct err *err);
