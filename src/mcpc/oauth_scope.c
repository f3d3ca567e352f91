#include <errno.h>

#include "mcpc/oauth_impl.h"

bool oauth_scope_has(struct str all, struct str one)
{
	struct str s;

	while (str_split(&all, ' ', &s)) {
		if (str_eq(s, one))
			return true;
	}
	return false;
}

bool oauth_scope_has_all(struct str all, struct str some)
{
	struct str s;

	while (str_split(&some, ' ', &s)) {
		if (s.len > 0 && !oauth_scope_has(all, s))
			return false;
	}
	return true;
}

/* RFC 6749, 3.3. */
static bool is_good(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		if (s.data[i] <= ' ' || s.data[i] > '~' || s.data[i] == '"' || s.data[i] == '\\')
			return false;
	}
	return s.len > 0;
}

int oauth_scope_add(struct buf *b, struct str more)
{
	struct str s;
	int r = 0;

	while (r == 0 && str_split(&more, ' ', &s)) {
		struct str now = { .data = buf_str(b), .len = b->len };

		if (!is_good(s) || oauth_scope_has(now, s))
			continue;
		r = buf_printf(b, "%s%.*s", b->len ? " " : "", (int)s.len, s.data);
	}
	return r;
}
