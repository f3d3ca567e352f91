#include "image/stream.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

#include "base/err.h"

#define CHUNK (64u << 10)
#define WINDOW (15 + 16) /* zlib's largest, with a gzip header */

struct stream {
	int fd; /* borrowed */
	uint64_t offset, left;
	struct hash *file, *plain; /* owned */
	z_stream zip;
	bool is_zip, has_zip; /* it is gzip; between its beginning and its end */
	bool is_known;        /* the first bytes were looked at */
	uint8_t *data;        /* owned: what was read and not used */
	size_t at, len;
};

int stream_create(int fd, uint64_t offset, uint64_t size, struct stream **ret, struct err *err)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (!s)
		return err_sys(err, ENOMEM, "image");
	s->fd = fd;
	s->offset = offset;
	s->left = size;
	s->data = malloc(CHUNK);
	s->file = hash_create();
	s->plain = hash_create();
	if (!s->data || !s->file || !s->plain) {
		(void)stream_free(s);
		return err_sys(err, ENOMEM, "image");
	}
	*ret = s;
	return 0;
}

struct stream *stream_free(struct stream *s)
{
	if (!s)
		return NULL;
	if (s->is_zip)
		(void)inflateEnd(&s->zip);
	(void)hash_free(s->file);
	(void)hash_free(s->plain);
	free(s->data);
	free(s);
	return NULL;
}

/* 1 while there is something in data; 0 at the end of the part. */
static int fill(struct stream *s, struct err *err)
{
	size_t want = s->left < CHUNK ? (size_t)s->left : CHUNK;
	ssize_t n;

	if (s->at < s->len)
		return 1;
	if (want == 0)
		return 0;
	do
		n = pread(s->fd, s->data, want, (off_t)s->offset);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(err, errno, "image: read");
	if (n == 0)
		return err_set(err, EBADMSG, "image: the file is cut off");
	s->at = 0;
	s->len = (size_t)n;
	s->offset += (uint64_t)n;
	s->left -= (uint64_t)n;
	return hash_update(s->file, s->data, s->len) < 0 ? err_sys(err, EIO, "image: digest") : 1;
}

static bool begins(const struct stream *s, const char *magic, size_t n)
{
	return s->len - s->at >= n && memcmp(s->data + s->at, magic, n) == 0;
}

/* How the bytes are packed; 1 when that is known. */
static int look(struct stream *s, struct err *err)
{
	int r;

	s->is_known = true;
	if (begins(s, "\x28\xb5\x2f\xfd", 4))
		return err_set(err, ENOTSUP,
			       "image: a layer is compressed with zstd: only gzip is known");
	if (begins(s, "BZh", 3) || begins(s,
					  "\xfd"
					  "7zXZ",
					  5))
		return err_set(err, ENOTSUP, "image: only gzip is known as compression");
	if (!begins(s, "\x1f\x8b", 2))
		return 1;
	r = inflateInit2(&s->zip, WINDOW);
	if (r != Z_OK)
		return err_sys(err, ENOMEM, "image: gzip");
	s->is_zip = s->has_zip = true;
	return 1;
}

/* Some compressors write several streams, one behind the other; zeros may fill up the rest. */
static int next_zip(struct stream *s, struct err *err)
{
	s->has_zip = begins(s, "\x1f\x8b", 2);
	if (s->has_zip && inflateReset(&s->zip) != Z_OK)
		return err_set(err, EBADMSG, "image: gzip data is damaged");
	return 0;
}

static ssize_t unzip(struct stream *s, void *dst, size_t n, struct err *err)
{
	int r;

	s->zip.next_in = s->data + s->at;
	s->zip.avail_in = (unsigned)(s->len - s->at);
	s->zip.next_out = dst;
	s->zip.avail_out = (unsigned)n;
	r = inflate(&s->zip, Z_NO_FLUSH);
	s->at = s->len - s->zip.avail_in;
	if (r == Z_MEM_ERROR)
		return err_sys(err, ENOMEM, "image: gzip");
	if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
		return err_set(err, EBADMSG, "image: gzip data is damaged");
	n -= s->zip.avail_out;
	if (r == Z_STREAM_END) {
		s->has_zip = false;
		r = fill(s, err); /* what follows may be in the next piece */
		if (r > 0)
			r = next_zip(s, err);
		if (r < 0)
			return r;
	}
	return (ssize_t)n;
}

static ssize_t copy(struct stream *s, void *dst, size_t n)
{
	size_t part = s->len - s->at < n ? s->len - s->at : n;

	memcpy(dst, s->data + s->at, part);
	s->at += part;
	return (ssize_t)part;
}

/* Of a part behind the last stream: it counts for the file's digest alone. */
static int pass_rest(struct stream *s, struct err *err)
{
	int r;

	do {
		s->at = s->len;
		r = fill(s, err);
	} while (r > 0);
	return r;
}

ssize_t stream_read(struct stream *s, void *dst, size_t n, struct err *err)
{
	ssize_t got = 0;

	while (got == 0) {
		int r = fill(s, err);

		if (r > 0 && !s->is_known)
			r = look(s, err);
		if (r > 0 && s->is_zip && !s->has_zip)
			r = pass_rest(s, err);
		if (r == 0 && s->has_zip)
			return err_set(err, EBADMSG, "image: gzip data is cut off");
		if (r <= 0)
			return r;
		got = s->is_zip ? unzip(s, dst, n, err) : copy(s, dst, n);
	}
	if (got > 0 && hash_update(s->plain, dst, (size_t)got) < 0)
		return err_sys(err, EIO, "image: digest");
	return got;
}

int stream_sums(struct stream *s, uint8_t ret_file[HASH_LEN], uint8_t ret_plain[HASH_LEN])
{
	int r = hash_final(s->file, ret_file);

	return r < 0 ? r : hash_final(s->plain, ret_plain);
}
