/* Images in a directory of their own, made byte by byte: by a good tool or by an enemy. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/tar.h"

struct image_rig {
	char dir[32]; /* images_dir */
};
void image_rig_open(struct image_rig *g);
void image_rig_close(struct image_rig *g);
void image_rig_write(const struct image_rig *g, const char *name, const struct buf *b);

/* Members of a tar. */
void image_add(struct buf *b, const struct tar_member *m, const char *data, size_t n);
void image_file(struct buf *b, const char *path, const char *data);
void image_dir(struct buf *b, const char *path);
void image_link(struct buf *b, enum tar_type type, const char *path, const char *target);
/* A header as any writer could make it, with no data. */
void image_raw(struct buf *b, char type, const char *name);

void image_gzip(const struct buf *plain, struct buf *ret);
void image_digest(const struct buf *b, char ret[65]);

/* Which of the many things is wrong, or just different. */
struct image_shape {
	bool is_docker; /* `docker save` of old: manifest.json, ID/layer.tar */
	bool is_gzip;
	const char *config;   /* the "config" of the configuration; NULL: none */
	const char *machine;  /* NULL: this one */
	const char *index;    /* index.json in place of the right one; NULL */
	const char *manifest; /* the manifest in place of the right one; NULL */
	bool is_link;         /* docker: the second layer's file is a link to the first's */
	bool is_damaged;      /* one bit of the last layer */
	bool is_cut;          /* the archive has no end */
	bool lacks_diff_id;   /* of the last layer */
};
/* layers: plain tars, from the bottom up, which are freed. */
void image_save(const struct image_rig *g, const char *name, struct buf *layers, size_t n,
		const struct image_shape *shape);
