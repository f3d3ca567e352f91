/* Small files that hold one secret. */
#pragma once

struct buf;

/* What is in it, without blanks at both ends; b's ceiling holds. -ENODATA: nothing; -EINVAL: no
 * regular file; -errno. */
int auth_file_read(const char *path, struct buf *b);
void auth_file_wipe(struct buf *b);
