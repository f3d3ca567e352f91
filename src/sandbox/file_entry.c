#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "sandbox/files.h"

int file_entry_copy(struct arena *a, const struct guest_entry *from, struct guest_entry *ret)
{
	struct guest_entry e = *from;

	e.path = arena_strndup(a, from->path, strlen(from->path));
	e.target = arena_strndup(a, from->target, strlen(from->target));
	if (from->owner) {
		e.owner = arena_strndup(a, from->owner, strlen(from->owner));
		e.group = arena_strndup(a, from->group, strlen(from->group));
		e.attrs = arena_strndup(a, from->attrs, from->attrs_len);
	}
	if (!e.path || !e.target || (from->owner && (!e.owner || !e.group || !e.attrs)))
		return -ENOMEM;
	*ret = e;
	return 0;
}
