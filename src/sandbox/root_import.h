/* A root of one's own for templates: a directory, a tar or an OCI archive below the operator's
 * `images_dir` becomes a layer that stands alone (ROOT_LAYERS). The archive is a stranger's: it is
 * read with bounds, its files are unpacked inside a box, and what the box then has is the layer.
 *
 * Everything is done in the background. Nothing is left of one that fails, is canceled or is cut
 * off by the end of the daemon: the box ends, the layer is dropped. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "sandbox/layers.h"

struct image_config;
struct root_import; /* opaque */
struct sandboxes;

enum root_source {
	ROOT_OF_DIR, /* a directory: all that is below it */
	ROOT_OF_TAR, /* plain or gzip */
	ROOT_OF_OCI, /* `docker save`, or an OCI image layout in a tar */
	ROOT_SOURCE_COUNT
};
const char *root_source_name(enum root_source kind);           /* "dir", "tar", "oci"; NULL */
int root_source_from(const char *name, enum root_source *ret); /* -EINVAL */

#define ROOT_PATH_MAX 1023

struct root_limits {
	uint64_t bytes;   /* of all files together, unpacked; 0: the setting `image_max` */
	uint32_t entries; /* files, directories and links; 0: 200,000 */
	uint64_t time_ms; /* 0: 30 minutes */
};

struct root_wish {          /* borrowed for the call */
	const char *owner;  /* whose sandbox unpacks it, on whose quota */
	const char *key_id; /* whose key asked; NULL: none's */
	enum root_source kind;
	const char *path; /* below images_dir, relative; no link on the way is followed */
	struct root_limits limits;
};

struct root_events { /* from the loop, never from inside root_import() */
	/* For people, a line without its end; may be NULL. It must not cancel. */
	void (*progress)(void *user, const char *line);
	/* The last call. err NULL: chain is one layer, held for the call: who keeps it holds it.
	 * config: what an OCI image says about itself, borrowed for the call; NULL: it is none.
	 * Errors: ENOENT (no such file), EINVAL (no good archive, or no images_dir), EFBIG (more
	 * than the limits), ENOTSUP (zstd), ETIMEDOUT, ECANCELED never; a sandbox's and a
	 * snapshot's. */
	void (*done)(void *user, const struct layers *chain, const struct image_config *config,
		     const struct err *err);
};

/* EINVAL (kind, path), EAGAIN (too many at once), ENOMEM. Then *ret is good until done(). */
int root_import(struct sandboxes *all, const struct root_wish *wish,
		const struct root_events *events, void *user, struct root_import **ret,
		struct err *err);
/* In done(): of the layer. */
uint64_t root_import_bytes(const struct root_import *i);
/* No event comes any more. Takes NULL. */
void root_import_cancel(struct root_import *i);
