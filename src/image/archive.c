#include "image/archive.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "base/tar.h"

#define LINKS_MAX 4

struct part {
	struct archive_part place;
	char link[ARCHIVE_NAME_MAX + 1]; /* "": a file */
};

struct archive {
	struct tar_reader tar;
	struct map *parts; /* owned struct part, by name */
	uint64_t next;
	bool is_whole;
};

struct archive *archive_create(void)
{
	struct archive *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	tar_reader_init(&a->tar);
	a->parts = map_create(ARCHIVE_PARTS_MAX);
	return a->parts ? a : archive_free(a);
}

struct archive *archive_free(struct archive *a)
{
	if (!a)
		return NULL;
	if (a->parts)
		MAP_FOREACH (a->parts, it)
			free(it.value);
	(void)map_free(a->parts);
	tar_reader_done(&a->tar);
	free(a);
	return NULL;
}

uint64_t archive_next(const struct archive *a)
{
	return a->next;
}

bool archive_is_whole(const struct archive *a)
{
	return a->is_whole;
}

/* Joins a path to a directory's, without "." and "..". -EINVAL for what leads out or is too long.
 */
static int join(const char *dir, size_t dir_len, const char *path, char *dst)
{
	char text[2 * ARCHIVE_NAME_MAX + 2];
	struct str rest, part;
	size_t n = 0;

	if (path[0] == '/')
		dir_len = 0;
	if (str_format(text, sizeof(text), "%.*s/%s", (int)dir_len, dir, path) < 0)
		return -EINVAL;
	rest = str_of(text);
	dst[0] = '\0';
	while (str_split(&rest, '/', &part)) {
		if (part.len == 0 || str_is(part, "."))
			continue;
		if (str_is(part, "..")) {
			char *slash = strrchr(dst, '/');

			if (n == 0)
				return -EINVAL;
			n = slash ? (size_t)(slash - dst) : 0;
			dst[n] = '\0';
			continue;
		}
		if (n + part.len + 1 > ARCHIVE_NAME_MAX)
			return -EINVAL;
		if (n > 0)
			dst[n++] = '/';
		memcpy(dst + n, part.data, part.len);
		n += part.len;
		dst[n] = '\0';
	}
	return n > 0 ? 0 : -EINVAL;
}

/* Of a name that comes twice, the last is meant, as by whoever unpacks it. */
static int keep(struct archive *a, uint64_t offset, struct err *err)
{
	const struct tar_member *m = &a->tar.member;
	char name[ARCHIVE_NAME_MAX + 1];
	struct part *p;
	void *old = NULL;
	int r;

	if (m->type == TAR_DIR || strlen(m->path) > ARCHIVE_NAME_MAX ||
	    strlen(m->link) > ARCHIVE_NAME_MAX || join("", 0, m->path, name) < 0)
		return 0;
	p = calloc(1, sizeof(*p));
	if (!p)
		return err_sys(err, ENOMEM, "image");
	p->place = (struct archive_part){ offset, m->size };
	(void)str_format(p->link, sizeof(p->link), "%s%s", m->type == TAR_HARDLINK ? "/" : "",
			 m->link);
	r = map_put(a->parts, name, strlen(name), p, &old);
	free(old);
	if (r == 0)
		return 0;
	free(p);
	return r == -E2BIG ? err_set(err, E2BIG, "image: more than %u files in the archive",
				     ARCHIVE_PARTS_MAX)
			   : err_sys(err, r, "image");
}

int archive_take(struct archive *a, const void *data, size_t n, struct err *err)
{
	const uint8_t *p = data;
	uint64_t skip;
	int r = 0;

	while (n > 0 && r >= 0 && !a->is_whole) {
		size_t before = n;

		r = tar_read(&a->tar, &p, &n, err);
		a->next += before - n;
		if (r == TAR_END)
			a->is_whole = true;
		if (r != TAR_MEMBER)
			continue;
		r = keep(a, a->next, err);
		skip = tar_skip(&a->tar);
		if (skip > INT64_MAX - a->next)
			return err_set(err, EBADMSG, "image: a size in the archive is malformed");
		a->next += skip;
		if (skip >= n)
			return r;
		p += skip;
		n -= (size_t)skip;
	}
	return r < 0 ? r : 0;
}

int archive_find(const struct archive *a, const char *name, struct archive_part *ret)
{
	char path[ARCHIVE_NAME_MAX + 1], next[ARCHIVE_NAME_MAX + 1];

	if (strlen(name) > ARCHIVE_NAME_MAX || join("", 0, name, path) < 0)
		return -ENOENT;
	for (int i = 0; i <= LINKS_MAX; i++) {
		const struct part *p = map_get(a->parts, path, strlen(path));
		const char *slash = strrchr(path, '/');

		if (!p)
			return -ENOENT;
		if (p->link[0] == '\0') {
			*ret = p->place;
			return 0;
		}
		if (join(path, slash ? (size_t)(slash - path) : 0, p->link, next) < 0)
			return -ENOENT;
		(void)str_copy(path, sizeof(path), next);
	}
	return -ENOENT;
}
