/* What the daemon and holt-launch say to each other, and the launch spec itself. The launcher takes
 * numbers and flags from here, never a path: a directory comes as a descriptor. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"
#include "spec/wire.h"

struct err;

enum launch_type {
	/* client to launcher; the answer carries the same id */
	L_HELLO = 1,     /* -> L_INFO */
	L_TEMPLATE,      /* struct template_spec (+ a directory descriptor) -> L_OK */
	L_POOL,          /* struct pool_spec -> L_OK */
	L_CLAIM,         /* struct launch_spec -> L_BOX + guest socket, pidfd */
	L_DESTROY,       /* str box id -> L_GONE when nothing of it is left */
	L_USAGE,         /* str box id -> L_USED */
	L_FREEZE,        /* str box id, u8 on -> L_OK */
	L_LIMITS,        /* str box id, struct limits -> L_OK */
	L_POOL_STATE,    /* u32 template -> L_POOL_IS */
	L_LIST,          /* -> one L_BOX_IS for each claimed box, then L_OK */
	L_ATTACH,        /* str box id -> L_BOX + a new connection to the box, pidfd */
	L_TEMPLATE_DROP, /* u32 template -> L_OK; boxes of it that are claimed go on */
	L_SNAPSHOT,      /* struct snapshot_spec -> L_LAYER, when the layer is whole */
	L_LAYER_DROP,    /* str layer id -> L_OK; refused while a box or a template needs it */
	L_LAYERS,        /* -> one L_LAYER for each, then L_OK */
	L_VOLUME_MAKE,   /* struct volume_spec -> L_OK */
	L_VOLUME_DROP,   /* str volume id -> L_OK; refused while a box has it */
	L_VOLUMES,       /* -> one L_VOLUME_IS for each, then L_OK */
	/* launcher to client */
	L_INFO = 64, /* struct launch_info */
	L_OK,
	L_BOX,       /* struct launch_box */
	L_GONE,      /* str box id, struct box_usage */
	L_USED,      /* struct box_usage */
	L_POOL_IS,   /* struct pool_state */
	L_DIED,      /* unasked: str box id, u32 wait status, struct box_usage */
	L_FAILED,    /* u32 errno, str text */
	L_BOX_IS,    /* struct launch_box_info */
	L_LAYER,     /* struct layer_info */
	L_VOLUME_IS, /* struct volume_info */
	L_BUILDS,    /* unasked, when it has changed: struct build_state */
};

/* The wait status in L_DIED of a box that was not the launcher's child: nobody can know it. */
#define DIED_UNKNOWN UINT32_MAX

/* What a box may use. 0 in a request means the template's default, never "no limit". */
struct limits {
	uint64_t memory_bytes;
	uint64_t disk_bytes; /* everything writable together; in memory, so part of memory_bytes */
	uint32_t inodes;
	uint32_t cpu_milli;
	uint64_t cpu_mask; /* pin to these CPUs (bit n is CPU n) */
	uint32_t pids;
	uint32_t nofile;
};

/* Bounds of each field: spec_check_limits() refuses what is outside. */
#define LIMIT_MEMORY_MIN (8ull << 20)
#define LIMIT_MEMORY_MAX (1ull << 40)
#define LIMIT_DISK_MIN (1ull << 20)
#define LIMIT_CPU_MIN 10u
#define LIMIT_CPU_MAX 1024000u
#define LIMIT_PIDS_MIN 4u
#define LIMIT_PIDS_MAX 32768u
#define LIMIT_NOFILE_MIN 16u
#define LIMIT_NOFILE_MAX 65536u
#define LIMIT_INODES_MIN 64u
#define LIMIT_INODES_MAX (1u << 24)

#define LIMIT_MEMORY_DEFAULT (256ull << 20)
#define LIMIT_CPU_DEFAULT 500u
#define LIMIT_PIDS_DEFAULT 64u
#define LIMIT_NOFILE_DEFAULT 1024u
#define LIMIT_INODES_DEFAULT 65536u
#define LIMIT_DISK_DEFAULT (512ull << 20) /* but no more than half of the memory */

