/* The image of a volume: an ext4 file system in a sparse file. In a job: these wait for disks. */
#pragma once

#include <stdint.h>

struct err;

/* Makes the file system; its root belongs to that id. */
int image_make(int image, uint64_t bytes, uint32_t owner, struct err *err);
/* Waits a few seconds for whoever has it mounted to let go. -EBUSY */
int image_lock(int image, struct err *err);
/* Locks the image, checks it if it was not left cleanly, and mounts it nowhere: a descriptor.
 * -EBUSY when it is mounted already. */
int image_mount(int image, struct err *err);
