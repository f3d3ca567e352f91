/* The launcher: one process, one thread, one client. It owns every box until its end, or, with a
 * state directory, until its own: then claimed boxes live on and the next launcher takes them over.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/id.h"
#include "base/list.h"
#include "base/machine.h"
#include "launch/box.h"
#include "launch/builds.h"
#include "launch/cgroup.h"
#include "launch/disk.h"
#include "launch/ending.h"
#include "launch/ids.h"
#include "launch/locks.h"
#include "launch/netns.h"
#include "launch/poolsize.h"
#include "launch/room.h"
#include "launch/seccomp.h"
#include "launch/source.h"
#include "launch/state.h"
#include "spec/launch.h"

struct launch;
struct map;
struct zygote;
struct zygotes;

/* What a box is put into, made ahead: a range of ids with a user namespace that maps it, a cgroup,
 * and a process of ours parked in that. Entering a v1 cgroup can wait 10 ms for the kernel; the
 * parked process has done so already, and what it clones is born inside. */
struct cell {
	uint32_t uid_base; /* first of the range; 0: rootless, there is none to give */
	int user_ns;       /* owned; -1 while a box lives in it */
	int layer_ns; /* owned: maps the ids of layers to its own; -1 while nothing needed it */
	struct cgroup *cgroup; /* owned */
	unsigned tries;        /* to clean it, so far */
	bool seed_is_in;       /* it has said that it is in the cgroup */
	bool seed_is_late;     /* it did not answer, or not in time */
	/* 0: none, as with v2, where a process can be cloned into a group; -1: it has ended, and
	 * its number is another's one day */
	pid_t seed;
	int seed_sock; /* owned; its end ends the seed */
};

#define CELL_NONE                                              \
	(struct cell)                                          \
	{                                                      \
		.user_ns = -1, .layer_ns = -1, .seed_sock = -1 \
	}
#define CELL_STOCK_MAX 256
#define CELL_COOLING_MAX 64

struct template
{
	struct template_spec spec; /* preload is owned */
	char *preload;             /* owned */
	char preload_node[TEMPLATE_PRELOAD_MAX + 1];
	char why[WHY_MAX + 1]; /* what it preloads is not there, as last heard; "": it is */
	char writable[TEMPLATE_WRITABLE_MAX + 1];
	struct disk_use *disk; /* owned: its layers; NULL: it has none */
	uint32_t generation;   /* counts definitions */
	int mount_ns;          /* owned; -1: not defined */
	int fittings_ns;       /* owned: see fittings.h; -1: not made */
	uint8_t profile;       /* enum seccomp_profile */
	struct poolsize size;
	struct list ready; /* of struct box, by pool_link */
	unsigned ready_count, building_count, claimed_count;
	unsigned failures; /* boxes for the pool that failed since one was last claimed */
	unsigned stuck;    /* boxes that were given up, and whose process has not ended */
	uint64_t given_up; /* so far */
	uint64_t hits, missed[MISS_COUNT];
};

enum box_state { BOX_BUILDING, BOX_READY, BOX_CLAIMED, BOX_DYING };

struct box {
	struct source source; /* first: sock is watched while the box is built */
	char id[ID_LEN + 1];
	enum box_state state;
	struct template *tmpl; /* borrowed: templates are never moved; the first has the adopted */
	struct box_plan plan;
	struct cell cell;
	pid_t pid;             /* a child of ours, so it cannot be reused before we reap it... */
	int pidfd;             /* ...unless we adopted the box: then this stands for it; owned */
	int sock;              /* our end of the control socket; the client's once claimed */
	uint32_t claim_id;     /* L_CLAIM that waits for it; 0: made for the pool */
	uint32_t destroy_id;   /* L_DESTROY that waits for its end */
	uint32_t flags;        /* enum launch_box_flag */
	int net_fd;            /* held from the kill to the recycling */
	struct zygote *zygote; /* borrowed: who makes it; NULL once its pid is known */
	bool frozen;
	bool held;             /* stands still for a snapshot, whatever `frozen` says */
	uint32_t generation;   /* of its template */
	struct disk_use *disk; /* owned: layers and volumes; NULL: none */
	bool has_room;         /* room.h */
	int room_fd;           /* owned: the mount of it, until the box has it; -1 */
	char tag[TAG_MAX + 1]; /* the client's name of it */
	uint64_t start_ticks;  /* process.h; known once it is built, if it can outlive us */
	int listener;          /* owned: the socket that it gets at the claim; -1: none yet */
	uint64_t began_ns, step_ns[STEP_COUNT];
	struct err err;        /* why it could not be built */
	bool has_own;          /* files that are not its template's */
	char why[WHY_MAX + 1]; /* what it should have preloaded is not there; "": all is */
	bool was_whole;        /* when it was told to end: else not all its namespaces are there */
	struct ending_turn turn; /* among those that are to end */
	bool is_given_up;        /* not built in time: dies, if its process can */
	bool is_excused;         /* it was late, and had said something */
	struct list pool_link;   /* among those that wait for a claim */
	struct list build_link;
};

