#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/tar.h"

#define NSEC 1000000000u

void tar_reader_init(struct tar_reader *t)
{
	memset(t, 0, sizeof(*t));
	buf_init(&t->meta, TAR_META_MAX);
}

void tar_reader_done(struct tar_reader *t)
{
	buf_done(&t->meta);
}

/* --- numbers ------------------------------------------------------------------------------- */

/* GNU's way for what octal digits cannot hold: two's complement, big-endian, first bit set. */
static int base256(const uint8_t *field, size_t n, int64_t *ret)
{
	uint64_t v = field[0] & 0x40 ? UINT64_MAX : 0;
	const uint64_t sign = v;

	v = v << 6 | (field[0] & 0x3f);
	for (size_t i = 1; i < n; i++) {
		if (v >> 55 != sign >> 55) /* the sign would be shifted out */
			return -ERANGE;
		v = v << 8 | field[i];
	}
	*ret = (int64_t)v;
	return 0;
}

/* Blanks, octal digits, then a blank, a NUL or the field's end. */
static int number(const char *text, size_t n, int64_t *ret)
{
	const uint8_t *field = (const uint8_t *)text;
	int64_t v = 0;
	size_t i = 0;

	if (field[0] & 0x80)
		return base256(field, n, ret);
	while (i < n && field[i] == ' ')
		i++;
	for (; i < n && field[i] != ' ' && field[i] != '\0'; i++) {
		if (field[i] < '0' || field[i] > '7')
			return -EBADMSG;
		v = v << 3 | (field[i] - '0'); /* at most 12 digits: 36 bits */
	}
	*ret = v;
	return 0;
}

/* Decimal digits up to `end`; at least one, all of them. */
static int decimal(const char *p, const char *end, uint64_t *ret)
{
	uint64_t v = 0;

	if (p == end)
		return -EBADMSG;
	for (; p < end; p++) {
		if (*p < '0' || *p > '9')
			return -EBADMSG;
		uint64_t digit = (uint64_t)(*p - '0');

		if (v > (INT64_MAX - digit) / 10)
			return -ERANGE;
		v = v * 10 + digit;
	}
	*ret = v;
	return 0;
}

/* --- extended headers ---------------------------------------------------------------------- */

static int keep_text(char *dst, const char *p, size_t n, bool *ret_has)
{
	if (n >= TAR_PATH)
		return -ENAMETOOLONG;
	if (memchr(p, '\0', n))
		return -EBADMSG;
	memcpy(dst, p, n);
	dst[n] = '\0';
	*ret_has = n > 0; /* an empty value takes back what was said */
	return 0;
}

static int on_path(struct tar_extra *x, const char *p, size_t n)
{
	return keep_text(x->path, p, n, &x->has_path);
}

static int on_link(struct tar_extra *x, const char *p, size_t n)
{
	return keep_text(x->link, p, n, &x->has_link);
}

static int on_size(struct tar_extra *x, const char *p, size_t n)
{
	int r = n > 0 ? decimal(p, p + n, &x->size) : 0;

	x->has_size = n > 0 && r == 0;
	return r;
}

/* "-12.345": seconds with any number of digits behind the point. */
static int on_mtime(struct tar_extra *x, const char *p, size_t n)
{
	const char *end = p + n;
	bool negative = n > 0 && *p == '-';
	const char *point;
	uint64_t sec, nsec = 0;
	uint32_t unit = NSEC;
	int r;

	x->has_mtime = n > 0;
	if (n == 0)
		return 0;
	p += negative;
	point = memchr(p, '.', (size_t)(end - p));
	r = decimal(p, point ? point : end, &sec);
	if (r < 0)
		return r;
	for (p = point ? point + 1 : end; p < end; p++) {
		if (*p < '0' || *p > '9')
			return -EBADMSG;
		unit /= 10;
		nsec += unit * (uint64_t)(*p - '0');
	}
	x->mtime_sec = negative ? -(int64_t)sec - (nsec > 0) : (int64_t)sec;
	x->mtime_nsec = (uint32_t)(negative && nsec > 0 ? NSEC - nsec : nsec);
	return 0;
}

static int on_id(const char *p, size_t n, uint32_t *ret, bool *ret_has)
{
	uint64_t v;

	*ret_has = n > 0;
	*ret = n > 0 && decimal(p, p + n, &v) == 0 && v < TAR_ID_NONE ? (uint32_t)v : TAR_ID_NONE;
	return 0;
}

