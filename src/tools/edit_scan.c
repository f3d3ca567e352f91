#include "tools/edit_scan.h"

#include <string.h>

void edit_scan_begin(struct edit_scan *s, const char *text, size_t n, const char *old_text,
		     const char *new_text)
{
	*s = (struct edit_scan){ .at = text,
				 .stop = text + n,
				 .old_text = old_text,
				 .new_text = new_text,
				 .old_len = strlen(old_text),
				 .new_len = strlen(new_text),
				 .line = 1 };
}

static uint64_t count_lines(const char *text, size_t n)
{
	uint64_t lines = 0;

	for (size_t i = 0; i < n; i++)
		lines += text[i] == '\n';
	return lines;
}

static const char *find(const struct edit_scan *s, const char *from)
{
	return memmem(from, (size_t)(s->stop - from), s->old_text, s->old_len);
}

/* Places in one line are one change. */
bool edit_scan_next(struct edit_scan *s, struct edit_change *ret)
{
	const char *hit = find(s, s->at), *begin, *end;

	*ret = (struct edit_change){ 0 };
	if (!hit)
		return false;
	begin = memrchr(s->at, '\n', (size_t)(hit - s->at));
	begin = begin ? begin + 1 : s->at;
	ret->line = s->line + count_lines(s->at, (size_t)(hit - s->at));
	s->at = begin;
	do {
		(void)buf_append(&ret->text, s->at, (size_t)(hit - s->at));
		(void)buf_append(&ret->text, s->new_text, s->new_len);
		s->at = hit + s->old_len;
		hit = find(s, s->at);
		end = memchr(s->at, '\n', (size_t)(s->stop - s->at));
		end = end ? end : s->stop;
	} while (hit && hit < end);
	(void)buf_append(&ret->text, s->at, (size_t)(end - s->at));
	s->line = ret->line + count_lines(buf_str(&ret->text), ret->text.len);
	s->at = end;
	return true;
}
