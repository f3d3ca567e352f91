/* Replace: another text for what matches, file by file. Each file is changed in one step or not at
 * all; what one cannot take does not keep the others from it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/map.h"
#include "base/str.h"
#include "guest/pattern.h"
#include "guest/search.h"
#include "guest/temp.h"
#include "spec/file_version.h"

#define READ_BYTES (64u << 10)

struct replace {
	struct search search;
	struct pattern pattern;
	const char *to;    /* borrowed */
	struct map *made;  /* owned: files that we wrote. A directory may list them again */
	struct buf before; /* of one file */
	struct buf after;
};

/* The whole file. -EFBIG, or -EILSEQ when it is no text. */
static int read_text(struct replace *p, int fd, const struct stat *st)
{
	ssize_t n;

	if ((uint64_t)st->st_size > GUEST_REPLACE_MAX)
		return -EFBIG;
	buf_clear(&p->before);
	for (;;) {
		if (buf_reserve(&p->before, READ_BYTES) < 0)
			return -EFBIG;
		n = read(fd, p->before.data + p->before.len, READ_BYTES);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		if (memchr(p->before.data + p->before.len, '\0', (size_t)n))
			return -EILSEQ;
		p->before.len += (size_t)n;
	}
	if (n == 0)
		p->before.data[p->before.len] = '\0';
	return n < 0 ? -errno : 0;
}

/* One stretch of text, from before to after. How often, or -errno. */
static int64_t replace_in(struct replace *p, char *text, size_t len)
{
	regmatch_t m[PATTERN_GROUPS];
	int64_t count = 0;
	size_t at = 0;
	int r;

	while ((r = pattern_find(&p->pattern, text, len, at, m)) > 0) {
		size_t begin = (size_t)m[0].rm_so, end = (size_t)m[0].rm_eo;

		(void)buf_append(&p->after, text + at, begin - at);
		r = pattern_expand(&p->pattern, p->to, text, m, &p->after);
		if (r < 0)
			return -EFBIG;
		count++;
		at = end;
		if (begin < end)
			continue;
		/* A match of nothing: go on behind the next byte, else it matches for ever. */
		if (at >= len)
			break;
		(void)buf_putc(&p->after, text[at++]);
	}
	if (r < 0)
		return r;
	(void)buf_append(&p->after, text + at, len - at);
	return p->after.failed ? -EFBIG : count;
}

/* A regular expression sees line by line, without the newline. */
static int64_t replace_lines(struct replace *p)
{
	char *text = p->before.data, *end = text + p->before.len;
	int64_t sum = 0, n = 0;

	while (text < end && n >= 0) {
		char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t len = (size_t)((stop ? stop : end) - text);

		text[len] = '\0';
		n = replace_in(p, text, len);
		sum += n;
		if (stop && buf_putc(&p->after, '\n') < 0)
			return -EFBIG;
		text += len + (stop ? 1 : 0);
	}
	return n < 0 ? n : sum;
}

static int64_t replace_text(struct replace *p)
{
	buf_clear(&p->after);
	if (p->before.len == 0)
		return 0;
	return p->pattern.has_regex ? replace_lines(p)
				    : replace_in(p, p->before.data, p->before.len);
}

struct file_id {
	uint64_t dev, ino;
};

static int remember(struct replace *p, const struct stat *st)
{
	struct file_id id = { st->st_dev, st->st_ino };

	return map_put(p->made, (const char *)&id, sizeof(id), p, NULL);
}

static bool is_made(const struct replace *p, const struct stat *st)
{
	struct file_id id = { st->st_dev, st->st_ino };

	return map_get(p->made, (const char *)&id, sizeof(id)) != NULL;
}

static int write_text(struct replace *p, const struct path_spot *spot, const struct stat *st,
		      struct err *err)
{
	_cleanup_(temp_done) struct temp temp = TEMP_NONE;
	struct guest_entry e = files_entry(st, "", "");
	char version[FILE_VERSION_SIZE];
	struct stat now;
	int r = path_may_write(spot);

