/* Connections to ports inside sandboxes, kept for the next request: one that ended well and may be
 * used again rests here for a few seconds. Each holds its sandbox's port_use: when the box or the
 * port goes, so does it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;
struct lane;  /* opaque */
struct lanes; /* opaque */
struct loop;
struct sandbox;
struct upstream;

struct lane_ops {
	void (*ready)(void *user);                         /* lane_upstream() can be used */
	void (*failed)(void *user, const struct err *err); /* instead; the lane is gone */
	void (*ended)(void *user); /* after ready(): the box is gone, and so is the lane */
};

struct lanes *lanes_create(struct loop *l); /* NULL without memory */
struct lanes *lanes_free(struct lanes *all);
/* Closes what has rested long enough. */
void lanes_tick(struct lanes *all, uint64_t now_ms);
/* 1: *ret is one that rested; 0: ready() or failed() follows. -EBUSY, -EAGAIN, -ENOMEM. */
int lane_open(struct lanes *all, struct sandbox *sb, uint16_t port, bool is_fresh,
	      const struct lane_ops *ops, void *user, struct lane **ret, struct err *err);
struct upstream *lane_upstream(struct lane *l);
void lane_count(struct lane *l); /* what went over it, as usage; takes NULL. Its end does, too */
/* The request is over. can_reuse: the next one may have it. Takes NULL. */
void lane_close(struct lane *l, bool can_reuse);
