#include "launch/ending.h"

#include <stddef.h>

void ending_init(struct ending *e)
{
	*e = (struct ending){ 0 };
	list_init(&e->waiting);
}

void ending_add(struct ending *e, struct list *node)
{
	list_push_back(&e->waiting, node);
}

struct list *ending_next(struct ending *e, uint64_t now_ms)
{
	struct list *node = e->waiting.next;

	if (node == &e->waiting)
		return NULL;
	if (e->under_way >= ENDING_MAX && now_ms - e->last_ms < ENDING_SLOW_MS)
		return NULL;
	list_remove(node);
	e->under_way++;
	e->last_ms = now_ms;
	return node;
}

void ending_done(struct ending *e)
{
	e->under_way--;
}

bool ending_is_waiting(const struct ending *e)
{
	return !list_is_empty(&e->waiting);
}