static int on_uid(struct tar_extra *x, const char *p, size_t n)
{
	return on_id(p, n, &x->uid, &x->has_uid);
}

static int on_gid(struct tar_extra *x, const char *p, size_t n)
{
	return on_id(p, n, &x->gid, &x->has_gid);
}

static int on_sparse(struct tar_extra *x, const char *p, size_t n)
{
	(void)x;
	(void)p;
	(void)n;
	return -ENOTSUP; /* without its map the contents would be wrong */
}

static const struct {
	const char *key; /* a last '.' stands for every key that begins so */
	int (*take)(struct tar_extra *x, const char *value, size_t n);
} keys[] = {
	{ "path", on_path },   { "linkpath", on_link },      { "size", on_size },
	{ "mtime", on_mtime }, { "GNU.sparse.", on_sparse }, { "uid", on_uid },
	{ "gid", on_gid },
};

static int on_record(struct tar_extra *x, const char *key, size_t key_len, const char *value,
		     size_t n)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		size_t len = strlen(keys[i].key);
		bool whole = keys[i].key[len - 1] != '.';

		if (key_len >= len && memcmp(key, keys[i].key, len) == 0 &&
		    (!whole || key_len == len))
			return keys[i].take(x, value, n);
	}
	return 0; /* names of owners, extended attributes, comments: not for us */
}

static int parse_records(struct tar_extra *x, const char *p, size_t n)
{
	while (n > 0) {
		const char *blank = memchr(p, ' ', n < 20 ? n : 20);
		const char *equals;
		uint64_t len;

		if (!blank || decimal(p, blank, &len) < 0 || len > n || p + len <= blank + 1 ||
		    p[len - 1] != '\n')
			return -EBADMSG;
		equals = memchr(blank + 1, '=', (size_t)(p + len - 1 - (blank + 1)));
		if (!equals)
			return -EBADMSG;
		int r = on_record(x, blank + 1, (size_t)(equals - blank - 1), equals + 1,
				  (size_t)(p + len - 1 - (equals + 1)));
		if (r < 0)
			return r;
		p += len;
		n -= len;
	}
	return 0;
}

static int apply_meta(struct tar_reader *t, struct err *err)
{
	const char *p = buf_str(&t->meta);
	int r;

	if (t->meta_type == 'x')
		r = parse_records(&t->extra, p, t->meta.len);
	else if (t->meta_type == 'L')
		r = on_path(&t->extra, p, strnlen(p, t->meta.len));
	else
		r = on_link(&t->extra, p, strnlen(p, t->meta.len));
	buf_clear(&t->meta);
	if (r == -ENOTSUP)
		return err_set(err, ENOTSUP, "archive: sparse members are not supported");
	return r < 0 ? err_sys(err, r, "archive: extended header") : 0;
}

/* --- headers ------------------------------------------------------------------------------- */

static bool is_zero(const uint8_t *block)
{
	for (size_t i = 0; i < TAR_BLOCK; i++)
		if (block[i] != 0)
			return false;
	return true;
}

/* Some old writers summed signed bytes; both sums are taken. */
static bool checksum_is_right(const struct tar_header *h)
{
	const size_t from = offsetof(struct tar_header, checksum);
	const uint8_t *p = (const uint8_t *)h;
	int64_t want, plain = 0, is_signed = 0;

	for (size_t i = 0; i < TAR_BLOCK; i++) {
		uint8_t byte = i - from < sizeof(h->checksum) ? ' ' : p[i];

		plain += byte;
		is_signed += (int8_t)byte;
	}
	return number(h->checksum, sizeof(h->checksum), &want) == 0 &&
	       (want == plain || want == is_signed);
}

static void header_path(const struct tar_header *h, char dst[TAR_PATH])
{
	size_t n = 0;

	/* GNU's own format has other things where ustar has the prefix. */
	if (memcmp(h->magic, "ustar\0", 6) == 0 && h->prefix[0] != '\0') {
		n = strnlen(h->prefix, sizeof(h->prefix));
		memcpy(dst, h->prefix, n);
		dst[n++] = '/';
	}
	memcpy(dst + n, h->name, sizeof(h->name));
	dst[n + strnlen(h->name, sizeof(h->name))] = '\0';
}

