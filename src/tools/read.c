/* read_file: text by lines, and what is no text as what it is. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/err.h"
#include "base/str.h"
#include "base/utf8.h"
#include "config/config.h"
#include "httpc/url.h"
#include "sandbox/files.h"
#include "tools/file_work.h"
#include "tools/impl.h"
#include "tools/media_type.h"

#define BLOB_MAX (1u << 20) /* bytes of a file that is no text */

struct read_args {
	const char *path;
	uint64_t offset, limit;
	bool line_numbers;
};

struct reading {
	struct file_work work;
	uint64_t size;  /* of the file */
	uint64_t line;  /* that comes next, from 1 */
	uint64_t lines; /* ends of lines that were taken */
	bool has_more;  /* behind what was taken */
};

static size_t told_max(const struct tool_call *t)
{
	return t->all->deps.config->mcp_output_bytes;
}

static void got_entry(void *user, const struct guest_entry *entry)
{
	struct reading *r = user;
	const struct read_args *a = r->work.call->args;

	r->size = entry->size;
	/* Bytes that are no text are wanted whole, or not at all. */
	r->work.data.max = a->offset <= 1 && a->limit == 0 && entry->size <= BLOB_MAX &&
					   BLOB_MAX > told_max(r->work.call)
				   ? BLOB_MAX
				   : told_max(r->work.call);
}

static bool is_text(const struct buf *b)
{
	bool is_cut = false;
	size_t n;

	if (b->len == 0)
		return true;
	n = utf8_prefix(b->data, b->len, &is_cut);
	return !memchr(b->data, '\0', b->len) && (n == b->len || is_cut);
}

/* As resources are named (mcp/box.c), so that it can be read again by that. */
static int add_resource(struct reading *r, const char *type, const char *base64, size_t n)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	_cleanup_(buf_done) struct buf uri = { 0 };
	struct jw w = jw_begin(&b);

	(void)buf_printf(&uri, "sandbox://%s/files", r->work.call->box_id);
	if (url_escape_path(&uri, r->work.path) < 0)
		return -ENOMEM;
	jw_object_begin(&w);
	jw_str_field(&w, "type", "resource");
	jw_key(&w, "resource");
	jw_object_begin(&w);
	jw_str_field(&w, "uri", buf_str(&uri));
	jw_str_field(&w, "mimeType", type);
	jw_key(&w, "blob");
	jw_string_n(&w, base64, n);
	jw_object_end(&w);
	jw_object_end(&w);
	if (jw_end(&w) < 0)
		return -ENOMEM;
	tool_block(r->work.call, buf_str(&b));
	return 0;
}

static void tell_blob(struct reading *r)
{
	struct tool_call *t = r->work.call;
	const char *type = media_type(r->work.path);
	_free_ char *text = malloc(BASE64_SIZE(r->work.data.len));
	bool is_picture = str_starts(str_of(type), "image/") && strcmp(type, "image/svg+xml") != 0;
	int e = text ? 0 : -ENOMEM;
	size_t n = text ? encode_base64(r->work.data.data, r->work.data.len, text) : 0;

	if (e == 0 && is_picture)
		tool_image(t, type, text, n);
	else if (e == 0)
		e = add_resource(r, type, text, n);
	if (e < 0)
		return file_work_fail(&r->work, &(struct err){ ENOMEM, "out of memory" });
	file_work_end(&r->work);
	tool_done(t);
}

/* Ends at the end of a line if there is one. */
static void trim(struct reading *r)
{
	struct buf *b = &r->work.data;
	size_t most = told_max(r->work.call), n = most;
	const char *end;

	if (b->len <= most && !r->has_more)
		return;
	if (n > b->len)
		n = b->len;
	end = n > 0 ? memrchr(b->data, '\n', n) : NULL;
	n = end ? (size_t)(end + 1 - b->data) : utf8_prefix(b->data, n, NULL);
	r->has_more = r->has_more || n < b->len;
	b->len = n;
	r->lines = 0;
	for (size_t i = 0; i < n; i++)
		r->lines += b->data[i] == '\n';
}

/* "    12<tab>text": as `cat -n` shows it. */
static void tell_lines(struct reading *r, uint64_t number)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	const char *at = buf_str(&r->work.data), *stop = at + r->work.data.len;

	while (at < stop) {
		const char *end = memchr(at, '\n', (size_t)(stop - at));
		size_t n = (size_t)((end ? end + 1 : stop) - at);

		(void)buf_printf(&b, "%6" PRIu64 "\t", number++);
		(void)buf_append(&b, at, n);
		at += n;
	}
	if (b.failed)
		r->work.call->content.failed = true;
	tool_text(r->work.call, buf_str(&b), b.len);
}

