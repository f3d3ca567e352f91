/* What is written down of a box that outlives its launcher, so that the next one can take it over.
 * Sans-I/O: state.h has the files.
 *
 * A record is a frame of spec/wire.h. It is read back as if a stranger had written it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "launch/cgroup.h"
#include "spec/launch.h"

#define RECORD_MAX 2048 /* bytes; none is longer */
#define BOOT_ID_LEN 36  /* "8-4-4-4-12", as the kernel writes it */

struct record {
	const char *id, *tag, *boot_id; /* borrowed */
	uint32_t pid;
	uint64_t start_ticks; /* process.h */
	struct cgroup_mark group;
	uint32_t uid_base; /* 0: rootless */
	uint8_t root, level, net;
	uint32_t template_flags; /* enum template_flag */
	uint32_t box_flags;      /* enum launch_box_flag */
	struct limits limits;
	uint8_t held;       /* stands still for a snapshot */
	uint8_t n_template; /* of the layers: the template's */
	struct layer_list layers;
	uint32_t n_volumes;
	struct launch_volume volumes[VOLUMES_MAX];
};

/* Bytes written, or -E2BIG. */
long record_put(void *data, size_t cap, const struct record *rec);
/* Strings are borrowed from data. -EPROTO for what is not a record, -EPROTONOSUPPORT for one of
 * another version, -EINVAL for a value that cannot be. */
int record_get(const void *data, size_t n, struct record *ret);
