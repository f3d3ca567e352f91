/* Warm Pythons, the launcher's side. For each template that asks for it one interpreter is kept
 * with the template's modules imported (src/warm); it forks the first process of a box, and that
 * box then has a Python waiting which costs neither a start nor the memory of one.
 *
 * The template interpreter is confined and holds nothing of anybody's: no tenant's code ever runs
 * in it. Its forks share the layout of its memory and the seed of its hashes, so it serves a
 * limited number of boxes and is then followed by a new one, started in time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "launch/box.h"
#include "launch/seccomp.h"

struct box;
struct launch;
struct template;
struct zygote;

#define ZYGOTE_BOXES_MAX 16 /* boxes that one generation serves */
#define ZYGOTE_STAGE "/tmp" /* where the box's copy of the tree is put to be entered */
#define ZYGOTE_SOCK_FD 3 /* in the template interpreter: its socket, and what it is loaded from */
#define ZYGOTE_LIB_FD 4

/* What the launcher sends for each box, with its descriptors. */
/* The last two come only from a privileged launcher, the very last only where boxes have rooms. */
enum zygote_fd { ZYGOTE_SOCK, ZYGOTE_INIT, ZYGOTE_TREE, ZYGOTE_DEV, ZYGOTE_ROOM, ZYGOTE_FDS };
struct zygote_make {
	struct box_plan plan;
	struct sock_filter filter[SECCOMP_INSN_MAX];
};

/* What comes back: of the interpreter that it is ready (struct warm_failed instead: it never will
 * be), and on the control socket of each box, before holt-init speaks, of its two first processes.
 * Each of these two waits for one byte. */
enum zygote_word {
	ZYGOTE_READY = 'r',
	ZYGOTE_MAPS = 'u',    /* has its user namespace: wants id maps and its cgroup */
	ZYGOTE_INIT_IS = 'p', /* is PID 1 of the box */
};

int zygotes_open(struct launch *l, struct err *err);
void zygotes_close(struct launch *l);
/* Starts a template interpreter if the template wants one; it becomes ready by itself. */
int zygote_start(struct launch *l, struct template *t, struct err *err);
/* The template is defined anew or gone. */
void zygote_stop(struct launch *l, struct template *t);
/* One is on its way: who can wait for a box should. */
bool zygote_is_coming(const struct launch *l, const struct template *t);
/* In place of spawn_box(): the box's pid comes later, by zygote_heard(). -EAGAIN: none is ready. */
int zygote_spawn(struct launch *l, struct box *b, int child_sock, struct err *err);
/* Something came on the control socket of a box that has no pid yet. 1: nothing to read after all;
 * -errno: it will never have one. Who spoke is what the kernel says: the launcher is about to give
 * that process rights, and to kill it one day, and takes no pid from anybody's word. */
int zygote_heard(struct launch *l, struct box *b, struct err *err);
/* The box could not be made this way. After a few such in a row no more are tried. */
void zygote_failed(struct launch *l, struct box *b);
/* The box waits or runs: the way works. */
void zygote_worked(struct launch *l, struct box *b);
/* Its process; 0: none, or z is NULL. */
pid_t zygote_pid(const struct zygote *z);
/* It makes a box and does not come to an end: it is killed, and serves no other. Takes NULL. */
void zygote_kill(struct launch *l, struct zygote *z);
bool zygotes_are_coming(const struct launch *l);
/* Ends those that take longer than so many milliseconds to become ready. */
void zygotes_expire(struct launch *l, uint32_t limit_ms);
/* True when the process was a template interpreter. */
bool zygote_reaped(struct launch *l, pid_t pid);
