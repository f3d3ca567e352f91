#include "launch/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "launch/copy.h"
#include "launch/launch.h"
#include "launch/mounts.h"

#define LAYERS_IN_ALL 65536
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Made in the state directory, then found again in our own copy of the mounts. */
static int open_place(const struct launch *l, const char *name, struct err *err)
{
	_close_ int fd = -1;

	if (mkdirat(l->state.dir, name, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "directory of %s", name);
	fd = openat(l->state.dir, name, DIR_FLAGS);
	return fd < 0 ? err_sys(err, errno, "directory of %s", name) : mounts_reopen(fd, err);
}

static int load(void *arg, int dir, const char *name)
{
	struct launch *l = arg;
	struct layer layer;

	if (!id_is_valid(name))
		return 0;
	if (disk_read_info(dir, name, &layer) < 0) {
		log_warn("launch", "layer %s cannot be read and is dropped", name);
		(void)disk_discard(dir, name, false);
		return 0;
	}
	layer.dir = dir;
	return disk_add(l, &layer, NULL);
}

static struct layer *find_any(const struct launch *l, const char *id)
{
	return l->disk.by_id ? map_get(l->disk.by_id, id, ID_LEN) : NULL;
}

static int remove_layer(struct launch *l, struct layer *layer, struct err *err)
{
	int r = disk_discard(layer->dir, layer->id, false);

	if (r < 0)
		return err_sys(err, r, "layer %s", layer->id);
	(void)map_remove(l->disk.by_id, layer->id, ID_LEN);
	free(layer);
	disk_sweep(l);
	return 0;
}

static void use_by_id(struct launch *l, const char *id, int by)
{
	struct layer *layer = find_any(l, id);

	if (!layer)
		return;
	layer->users += (unsigned)by;
	if (layer->users == 0 && layer->is_doomed && !l->closing)
		(void)remove_layer(l, layer, NULL); /* else the next start finds it */
}

static void count_adopted(struct launch *l)
{
	MAP_FOREACH (l->by_id, it) {
		const struct box *b = it.value;

		for (uint32_t i = 0; b->disk && i < b->disk->n_layers; i++)
			use_by_id(l, b->disk->layers[i], 1);
	}
}

int disk_open(struct launch *l, struct err *err)
{
	int r;

	if (!state_is_open(&l->state))
		return 0;
	l->disk.by_id = map_create(LAYERS_IN_ALL);
	if (!l->disk.by_id)
		return err_sys(err, ENOMEM, "layers");
	r = l->disk.layers = open_place(l, "layers", err);
	if (r >= 0)
		r = l->disk.volumes = open_place(l, "volumes", err);
	if (r >= 0)
		r = disk_retire(l, err);
	if (r >= 0)
		r = copy_each_name(l->disk.layers, load, l, err);
	if (r >= 0 && l->rooms.layers >= 0)
		r = copy_each_name(l->rooms.layers, load, l, err);
	if (r < 0)
		return r;
	count_adopted(l);
	disk_sweep(l);
	return 0;
}

void disk_close(struct launch *l)
{
	if (l->disk.by_id)
		MAP_FOREACH (l->disk.by_id, it)
			free(it.value);
	l->disk.by_id = map_free(l->disk.by_id);
	l->disk.layers = fd_close(l->disk.layers);
	l->disk.volumes = fd_close(l->disk.volumes);
}

int disk_check(const struct launch *l, struct err *err)
{
	if (l->disk.layers >= 0)
		return 0;
	return err_set(err, EOPNOTSUPP,
		       "layers and volumes need a launcher with a state directory");
}

int disk_layers(const struct launch *l)
{
	return l->rooms.are_used ? l->rooms.layers : l->disk.layers;
}

struct layer *disk_find(const struct launch *l, const char *id)
{
	struct layer *layer = find_any(l, id);

	return layer && !layer->is_doomed ? layer : NULL;
}

static bool has_layer(const struct disk_use *u, const char *id)
{
	for (uint32_t i = 0; u && i < u->n_layers; i++)
		if (strcmp(u->layers[i], id) == 0)
			return true;
	return false;
}

/* By somebody who is to go on with it. Boxes that wait, or are on their way, go with their
 * template. */
static bool is_needed(const struct launch *l, const char *id)
{
	for (unsigned i = 1; i <= TEMPLATE_MAX; i++)
		if (has_layer(l->templates[i].disk, id))
			return true;
	MAP_FOREACH (l->by_id, it) {
		const struct box *b = it.value;

		if ((b->state == BOX_CLAIMED || b->claim_id) && has_layer(b->disk, id))
			return true;
	}
	return false;
}

int disk_drop_layer(struct launch *l, struct layer *layer, struct err *err)
{
	if (layer->users == 0)
		return remove_layer(l, layer, err);
	if (is_needed(l, layer->id))
		return err_set(err, EBUSY, "layer %s is in use", layer->id);
	layer->is_doomed = true;
	return 0;
}

int disk_add(struct launch *l, const struct layer *layer, struct err *err)
{
	struct layer *mine = malloc(sizeof(*mine));

	if (!mine)
		return err_sys(err, ENOMEM, "layer");
	*mine = *layer;
	mine->users = 0;
	if (map_put(l->disk.by_id, mine->id, ID_LEN, mine, NULL) == 0)
		return 0;
	free(mine);
	return err_set(err, ENOSPC, "no more than %d layers", LAYERS_IN_ALL);
}

int disk_use_layers(struct launch *l, struct disk_use *u, const struct layer_list *layers,
		    struct err *err)
{
	for (uint32_t i = 0; i < layers->count; i++)
		if (!disk_find(l, layers->ids[i]))
			return err_set(err, ENOENT, "no layer '%s'", layers->ids[i]);
	if (u->n_layers + layers->count > LAYERS_MAX)
		return err_set(err, EINVAL,
			       "%u layers with the template's, at most %d are possible",
			       u->n_layers + layers->count, LAYERS_MAX);
	for (uint32_t i = 0; i < layers->count; i++) {
		(void)str_copy(u->layers[u->n_layers++], ID_LEN + 1, layers->ids[i]);
		use_by_id(l, layers->ids[i], 1);
	}
	return 0;
}

static struct layer_list list_of(const struct disk_use *u)
{
	struct layer_list list = { .count = u->n_layers };

	for (uint32_t i = 0; i < u->n_layers; i++)
		list.ids[i] = u->layers[i];
	return list;
}

int disk_use_template(struct launch *l, struct disk_use *u, const struct template *t,
		      struct err *err)
{
	struct layer_list list = { .count = 0 };
	int r;

	if (t->disk)
		list = list_of(t->disk);
	r = disk_use_layers(l, u, &list, err);
	u->n_template = u->n_layers;
	return r;
}

int disk_take(struct launch *l, struct box *b, struct disk_use *given, struct err *err)
{
	b->disk = given;
	if (given || !b->tmpl->disk)
		return 0;
	b->disk = calloc(1, sizeof(*b->disk));
	if (!b->disk)
		return err_sys(err, ENOMEM, "layers of a box");
	return disk_use_template(l, b->disk, b->tmpl, err);
}

void disk_hand_over(struct disk_use *u)
{
	for (uint32_t i = 0; u && i < u->n_volumes; i++)
		u->volumes[i].fd = fd_close(u->volumes[i].fd);
}

struct disk_use *disk_use_free(struct launch *l, struct disk_use *u)
{
	if (!u)
		return NULL;
	for (uint32_t i = 0; i < u->n_layers; i++)
		use_by_id(l, u->layers[i], -1);
	for (uint32_t i = 0; i < u->n_volumes; i++)
		(void)fd_close(u->volumes[i].fd);
	free(u);
	return NULL;
}

int disk_mount_layer(struct launch *l, const char *id, struct cell *cell, struct err *err)
{
	const struct layer *layer = find_any(l, id);
	_close_ int tree = -1;
	int r = layer ? cell_layer_ns(l, cell, err) : err_set(err, ENOENT, "no layer '%s'", id);

	if (r < 0)
		return r;
	/* A mount can be copied only by who is where it is. */
	if (setns(l->view_ns, CLONE_NEWNS) < 0)
		return err_sys(err, errno, "enter the machine's mounts");
	tree = mounts_clone(layer->dir, id, 0, err);
	if (tree < 0)
		return tree;
	r = mounts_map(tree, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
		       cell->layer_ns, err);
	return r < 0 ? r : TAKE_FD(tree);
}

int disk_map_volume(struct launch *l, const struct disk_volume *v, struct cell *cell,
		    struct err *err)
{
	int r = cell_layer_ns(l, cell, err);

	return r < 0 ? r
		     : mounts_map(v->fd,
				  MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					  (v->read_only ? MOUNT_ATTR_RDONLY : 0),
				  cell->layer_ns, err);
}
