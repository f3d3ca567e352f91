#include <errno.h>
#include <stdlib.h>

#include "cli/bench.h"

int samples_add(struct samples *s, uint64_t ns)
{
	if (s->len == s->cap) {
		size_t cap = s->cap ? 2 * s->cap : 256;
		uint64_t *more = realloc(s->ns, cap * sizeof(*more));

		if (!more)
			return -ENOMEM;
		s->ns = more;
		s->cap = cap;
	}
	s->ns[s->len++] = ns;
	return 0;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

double samples_ms(struct samples *s, double q)
{
	size_t i;

	if (s->len == 0)
		return 0;
	qsort(s->ns, s->len, sizeof(*s->ns), by_value);
	i = (size_t)(q * (double)s->len);
	return (double)s->ns[i < s->len ? i : s->len - 1] / 1e6;
}

void samples_done(struct samples *s)
{
	free(s->ns);
	*s = (struct samples){ 0 };
}