/* ROOT_LAYERS: nothing of the machine; the whole root is in the template's layers. */
enum template_root { ROOT_HOST, ROOT_DIR, ROOT_LAYERS, ROOT_KIND_COUNT };
enum box_level { LEVEL_STANDARD, LEVEL_HIGH, LEVEL_COUNT };
enum box_net { NET_NONE, NET_HOST, NET_COUNT };
enum template_flag {
	TEMPLATE_WRITABLE_ROOT = 1 << 0, /* copy-on-write root instead of a read-only one */
	TEMPLATE_WARM_PYTHON = 1 << 1,
	TEMPLATE_WARM_NODE = 1 << 2,
	/* Two parts of LEVEL_HIGH that need no other kernel. */
	TEMPLATE_STRICT_CALLS = 1 << 3, /* no Internet sockets, no memfds */
	TEMPLATE_STRICT_PROC = 1 << 4,  /* /proc shows processes and nothing else */
	/* What is preloaded is the template's own: a box that no template interpreter has made
	 * imports it by itself, and one that cannot is of no use to who asked for it. */
	TEMPLATE_OWN_PRELOAD = 1 << 5,
	/* The box's root has power over all that is the box's, and its user may become root: see
	 * guest/sudo.h. */
	TEMPLATE_SUDO = 1 << 6,
};

/* Ids of layers, bottom first. A box sees what they hold below what it writes itself. */
#define LAYERS_MAX 16 /* of a box, its template's included */
struct layer_list {
	uint32_t count;
	const char *ids[LAYERS_MAX]; /* borrowed */
};

/* Everything that a finished, unclaimed box already embodies. */
struct template_spec {
	uint32_t id; /* 1..TEMPLATE_MAX, chosen by the client; a second use replaces */
	uint8_t root, level, net;
	uint32_t flags;
	struct limits limits;
	const char *preload;      /* modules a warm Python has imported: "numpy,json" */
	const char *preload_node; /* the same for Node: "lodash,@scope/name"; NULL or "": none */
	/* Of a writable root: the only directories that can be written to, "/opt/a:/var/b"; NULL or
	 * "": all of it. */
	const char *writable;
	struct layer_list layers;
};
#define TEMPLATE_MAX 256
#define TEMPLATE_WRITABLE_MAX 1024 /* bytes */
#define TEMPLATE_PRELOAD_MAX 1024  /* bytes, of each list */

struct pool_spec {
	uint32_t template_id;
	uint32_t min, max;
	uint32_t quiet_ms;    /* how long demand must have fallen before the pool shrinks */
	uint32_t utilization; /* per cent of those waiting that a peak is to take; 0: the usual */
};

enum launch_flag {
	LAUNCH_COLD = 1 << 0, /* build a new box even if one waits (benchmarks, tests) */
};

/* A volume in a box: a directory below /workspace, or /mnt/NAME. */
struct launch_volume {
	const char *id, *path; /* borrowed */
	uint8_t read_only;
};
#define VOLUMES_MAX 4 /* of a box */
#define VOLUME_PATH_MAX 128

struct launch_spec {
	uint32_t template_id;
	uint32_t flags;
	struct limits limits;
	const char *tag;          /* the client's own name of the box, kept with it; NULL is "" */
	struct layer_list layers; /* on top of the template's; such a box does not wait in a pool */
	uint32_t n_volumes;
	struct launch_volume volumes[VOLUMES_MAX];
};
#define TAG_MAX 32 /* bytes, of [a-z0-9-] */

/* Steps of a launch, in order; each has its time in the answer. */
enum launch_step {
	STEP_STOCK,  /* network namespace and cgroup, from stock or new */
	STEP_CLONE,  /* process with its namespaces */
	STEP_READY,  /* mounts, ids, confinement, holt-init up */
	STEP_LIMITS, /* limits that differ from the template's */
	STEP_COUNT
};

enum launch_box_flag { BOX_WARM = 1 << 0, BOX_WARM_PYTHON = 1 << 1, BOX_WARM_NODE = 1 << 2 };

struct launch_box {
	const char *id;
	uint32_t flags;
	uint32_t pid;         /* of holt-init, outside */
	struct limits limits; /* in force */
	uint64_t step_ns[STEP_COUNT];
	const char *why; /* what it should have preloaded is not there; NULL or "": all is */
};

/* A claimed box, as the launcher knows it. */
struct launch_box_info {
	const char *id, *tag;
	uint32_t flags; /* enum launch_box_flag */
	uint32_t pid;   /* of holt-init, outside */
	struct limits limits;
	uint8_t frozen;
	uint8_t adopted; /* claimed from an earlier launcher, which is gone */
};

