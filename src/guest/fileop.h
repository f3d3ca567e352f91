/* File operations of the control socket. Each runs in a process of its own, forked from holt-init,
 * that has taken the user's ids and has no capability: it may block, fill memory or be killed
 * without harm to anything else. Paths resolve below root_fd by openat2(RESOLVE_IN_ROOT |
 * NO_MAGICLINKS). */
#pragma once

#include <stdint.h>

#include "spec/guest.h"

/* Runs one operation to its end. `sock` is a blocking SOCK_SEQPACKET: frames of this id go out
 * (G_ENTRY, G_DATA, G_EVENT, then G_DONE or G_ERROR), frames of this id come in (G_DATA, G_CREDIT,
 * G_CANCEL; an end of file counts as a cancel). Never more than GUEST_WINDOW bytes of G_DATA are
 * uncredited. lock_fd (-1: none) is a file that all operations of a box share and nobody else has:
 * what must not happen at the same time locks it. The exit code of the process: 0, or 1 after a
 * G_ERROR. */
int fileop_run(int sock, uint32_t id, const struct guest_file *f, int root_fd, int lock_fd);
