/* What is in a volume, for who stands outside of sandboxes: the sandbox that has the volume, or a
 * box of our own that has nothing else. Each volume has one such box at the most. It is made when
 * somebody asks, ends when nobody has used it for a while, and gives way at once to a sandbox that
 * wants the volume. It ends with the daemon, as all that is internal. */
#pragma once

#include <stdbool.h>

#include "sandbox/sandbox.h"

struct volume_mounts;

#define VOLUME_BOX_PATH "/mnt/volume"
#define VOLUME_BOX_IDLE_MS 10000u
#define VOLUME_BOXES_OWNER_MAX 4u

/* Answers with a running sandbox that has it; volume_path() says where. template: of a box of our
 * own. ENOENT: there is no such volume; EBUSY: a sandbox that does not run has it (named); EDQUOT:
 * all boxes of the owner are in use; else as sandbox_create(). */
void volume_open(struct sandboxes *all, const char *volume_id, const char *template, sandbox_cb cb,
		 void *user);

/* ---- inside ---- */

/* Ends the boxes of these volumes, then calls back. False: there are none, or no memory to wait
 * with, and nothing comes. */
bool volume_boxes_end(struct sandboxes *all, const struct volume_mounts *m,
		      const struct sandbox *but, void (*then)(void *user), void *user);