/* A snapshot makes a layer of what a box has written, while the box stands still. */
enum snapshot_flag {
	SNAPSHOT_ROOT = 1 << 0, /* the writable root's changes, too, not /workspace and home only */
	/* /workspace becomes the root of the layer, and nothing else is in it: for ROOT_LAYERS. */
	SNAPSHOT_AS_ROOT = 1 << 1,
	SNAPSHOT_WHOLE = 1 << 2,    /* with all that the box's own layers hold: it stands alone */
	SNAPSHOT_VOLATILE = 1 << 3, /* answered before it would outlive a power cut: for forks */
};

struct snapshot_spec {
	const char *box_id, *layer_id; /* the second is chosen by the client */
	uint32_t flags;
};

/* A box from this snapshot has the layers of the box that it was taken of and this one on top; but
 * this one alone when it is whole. */
struct layer_info {
	const char *id;
	uint64_t bytes; /* on disk */
	uint32_t inodes;
	uint32_t skipped; /* files that a layer cannot hold (sockets, devices), and attributes */
	uint8_t whole;    /* as asked for, or because the chain would have become too long */
	uint8_t used;     /* a box or a template has it mounted */
};

struct volume_spec {
	const char *id; /* chosen by the client */
	uint64_t bytes; /* of its file system; not taken from the disk before they are written */
};
#define VOLUME_BYTES_MIN (4ull << 20)
#define VOLUME_BYTES_MAX (1ull << 40)

struct volume_info {
	const char *id, *box_id; /* who has it; "": nobody */
	uint64_t bytes;
	uint64_t used; /* taken from the disk */
};

struct box_usage {
	uint64_t memory_bytes, memory_peak_bytes;
	uint64_t cpu_us;
	uint32_t oom_kills;
	uint32_t pids;
};

/* Why a claim was not served by a box that waits. */
enum pool_miss {
	MISS_EMPTY,     /* none waited */
	MISS_LIMITS,    /* those that waited cannot be given the limits that were asked for */
	MISS_FAILED,    /* one could, and the kernel refused */
	MISS_OWN_FILES, /* a snapshot's files or volumes, which nothing waits with: not a miss */
	MISS_COUNT
};

struct pool_state {
	uint32_t ready, building, claimed, target;
	uint64_t hits, misses;
	uint64_t make_us;  /* to make a box, lately; 0: none was made */
	uint64_t given_up; /* boxes that were not built in time, so far */
	uint32_t stuck;    /* processes of such boxes that have not ended yet */
	/* Why no box can be built at present, or what they should have preloaded is not there; "":
	 * all is well. */
	char why[WHY_MAX + 1];
	uint64_t missed[MISS_COUNT]; /* by reason */
};

/* How the building of boxes goes, of all templates together. */
struct build_state {
	uint32_t late;         /* given up since one was last finished; 0: boxes can be built */
	uint32_t stuck;        /* processes of boxes that were given up and have not ended */
	uint64_t given_up;     /* boxes that were not built in time, so far */
	uint32_t ends_late;    /* boxes that were told to end and take too long to */
	uint32_t uncounted;    /* times in a row that file locks were not counted; 0: they are */
	char why[WHY_MAX + 1]; /* of the last one, for a person */
};

enum launch_cgroup { CGROUP_NONE, CGROUP_V1, CGROUP_V2 };

struct launch_info {
	uint32_t version;
	uint8_t rootless;
	uint8_t cgroup; /* enum launch_cgroup */
	uint32_t landlock_abi;
	uint32_t cgroup_missing; /* bits: enum cgroup_controller that is not enforced */
	uint8_t persistent;      /* claimed boxes outlive the launcher and its client */
	char cgroup_why[240];    /* what kept it from more, for a person; "": nothing did */
};
enum cgroup_controller {
	CONTROLLER_MEMORY = 1 << 0,
	CONTROLLER_PIDS = 1 << 1,
	CONTROLLER_CPU = 1 << 2,
	CONTROLLER_FREEZER = 1 << 3,
	CONTROLLER_CPUSET = 1 << 4,
};

/* The most open files that a process of a box may have, and what it has unless told otherwise.
 * Without privilege all boxes and the launcher are one user, and descriptors that lie in sockets
 * are counted against him: a box gets no more than half of what he may open. */
