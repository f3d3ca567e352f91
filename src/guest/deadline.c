#include "guest/deadline.h"

#include <stddef.h>

#define WAIT_MAX_MS (24u * 3600 * 1000)

void deadline_init(struct deadline *d, void (*expired)(struct deadline *d))
{
	*d = (struct deadline){ .expired = expired };
	list_init(&d->node);
}

/* From the end, because most deadlines are set later than those that are there. */
void deadline_set(struct list *all, struct deadline *d, uint64_t at_ms)
{
	struct list *before;

	list_remove(&d->node);
	d->at_ms = at_ms;
	before = all->prev;
	while (before != all && LIST_ENTRY(before, struct deadline, node)->at_ms > at_ms)
		before = before->prev;
	list_push_front(before, &d->node);
}

void deadline_clear(struct deadline *d)
{
	list_remove(&d->node);
}

bool deadline_is_set(const struct deadline *d)
{
	return !list_is_empty(&d->node);
}

struct deadline *deadline_take(struct list *all, uint64_t now_ms)
{
	struct deadline *first;

	if (list_is_empty(all))
		return NULL;
	first = LIST_ENTRY(all->next, struct deadline, node);
	if (first->at_ms > now_ms)
		return NULL;
	list_remove(&first->node);
	return first;
}

void deadline_delay(struct list *all, uint64_t ms)
{
	LIST_FOREACH (all, d, struct deadline, node)
		d->at_ms += ms;
}

int deadline_wait_ms(const struct list *all, uint64_t now_ms)
{
	const struct deadline *first;
	uint64_t left;

	if (list_is_empty(all))
		return -1;
	first = LIST_ENTRY(all->next, struct deadline, node);
	left = first->at_ms > now_ms ? first->at_ms - now_ms : 0;
	return (int)(left < WAIT_MAX_MS ? left : WAIT_MAX_MS);
}
