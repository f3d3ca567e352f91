#include "mcpc/auth_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"

int auth_file_read(const char *path, struct buf *b)
{
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct str all;
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	r = fd_slurp(fd, b);
	if (r < 0)
		return r;
	all = str_trim((struct str){ buf_str(b), b->len });
	if (all.len == 0 || memchr(all.data, '\0', all.len))
		return -ENODATA;
	buf_drop(b, (size_t)(all.data - buf_str(b)));
	b->len = all.len;
	b->data[b->len] = '\0';
	return 0;
}

void auth_file_wipe(struct buf *b)
{
	if (b->data)
		explicit_bzero(b->data, b->cap);
	buf_done(b);
}
