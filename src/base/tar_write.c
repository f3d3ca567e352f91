#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/tar.h"

/* The largest numbers that fit into octal fields of 8 and 12 bytes. */
#define OCTAL7_MAX 07777777u
#define OCTAL11_MAX 077777777777ull

static const char type_letters[] = {
	[TAR_FILE] = '0',
	[TAR_HARDLINK] = '1',
	[TAR_SYMLINK] = '2',
	[TAR_DIR] = '5',
};

static void put_octal(char *field, size_t size, uint64_t v)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%0*llo", (int)size - 1, (unsigned long long)v);
	memcpy(field, text, size);
}

static void put_checksum(struct tar_header *h)
{
	const uint8_t *p = (const uint8_t *)h;
	unsigned sum = 0;

	memset(h->checksum, ' ', sizeof(h->checksum));
	for (size_t i = 0; i < sizeof(*h); i++)
		sum += p[i];
	put_octal(h->checksum, 7, sum); /* six digits, NUL, and the blank that is there */
}

static int put_header(struct buf *b, struct tar_header *h)
{
	memcpy(h->magic, "ustar\00000", sizeof(h->magic));
	put_checksum(h);
	return buf_append(b, h, sizeof(*h));
}

/* "LENGTH key=value\n", where LENGTH counts itself. */
static int put_record(struct buf *b, const char *key, const char *value)
{
	size_t rest = strlen(key) + strlen(value) + 3;
	size_t len = rest + 1;

	for (;;) {
		size_t digits = (size_t)snprintf(NULL, 0, "%zu", len);

		if (len == rest + digits)
			break;
		len = rest + digits;
	}
	return buf_printf(b, "%zu %s=%s\n", len, key, value);
}

static int put_mtime(struct buf *b, const struct tar_member *m)
{
	uint64_t sec = (uint64_t)m->mtime_sec;
	uint32_t nsec = m->mtime_nsec;
	char text[48];

	if (m->mtime_sec < 0) { /* -2 s and 0.4 s are -1.6 s */
		sec = 0 - sec - (nsec > 0);
		nsec = nsec > 0 ? 1000000000 - nsec : 0;
	}
	(void)snprintf(text, sizeof(text), "%s%llu.%09u", m->mtime_sec < 0 ? "-" : "",
		       (unsigned long long)sec, nsec);
	return put_record(b, "mtime", text);
}

/* The name into the header, with its front in the prefix when that is needed and helps. */
static bool put_name(struct tar_header *h, const char *path, size_t n)
{
	const char *slash;
	size_t front;

	if (n <= sizeof(h->name)) {
		memcpy(h->name, path, n);
		return true;
	}
	slash = memchr(path + n - sizeof(h->name) - 1, '/', sizeof(h->name));
	front = slash ? (size_t)(slash - path) : 0;
	if (front == 0 || front > sizeof(h->prefix)) {
		memcpy(h->name, path, sizeof(h->name));
		return false;
	}
	memcpy(h->prefix, path, front);
	memcpy(h->name, slash + 1, n - front - 1);
	return true;
}

static bool put_link(struct tar_header *h, const char *link)
{
	size_t n = strlen(link);

	memcpy(h->link, link, n < sizeof(h->link) ? n : sizeof(h->link));
	return n <= sizeof(h->link);
}

/* What does not fit into the header goes before it, as a member of type x. */
static int put_extended(struct buf *b, const struct buf *records)
{
	struct tar_header h = { .name = "PaxHeaders/next", .type = 'x' };
	int r = buf_reserve(b, sizeof(h) + records->len + TAR_BLOCK);

	if (r < 0)
		return r;
	put_octal(h.mode, sizeof(h.mode), 0644);
	put_octal(h.uid, sizeof(h.uid), 0);
	put_octal(h.gid, sizeof(h.gid), 0);
	put_octal(h.size, sizeof(h.size), records->len);
	put_octal(h.mtime, sizeof(h.mtime), 0);
	(void)put_header(b, &h); /* there is room for all three */
	(void)buf_append(b, records->data, records->len);
	return buf_append(b, (const char[TAR_BLOCK]){ 0 }, tar_padding(records->len));
}

static void put_id(struct buf *b, const char *key, uint32_t id)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%u", id);
	if (id > OCTAL7_MAX)
		(void)put_record(b, key, text);
}

static void put_numbers(struct tar_header *h, const struct tar_member *m)
{
	bool late = m->mtime_sec < 0 || (uint64_t)m->mtime_sec > OCTAL11_MAX;

	put_octal(h->mode, sizeof(h->mode), m->mode & 07777);
	put_octal(h->uid, sizeof(h->uid), m->uid <= OCTAL7_MAX ? m->uid : 0);
	put_octal(h->gid, sizeof(h->gid), m->gid <= OCTAL7_MAX ? m->gid : 0);
	put_octal(h->size, sizeof(h->size), m->size <= OCTAL11_MAX ? m->size : 0);
	put_octal(h->mtime, sizeof(h->mtime), late ? 0 : (uint64_t)m->mtime_sec);
}

static int write_headers(struct buf *b, const struct tar_member *m, struct buf *records)
{
	struct tar_header h = { .type = type_letters[m->type] };
	char path[TAR_PATH + 1], size[24];
	int n, r;

	/* Readers of the old format know a directory by its slash. */
	n = snprintf(path, sizeof(path), "%s%s", m->path, m->type == TAR_DIR ? "/" : "");
	if (!put_name(&h, path, (size_t)n))
		(void)put_record(records, "path", path);
	if (!put_link(&h, m->link))
		(void)put_record(records, "linkpath", m->link);
	if (m->size > OCTAL11_MAX) {
		(void)snprintf(size, sizeof(size), "%llu", (unsigned long long)m->size);
		(void)put_record(records, "size", size);
	}
	if (m->mtime_nsec != 0 || m->mtime_sec < 0 || (uint64_t)m->mtime_sec > OCTAL11_MAX)
		(void)put_mtime(records, m);
	put_id(records, "uid", m->uid);
	put_id(records, "gid", m->gid);
	if (records->failed)
		return -ENOMEM;
	put_numbers(&h, m);
	r = records->len > 0 ? put_extended(b, records) : 0;
	return r < 0 ? r : put_header(b, &h);
}

int tar_write_member(struct buf *b, const struct tar_member *m)
{
	size_t n = strlen(m->path);
	struct buf records;
	int r;

	if (n == 0 || n + (m->type == TAR_DIR) >= TAR_PATH || m->path[n - 1] == '/' ||
	    strlen(m->link) >= TAR_PATH || m->size > INT64_MAX || m->mtime_nsec >= 1000000000)
		return -EINVAL;
	buf_init(&records, TAR_META_MAX);
	r = write_headers(b, m, &records);
	buf_done(&records);
	return r;
}

size_t tar_padding(uint64_t size)
{
	return (size_t)(-size % TAR_BLOCK);
}

int tar_write_end(struct buf *b)
{
	static const char zeros[2 * TAR_BLOCK];

	return buf_append(b, zeros, sizeof(zeros));
}
