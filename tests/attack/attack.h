/* The outside half of the attack suite: a launcher, a neighbour that must not notice anything, and
 * a fresh box for every attack. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "check.h"
#include "provider/guest_client.h"
#include "provider/launcher.h"

#define ATTACK_PROBE "/tmp/probe" /* where the probe lies in a box */
#define TEMPLATE_PLAIN 1u
#define TEMPLATE_POOLED 2u
#define TEMPLATE_WRITABLE 3u
#define TEMPLATE_DIR 4u

struct op;
struct world;

enum attack_flag {
	WANT_TIMEOUT = 1 << 0, /* must end at its deadline, with everything it started */
	AS_ROOT = 1 << 1,      /* run by the box's root, where the box has one */
	ON_TERMINAL = 1 << 2,
	NEEDS_MEMORY = 1 << 3, /* the controllers: skipped where the machine gives us none */
	NEEDS_PIDS = 1 << 4,
	NEEDS_CPU = 1 << 5,
	NEEDS_FREEZER = 1 << 6,
	MAY_BE_ABSENT = 1 << 7, /* "not here" is an answer too */
	READS_SOURCES = 1 << 8,
	BOX_MAY_DIE = 1 << 9, /* of memory that no process holds; then it must be told */
};

/* One attack. Words of `probe` that begin with '@' are filled in: see world_expand(). */
struct attack {
	const char *name;    /* "R1 ...": the line of the attack list, then the claim */
	const char *probe;   /* its command line; NULL: only `run` */
	unsigned flags;      /* enum attack_flag */
	uint32_t timeout_ms; /* 0: ATTACK_TIMEOUT_MS */
	struct limits limits;
	void (*run)(struct world *w, const struct attack *a); /* instead of the common walk */
};
/* By so much a group may be above its limit for a moment: for sockets the kernel charges what it
 * has taken already. */
#define PEAK_SLACK (512ull << 10)
#define ATTACK_TIMEOUT_MS 30000u

struct attack_table {
	const struct attack *rows;
	size_t count;
};
extern const struct attack_table attacks_resource, attacks_memory, attacks_life, attacks_output;
extern const struct attack_table attacks_kernel, attacks_proc, attacks_file, attacks_api;
extern const struct attack_table attacks_tar, attacks_net, attacks_control, attacks_time;
extern const struct attack_table attacks_bulk, attacks_image, attacks_level;
extern const struct attack_table attacks_leak, attacks_cross, attacks_crash, attacks_sudo;

struct box {
	struct launcher_box l;
	struct guest_client *guest;   /* owned, NULL: not open */
	uint32_t uid_base, uid_count; /* ids outside; 0 when rootless */
	uint64_t pid_ns;              /* 0: not known */
};

/* What must not change, whatever a box does. */
struct machine {
	struct buf sysctls, mounts, canaries;
};

struct world {
	struct launcher *launcher; /* owned */
	struct box neighbour;
	struct box box, other; /* of the running case: closed after it */
	struct buf probe;      /* the probe program's bytes */
	struct machine before;
	char dir[256];     /* scratch directory of ours on the machine, with canaries in it */
	char data[512];    /* where the golden files are */
	char secret[33];   /* an environment variable that no box may see */
	char abstract[64]; /* a listening abstract socket of the machine */
	int abstract_fd, tcp_fd, udp_fd;
	uint16_t port; /* of the listening TCP and UDP sockets on the machine's loopback */
	bool rootless;
	unsigned skipped;
};

/* ---- world.c ---- */
int world_open(struct world *w, const char *build_dir, const char *data_dir);
void world_close(struct world *w);
void world_neighbour(struct world *w); /* moves a new one in */
int world_start_launcher(struct world *w, struct launcher **ret);
/* The common walk: box, attack, verdict, outside, destroy, outside again. */
void world_attack(struct world *w, const struct attack *a);
/* The box of the case has ended, or is about to, by itself: that is told, and nothing is left. */
void world_expect_death(struct world *w, struct op *op, bool by_memory);
void world_check(struct world *w); /* outside: fails the running test */
void world_skip(struct world *w, const char *why) __attribute__((noreturn));
/* expand.c: splits a command line; '@' words become pids, paths, ports and secrets of the machine.
 */
size_t world_expand(struct world *w, const char *line, struct buf *ret_text, const char **ret_argv,
		    size_t max);

/* ---- box.c: each fails the running test where the box does not do its part ---- */
void box_open(struct world *w, struct box *b, uint32_t template_id, const struct limits *limits);
/* Destroys and checks that nothing of it is left. ret may be NULL. */
void box_close(struct world *w, struct box *b, struct box_usage *ret);
void box_expect_gone(const struct box *b, uint64_t before); /* no process of it is left */
void box_drop(struct world *w, struct box *b); /* the same without checks, after a failure */
void box_upload(struct world *w, struct box *b);
void box_expect_answer(struct box *b); /* a ping, within a second */

/* An execution or a file operation under way. */
struct op {
	bool started, warm, ended;
	int code; /* positive errno of failed() */
	uint32_t id, pid;
	uint64_t count; /* of done() */
	uint64_t bytes; /* of data or output, kept or not */
	struct guest_exit exit;
	struct buf out, err, names; /* names: what entry() told, one a line */
	char text[200];
};
void op_done(struct op *op);
void box_start(struct world *w, struct box *b, const char *line, const struct attack *a,
	       struct op *op);
void box_start_argv(struct box *b, const struct guest_exec *e, struct op *op);
/* True when it ended within that time. */
bool box_wait(struct box *b, struct op *op, unsigned ms);
void box_wait_ready(struct box *b, struct op *op); /* its output has the line "ready" */
/* Runs a probe and expects "held". */
void box_expect_held(struct world *w, struct box *b, const char *line, unsigned flags);
void op_expect_held(const char *line, const struct op *op, unsigned flags);

/* File operations; 0, -errno of the box, or -ETIMEDOUT after API_MS. */
#define API_MS 20000u
int api_read(struct box *b, const char *path, struct op *op);
int api_write(struct box *b, const char *path, const void *data, size_t n);
int api_file(struct box *b, const struct guest_file *f, struct op *op);
int api_put(struct box *b, const struct guest_file *f, const void *data, size_t n, struct op *op);

/* ---- machine.c ---- */
void machine_look(struct world *w, struct machine *ret);
void machine_done(struct machine *m);
/* Processes that descend from `root`, or -1. */
int machine_descendants(pid_t root);
/* Processes with a user id in that range that began before that tick. */
int machine_with_ids(uint32_t base, uint32_t count, uint64_t before, bool print);
uint64_t machine_ticks(void); /* now, as `before` */
/* Control groups called holt.* that no living launcher has locked, one a line. */
void machine_stale_groups(struct buf *ret);
/* Control groups of the launcher that this process is in a box of. */
int machine_groups(pid_t member);
int machine_fds(pid_t pid);
void machine_explain(pid_t root); /* prints what a process and those below it are doing */
uint64_t machine_ns(pid_t pid, const char *kind);
uint64_t machine_rss(pid_t pid);
