/* The JSON files of an image: docker's manifest.json, OCI's index.json and manifests, and the
 * image's own configuration. Text in, structs out; every list and string has a bound. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/hash.h"
#include "image/config.h"

struct arena;
struct err;

#define MANIFEST_BYTES_MAX (4u << 20) /* of each file */
#define MANIFEST_LAYERS_MAX 128u
#define MANIFEST_INDEX_MAX 256u /* manifests in an index */
#define MANIFEST_PATH_MAX 255u

struct manifest_blob {
	char path[MANIFEST_PATH_MAX + 1]; /* in the archive */
	bool has_digest;                  /* of the bytes there */
	uint8_t digest[HASH_LEN];
};

struct manifest {
	struct manifest_blob config;
	size_t n_layers;
	struct manifest_blob layers[MANIFEST_LAYERS_MAX]; /* from the bottom up */
};

/* All: 0, -EINVAL with what is wrong, -E2BIG, -ENOTSUP (a digest that is not SHA-256), -ENOMEM. */

/* docker's: of the one image in it. */
int manifest_read_docker(const void *json, size_t n, struct manifest *ret, struct err *err);
/* OCI's: which manifest is meant for the machine ("amd64"), or which further index. */
int manifest_read_index(const void *json, size_t n, const char *machine, struct manifest_blob *ret,
			bool *ret_is_index, struct err *err);
int manifest_read_oci(const void *json, size_t n, struct manifest *ret, struct err *err);

/* What the configuration says of the layers. */
struct manifest_rootfs {
	size_t n;
	uint8_t diff_ids[MANIFEST_LAYERS_MAX][HASH_LEN]; /* of the unpacked tars */
};
int manifest_read_config(const void *json, size_t n, const char *machine, struct arena *arena,
			 struct image_config *ret, struct manifest_rootfs *ret_rootfs,
			 struct err *err);

const char *manifest_machine(void); /* what images call this machine: "amd64" */