static int member_type(const struct tar_header *h, const char *path, enum tar_type *ret,
		       struct err *err)
{
	size_t n = strlen(path);
	bool slash = n > 0 && path[n - 1] == '/';

	switch (h->type) {
	case '\0':
	case '0':
	case '7':
		*ret = slash ? TAR_DIR : TAR_FILE;
		return 0;
	case '1':
		*ret = TAR_HARDLINK;
		return 0;
	case '2':
		*ret = TAR_SYMLINK;
		return 0;
	case '5':
		*ret = TAR_DIR;
		return 0;
	case '3':
	case '4':
	case '6':
		return err_set(err, EPERM, "archive: '%.150s': devices and FIFOs are refused",
			       path);
	default:
		return err_set(err, ENOTSUP,
			       "archive: '%.150s': members of type 0x%02x are unknown", path,
			       (unsigned char)h->type);
	}
}

static void use_text(char *dst, const char *said, bool has)
{
	if (has)
		(void)str_copy(dst, TAR_PATH, said);
}

static uint32_t member_id(const char *field, size_t n, bool has, uint32_t said)
{
	int64_t v;

	if (has)
		return said;
	return number(field, n, &v) == 0 && v >= 0 && v < TAR_ID_NONE ? (uint32_t)v : TAR_ID_NONE;
}

/* The header's own numbers; a member without contents has size 0 whatever its header says. */
static int member_numbers(struct tar_reader *t, const struct tar_header *h)
{
	struct tar_member *m = &t->member;
	int64_t mode, size;

	if (number(h->mode, sizeof(h->mode), &mode) < 0 ||
	    number(h->size, sizeof(h->size), &size) < 0 || size < 0 ||
	    number(h->mtime, sizeof(h->mtime), &m->mtime_sec) < 0)
		return -EBADMSG;
	m->mode = (uint32_t)(mode & 07777);
	m->uid = member_id(h->uid, sizeof(h->uid), t->extra.has_uid, t->extra.uid);
	m->gid = member_id(h->gid, sizeof(h->gid), t->extra.has_gid, t->extra.gid);
	m->size = t->extra.has_size ? t->extra.size : (uint64_t)size;
	if (m->type != TAR_FILE)
		m->size = 0;
	if (t->extra.has_mtime) {
		m->mtime_sec = t->extra.mtime_sec;
		m->mtime_nsec = t->extra.mtime_nsec;
	}
	return 0;
}

static int begin_member(struct tar_reader *t, const struct tar_header *h, struct err *err)
{
	size_t n;
	int r;

	t->member = (struct tar_member){ .path = t->path, .link = t->link };
	header_path(h, t->path);
	use_text(t->path, t->extra.path, t->extra.has_path);
	r = member_type(h, t->path, &t->member.type, err);
	if (r == -EPERM && t->skips_special) {
		err_clear(err);
		t->skipped++;
		memset(&t->extra, 0, offsetof(struct tar_extra, path));
		return TAR_NEED; /* the state is still that of a header to come */
	}
	if (r < 0)
		return r;
	for (n = strlen(t->path); n > 1 && t->path[n - 1] == '/'; n--)
		t->path[n - 1] = '\0';
	if (t->path[0] == '\0')
		return err_set(err, EBADMSG, "archive: a member has no name");
	(void)memcpy(t->link, h->link, sizeof(h->link));
	t->link[strnlen(h->link, sizeof(h->link))] = '\0';
	use_text(t->link, t->extra.link, t->extra.has_link);
	if (t->member.type != TAR_SYMLINK && t->member.type != TAR_HARDLINK)
		t->link[0] = '\0';
	r = member_numbers(t, h);
	if (r < 0)
		return err_set(err, EBADMSG, "archive: '%.150s': a number is malformed", t->path);
	t->left = t->member.size;
	t->padding = tar_padding(t->left);
	t->state = TAR_IN_DATA;
	memset(&t->extra, 0, offsetof(struct tar_extra, path));
	return TAR_MEMBER;
}

