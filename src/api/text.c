#include "api/text.h"

#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"

#define CUT_MAX 3 /* bytes of a sequence that lacks at least one */

/* How many bytes at the end could become one sequence with what follows. */
static size_t cut_len(const char *s, size_t n)
{
	for (size_t k = 1; k <= CUT_MAX && k <= n; k++) {
		unsigned char c = (unsigned char)s[n - k];
		bool cut = false;

		if ((c & 0xc0) == 0x80)
			continue; /* not the first of a sequence */
		return utf8_prefix(s + n - k, k, &cut) == 0 && cut ? k : 0;
	}
	return 0;
}

int text_feed(struct text_tail *t, const char *data, size_t n, struct buf *ret)
{
	size_t before = ret->len, held;
	int r = buf_reserve(ret, t->len + n);

	if (r < 0)
		return r;
	(void)buf_append(ret, t->data, t->len); /* fits: reserved */
	(void)buf_append(ret, data, n);
	held = cut_len(ret->data + before, ret->len - before);
	memcpy(t->data, ret->data + ret->len - held, held);
	t->len = held;
	ret->len -= held;
	ret->data[ret->len] = '\0';
	return 0;
}

int text_end(struct text_tail *t, struct buf *ret)
{
	int r = buf_append(ret, t->data, t->len);

	if (r == 0)
		t->len = 0;
	return r;
}