uint32_t spec_nofile_max(bool is_rootless);
uint32_t spec_nofile_default(bool is_rootless);

struct machine;
/* The most that one box can have of this machine: what the launcher refuses beyond. */
void spec_limits_of_machine(const struct machine *m, bool is_rootless, struct limits *ret);
/* -ERANGE, with the name first, the value and the most, for what is above `max`. A 0 in l asks for
 * nothing; a 0 in max allows what the bounds above allow. */
int spec_check_max(const struct limits *l, const struct limits *max, struct err *err);
void spec_clamp_limits(struct limits *l, const struct limits *max);

/* Fills every 0 with `base` (NULL: the built-in defaults), then checks the bounds. */
int spec_fill_limits(struct limits *l, const struct limits *base, struct err *err);
int spec_check_template(const struct template_spec *t, struct err *err);
/* The names of its modules alone. */
int spec_check_preload(const struct template_spec *t, struct err *err);
/* "/opt/a:/var/b": absolute, names of [A-Za-z0-9._-], no "." nor "..", none of the kernel's. */
bool spec_writable_is_valid(const char *paths);
bool spec_tag_is_valid(const char *tag);
int spec_check_layers(const struct layer_list *l, struct err *err);
/* "/workspace/a/b" or "/mnt/NAME": names of [A-Za-z0-9._-], no "." nor "..". */
bool spec_volume_path_is_valid(const char *path);
int spec_check_launch(const struct launch_spec *s, struct err *err);
int spec_check_snapshot(const struct snapshot_spec *s, struct err *err);
int spec_check_volume(const struct volume_spec *v, struct err *err);

/* As in spec/guest.h: put writes a frame, get reads a payload. */
long launch_put_template(void *data, size_t cap, uint32_t id, const struct template_spec *t);
int launch_get_template(struct rd *r, struct template_spec *ret);
long launch_put_pool(void *data, size_t cap, uint32_t id, const struct pool_spec *p);
int launch_get_pool(struct rd *r, struct pool_spec *ret);
long launch_put_claim(void *data, size_t cap, uint32_t id, const struct launch_spec *s);
int launch_get_claim(struct rd *r, struct launch_spec *ret);
long launch_put_box(void *data, size_t cap, uint32_t id, const struct launch_box *b);
int launch_get_box(struct rd *r, struct launch_box *ret);
long launch_put_box_info(void *data, size_t cap, uint32_t id, const struct launch_box_info *b);
int launch_get_box_info(struct rd *r, struct launch_box_info *ret);
long launch_put_info(void *data, size_t cap, uint32_t id, const struct launch_info *i);
int launch_get_info(struct rd *r, struct launch_info *ret);
long launch_put_pool_state(void *data, size_t cap, uint32_t id, const struct pool_state *s);
int launch_get_pool_state(struct rd *r, struct pool_state *ret);
long launch_put_builds(void *data, size_t cap, uint32_t id, const struct build_state *s);
int launch_get_builds(struct rd *r, struct build_state *ret);
long launch_put_snapshot(void *data, size_t cap, uint32_t id, const struct snapshot_spec *s);
int launch_get_snapshot(struct rd *r, struct snapshot_spec *ret);
long launch_put_layer(void *data, size_t cap, uint32_t id, const struct layer_info *l);
int launch_get_layer(struct rd *r, struct layer_info *ret);
long launch_put_volume(void *data, size_t cap, uint32_t id, const struct volume_spec *v);
int launch_get_volume(struct rd *r, struct volume_spec *ret);
long launch_put_volume_info(void *data, size_t cap, uint32_t id, const struct volume_info *v);
int launch_get_volume_info(struct rd *r, struct volume_info *ret);
/* Parts of other payloads. */
void launch_wr_layers(struct wr *w, const struct layer_list *l);
int launch_rd_layers(struct rd *r, struct layer_list *ret); /* -EINVAL */
void launch_wr_volumes(struct wr *w, const struct launch_volume *v, uint32_t count);
int launch_rd_volumes(struct rd *r, struct launch_volume *ret, uint32_t *ret_count);
void launch_wr_usage(struct wr *w, const struct box_usage *u);
void launch_rd_usage(struct rd *r, struct box_usage *ret);
void launch_wr_limits(struct wr *w, const struct limits *l);
void launch_rd_limits(struct rd *r, struct limits *ret);
