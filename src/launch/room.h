/* Rooms: where boxes write when that is to be on disk and not in memory. Below the state directory:
 *
 *   layers.img         a btrfs in a file, on a loop device
 *   image/             where the launcher alone sees it mounted
 *   image/layers/<id>  as in disk.h; one lies here if it was taken while rooms were in use
 *   image/rooms/<id>   what the box of that id writes: a subvolume with a limit of its own
 *
 * Files of a room are shared with a layer that is taken of it, block by block, until one of the two
 * changes. A room ends with its box: whoever dies first, the next start removes what is nobody's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct box;
struct err;
struct launch;

struct rooms {
	int layers, rooms; /* owned: directories of the image; -1: there is none */
	bool are_used;     /* new boxes have one */
	unsigned left;     /* whose boxes have ended, and that are still there */
};

/* bytes: of an image that is to be made, if there is none; 0: boxes write to memory, and an image
 * is mounted only if it is there, for its layers and for boxes that live on. After adopt_boxes().
 */
int rooms_open(struct launch *l, uint64_t bytes, struct err *err);
void rooms_close(struct launch *l);
/* For a new box, if rooms are in use; else nothing. b->room_fd: a detached mount of it. */
int room_make(struct launch *l, struct box *b, struct err *err);
/* The same once more: whoever was to build the box has left something in the first. */
int room_renew(struct launch *l, struct box *b, struct err *err);
/* Another limit for it, if the box has one. */
int room_resize(const struct launch *l, const struct box *b, uint64_t bytes, struct err *err);
/* The box has ended. */
void room_drop(struct launch *l, struct box *b);
/* Has rooms removed whose boxes have ended: many at once, or when there is calm. True when a job
 * was started for it. */
bool rooms_tidy(struct launch *l, bool calm);
/* Its directory, for a snapshot. */
int room_open(const struct launch *l, const struct box *b, struct err *err);
