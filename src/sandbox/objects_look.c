/* Objects, looked at: by page, and all of them. */
#include <string.h>

#include "sandbox/objects_impl.h"

static bool matches(const struct object *o, const struct object_filter *f)
{
	if (o->is_new)
		return false;
	if (f->owner && strcmp(o->owner, f->owner) != 0 &&
	    !(f->also && strcmp(o->owner, f->also) == 0))
		return false;
	if (f->before_ms == 0 || o->created_ms < f->before_ms)
		return true;
	return o->created_ms == f->before_ms && f->before_id && strcmp(o->id, f->before_id) < 0;
}

static bool is_newer(const struct object *a, const struct object *b)
{
	if (a->created_ms != b->created_ms)
		return a->created_ms > b->created_ms;
	return strcmp(a->id, b->id) > 0;
}

/* The list is nearly in order: those of one millisecond are not, by id. */
size_t objects_list(const struct objects *t, const struct object_filter *f, struct object **ret,
		    size_t cap, bool *ret_more)
{
	size_t n = 0;

	*ret_more = false;
	for (struct list *p = t->list.prev; p != &t->list; p = p->prev) {
		struct object *o = LIST_ENTRY(p, struct object, node);
		size_t at = n;

		if (!matches(o, f))
			continue;
		if (n == cap && !is_newer(o, ret[n - 1])) {
			*ret_more = true;
			if (o->created_ms < ret[n - 1]->created_ms)
				break;
			continue;
		}
		if (n == cap) {
			*ret_more = true;
			at = --n;
		}
		for (; at > 0 && is_newer(o, ret[at - 1]); at--)
			ret[at] = ret[at - 1];
		ret[at] = o;
		n++;
	}
	return n;
}

struct object *objects_search(struct objects *t,
			      bool (*is_it)(const struct object *o, const void *arg),
			      const void *arg)
{
	LIST_FOREACH (&t->list, o, struct object, node)
		if (!o->is_new && is_it(o, arg))
			return o;
	return NULL;
}

struct object *objects_search_all(struct objects *t,
				  bool (*is_it)(const struct object *o, const void *arg),
				  const void *arg)
{
	LIST_FOREACH (&t->list, o, struct object, node)
		if (is_it(o, arg))
			return o;
	return NULL;
}

void objects_each(struct objects *t, void (*each)(void *user, struct object *o), void *user)
{
	LIST_FOREACH (&t->list, o, struct object, node)
		if (!o->is_new)
			each(user, o);
}
