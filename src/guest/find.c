/* Find: entries of a tree that fit. */
#include <errno.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "guest/search.h"

static int tell(struct search *s, const struct walk_entry *we)
{
	char link[PATH_BYTES];
	struct guest_entry e;
	int r = search_count(s);

	if (r != 0)
		return r;
	walk_link(we, link);
	e = files_entry(&we->st, we->path, link);
	r = chan_entry(&s->op->chan, &e);
	return r == -E2BIG ? 0 : r; /* deeper than a frame can say: counted, not named */
}

int files_find(struct fileop *op, struct err *err)
{
	_cleanup_(search_done) struct search s = { 0 };
	struct walk_entry e;
	int r = search_begin(&s, op, err);

	while (r == 0 && (r = search_next(&s, &e, err)) > 0)
		r = search_wants(&s, &e) ? tell(&s, &e) : 0;
	return r < 0 ? r : 0;
}