struct launch {
	struct source client; /* first */
	struct source signals;
	int sock;         /* owned: the client */
	int epoll_fd;     /* owned */
	int signal_fd;    /* owned */
	int proc_fd;      /* owned: the machine's /proc */
	int init_fd;      /* owned: holt-init, sealed in memory */
	int lib_fd;       /* owned: holt-warm.so, the same; -1: it is not installed */
	int view_ns;      /* owned: the machine's mounts, our copy */
	int sysdirs_ns;   /* owned: see sysdirs.h; -1: not made */
	int sysdirs_tree; /* owned: while it is made; -1 */
	bool sysdirs_failed;
	bool rootless, closing;
	uint64_t busy_ms; /* when the client last claimed or destroyed a box */
	uint64_t claims;  /* so far */
	uint32_t landlock_abi;
	struct machine_gauge gauge;        /* owned */
	uint64_t reserve_bytes;            /* memory below which nothing is made to wait */
	struct limits most;                /* of this machine: no box gets more, whoever asks */
	struct cgroups *cgroups;           /* owned */
	struct cell cells[CELL_STOCK_MAX]; /* those that wait */
	unsigned cell_count, cell_want;
	struct cell cooling[CELL_COOLING_MAX]; /* used, with something still charged */
	unsigned cooling_count;
	struct list held; /* of struct held_cell, owned: their seeds have not ended yet */
	struct netns netns;
	struct ids ids;
	struct state state;
	struct seccomp_filter filters[PROFILE_COUNT];
	struct template templates[TEMPLATE_MAX + 1]; /* by id; the first: of adopted boxes */
	struct map *by_pid, *by_id;                  /* of struct box, owned; by_pid: children */
	struct locks locks;
	struct ending ending;    /* of struct box, by turn */
	struct zygotes *zygotes; /* owned: src/launch/zygote.c */
	struct disk disk;
	struct rooms rooms;
	struct list later; /* claims that wait for sysdirs.h; owned by server.c */
	unsigned later_count;
	struct list jobs; /* of struct job, owned: job.h */
	unsigned job_count;
	struct builds builds;
};

/* What a box is claimed with. */
struct claim {
	uint32_t id; /* of the request */
	const char *tag;
	struct disk_use *disk; /* taken in any case; NULL: what the template has */
};

/* boxes.c: a box from its cgroup to its end. claim NULL: for the pool. */
int boxes_create(struct launch *l, struct template *t, const struct limits *limits,
		 const struct claim *claim, struct err *err);
void boxes_claim(struct launch *l, struct box *b, const struct claim *claim);
void boxes_destroy(struct launch *l, struct box *b);
/* Kills what waits for it, as far as ending.h lets it, and tells of those that do not end. */
void boxes_end_waiting(struct launch *l);
/* Kills a box that must not go on: its client hears that it has died. */
void boxes_abort(struct box *b);
/* One that is not built in time: whoever claims it is told b->err, and its process is killed. */
void boxes_give_up(struct launch *l, struct box *b);
void boxes_reaped(struct launch *l, pid_t pid, int status, const struct rusage *ru);
/* The process of an adopted box has ended. */
void boxes_ended(struct launch *l, struct source *self);
/* Gives back everything but the process, which is gone or never was. */
struct box *boxes_free(struct launch *l, struct box *b);
/* At the end: boxes whose first process is not known yet, and which nobody reaps. */
void boxes_abandon_unborn(struct launch *l);
struct box *boxes_find(const struct launch *l, const char *id);
int boxes_write_map(struct launch *l, const char *map, pid_t pid, struct err *err);
/* Also for a box that a warm interpreter's process builds. */
int boxes_write_maps(struct launch *l, const struct box_plan *plan, pid_t pid, struct err *err);

