#include "e2b/filter.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "net/percent.h"

static int decode(struct str s, struct arena *a, const char **ret)
{
	char *to = arena_alloc(a, s.len + 1);
	ssize_t n = to ? percent_decode(s, true, to) : -ENOMEM;

	if (n < 0)
		return (int)n;
	*ret = to;
	return 0;
}

static int take(struct str pair, struct arena *a, struct sandbox_pair *ret)
{
	const char *equals = memchr(pair.data, '=', pair.len);
	struct str name, value;
	int r;

	if (!equals || equals == pair.data)
		return -EINVAL;
	name = (struct str){ pair.data, (size_t)(equals - pair.data) };
	value = (struct str){ equals + 1, pair.len - name.len - 1 };
	r = decode(name, a, &ret->name);
	return r < 0 ? r : decode(value, a, &ret->value);
}

int filter_pairs(const char *text, struct arena *a, struct sandbox_pair ret[FILTER_PAIRS_MAX],
		 size_t *ret_n)
{
	const char *plain = NULL;
	struct str rest, one;
	size_t n = 0;
	int r = decode(str_of(text), a, &plain);

	if (r < 0)
		return r;
	rest = str_of(plain);
	while (str_split(&rest, '&', &one)) {
		if (one.len == 0)
			continue;
		if (n == FILTER_PAIRS_MAX)
			return -E2BIG;
		r = take(one, a, &ret[n]);
		if (r < 0)
			return r;
		n++;
	}
	*ret_n = n;
	return 0;
}
