#include "e2b/multipart.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "base/str.h"

#define TYPE "multipart/form-data"
#define DISPOSITION "content-disposition"
#define BLANKS " \t"
#define SPECIALS "()<>@,;:\\\"/[]?=" /* what a backslash may stand before, and means itself */

enum state {
	IN_LOST,  /* before the first part */
	IN_DATA,  /* of a part */
	IN_AFTER, /* behind a boundary: blanks, then CRLF, or "--" for the last */
	IN_DASH,  /* behind the first "-" there */
	IN_LINE,  /* behind its CR */
	IN_HEAD,
	IN_REST, /* behind all parts */
};

/* ---- "form-data; name=\"a\"; filename=\"b\"" ---- */

static struct str skip_blanks(struct str s)
{
	while (s.len > 0 && strchr(BLANKS, s.data[0])) {
		s.data++;
		s.len--;
	}
	return s;
}

static struct str behind(struct str s, size_t n)
{
	return (struct str){ s.data + n, s.len - n };
}

/* Adds a byte; what does not fit, and a NUL, sticks in *ret. */
static void put_byte(char *dst, size_t size, size_t *n, char c, int *ret)
{
	if (c == '\0')
		*ret = -EBADMSG;
	else if (*n + 1 >= size)
		*ret = -E2BIG;
	else
		dst[(*n)++] = c;
}

/* Behind the first quote. A backslash takes the meaning of what it stands before, where that has
 * one.
 */
static struct str take_quoted(struct str s, char *dst, size_t size, int *ret)
{
	size_t i = 0, n = 0;

	for (; *ret == 0 && i < s.len && s.data[i] != '"'; i++) {
		if (s.data[i] == '\\' && i + 1 < s.len && s.data[i + 1] != '\0' &&
		    strchr(SPECIALS, s.data[i + 1]))
			i++;
		put_byte(dst, size, &n, s.data[i], ret);
	}
	if (*ret == 0 && i == s.len)
		*ret = -EBADMSG; /* it does not end */
	dst[n] = '\0';
	return *ret < 0 ? s : behind(s, i + 1);
}

/* A value up to ";" or in quotes, into dst; what is behind it. *ret: -E2BIG, -EBADMSG. */
static struct str take_value(struct str s, char *dst, size_t size, int *ret)
{
	size_t i = 0, n = 0;

	if (s.len > 0 && s.data[0] == '"')
		return take_quoted(behind(s, 1), dst, size, ret);
	for (; *ret == 0 && i < s.len && s.data[i] != ';'; i++)
		put_byte(dst, size, &n, s.data[i], ret);
	while (n > 0 && strchr(BLANKS, dst[n - 1]))
		n--;
	dst[n] = '\0';
	return behind(s, i);
}

/* The parameter of that name behind the first ";"; without it dst stays as it is. 0 or -errno. */
static int find_param(struct str s, const char *name, char *dst, size_t size)
{
	char other[MULTIPART_HEAD_MAX];
	int r = 0;

	for (;;) {
		const char *semicolon = s.len ? memchr(s.data, ';', s.len) : NULL;
		size_t n = 0;

		if (!semicolon)
			return 0;
		s = skip_blanks(behind(s, (size_t)(semicolon - s.data) + 1));
		while (n < s.len && s.data[n] != '=' && s.data[n] != ';')
			n++;
		if (n == s.len || s.data[n] == ';')
			continue;
		if (n == strlen(name) && strncasecmp(s.data, name, n) == 0) {
			(void)take_value(skip_blanks(behind(s, n + 1)), dst, size, &r);
			return r;
		}
		s = take_value(skip_blanks(behind(s, n + 1)), other, sizeof(other), &r);
		if (r < 0)
			return r;
	}
}

static bool begins(struct str s, const char *word)
{
	size_t n = strlen(word);

	return s.len >= n && strncasecmp(s.data, word, n) == 0;
}

int multipart_init(struct multipart *m, const char *content_type, struct err *err)
{
	struct str type = skip_blanks(str_of(content_type));
	char boundary[MULTIPART_BOUNDARY_MAX + 1] = "";
	int r;

	memset(m, 0, sizeof(*m));
	if (!begins(type, TYPE))
		return err_set(err, EINVAL, "want " TYPE " as the body");
	r = find_param(type, "boundary", boundary, sizeof(boundary));
	if (r < 0 || boundary[0] == '\0' || strpbrk(boundary, "\r\n"))
		return err_set(err, EINVAL, TYPE ": want a boundary of 1 to %u bytes",
			       MULTIPART_BOUNDARY_MAX);
	(void)str_format(m->line, sizeof(m->line), "\r\n--%s", boundary); /* fits */
	m->line_len = strlen(m->line);
	m->match = 2; /* the first boundary needs no line in front of it */
	return 0;
}

/* ---- a part's headers ---- */

static int take_header(struct multipart *m, struct str line)
{
	size_t n = strlen(DISPOSITION);
	struct str rest;
	int r;

	if (!begins(line, DISPOSITION))
		return 0;
	rest = skip_blanks(behind(line, n));
	if (rest.len == 0 || rest.data[0] != ':')
		return 0;
	rest = skip_blanks(behind(rest, 1));
	if (!begins(rest, "form-data"))
		return 0;
	r = find_param(rest, "name", m->name, sizeof(m->name));
	return r < 0 ? r : find_param(rest, "filename", m->file, sizeof(m->file));
}

