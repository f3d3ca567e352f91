/* Names in the directories of layers and volumes, and what is written down of a layer. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "launch/disk.h"

#define INFO "info"
#define INFO_MAX 256
#define FILE_FLAGS (O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)

void disk_name(char dst[DISK_NAME_SIZE], const char *prefix, const char *id)
{
	(void)str_format(dst, DISK_NAME_SIZE, "%s%s", prefix, id); /* fits: ids are checked */
}

int disk_write_info(int dir, const struct layer *layer, struct err *err)
{
	_close_ int fd = openat(dir, INFO, O_WRONLY | O_CREAT | O_EXCL | FILE_FLAGS, 0600);
	struct layer_info info = { .id = layer->id,
				   .bytes = layer->bytes,
				   .inodes = layer->inodes,
				   .skipped = layer->skipped,
				   .whole = layer->whole };
	char data[INFO_MAX];
	long n = launch_put_layer(data, sizeof(data), 0, &info);
	int r = fd < 0 ? -errno : n < 0 ? (int)n : fd_write_all(fd, data, (size_t)n);

	return r < 0 ? err_sys(err, r, "size of a layer") : 0;
}

int disk_read_info(int layers, const char *id, struct layer *ret)
{
	char path[ID_LEN + sizeof("/" INFO)], data[INFO_MAX];
	struct layer_info info;
	struct wire_head head;
	struct rd payload;
	_close_ int fd = -1;
	ssize_t n;
	int r = str_format(path, sizeof(path), "%s/" INFO, id);

	if (r < 0)
		return r;
	fd = openat(layers, path, O_RDONLY | FILE_FLAGS);
	n = fd < 0 ? -errno : fd_read_all(fd, data, sizeof(data));
	r = n < 0 ? (int)n : wire_open(data, (size_t)n, &head, &payload);
	if (r == 0 && head.type != L_LAYER)
		r = -EPROTO;
	if (r == 0)
		r = launch_get_layer(&payload, &info);
	if (r == 0 && strcmp(info.id, id) != 0)
		r = -EINVAL;
	if (r < 0)
		return r;
	*ret = (struct layer){ .bytes = info.bytes,
			       .inodes = info.inodes,
			       .skipped = info.skipped,
			       .whole = info.whole };
	return str_copy(ret->id, sizeof(ret->id), id);
}