static void tell_text(struct reading *r)
{
	struct tool_call *t = r->work.call;
	const struct read_args *a = t->args;
	uint64_t first = a->offset > 0 ? a->offset : 1;
	char note[256];

	trim(r);
	if (a->line_numbers)
		tell_lines(r, first);
	else
		tool_text(t, buf_str(&r->work.data), r->work.data.len);
	if (r->has_more && r->lines > 0) {
		(void)str_format(note, sizeof(note),
				 "[lines %" PRIu64 " to %" PRIu64 " of a file of %" PRIu64
				 " bytes; to read on, use offset %" PRIu64 "]",
				 first, first + r->lines - 1, r->size, first + r->lines);
		tool_text(t, note, strlen(note));
	} else if (r->has_more) {
		(void)str_format(note, sizeof(note),
				 "[the first %zu bytes of line %" PRIu64 ", in a file of %" PRIu64
				 " bytes: use exec to see the rest of a line as long as this]",
				 r->work.data.len, first, r->size);
		tool_text(t, note, strlen(note));
	}
	file_work_end(&r->work);
	tool_done(t);
}

static void tell_file(struct reading *r)
{
	struct err err = { 0 };

	if (is_text(&r->work.data))
		return tell_text(r);
	if (r->work.data.len == r->size)
		return tell_blob(r);
	(void)err_set(&err, EINVAL,
		      "this is no text, and with %" PRIu64
		      " bytes too large to be given here (at most %u)",
		      r->size, BLOB_MAX);
	file_work_fail(&r->work, &err);
}

/* What belongs to lines before the first that is wanted goes. */
static size_t skip(struct reading *r, const char *data, size_t n)
{
	const struct read_args *a = r->work.call->args;
	size_t at = 0;

	while (r->line < a->offset && at < n) {
		const char *end = memchr(data + at, '\n', n - at);

		if (!end)
			return n;
		at = (size_t)(end + 1 - data);
		r->line++;
	}
	return at;
}

/* As many bytes as still belong to what is wanted. */
static size_t take(struct reading *r, const char *data, size_t n)
{
	const struct read_args *a = r->work.call->args;
	size_t room = r->work.data.max - r->work.data.len, at = 0;

	while (at < n && at < room && (a->limit == 0 || r->lines < a->limit))
		r->lines += data[at++] == '\n';
	return at;
}

static void got_data(void *user, const void *data, size_t n)
{
	struct reading *r = user;
	const char *bytes = data;
	size_t from = skip(r, bytes, n), more = take(r, bytes + from, n - from);

	if (buf_append(&r->work.data, bytes + from, more) < 0)
		return file_work_fail(&r->work, &(struct err){ ENOMEM, "out of memory" });
	if (from + more == n)
		return;
	r->has_more = true; /* and nobody wants it */
	file_cancel(TAKE(r->work.op));
	tell_file(r);
}

static void read_done(void *user, uint64_t count)
{
	struct reading *r = user;
	const struct read_args *a = r->work.call->args;
	struct err err = { 0 };

	(void)count;
	r->work.op = NULL;
	if (r->line < a->offset && r->size > 0) {
		(void)err_set(&err, EINVAL, "offset: the file ends with line %" PRIu64, r->line);
		return file_work_fail(&r->work, &err);
	}
	tell_file(r);
}

static void run_read(struct tool_call *t)
{
	static const struct file_ops ops = {
		.entry = got_entry,
		.data = got_data,
		.done = read_done,
		.failed = file_work_failed,
	};
	const struct read_args *a = t->args;
	struct reading *r = file_work_create(t, sizeof(*r), a->path);

	if (!r)
		return;
	r->line = 1;
	r->work.data.max = told_max(t);
	(void)file_work_start(&r->work, &(struct guest_file){ .op = FILE_READ }, &ops);
}

static const struct jv_field read_in[] = {
	JV_FIELD("path", STRING, struct read_args, path, .flags = JV_REQUIRED, .min = 1,
		 .max = TOOL_PATH_MAX - 1, .help = "the file; relative ones begin in /workspace"),
	JV_FIELD("offset", U64, struct read_args, offset, .min = 1, .max = UINT32_MAX,
		 .help = "number of the first line to read, from 1"),
	JV_FIELD("limit", U64, struct read_args, limit, .min = 1,
		 .help = "number of lines to read. Default: as many as fit into an answer"),
	JV_FIELD("line_numbers", BOOL, struct read_args, line_numbers,
		 .help = "put the number of each line and a tab in front of it; they are not part "
			 "of the file"),
};
static const struct read_args read_defaults = { .offset = 1, .line_numbers = true };

/* A line has a byte at least. */
static void set_bounds(const struct tools *all, struct jv_field *fields, void *args)
{
	(void)args;
	tools_field(fields, "limit")->max = (int64_t)all->deps.config->mcp_output_bytes;
}

static const struct tool rows[] = {
	{ .name = "read_file",
	  .title = "Read a file",
	  .about = "Reads a text file in the sandbox, or some lines of it, with line numbers. Of a "
		   "long file the beginning is returned, and where to read on. Pictures and other "
		   "files that are not text are returned as such when they are small.",
	  .defaults = &read_defaults,
	  .set_bounds = set_bounds,
	  .in = read_in,
	  .n_in = TOOL_ARRAY_LEN(read_in),
	  .size = sizeof(struct read_args),
	  .hints = TOOL_READ_ONLY | TOOL_IDEMPOTENT,
	  .flags = TOOL_IN_BOX,
	  .scopes = SCOPE_FILE_READ,
	  .run = run_read },
};
const struct tool_table tools_read_table = { rows, TOOL_ARRAY_LEN(rows) };
