/* Any pattern on any line, as grep and replace use it: matches lie in the line, the next search
 * goes on behind the one before, and a replacement that was let through expands within its bounds.
 * Input: flags, then pattern, replacement and line, each ended by a newline.
 *
 * The regular expressions themselves are the C library's, and those of glibc take very long for
 * some: counted repetitions, references back and many "+" (each doubles what it repeats) are left
 * out here. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "fuzz.h"
#include "guest/pattern.h"
#include "spec/guest.h"

#define PATTERN_MAX 32u
#define LINE_MAX_ 256u
#define TEXT_MAX 64u
#define PLUS_MAX 4u

/* The next text of the input, as long as it may be; NUL bytes end it. */
static char *take(const uint8_t **data, size_t *size, size_t max)
{
	const uint8_t *end = memchr(*data, '\n', *size);
	size_t n = end ? (size_t)(end - *data) : *size;
	size_t len = n < max ? n : max;
	char *text = calloc(1, len + 1);

	MUST(text);
	memcpy(text, *data, len);
	*data += n + (end != NULL);
	*size -= n + (end != NULL);
	return text;
}

static bool is_slow(const char *pattern, uint32_t flags)
{
	unsigned n_plus = 0;

	if (!(flags & FILE_REGEX))
		return false;
	if (strchr(pattern, '{'))
		return true;
	for (const char *c = pattern; *c; c++)
		n_plus += *c == '+';
	if (n_plus > PLUS_MAX)
		return true;
	for (const char *c = strchr(pattern, '\\'); c && c[1]; c = strchr(c + 2, '\\'))
		if (c[1] >= '0' && c[1] <= '9')
			return true;
	return false;
}

static void check_match(const struct pattern *p, const char *line, size_t from,
			const regmatch_t m[PATTERN_GROUPS])
{
	size_t len = strlen(line);

	MUST(m[0].rm_so >= 0 && (size_t)m[0].rm_so >= from && m[0].rm_so <= m[0].rm_eo);
	MUST((size_t)m[0].rm_eo <= len);
	if (!p->has_regex)
		MUST(memcmp(line + m[0].rm_so, p->text, p->len) == 0);
	for (size_t i = 1; p->has_regex && i < PATTERN_GROUPS; i++)
		MUST(m[i].rm_so < 0 || (m[i].rm_so <= m[i].rm_eo && (size_t)m[i].rm_eo <= len));
}

static void replace_all(const struct pattern *p, const char *line, const char *with)
{
	_cleanup_(buf_done) struct buf to = { .max = 1 << 20 };
	size_t len = strlen(line), from = 0;
	regmatch_t m[PATTERN_GROUPS];

	while (from <= len && pattern_find(p, line, len, from, m) == 1) {
		check_match(p, line, from, m);
		MUST(pattern_expand(p, with, line, m, &to) == 0);
		from = (size_t)m[0].rm_eo + (m[0].rm_so == m[0].rm_eo);
	}
	if (!p->has_groups && strcmp(with, p->text) == 0 && !p->has_regex)
		MUST(to.len <= len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_free_ char *pattern = NULL, *with = NULL, *line = NULL;
	struct err err = { 0 };
	struct pattern p;
	uint32_t flags;

	if (size < 1)
		return 0;
	flags = (data[0] & 1 ? FILE_REGEX : 0) | (data[0] & 2 ? FILE_ICASE : 0);
	data++;
	size--;
	pattern = take(&data, &size, PATTERN_MAX);
	with = take(&data, &size, TEXT_MAX);
	line = take(&data, &size, LINE_MAX_);
	if (is_slow(pattern, flags))
		return 0;
	if (pattern_init(&p, pattern, flags, &err) < 0) {
		MUST(err.code > 0 && err.text[0]);
		pattern_done(&p);
		return 0;
	}
	if (pattern_check_replacement(&p, with, &err) == 0)
		replace_all(&p, line, with);
	else
		MUST(p.has_groups && err.code > 0);
	pattern_done(&p);
	return 0;
}
