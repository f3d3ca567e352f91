/* Points in time at which something must be done, soonest first. The caller knows the time, so this
 * is testable without waiting. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct deadline {
	struct list node; /* self-linked while unset: deadline_init() first */
	uint64_t at_ms;
	void (*expired)(struct deadline *d); /* the owner's; called by whoever takes it */
};

void deadline_init(struct deadline *d, void (*expired)(struct deadline *d));
/* Sets or moves it. Of equal times, the first set comes first. */
void deadline_set(struct list *all, struct deadline *d, uint64_t at_ms);
void deadline_clear(struct deadline *d);
bool deadline_is_set(const struct deadline *d);
/* Unsets and returns the soonest that is due, or NULL. */
struct deadline *deadline_take(struct list *all, uint64_t now_ms);
/* All are due so much later. */
void deadline_delay(struct list *all, uint64_t ms);
/* For epoll_wait(): -1 without any, 0 when one is due, at most a day. */
int deadline_wait_ms(const struct list *all, uint64_t now_ms);
