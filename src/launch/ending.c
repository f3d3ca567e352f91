#include "launch/ending.h"

#include <stddef.h>

void ending_init(struct ending *e)
{
	*e = (struct ending){ 0 };
	list_init(&e->waiting);
	list_init(&e->under_way);
	list_init(&e->late);
}

void ending_turn_init(struct ending_turn *t)
{
	*t = (struct ending_turn){ .state = ENDING_NOT };
	list_init(&t->node);
}

void ending_add(struct ending *e, struct ending_turn *t)
{
	t->state = ENDING_WAITS;
	list_push_back(&e->waiting, &t->node);
}

static struct ending_turn *first(const struct list *all)
{
	return list_is_empty(all) ? NULL : LIST_ENTRY(all->next, struct ending_turn, node);
}

struct ending_turn *ending_next(struct ending *e, uint64_t now_ms)
{
	struct ending_turn *t = first(&e->waiting);

	if (!t || e->n_under_way >= ENDING_MAX)
		return NULL;
	list_remove(&t->node);
	list_push_back(&e->under_way, &t->node);
	t->state = ENDING_UNDER_WAY;
	t->began_ms = now_ms;
	e->n_under_way++;
	return t;
}

struct ending_turn *ending_next_late(struct ending *e, uint64_t now_ms)
{
	struct ending_turn *t = first(&e->under_way);

	if (!t || now_ms - t->began_ms < ENDING_SLOW_MS)
		return NULL;
	list_remove(&t->node);
	list_push_back(&e->late, &t->node);
	t->state = ENDING_LATE;
	e->n_under_way--;
	e->n_late++;
	return t;
}

void ending_done(struct ending *e, struct ending_turn *t)
{
	e->n_under_way -= t->state == ENDING_UNDER_WAY;
	e->n_late -= t->state == ENDING_LATE;
	t->state = ENDING_NOT;
	list_remove(&t->node);
}

bool ending_is_waiting(const struct ending *e)
{
	return !list_is_empty(&e->waiting);
}

int ending_wait_ms(const struct ending *e, uint64_t now_ms)
{
	const struct ending_turn *t = first(&e->under_way);
	uint64_t passed = t ? now_ms - t->began_ms : 0;

	if (!t)
		return -1;
	return passed >= ENDING_SLOW_MS ? 0 : (int)(ENDING_SLOW_MS - passed);
}
