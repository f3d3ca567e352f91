/* Grep: lines of files that match, with lines around them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "guest/pattern.h"
#include "guest/search.h"

#define READ_BYTES GUEST_LINE_LOOK

/* A file line by line. The bytes of a line beyond GUEST_LINE_LOOK are passed over. */
struct lines {
	int fd;        /* borrowed */
	uint64_t left; /* bytes of the file that it had when it was opened */
	size_t at, len;
	bool is_passing; /* the rest of a long line */
	char data[GUEST_LINE_LOOK + READ_BYTES + 1];
};

struct line {
	const char *text; /* borrowed until the next */
	size_t len;
	uint64_t number;
	bool is_cut;
};

struct kept_line {
	uint64_t number;
	bool is_cut;
	char text[GUEST_LINE_MAX + 1];
};

struct grep {
	struct search search;
	struct pattern pattern;
	struct lines lines;
	struct kept_line *before; /* owned: the newest lines, a ring of search.context */
	unsigned n_before;        /* that wait in it */
	unsigned after;           /* lines still to be told behind a match */
};

static void lines_begin(struct lines *l, int fd, const struct stat *st)
{
	l->fd = fd;
	/* A file that grows must have an end; those of the kernel say 0 and have contents. */
	l->left = st->st_size > 0 ? (uint64_t)st->st_size : INT64_MAX;
	l->at = l->len = 0;
	l->is_passing = false;
}

/* 1 with more bytes behind those that are there, 0 at the end, -EILSEQ when they are no text. */
static int lines_fill(struct lines *l)
{
	size_t want = l->left < READ_BYTES ? (size_t)l->left : READ_BYTES;
	ssize_t n;

	memmove(l->data, l->data + l->at, l->len - l->at);
	l->len -= l->at;
	l->at = 0;
	do
		n = read(l->fd, l->data + l->len, want);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : 0;
	if (memchr(l->data + l->len, '\0', (size_t)n))
		return -EILSEQ;
	l->len += (size_t)n;
	l->left -= (uint64_t)n;
	return 1;
}

static void lines_give(struct lines *l, size_t len, struct line *ret)
{
	ret->is_cut = len > GUEST_LINE_LOOK;
	ret->len = ret->is_cut ? GUEST_LINE_LOOK : len;
	ret->text = l->data + l->at;
	ret->number++;
	l->data[l->at + ret->len] = '\0'; /* on its newline, or on what is passed over */
	l->at += len;
}

/* 1 with a line, 0 at the end. ret->number goes on from where it is. */
static int lines_next(struct lines *l, struct line *ret)
{
	int r;

	for (;;) {
		size_t have = l->len - l->at;
		const char *end = memchr(l->data + l->at, '\n', have);

		if (end && l->is_passing) {
			l->at = (size_t)(end - l->data) + 1;
			l->is_passing = false;
			continue;
		}
		if (end) {
			lines_give(l, (size_t)(end - (l->data + l->at)), ret);
			l->at++;
			return 1;
		}
		if (l->is_passing)
			l->at = l->len;
		else if (have > GUEST_LINE_LOOK) {
			lines_give(l, have, ret);
			l->is_passing = true;
			return 1;
		}
		r = lines_fill(l);
		if (r < 0)
			return r;
		if (r == 0 && l->len == 0)
			return 0;
		if (r == 0) { /* the last line has no newline */
			lines_give(l, l->len, ret);
			return 1;
		}
	}
}

/* No half of a character at either end. */
static bool is_inside(char c)
{
	return ((unsigned char)c & 0xc0u) == 0x80;
}

/* As much of a line as is told, so that what matched is in it. */
static bool cut_line(const struct line *line, size_t from, size_t max, char *dst)
{
	size_t begin = 0, end = line->len;

	if (line->len > max) {
		begin = from > max - max / 4 ? from - max / 4 : 0;
		end = line->len - begin > max ? begin + max : line->len;
		while (begin < from && is_inside(line->text[begin]))
			begin++;
		while (end > begin && end < line->len && is_inside(line->text[end]))
			end--;
	}
	memcpy(dst, line->text + begin, end - begin);
	dst[end - begin] = '\0';
	return line->is_cut || begin > 0 || end < line->len;
}

static size_t line_bytes(const struct grep *g)
{
	uint32_t n = g->search.op->f->search.line_bytes;

	return n ? n : GUEST_LINE_MAX;
}

static void keep_before(struct grep *g, const struct line *line)
{
	unsigned context = g->search.op->f->search.context;
	struct kept_line *k;

	if (context == 0)
		return;
	k = &g->before[line->number % context];
	k->number = line->number;
	k->is_cut = cut_line(line, 0, line_bytes(g), k->text);
	if (g->n_before < context)
		g->n_before++;
}

