/* What outlives boxes: layers, which boxes begin with, and volumes. Both lie in the state directory
 * under their ids:
 *
 *   layers/<id>/<place>   what a snapshot found in one writable place of a box
 *   layers/<id>/info      its size, a frame of spec/launch.h
 *   volumes/<id>          an ext4 image
 *   .../.new.<id>         half-made: swept at the next start
 *   .../.old.<id>         dropped: a job removes it
 *
 * On disk their files belong to ids that are nobody's (LAYER_BASE); the mount that a box gets of
 * them maps these to its own range. Without privilege there is one id, and nothing to map. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"
#include "launch/ids.h"
#include "spec/launch.h"

struct box;
struct cell;
struct err;
struct launch;
struct map;
struct template;

#define LAYER_BASE (IDS_FIRST + IDS_CHUNKS * IDS_CHUNK * 4096u) /* behind all ids of boxes */
#define DISK_NEW ".new."
#define DISK_OLD ".old."
#define DISK_NAME_SIZE (sizeof(DISK_NEW) + ID_LEN)

struct layer {
	char id[ID_LEN + 1];
	uint64_t bytes;
	uint32_t inodes, skipped;
	bool whole;
	int dir;        /* borrowed: where it lies */
	unsigned users; /* boxes and templates */
	bool is_doomed; /* dropped: goes with the last box that waited in vain */
};

struct disk {
	int layers, volumes; /* owned: directories, by the launcher's view of mounts; -1: none */
	struct map *by_id;   /* owned: id to owned struct layer */
	bool sweeping;
};

/* What of it a box has. */
struct disk_use {
	uint32_t n_layers, n_volumes;
	uint32_t n_template; /* of the layers, the lowest: they come with the template */
	char layers[LAYERS_MAX][ID_LEN + 1]; /* bottom first */
	struct disk_volume {
		char id[ID_LEN + 1], path[VOLUME_PATH_MAX + 1];
		bool read_only;
		int fd; /* owned: the mount, until the box has it; -1 */
	} volumes[VOLUMES_MAX];
};

/* In the launcher's own mounts. Without a state directory there is no place for any, and it stays
 * closed. Counts what adopted boxes use. */
int disk_open(struct launch *l, struct err *err);
void disk_close(struct launch *l);
/* 0, or -EOPNOTSUPP and a sentence. */
int disk_check(const struct launch *l, struct err *err);
struct layer *disk_find(const struct launch *l, const char *id); /* not one that is doomed */
/* Where new layers go: into the image if boxes write there (room.h), so that files can be shared.
 */
int disk_layers(const struct launch *l);
/* -EBUSY while a template or a claimed box has it. */
int disk_drop_layer(struct launch *l, struct layer *layer, struct err *err);
/* A layer that is now whole. */
int disk_add(struct launch *l, const struct layer *layer, struct err *err);
/* A job removes what was dropped. */
void disk_sweep(struct launch *l);
/* dir/<id> becomes what disk_sweep() removes; `half`: dir/.new.<id>. */
int disk_discard(int dir, const char *id, bool half);
/* At the start: discards what was half-made when an earlier launcher ended. */
int disk_retire(struct launch *l, struct err *err);
/* -ENOENT when a layer is not there, -EINVAL when there are too many; counts each as used. */
int disk_use_layers(struct launch *l, struct disk_use *u, const struct layer_list *layers,
		    struct err *err);
/* The same, of the template's; before others. */
int disk_use_template(struct launch *l, struct disk_use *u, const struct template *t,
		      struct err *err);
/* The box has what it is given, or else what its template has. */
int disk_take(struct launch *l, struct box *b, struct disk_use *given, struct err *err);
/* The box has mounted its volumes: they end with it. Takes NULL. */
void disk_hand_over(struct disk_use *u);
/* Gives back what it uses, and frees. Takes NULL. */
struct disk_use *disk_use_free(struct launch *l, struct disk_use *u);
/* A detached mount of a layer, for a box in this cell: its descriptor. */
int disk_mount_layer(struct launch *l, const char *id, struct cell *cell, struct err *err);
/* The same of a volume that is mounted already: only its ids. */
int disk_map_volume(struct launch *l, const struct disk_volume *v, struct cell *cell,
		    struct err *err);

/* disk_file.c: names, and the info file of a layer. */
void disk_name(char dst[DISK_NAME_SIZE], const char *prefix, const char *id);
int disk_write_info(int dir, const struct layer *layer, struct err *err);
int disk_read_info(int layers, const char *id, struct layer *ret);
