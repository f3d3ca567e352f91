/* Snapshots are templates to E2B's clients, and are deleted as such. */
#pragma once

#include <stdbool.h>

struct api_call;

/* Deletes the caller's snapshot of that id or name, and answers; false: there is none, and nothing
 * was answered. */
bool e2b_snapshot_delete(struct api_call *c, const char *name);