/* spawn.c: the process itself. */
int spawn_box(struct launch *l, struct box *b, int child_sock, struct err *err);
void spawn_seed(struct launch *l, struct cgroup *cg, int sock) __attribute__((noreturn));
/* Waits until a cell's seed is in its cgroup, once. */
int spawn_seed_is_in(struct cell *cell);

/* cell.c: cgroups made ahead. */
int cell_take(struct launch *l, const struct limits *limits, struct cell *ret, struct err *err);
void cell_return(struct launch *l, struct cell *cell);
bool cell_refill(struct launch *l);
/* Tries to make one used cell as good as new; true when that made one ready. */
bool cell_cool(struct launch *l);
void cell_done(struct launch *l, struct cell *cell);
/* True when the process was the seed of a cell. */
bool cell_reaped(struct launch *l, pid_t pid);
/* The same, of this one. */
bool cell_lose_seed(struct cell *cell, pid_t pid);
/* At the end: cells whose seeds still have not ended are left as they are. */
void cell_abandon_held(struct launch *l);
/* Sees to it that the cell has a layer_ns, if that is needed. */
int cell_layer_ns(struct launch *l, struct cell *cell, struct err *err);

/* pool.c: finished boxes that wait. */
struct box *pool_take(struct launch *l, struct template *t, const struct limits *limits);
void pool_add(struct box *b);
void pool_remove(struct box *b);
/* Does one thing, if there is one; true when it did. Not `quiet`: only what cannot wait. */
bool pool_refill(struct launch *l, bool quiet);
bool pool_is_active(const struct launch *l);

/* persist.c: boxes that outlive us. All of it does nothing without a state directory. */
/* Once it is built: everything that a claim would have to wait for. It still ends with us. */
int persist_prepare(struct launch *l, struct box *b, struct err *err);
/* At the claim: writes the box down, and gives it the socket on which its next client comes. */
int persist_box(struct launch *l, struct box *b, struct err *err);
/* Its limits have changed. */
int persist_update(const struct launch *l, const struct box *b, struct err *err);
void persist_forget(const struct launch *l, const struct box *b);
/* At our end: forgets the claimed boxes, which live on. */
void persist_leave(struct launch *l);
/* A new connection to a claimed box. */
int persist_connect(const struct launch *l, const struct box *b, struct err *err);

/* adopt.c: what an earlier launcher left. */
/* Where that one's control groups are, in the form of /proc/self/cgroup, to be freed; NULL: there
 * is nothing to find. */
int adopt_find_groups(const struct launch *l, char **ret, struct err *err);
/* Takes over every box that is what its record says, and clears away everything else. */
int adopt_boxes(struct launch *l, struct err *err);

/* snapshot.c: layers of boxes that live. */
int snapshot_start(struct launch *l, struct box *b, const struct snapshot_spec *s, uint32_t request,
		   struct err *err);
/* What is under way of it is given up: the box ends. */
void snapshot_cancel(struct launch *l, struct box *b);

/* volume.c: file systems of their own. */
int volume_make(struct launch *l, const struct volume_spec *v, uint32_t request, struct err *err);
int volume_drop(struct launch *l, const char *id, uint32_t request, struct err *err);
/* Mounts them, then goes on with boxes_create(). Takes the claim's disk_use if it succeeds. */
int volume_claim(struct launch *l, struct template *t, const struct limits *limits,
		 const struct claim *claim, struct err *err);
/* The box that has it; "": none. */
const char *volume_holder(const struct launch *l, const char *id);

/* server.c: what the client asks for. */
void server_ready(struct launch *l, struct source *self);
/* What had to wait is asked again. */
void server_again(struct launch *l);
/* What has waited too long for that is refused. */
void server_expire(struct launch *l);
/* The answer to a claim, or to another request for a connection. When it fails, that has been said.
 */
int server_box(struct launch *l, struct box *b, uint32_t id, int sock);
void server_gone(struct launch *l, struct box *b, uint32_t type, int status,
		 const struct box_usage *usage);
void server_ok(struct launch *l, uint32_t id);
void server_send(struct launch *l, const void *frame, long n);
void server_failed(struct launch *l, uint32_t id, const struct err *err);

/* main.c */
int launch_watch(struct launch *l, int fd, struct source *source, struct err *err);
void launch_unwatch(struct launch *l, int fd);
