/* What an image's layers need beyond other archives, for tar_put.c.
 *
 * Owners: the box's root has no capability to give files away. But holt-init may become any user of
 * the box, and so may a process of its own: each file is made by its owner. Directories stay open
 * to everybody until all is unpacked (nothing else runs for it then), so that every owner gets to
 * his place; notes.h closes them.
 *
 * Whiteouts: a member ".wh.NAME" takes NAME away, ".wh..wh..opq" all that is in its directory. They
 * come before what their layer brings. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct fileop;
struct notes;
struct path_spot;

/* What is made from now on belongs to this user and group; nobody's, if they are none of the box.
 * Without the right to it: nothing changes. */
void layer_become(uint32_t uid, uint32_t gid);

/* The directory's path below top, with `name` behind it ("": without); no link is in it.
 * -ENAMETOOLONG, -errno. */
int layer_path(int top, int dir, const char *name, char *dst, size_t size);
/* Everybody may put something into the directory, until the notes are applied. */
int layer_open_up(int top, int dir, struct notes *notes);
/* The directory gets another owner, by a new one that takes its place with all that is in it. */
int layer_give_dir(const struct path_spot *s, uint32_t uid, uint32_t gid);

bool layer_is_whiteout(const char *name);
int layer_white_out(struct fileop *op, const struct path_spot *s, struct err *err);
