/* The event loop: timers, descriptors, threads' results, signals. One thread runs it and every
 * function here belongs to that thread, but for loop_wake_send(). Objects may be freed from within
 * any callback, their own included; after that no callback of theirs is called any more. */
#pragma once

#include <stdint.h>

#include "base/list.h"

struct err;
struct loop; /* opaque, as all objects here but loop_task */

int loop_create(struct loop **ret, struct err *err);
/* Everything made on the loop has been freed before; work still under way is waited for. */
struct loop *loop_free(struct loop *l); /* takes NULL, returns NULL */
void loop_run(struct loop *l);  /* until loop_stop(), or until nothing is left to wait for */
void loop_stop(struct loop *l); /* loop_run() returns after this turn */
/* Monotonic, read once a turn: the same for all callbacks of it. */
uint64_t loop_now_ms(const struct loop *l);

/* Timers. */
struct loop_timer;
int loop_timer_create(struct loop *l, void (*fire)(void *user), void *user,
		      struct loop_timer **ret);
/* Fires once after `after_ms`, then every repeat_ms unless that is 0. Starting again resets. */
void loop_timer_start(struct loop_timer *t, uint64_t after_ms, uint64_t repeat_ms);
void loop_timer_stop(struct loop_timer *t);
struct loop_timer *loop_timer_free(struct loop_timer *t);

/* Readiness of a descriptor (socket, pipe, pidfd, eventfd; not a file), level-triggered: what is
 * left unread is told again. The descriptor stays the caller's: free the watch first, then close.
 * It is made non-blocking. */
enum {
	LOOP_READ = 1,
	LOOP_WRITE = 2,
	LOOP_HANGUP = 4, /* the peer has closed its side; also told while there is data to read */
};
struct loop_io;
/* Nothing is watched until loop_io_want(). Errors of the descriptor come as LOOP_READ|LOOP_WRITE:
 * the next read or write says which. */
int loop_io_create(struct loop *l, int fd, void (*ready)(void *user, unsigned events), void *user,
		   struct loop_io **ret);
int loop_io_want(struct loop_io *io,
		 unsigned events); /* 0 or -errno; the same mask costs nothing */
struct loop_io *loop_io_free(struct loop_io *io);

/* run() on a thread of the pool, then done() on the loop: always both, in this order. -ENOMEM. */
int loop_work(struct loop *l, void (*run)(void *user), void (*done)(void *user), void *user);

/* The same on a thread of its own: what must not wait behind the work of others, and may take as
 * long as it likes. -EAGAIN: there can be no more threads now. */
int loop_work_alone(struct loop *l, void (*run)(void *user), void (*done)(void *user), void *user);

/* A call from another thread: any number of sends before the loop comes round is one call. */
struct loop_wake;
int loop_wake_create(struct loop *l, void (*woken)(void *user), void *user, struct loop_wake **ret);
void loop_wake_send(struct loop_wake *w); /* any thread, also a signal handler */
struct loop_wake *loop_wake_free(struct loop_wake *w);

/* Signals, on the loop and not in a handler. */
struct loop_signal;
int loop_signal_create(struct loop *l, int signo, void (*caught)(void *user, int signo), void *user,
		       struct loop_signal **ret);
struct loop_signal *loop_signal_free(struct loop_signal *s);

/* A call in the next turn, before the loop waits: what must not happen inside the caller's caller.
 * The task lives in the object that it is about; posting cannot fail. */
struct loop_task {
	struct list node; /* self-linked unless posted */
	void (*run)(void *user);
	void *user;
};
void loop_task_init(struct loop_task *t, void (*run)(void *user), void *user);
void loop_task_post(struct loop *l, struct loop_task *t); /* a posted one stays posted, once */
void loop_task_cancel(struct loop_task *t);               /* also when it is not posted */