static int tell_before(struct grep *g, const char *path, uint64_t number)
{
	unsigned context = g->search.op->f->search.context;
	int r = 0;

	for (uint64_t i = number - g->n_before; r == 0 && i < number; i++) {
		const struct kept_line *k = &g->before[i % context];
		struct guest_found f = { FOUND_CONTEXT, k->is_cut, 0, k->number, path, k->text };

		r = search_tell(&g->search, &f);
	}
	g->n_before = 0;
	return r;
}

static int tell_line(struct grep *g, const char *path, const struct line *line,
		     const regmatch_t *match)
{
	char text[GUEST_LINE_MAX + 1];
	size_t from = match ? (size_t)match->rm_so : 0;
	struct guest_found f = {
		.kind = match ? FOUND_MATCH : FOUND_CONTEXT,
		.is_cut = cut_line(line, from, line_bytes(g), text),
		.column = match ? (uint32_t)from + 1 : 0,
		.number = line->number,
		.path = path,
		.text = text,
	};

	return search_tell(&g->search, &f);
}

/* 1: enough for this file; -E2BIG: for all of them. */
static int matched(struct grep *g, const char *path, const struct line *line,
		   const regmatch_t *match)
{
	int r;

	if (search_count(&g->search))
		return -E2BIG;
	if (g->search.op->f->flags & FILE_NAMES) {
		r = search_tell(&g->search, &(struct guest_found){ FOUND_FILE, 0, 0, 1, path, "" });
		return r < 0 ? r : 1;
	}
	r = tell_before(g, path, line->number);
	if (r == 0)
		r = tell_line(g, path, line, match);
	g->after = g->search.op->f->search.context;
	return r;
}

static int look_at(struct grep *g, const char *path, const struct line *line)
{
	regmatch_t match[PATTERN_GROUPS];
	int r = pattern_find(&g->pattern, line->text, line->len, 0, match);

	if (r != 0)
		return r < 0 ? r : matched(g, path, line, &match[0]);
	if (g->after > 0) {
		g->after--;
		return tell_line(g, path, line, NULL);
	}
	keep_before(g, line);
	return 0;
}

static int look_through(struct grep *g, const char *path)
{
	struct line line = { 0 };
	size_t at = 0;
	int r;

	g->n_before = g->after = 0;
	while ((r = lines_next(&g->lines, &line)) > 0) {
		if (g->lines.at < at) { /* another part was read */
			r = chan_check(&g->search.op->chan);
			if (r < 0)
				return r;
		}
		at = g->lines.at;
		r = look_at(g, path, &line);
		if (r != 0)
			return r;
	}
	return r;
}

/* 1: the search is over. */
static int grep_file(struct grep *g, const struct walk_entry *e)
{
	struct stat st;
	_close_ int fd = search_open(e, &st);
	int r;

	if (fd < 0)
		return search_skip(&g->search, e->path, "it cannot be read");
	lines_begin(&g->lines, fd, &st);
	r = look_through(g, e->path);
	if (r == -EILSEQ)
		return search_skip(&g->search, e->path, "it is no text");
	if (r == -E2BIG)
		return 1;
	if (r == -EIO || r == -EAGAIN || r == -EPERM || r == -EACCES)
		return search_skip(&g->search, e->path, "it cannot be read");
	return r < 0 ? r : 0;
}

static struct grep *grep_free(struct grep *g)
{
	search_done(&g->search);
	pattern_done(&g->pattern);
	free(g->before);
	free(g);
	return NULL;
}
CLEANUP_FUNC(struct grep *, grep_free)

static int begin(struct grep *g, struct fileop *op, struct err *err)
{
	uint32_t context = op->f->search.context;
	int r = search_begin(&g->search, op, err);

	if (r == 0 && strchr(op->f->search.pattern, '\n'))
		r = err_set(err, EINVAL, "a pattern with a newline matches no line");
	if (r == 0)
		r = pattern_init(&g->pattern, op->f->search.pattern, op->f->flags, err);
	if (r == 0 && context > 0) {
		g->before = calloc(context, sizeof(*g->before));
		if (!g->before)
			r = err_sys(err, ENOMEM, "search");
	}
	return r;
}

int files_grep(struct fileop *op, struct err *err)
{
	_cleanup_(grep_free_p) struct grep *g = calloc(1, sizeof(*g));
	struct walk_entry e;
	int r;

	if (!g)
		return err_sys(err, ENOMEM, "search");
	r = begin(g, op, err);
	while (r == 0 && (r = search_next(&g->search, &e, err)) > 0)
		r = S_ISREG(e.st.st_mode) && search_wants(&g->search, &e) ? grep_file(g, &e) : 0;
	return r < 0 ? r : 0;
}
