#include "image/filter.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"

#define WHITEOUT ".wh."
#define OPAQUE ".wh..wh..opq"
#define HIDDEN ".wh..wh." /* what a file system of old kept for itself */
#define HEADERS 8192u     /* bytes of headers that a member may have, on average */

static int write_whiteouts(const struct buf *white, struct buf *out)
{
	const char *p = buf_str(white), *end = p + white->len;
	int r = 0;

	for (; p < end && r == 0; p += strlen(p) + 1)
		r = tar_write_member(
			out, &(struct tar_member){ .type = TAR_FILE, .path = p, .link = "" });
	return r;
}

int filter_init(struct filter *f, const struct filter_limits *limits, struct filter_count *count,
		struct buf *white, struct buf *out)
{
	*f = (struct filter){ .limits = limits, .count = count, .white = white, .out = out };
	tar_reader_init(&f->tar);
	f->tar.skips_special = true;
	return white && out ? write_whiteouts(white, out) : 0;
}

void filter_done(struct filter *f)
{
	if (f->limits)
		tar_reader_done(&f->tar);
	*f = (struct filter){ 0 };
}

/* Without "." and empty parts; the last part's name is *ret_name. */
static int clean(const char *path, char dst[TAR_PATH], const char **ret_name, struct err *err)
{
	struct str rest = str_of(path), part;
	unsigned depth = 0;
	size_t n = 0;

	*ret_name = dst;
	while (str_split(&rest, '/', &part)) {
		if (part.len == 0 || str_is(part, "."))
			continue;
		if (str_is(part, ".."))
			return err_set(err, EINVAL, "image: '%.150s' leads out of it", path);
		if (part.len > 255 || ++depth > FILTER_DEPTH_MAX)
			return err_set(err, EFBIG, "image: '%.100s...': too long or too deep",
				       path);
		if (n > 0)
			dst[n++] = '/';
		*ret_name = dst + n;
		memcpy(dst + n, part.data, part.len); /* fits: it is not longer than before */
		n += part.len;
	}
	dst[n] = '\0';
	return 0;
}

static int count_member(struct filter *f, const char *path, struct err *err)
{
	struct filter_count *c = f->count;
	const struct tar_member *m = &f->tar.member;

	if (c->entries >= f->limits->entries)
		return err_set(err, EFBIG, "image: more than %u files", f->limits->entries);
	if (m->size > f->limits->bytes - c->bytes)
		return err_set(err, EFBIG, "image: '%.80s': its files are more than %llu bytes",
			       path, (unsigned long long)f->limits->bytes);
	c->entries++;
	c->bytes += m->size;
	return 0;
}

static uint32_t known_id(uint32_t id)
{
	return id <= FILTER_ID_MAX ? id : FILTER_NOBODY;
}

static int write_member(struct filter *f, const char *path, struct err *err)
{
	struct tar_member m = f->tar.member;
	char link[TAR_PATH];
	const char *name;
	int r = 0;

	m.path = path;
	m.uid = known_id(m.uid);
	m.gid = known_id(m.gid);
	if (m.type == TAR_HARDLINK) { /* another member's path; a symbolic link may say anything */
		r = clean(m.link, link, &name, err);
		if (r == 0 && link[0] == '\0')
			r = err_set(err, EINVAL, "image: '%.150s' is a link to nothing", path);
		m.link = link;
	}
	if (r < 0 || !f->out)
		return r;
	r = tar_write_member(f->out, &m);
	return r == -EINVAL ? err_set(err, EINVAL, "image: '%.150s': no such name can be", path)
	       : r < 0      ? err_sys(err, r, "image")
			    : 0;
}

/* True: it is no file, but says something about one of a layer below. */
static bool is_whiteout(const char *name)
{
	return strncmp(name, WHITEOUT, sizeof(WHITEOUT) - 1) == 0;
}

static int on_whiteout(struct filter *f, const char *path, const char *name, struct err *err)
{
	int r = 0;

	if (!f->white ||
	    (strncmp(name, HIDDEN, sizeof(HIDDEN) - 1) == 0 && strcmp(name, OPAQUE) != 0)) {
		f->count->skipped++;
		return 0;
	}
	if (!f->out)
		r = buf_append(f->white, path, strlen(path) + 1);
	return r < 0 ? err_sys(err, r, "image: whiteouts") : 0;
}

static int on_member(struct filter *f, struct err *err)
{
	const struct tar_member *m = &f->tar.member;
	char path[TAR_PATH];
	const char *name;
	int r = clean(m->path, path, &name, err);

	f->is_kept = false;
	if (r == 0)
		r = count_member(f, path, err);
	if (r < 0)
		return r;
	if (is_whiteout(name))
		return on_whiteout(f, path, name, err);
	if (path[0] == '\0') /* the root itself */
		return m->type == TAR_DIR ? 0 : err_set(err, EINVAL, "image: a file has no name");
	f->is_kept = f->out != NULL;
	return write_member(f, path, err);
}

static int on_event(struct filter *f, int event, struct err *err)
{
	static const char zeros[TAR_BLOCK];
	int r = 0;

	if (event == TAR_MEMBER)
		return on_member(f, err);
	if (!f->is_kept)
		return 0;
	if (event == TAR_DATA)
		r = buf_append(f->out, f->tar.data, f->tar.data_len);
	else if (event == TAR_DONE)
		r = buf_append(f->out, zeros, tar_padding(f->tar.member.size));
	return r < 0 ? err_sys(err, r, "image") : 0;
}

int filter_take(struct filter *f, const void *data, size_t n, struct err *err)
{
	uint64_t before = f->tar.skipped;
	const uint8_t *p = data;
	int r;

	/* Headers without files, and bytes behind the end, are bounded, too. */
	f->count->stream += n;
	if (f->count->stream / HEADERS > f->limits->entries + f->limits->bytes / HEADERS)
		return err_set(err, EFBIG, "image: it unpacks to more than its files can be");
	while ((r = tar_read(&f->tar, &p, &n, err)) > 0) {
		r = on_event(f, r, err);
		if (r < 0)
			return r;
	}
	f->count->skipped += f->tar.skipped - before;
	return r;
}

int filter_finish(const struct filter *f, struct err *err)
{
	/* Some write layers without an end mark; that all is there, the digest says. */
	if (f->white && f->tar.state == TAR_IN_HEADER && f->tar.block_len == 0)
		return 0;
	return tar_read_finish(&f->tar, err);
}