static int take_head(struct multipart *m, struct err *err)
{
	struct str rest = { m->head, m->head_len }, line;
	int r = 0;

	if (++m->parts > MULTIPART_PARTS_MAX)
		return err_set(err, E2BIG, "more than %u parts", MULTIPART_PARTS_MAX);
	m->name[0] = m->file[0] = '\0';
	while (r == 0 && str_split(&rest, '\n', &line)) {
		if (line.len > 0 && line.data[line.len - 1] == '\r')
			line.len--;
		r = take_header(m, line);
	}
	m->head_len = 0;
	if (r == -E2BIG)
		return err_set(err, E2BIG, "a part's name is too long");
	return r < 0 ? err_set(err, EBADMSG, "a part's headers are not well-formed") : 0;
}

/* Headers end with an empty line; there may be none. */
static bool is_head_whole(const struct multipart *m)
{
	const char *end = m->head + m->head_len;

	return (m->head_len == 2 && memcmp(m->head, "\r\n", 2) == 0) ||
	       (m->head_len >= 4 && memcmp(end - 4, "\r\n\r\n", 4) == 0);
}

static int read_head(struct multipart *m, const char **data, size_t *n, struct err *err)
{
	while (*n > 0) {
		if (m->head_len == sizeof(m->head))
			return err_set(err, E2BIG, "a part's headers have more than %u bytes",
				       MULTIPART_HEAD_MAX);
		m->head[m->head_len++] = *(*data)++;
		(*n)--;
		if (is_head_whole(m)) {
			int r = take_head(m, err);

			m->state = IN_DATA;
			return r < 0 ? r : MULTIPART_PART;
		}
	}
	return MULTIPART_MORE;
}

/* ---- contents ---- */

/* How much of the end of these bytes may be the beginning of a boundary. Its one CR is its first.
 */
static size_t held_back(const struct multipart *m, const char *data, size_t n)
{
	size_t tail = n < m->line_len - 1 ? n : m->line_len - 1;
	const char *cr = tail > 0 ? memrchr(data + n - tail, '\r', tail) : NULL;
	size_t held = cr ? (size_t)(data + n - cr) : 0;

	return held > 0 && memcmp(cr, m->line, held) == 0 ? held : 0;
}

static int tell_data(struct multipart *m, const char *data, size_t n)
{
	m->data = data;
	m->len = n;
	return MULTIPART_DATA;
}

static int at_boundary(struct multipart *m)
{
	bool is_part = m->state == IN_DATA;

	m->match = 0;
	m->state = IN_AFTER;
	return is_part ? MULTIPART_PART_END : MULTIPART_MORE;
}

/* The bytes up to a boundary, or all of them but for what could be its beginning. */
static int read_data(struct multipart *m, const char **data, size_t *n)
{
	const char *from = *data, *hit;
	size_t len;

	while (m->match > 0 && m->match<m->line_len && * n> 0) {
		if (**data != m->line[m->match]) { /* it was data after all */
			len = m->match;
			m->match = 0;
			return tell_data(m, m->line, len);
		}
		m->match++;
		(*data)++;
		(*n)--;
	}
	if (m->match == m->line_len)
		return at_boundary(m);
	if (*n == 0)
		return MULTIPART_MORE;
	from = *data;
	hit = memmem(from, *n, m->line, m->line_len);
	len = hit ? (size_t)(hit - from) : *n - held_back(m, from, *n);
	m->match = hit ? m->line_len : *n - len;
	*data += len + m->match;
	*n -= len + m->match;
	return len > 0 ? tell_data(m, from, len) : hit ? at_boundary(m) : MULTIPART_MORE;
}

/* Before the first part there is nothing that anybody wants. */
static int read_lost(struct multipart *m, const char **data, size_t *n, struct err *err)
{
	int r = read_data(m, data, n);

	if (r == MULTIPART_DATA)
		m->lost += m->len;
	if (m->lost > MULTIPART_LOST_MAX + 2) /* two were never there: multipart_init() */
		return err_set(err, E2BIG, "more than %u bytes before the first part",
			       MULTIPART_LOST_MAX);
	return MULTIPART_MORE;
}

/* Behind a boundary, byte by byte. */
static int read_after(struct multipart *m, char c, struct err *err)
{
	if (m->state == IN_AFTER && strchr(BLANKS, c) && c != '\0')
		return MULTIPART_MORE;
	if (m->state == IN_AFTER && (c == '-' || c == '\r')) {
		m->state = c == '-' ? IN_DASH : IN_LINE;
		return MULTIPART_MORE;
	}
	if (m->state == IN_LINE && c == '\n') {
		m->state = IN_HEAD;
		return MULTIPART_MORE;
	}
	if (m->state == IN_DASH && c == '-') {
		m->state = IN_REST;
		return MULTIPART_END;
	}
	return err_set(err, EBADMSG, "there is something behind a boundary");
}

static int read_some(struct multipart *m, const char **data, size_t *n, struct err *err)
{
	switch (m->state) {
	case IN_LOST:
		return read_lost(m, data, n, err);
	case IN_DATA:
		return read_data(m, data, n);
	case IN_HEAD:
		return read_head(m, data, n, err);
	case IN_REST:
		*data += *n;
		*n = 0;
		return MULTIPART_MORE;
	default:
		(*n)--;
		return read_after(m, *(*data)++, err);
	}
}

int multipart_read(struct multipart *m, const char **data, size_t *n, struct err *err)
{
	int r = MULTIPART_MORE;

	/* A boundary that has been seen is an event of its own, also without a further byte. */
	while (r == MULTIPART_MORE && (*n > 0 || m->match == m->line_len))
		r = read_some(m, data, n, err);
	return r;
}

int multipart_finish(const struct multipart *m, struct err *err)
{
	if (m->state == IN_REST)
		return 0;
	return err_set(err, EBADMSG, "the body ends before its last part does");
}
