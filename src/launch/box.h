/* Builds one box from the inside: the steps a new process takes to become PID 1 of its box. Used by
 * the launcher's child and by a warm interpreter's (src/warm), so it is plain C with no state.
 *
 * Order for a box of the launcher: box_mount, box_unshare_user (the launcher writes the maps),
 * box_become_root, box_confine, box_exec_init. A warm interpreter makes its user namespace first.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "spec/launch.h"

struct sock_filter;

#define BOX_SIZE_MAX 24    /* a number of bytes or inodes, as text */
#define BOX_USER 1000u     /* the box's user and group, inside */
#define BOX_ID_COUNT 4096u /* ids a box owns outside: inner 0..4094, and 65534 */
#define BOX_LOWER "/srv"   /* in a template's tree: the directory of a ROOT_DIR template */
#define BOX_STAGE "/mnt"   /* in a template's tree: where a box's root is put together */
#define BOX_SOCK_FD 3      /* the control socket in holt-init */
#define BOX_PYTHON_FD 4    /* the waiting Python's socket in holt-init, with --python */
#define BOX_LIB_FD 4       /* holt-warm.so in holt-init, with --preload: never both */
/* Of RLIMIT_CORE. Where core_pattern is a pipe, the kernel runs its handler, as the machine's root,
 * also with a limit of 0; with 1 it does not. No file is written either: one page is the least. */
#define CORE_LIMIT 1
#define BOX_LAYERS_MAX (LAYERS_MAX + 2) /* with fittings.h and sysdirs.h, which lie below */

struct box_plan {
	struct limits limits;
	uint8_t root, level, net, rootless;
	uint8_t nested;      /* the user namespace was made before the mounts (warm interpreters) */
	uint32_t unenforced; /* enum cgroup_controller bits: what rlimits must stand in for */
	uint32_t flags;      /* enum template_flag */
	uint32_t uid_base;   /* outer id of inner 0 (rootless: not used) */
	uint32_t landlock_abi; /* 0: not there */
	int dev_fd;            /* a /dev of its own, mounted nowhere; 0: none */
	int init_fd;           /* holt-init's sealed memfd */
	int lib_fd; /* holt-warm.so's, for what holt-init itself preloads; -1: it does not */
	const struct sock_filter *filter; /* borrowed */
	uint16_t filter_len;
	int room_fd; /* detached mount of a directory on disk for what it writes; 0: memory */
	uint8_t n_layers, n_volumes;
	int layer_fds[BOX_LAYERS_MAX];            /* detached mounts, bottom first */
	char writable[TEMPLATE_WRITABLE_MAX + 1]; /* as in struct template_spec */
	char preload[TEMPLATE_PRELOAD_MAX + 1], preload_node[TEMPLATE_PRELOAD_MAX + 1];
	int volume_fds[VOLUMES_MAX];
	char volume_paths[VOLUMES_MAX][VOLUME_PATH_MAX + 1];
};

/* In a new mount and pid namespace whose root is the template's tree: replaces it by the box's own
 * root with its private writable paths, /proc, /dev/pts and masks. */
int box_mount(const struct box_plan *plan, struct err *err);
/* The size and the inodes of the tmpfs that a box writes to, as its options. */
void box_disk_size(const struct limits *l, bool has_room, char size[BOX_SIZE_MAX],
		   char inodes[BOX_SIZE_MAX]);
/* Of a finished box in which nothing has run yet: gives that tmpfs another size. proc_fd: the
 * machine's /proc. */
int box_resize_disk(int proc_fd, pid_t pid, const struct limits *l, bool has_room, struct err *err);
/* Before the user namespace is made, as root: takes the box's own outer id, capabilities kept. The
 * kernel counts some things (inotify instances, for one) against whoever owns the namespace, and
 * that must not be one and the same for all boxes. */
int box_become_owner(const struct box_plan *plan, struct err *err);
/* In a user namespace whose owner has other boxes too: bounds what is counted against him. proc_fd:
 * a writable /proc. */
int box_limit_watches(int proc_fd, struct err *err);
/* Takes inner root's ids (rootless: the box's only user) once the maps are written. */
int box_become_root(const struct box_plan *plan, struct err *err);
/* Resource limits, capabilities down to what holt-init needs to start programs as the box's user
 * (`keep_caps`) or to none, Landlock, no-new-privileges, seccomp. Nothing can be undone after it.
 */
int box_confine(const struct box_plan *plan, bool keep_caps, struct err *err);
/* Replaces the process by holt-init: `sock` on BOX_SOCK_FD, `python` (-1: none) on BOX_PYTHON_FD,
 * everything else closed; without it, holt-init preloads what the plan says. Returns only on
 * failure.
 */
int box_exec_init(const struct box_plan *plan, int sock, int python, struct err *err);
/* "0 base 4095\n65534 base+4095 1\n", or the one line of a rootless box. */
int box_id_map(const struct box_plan *plan, char *dst, size_t size);