static int begin_meta(struct tar_reader *t, const struct tar_header *h, struct err *err)
{
	int64_t size;

	if (number(h->size, sizeof(h->size), &size) < 0 || size < 0)
		return err_set(err, EBADMSG, "archive: an extended header's size is malformed");
	t->meta_type = h->type;
	if (h->type == 'g') { /* defaults for all members: nothing in it concerns us */
		t->padding = (uint64_t)size + tar_padding((uint64_t)size);
		t->state = TAR_IN_PADDING;
		return 0;
	}
	if (size > TAR_META_MAX)
		return err_set(err, E2BIG, "archive: an extended header has %lld bytes, limit %u",
			       (long long)size, TAR_META_MAX);
	t->left = (uint64_t)size;
	t->padding = tar_padding(t->left);
	t->state = TAR_IN_META;
	return 0;
}

/* 0: go on; or an event. */
static int on_header(struct tar_reader *t, struct err *err)
{
	const struct tar_header *h = (const struct tar_header *)t->block;

	if (is_zero(t->block)) {
		t->state = TAR_AT_END;
		return TAR_END;
	}
	if (!checksum_is_right(h))
		return err_set(err, EBADMSG,
			       "not a tar archive (or compressed): a header's checksum is wrong");
	if (h->type == 'x' || h->type == 'g' || h->type == 'L' || h->type == 'K')
		return begin_meta(t, h, err);
	return begin_member(t, h, err);
}

/* --- the states ---------------------------------------------------------------------------- */

static size_t least(size_t a, uint64_t b)
{
	return a < b ? a : (size_t)b;
}

static void use(const uint8_t **data, size_t *n, size_t used)
{
	*data += used;
	*n -= used;
}

static int read_header(struct tar_reader *t, const uint8_t **data, size_t *n, struct err *err)
{
	size_t part = least(*n, TAR_BLOCK - t->block_len);

	memcpy(t->block + t->block_len, *data, part);
	t->block_len += part;
	use(data, n, part);
	if (t->block_len < TAR_BLOCK)
		return TAR_NEED;
	t->block_len = 0;
	return on_header(t, err);
}

static int read_meta(struct tar_reader *t, const uint8_t **data, size_t *n, struct err *err)
{
	size_t part = least(*n, t->left);
	int r = buf_append(&t->meta, *data, part);

	if (r < 0)
		return err_sys(err, r, "archive: extended header");
	use(data, n, part);
	t->left -= part;
	if (t->left > 0)
		return TAR_NEED;
	t->state = TAR_IN_PADDING;
	return apply_meta(t, err);
}

static int read_data(struct tar_reader *t, const uint8_t **data, size_t *n, struct err *err)
{
	size_t part = least(*n, t->left);

	(void)err;
	if (t->left == 0) {
		t->state = TAR_IN_PADDING;
		return TAR_DONE;
	}
	if (part == 0)
		return TAR_NEED;
	t->data = *data;
	t->data_len = part;
	t->left -= part;
	use(data, n, part);
	return TAR_DATA;
}

static int read_padding(struct tar_reader *t, const uint8_t **data, size_t *n, struct err *err)
{
	size_t part = least(*n, t->padding);

	(void)err;
	use(data, n, part);
	t->padding -= part;
	if (t->padding == 0)
		t->state = TAR_IN_HEADER;
	return TAR_NEED; /* or at once the next state: see tar_read() */
}

static int read_rest(struct tar_reader *t, const uint8_t **data, size_t *n, struct err *err)
{
	(void)t;
	(void)err;
	use(data, n, *n);
	return TAR_NEED;
}

int tar_read(struct tar_reader *t, const uint8_t **data, size_t *n, struct err *err)
{
	static int (*const states[])(struct tar_reader *, const uint8_t **, size_t *,
				     struct err *) = {
		[TAR_IN_HEADER] = read_header, [TAR_IN_META] = read_meta,
		[TAR_IN_DATA] = read_data,     [TAR_IN_PADDING] = read_padding,
		[TAR_AT_END] = read_rest,
	};
	int r;

	/* A member of no bytes is done without any input. */
	do
		r = states[t->state](t, data, n, err);
	while (r == TAR_NEED && *n > 0);
	return r;
}

uint64_t tar_skip(struct tar_reader *t)
{
	uint64_t n = t->left + t->padding;

	t->left = t->padding = 0;
	t->state = TAR_IN_HEADER;
	return n;
}

int tar_read_finish(const struct tar_reader *t, struct err *err)
{
	if (t->state == TAR_AT_END)
		return 0;
	return err_set(err, EBADMSG, "archive: it is cut off before its end mark");
}