	if (r == 0)
		r = temp_open(&temp, spot->dir);
	if (r == 0)
		r = fd_write_all(temp.fd, buf_str(&p->after), p->after.len);
	if (r == 0 && (fchmod(temp.fd, st->st_mode & 0777) < 0 || fstat(temp.fd, &now) < 0))
		r = -errno;
	if (r == 0)
		r = remember(p, &now);
	if (r < 0)
		return err_sys(err, r, "write '%.150s'", spot->name);
	file_version(version, e.inode, e.mtime_ns, e.size);
	return files_commit(p->search.op, &temp, spot, version, err);
}

/* Puts the new text in the old one's place. */
static int change(struct replace *p, const struct walk_entry *e, const struct stat *st,
		  struct err *err)
{
	struct path_spot spot = { .dir = e->dir_fd }; /* borrowed: not given back */
	int late, r = str_copy(spot.name, sizeof(spot.name), e->name);

	if (r < 0)
		return r;
	search_hold(&p->search); /* nothing is left behind when the time is over */
	r = write_text(p, &spot, st, err);
	late = search_release(&p->search, r < 0 ? NULL : err);
	return r < 0 ? r : late;
}

/* Full is full, for all of the files; anything else is one file's matter. */
static bool is_fatal(int r)
{
	return r == -ENOSPC || r == -EDQUOT || r == -ETIMEDOUT || r == -ECANCELED || r == -ENOMEM;
}

/* 1: enough. */
static int replaced(struct replace *p, const struct walk_entry *e, const struct stat *st,
		    int64_t count, struct err *err)
{
	struct guest_found found = {
		.kind = FOUND_FILE, .number = (uint64_t)count, .path = e->path, .text = ""
	};
	struct err why = { 0 };
	int r = 0;

	if (search_count(&p->search))
		return 1;
	if (!(p->search.op->f->flags & FILE_DRY_RUN))
		r = change(p, e, st, &why);
	if (r == 0)
		return search_tell(&p->search, &found);
	if (is_fatal(r)) {
		(void)err_copy(err, &why);
		return r;
	}
	p->search.op->count--;
	return search_skip(&p->search, e->path, why.text);
}

static int replace_file(struct replace *p, const struct walk_entry *e, struct err *err)
{
	struct stat st;
	_close_ int fd = search_open(e, &st);
	int64_t n = fd < 0 ? fd : read_text(p, fd, &st);

	if (n == 0)
		n = replace_text(p);
	if (n > 0)
		return replaced(p, e, &st, n, err);
	if (n == 0)
		return chan_check(&p->search.op->chan);
	if (is_fatal((int)n))
		return (int)n;
	return search_skip(&p->search, e->path,
			   n == -EILSEQ  ? "it is no text"
			   : n == -EFBIG ? "it is too large"
					 : "it cannot be read");
}

static bool is_wanted(const struct replace *p, const struct walk_entry *e)
{
	return S_ISREG(e->st.st_mode) && search_wants(&p->search, e) && !is_made(p, &e->st);
}

static struct replace *replace_free(struct replace *p)
{
	search_done(&p->search);
	pattern_done(&p->pattern);
	buf_done(&p->before);
	buf_done(&p->after);
	p->made = map_free(p->made);
	free(p);
	return NULL;
}
CLEANUP_FUNC(struct replace *, replace_free)

int files_replace(struct fileop *op, struct err *err)
{
	_cleanup_(replace_free_p) struct replace *p = calloc(1, sizeof(*p));
	struct walk_entry e;
	int r;

	if (!p)
		return err_sys(err, ENOMEM, "search");
	buf_init(&p->before, GUEST_REPLACE_MAX + READ_BYTES);
	buf_init(&p->after, GUEST_REPLACE_MAX);
	p->to = op->f->search.replacement;
	p->made = map_create(op->f->search.limit + 1ul);
	if (!p->made)
		return err_sys(err, ENOMEM, "search");
	r = search_begin(&p->search, op, err);
	if (r == 0)
		r = pattern_init(&p->pattern, op->f->search.pattern, op->f->flags, err);
	if (r == 0)
		r = pattern_check_replacement(&p->pattern, p->to, err);
	while (r == 0 && (r = search_next(&p->search, &e, err)) > 0)
		r = is_wanted(p, &e) ? replace_file(p, &e, err) : 0;
	return r < 0 ? r : 0;
}
