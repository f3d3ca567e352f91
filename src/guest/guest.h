/* The guest's state, shared by the files of this folder. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include "base/list.h"
#include "guest/bridge.h"
#include "guest/conn.h"
#include "guest/deadline.h"
#include "guest/in.h"
#include "guest/kept.h"
#include "guest/loop.h"
#include "guest/out.h"
#include "guest/pace.h"
#include "guest/sudo.h"
#include "guest/tree.h"
#include "guest/warm.h"
#include "spec/guest.h"

#define GUEST_EXECS_MAX 256
#define GUEST_RELAYS_MAX 32
#define GUEST_DOORS_MAX 128    /* connections on their way, and listeners */
#define GUEST_LINGERING_MAX 64 /* ended executions whose pipes somebody still holds */

struct guest {
	int epoll_fd; /* owned */
	int oom_fd;   /* borrowed: our own oom_score_adj, 0: none */
	int lock_fd;  /* owned: see fileop_run(); -1: none yet */
	struct source control, signals;
	struct source
		listener; /* where the next client comes from; -1: the box ends with this one */
	struct deadline listen_again;
	struct deadline park; /* when the next Python is asked for */
	struct conn conn;
	struct tree_view tree;
	struct warm warm;
	struct list execs, lingering; /* struct exec */
	struct list kept;             /* struct kept: ended executions */
	struct list relays;           /* struct relay */
	struct list doors;            /* struct door */
	struct list deadlines;
	struct pace pace;
	struct sudo sudo;
	struct bridge bridge;
	size_t n_execs, n_lingering, n_kept, n_relays, n_doors;
	uint64_t next_mark;
	int why_code; /* an interpreter does not wait as it should: positive errno */
	char why[WHY_MAX + 1];
	bool is_childless;   /* the last look found no child: nothing else lives in the box */
	bool has_leftovers;  /* an ended execution has left processes behind */
	bool must_reap_more; /* there may be zombies that no signal will tell about */
	int over;            /* 1: the client hung up; negative: the box is unusable */
};

/* The box cannot go on: tells the client once and ends the loop. */
void guest_fail(struct guest *g, int code, const char *text);
uint64_t guest_new_mark(struct guest *g);

/* exec.c. Requests of an id that has just ended are no error; -EPROTO is the client's fault. */
struct exec;
struct exec *exec_find(struct guest *g, uint32_t id);
bool exec_has_pid(const struct guest *g, pid_t pid);
/* Answers by G_STARTED or G_ERROR. */
void exec_start(struct guest *g, uint32_t id, const struct guest_exec *e);
int exec_stdin(struct exec *x, const void *data, size_t n);
int exec_credit(struct exec *x, uint64_t n);
int exec_signal(struct exec *x, uint32_t signo, bool is_tree);
int exec_resize(struct exec *x, uint16_t rows, uint16_t cols);
void exec_cancel(struct exec *x);
/* A child is gone: true when it was an execution's process. exec_settle() follows. */
bool exec_reaped(struct guest *g, pid_t pid, int status, const struct rusage *used);
/* After children are gone: goes on with what waited for them. */
void exec_settle(struct guest *g);
/* Live executions with EXEC_KEEP, and G_LIVE of each. */
size_t exec_count_kept(const struct guest *g);
void exec_tell_all(struct guest *g);
/* Nothing of it will be kept at its end. */
void exec_ack(struct exec *x);
/* The client is gone: what is kept goes on, everything else ends. */
void exec_lose_client(struct guest *g);
/* The control socket is full, or no longer: stops or goes on. */
void exec_resume_all(struct guest *g);
void exec_free_all(struct guest *g);

/* relay.c: file operations, each in a process of its own. */
struct relay;
struct relay *relay_find(struct guest *g, uint32_t id);
bool relay_has_pid(const struct guest *g, pid_t pid);
void relay_start(struct guest *g, uint32_t id, const struct guest_file *f);
/* A frame of the client for the operation (G_DATA, G_CREDIT), passed on as it came. */
int relay_pass(struct relay *r, const void *frame, size_t n);
int relay_cancel(struct relay *r);
/* The client is gone: all are cancelled, and nothing of them is said to the next one. */
void relay_lose_client(struct guest *g);
bool relay_reaped(struct guest *g, pid_t pid);
void relay_resume_all(struct guest *g);
void relay_free_all(struct guest *g);

/* connect.c: connections to and from the box's own programs, handed out as descriptors. */
struct door;
struct door *door_find(struct guest *g, uint32_t id);
/* Both answer, by G_ERROR at the least. */
void door_connect(struct guest *g, uint32_t id, const struct guest_connect *c);
void door_listen(struct guest *g, uint32_t id, const struct guest_connect *c);
void door_cancel(struct door *d);
void door_resume_all(struct guest *g);
void door_free_all(struct guest *g); /* without a word: the client is gone, or we are */
