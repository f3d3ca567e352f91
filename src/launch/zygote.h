/* Warm Pythons, the launcher's side. For each template that asks for it one interpreter is kept with
 * the template's modules imported (src/warm); it forks the first process of a box, and that box then
 * has a Python waiting which costs neither a start nor the memory of one.
 *
 * The template interpreter is confined and holds nothing of anybody's: no tenant's code ever runs in
 * it. Its forks share the layout of its memory and the seed of its hashes, so it serves a limited
 * number of boxes and is then followed by a new one, started in time. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "launch/box.h"
#include "launch/seccomp.h"

struct box;
struct launch;
struct template;
struct zygotes;

#define ZYGOTE_BOXES_MAX 16 /* boxes that one generation serves */
#define ZYGOTE_STAGE "/tmp" /* where the box's tree is put on its way to become the root */

/* What the launcher sends for each box, with its descriptors. */
enum zygote_fd { ZYGOTE_SOCK, ZYGOTE_INIT, ZYGOTE_TREE, ZYGOTE_FDS };
struct zygote_make {
	struct box_plan plan;
	struct sock_filter filter[SECCOMP_INSN_MAX];
};

/* One byte each. The new process speaks on the box's control socket before holt-init does, and waits
 * for a byte in return; the kernel tells who it is. */
enum zygote_word {
	ZYGOTE_READY = 'r',     /* of the template interpreter: it may be used */
	ZYGOTE_ASK_MAPS = 'u',  /* has its user namespace: wants id maps and its cgroup */
	ZYGOTE_ASK_WATCH = 'p', /* is PID 1 of the box */
};
