/* GET /files, and what all calls of that kind share. */
#include "e2b/envd_files.h"

#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/file_get.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "e2b/encoding.h"
#include "e2b/entry.h"
#include "e2b/handlers.h"
#include "e2b/target.h"
#include "net/http.h"

#define DISPOSITION_MAX 2048u /* a name of 255 bytes, twice, whatever is in it */

bool envd_user(struct api_call *c, const char **ret)
{
	*ret = "";
	if (http_query(c->http, "username", ret) >= 0)
		return true;
	problem_status(c, 400, "username: not well-formed");
	return false;
}

void envd_fail(struct api_call *c, const struct err *err)
{
	const char *path = "";

	switch (err->code) {
	case EPIPE:
	case EBUSY:
		return e2b_reply_gone(c);
	case ESRCH:
		return problem_status(c, 401, "%s", err->text);
	case EISDIR:
		(void)http_query(c->http, "path", &path);
		return problem_status(c, 400, "path '%.200s' is a directory", path);
	case ENOTDIR:
	case ENXIO:
		return problem_status(c, 400, "%s", err->text);
	case ENOSPC:
	case EDQUOT:
		return problem_status(c, 507, "not enough disk space available");
	case EOPNOTSUPP:
		return problem_status(
			c, 501, "files here keep no metadata (tmpfs does since Linux 6.6): %s",
			err->text);
	default:
		return problem_reply_box(c, err);
	}
}

static bool is_plain(unsigned char c)
{
	return c >= ' ' && c < 0x7f;
}

/* The whole name, for those that are not plain ASCII (RFC 8187). */
static void put_whole(struct buf *b, const char *name)
{
	(void)buf_puts(b, "; filename*=UTF-8''");
	for (; *name != '\0'; name++) {
		bool is_word = (*name >= '0' && *name <= '9') || (*name >= 'a' && *name <= 'z') ||
			       (*name >= 'A' && *name <= 'Z') || strchr("-._~", *name);

		(void)buf_printf(b, is_word ? "%c" : "%%%02X", (unsigned char)*name);
	}
}

static void add_disposition(struct api_call *c, const char *path)
{
	_cleanup_(buf_done) struct buf b = { .max = DISPOSITION_MAX };
	const char *name = entry_name(path);
	bool is_all = true;

	(void)buf_puts(&b, "inline; filename=\"");
	for (size_t i = 0; name[i]; i++) {
		if (name[i] == '"' || name[i] == '\\')
			(void)buf_putc(&b, '\\');
		(void)buf_putc(&b, is_plain((unsigned char)name[i]) ? name[i] : '_');
		is_all = is_all && is_plain((unsigned char)name[i]);
	}
	(void)buf_putc(&b, '"');
	if (!is_all)
		put_whole(&b, name);
	if (!b.failed)
		(void)http_header_add(c->http, "Content-Disposition", buf_str(&b));
}

static void add_headers(struct file_get *g, const struct guest_entry *e)
{
	struct api_call *c = g->download.job.call;

	add_disposition(c, e->path);
	(void)http_header_add(c->http, "Vary", "Accept-Encoding");
}

static bool is_conditional(const struct api_call *c)
{
	return http_header(c->http, "Range") || http_header(c->http, "If-Range") ||
	       http_header(c->http, "If-None-Match") || http_header(c->http, "If-Modified-Since");
}

/* False: 406. Parts and conditions are about the bytes as they are. */
static bool choose_encoding(struct api_call *c, bool *ret_packed)
{
	const char *header = http_header(c->http, "Accept-Encoding");
	enum encoding e = encoding_choose(header);

	if (is_conditional(c))
		e = encoding_takes_identity(header) ? ENCODING_IDENTITY : ENCODING_REFUSED;
	*ret_packed = e == ENCODING_GZIP;
	if (e != ENCODING_REFUSED)
		return true;
	problem_status(c, 406, "no acceptable encoding found, supported: [identity, gzip]");
	return false;
}

void e2b_files_get(struct api_call *c)
{
	struct file_get *g = arena_alloc(http_arena(c->http), sizeof(*g));

	if (!g)
		return problem_reply(c, &(struct err){ ENOMEM, "file" });
	g->download.job.call = c;
	g->download.content_type = "application/octet-stream";
	g->download.failed = envd_fail;
	g->add_headers = add_headers;
	g->flags = FILE_AT_HOME | FILE_AS_ROOT | FILE_DETAILS;
	g->path = "";
	if (http_query(c->http, "path", &g->path) < 0)
		return problem_status(c, 400, "path: not well-formed");
	if (!envd_user(c, &g->user) || !choose_encoding(c, &g->download.is_packed) ||
	    !e2b_sandbox(c))
		return;
	file_get_start(g);
}

/* ---- metadata ---- */

#define HEADER "X-Metadata-"
#define SPACE "user." ENTRY_METADATA /* counts for each key */

static bool is_printable(const char *s)
{
	for (; *s != '\0'; s++)
		if (*s < ' ' || *s > '~')
			return false;
	return true;
}

static bool has_key(const struct buf *b, const char *name)
{
	const char *key, *value;
	size_t at = 0;

	while (guest_attr_next(buf_str(b), b->len, &at, &key, &value))
		if (strcmp(key, name) == 0)
			return true;
	return false;
}

/* The first of a name counts. */
static int add_metadata(struct buf *b, const char *key, const char *value, size_t *total,
			struct err *err)
{
	char name[sizeof(ENTRY_METADATA) + ENVD_METADATA_KEY_MAX] = ENTRY_METADATA;
	size_t n = strlen(key), at = strlen(name);

	if (n == 0 || n > ENVD_METADATA_KEY_MAX || !is_printable(key) || !is_printable(value))
		return err_set(err, EINVAL,
			       HEADER "%.60s: want a key of 1 to %u bytes and a value, both of "
				      "printable ASCII",
			       key, ENVD_METADATA_KEY_MAX);
	for (size_t i = 0; i <= n; i++)
		name[at + i] = key[i] >= 'A' && key[i] <= 'Z' ? (char)(key[i] + 32) : key[i];
	if (has_key(b, name))
		return 0;
	*total += strlen(SPACE) + n + strlen(value);
	if (*total > ENVD_METADATA_BYTES_MAX)
		return err_set(err, E2BIG, "metadata: more than %u bytes in all",
			       ENVD_METADATA_BYTES_MAX);
	(void)buf_append(b, name, strlen(name) + 1);
	return buf_append(b, value, strlen(value) + 1);
}

int envd_metadata(struct api_call *c, const char **ret, size_t *ret_len, struct err *err)
{
	_cleanup_(buf_done) struct buf b = { .max = 2 * ENVD_METADATA_BYTES_MAX };
	const char *name, *value;
	size_t total = 0;
	int r = 0;

	for (unsigned i = 0; r == 0 && (value = http_header_at(c->http, i, &name)); i++)
		if (strncasecmp(name, HEADER, sizeof(HEADER) - 1) == 0)
			r = add_metadata(&b, name + sizeof(HEADER) - 1, value, &total, err);
	if (r < 0)
		return r;
	*ret = arena_strndup(http_arena(c->http), buf_str(&b), b.len);
	*ret_len = b.len;
	return *ret ? 0 : err_sys(err, ENOMEM, "metadata");
}
