/* Layers and volumes, as the client asks for them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/map.h"
#include "launch/copy.h"
#include "launch/launch.h"
#include "launch/server.h"

int server_on_snapshot(struct launch *l, struct request *q, struct err *err)
{
	struct snapshot_spec spec;
	struct box *b;
	int r = launch_get_snapshot(q->r, &spec);

	if (r < 0)
		return r;
	b = server_claimed(l, spec.box_id, err);
	return b ? snapshot_start(l, b, &spec, q->id, err) : -ENOENT;
}

/* The one id that a request has; NULL and the error. */
static const char *read_id(struct request *q, struct err *err)
{
	const char *id = rd_str(q->r);

	if (rd_end(q->r) == 0 && id_is_valid(id))
		return id;
	(void)err_set(err, EINVAL, "'%.60s' is not an id", id);
	return NULL;
}

int server_on_layer_drop(struct launch *l, struct request *q, struct err *err)
{
	const char *id = read_id(q, err);
	struct layer *layer = id ? disk_find(l, id) : NULL;
	int r;

	if (!id)
		return -EINVAL;
	if (!layer)
		return err_set(err, ENOENT, "no layer '%s'", id);
	r = disk_drop_layer(l, layer, err);
	if (r == 0)
		server_ok(l, q->id);
	return r;
}

int server_on_layers(struct launch *l, struct request *q, struct err *err)
{
	(void)err;
	if (rd_end(q->r) < 0)
		return -EPROTO;
	if (l->disk.by_id)
		MAP_FOREACH (l->disk.by_id, it) {
			const struct layer *layer = it.value;
			struct layer_info info = { .id = layer->id,
						   .bytes = layer->bytes,
						   .inodes = layer->inodes,
						   .skipped = layer->skipped,
						   .whole = layer->whole,
						   .used = layer->users > 0 };
			char frame[256];

			server_send(l, frame, launch_put_layer(frame, sizeof(frame), q->id, &info));
		}
	server_ok(l, q->id);
	return 0;
}

int server_on_volume_make(struct launch *l, struct request *q, struct err *err)
{
	struct volume_spec spec;
	int r = launch_get_volume(q->r, &spec);

	return r < 0 ? r : volume_make(l, &spec, q->id, err);
}

int server_on_volume_drop(struct launch *l, struct request *q, struct err *err)
{
	const char *id = read_id(q, err);

	return id ? volume_drop(l, id, q->id, err) : -EINVAL;
}

struct listing {
	struct launch *l;
	uint32_t request;
};

static int list_volume(void *arg, int dir, const char *name)
{
	const struct listing *in = arg;
	struct volume_info info = { .id = name };
	struct stat st;
	char frame[256];

	if (!id_is_valid(name) || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	info.box_id = volume_holder(in->l, name);
	info.bytes = (uint64_t)st.st_size;
	info.used = (uint64_t)st.st_blocks * 512;
	server_send(in->l, frame, launch_put_volume_info(frame, sizeof(frame), in->request, &info));
	return 0;
}

int server_on_volumes(struct launch *l, struct request *q, struct err *err)
{
	struct listing in = { l, q->id };
	int r = rd_end(q->r);

	if (r == 0 && l->disk.volumes >= 0)
		r = copy_each_name(l->disk.volumes, list_volume, &in, err);
	if (r == 0)
		server_ok(l, q->id);
	return r;
}
