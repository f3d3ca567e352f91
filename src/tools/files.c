/* read_file, write_file, list_dir. Paths are resolved in the box, by its own process. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
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

#define BLOB_MAX (1u << 20)     /* bytes of a file that is no text */
#define CONTENT_MAX (16u << 20) /* bytes of content to write; a request has its own limit */
#define ENTRIES_MAX 1000u       /* of a directory that are told */

/* ---- read_file ---- */

struct read_args {
	const char *path;
	uint64_t offset, limit;
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

static void tell_text(struct reading *r)
{
	struct tool_call *t = r->work.call;
	const struct read_args *a = t->args;
	uint64_t first = a->offset > 0 ? a->offset : 1;
	char note[256];

	trim(r);
	tool_text(t, buf_str(&r->work.data), r->work.data.len);
	if (r->has_more && r->lines > 0) {
		(void)str_format(note, sizeof(note),
				 "[lines %" PRIu64 " to %" PRIu64 " of a file of %" PRIu64
				 " bytes; it goes on with offset %" PRIu64 "]",
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
	JV_FIELD("offset", U64, struct read_args, offset, .min = 1, .max = INT64_MAX,
		 .help = "line to begin with, from 1"),
	JV_FIELD("limit", U64, struct read_args, limit, .min = 1, .max = INT64_MAX,
		 .help = "lines at the most"),
};

/* ---- write_file ---- */

struct write_args {
	const char *path, *content;
	int encoding;
	bool append;
};
enum { TEXT, BASE64 };
static const char *const encodings[] = { "text", "base64", NULL };

static void written(void *user, uint64_t count)
{
	struct file_work *j = user;
	struct tool_call *t = j->call;
	struct jw w = jw_begin(&t->structured);

	(void)count;
	j->op = NULL;
	jw_object_begin(&w);
	jw_bool_field(&w, "ok", true);
	jw_str_field(&w, "path", j->path);
	jw_uint_field(&w, "bytes", j->data.len);
	jw_str_field(&w, "sandbox_id", t->box_id);
	jw_object_end(&w);
	file_work_end(j);
	tool_end(t, &w);
}

static int take_content(struct file_work *j, const struct write_args *a)
{
	size_t n = strlen(a->content);
	ssize_t r;

	j->data.max = CONTENT_MAX;
	if (a->encoding == TEXT)
		return buf_append(&j->data, a->content, n);
	r = buf_reserve(&j->data, n);
	if (r == 0)
		r = decode_base64(a->content, n, j->data.data, n);
	if (r >= 0)
		j->data.len = (size_t)r;
	return r < 0 ? (int)r : 0;
}

static void run_write(struct tool_call *t)
{
	static const struct file_ops ops = {
		.room = file_work_room,
		.done = written,
		.failed = file_work_failed,
	};
	const struct write_args *a = t->args;
	struct file_work *j = file_work_create(t, sizeof(*j), a->path);
	struct guest_file f = { .op = FILE_WRITE, .flags = FILE_PARENTS };
	int r;

	if (!j)
		return;
	if (a->append)
		f.flags |= FILE_APPEND;
	r = take_content(j, a);
	if (r < 0) {
		buf_done(&j->data);
		return tool_fail(t, "content: %s",
				 r == -EINVAL ? "this is no base64" : strerror(-r));
	}
	if (file_work_start(j, &f, &ops))
		file_work_room(j);
}

static const struct jv_field write_in[] = {
	JV_FIELD("path", STRING, struct write_args, path, .flags = JV_REQUIRED, .min = 1,
		 .max = TOOL_PATH_MAX - 1,
		 .help = "the file; relative ones begin in /workspace, and missing "
			 "directories are made"),
	JV_FIELD("content", STRING, struct write_args, content, .flags = JV_REQUIRED,
		 .max = CONTENT_MAX, .help = "all that the file is to hold"),
	JV_FIELD("encoding", CHOICE, struct write_args, encoding, .choices = encodings,
		 .help = "what content is: text unless given"),
	JV_FIELD("append", BOOL, struct write_args, append,
		 .help = "to the end of what is there, instead of replacing it"),
};
static const struct jv_field write_out[] = {
	{ .name = "ok", .type = JV_TYPE_BOOL, .flags = JV_REQUIRED },
	{ .name = "path", .type = JV_TYPE_STRING, .flags = JV_REQUIRED },
	{ .name = "bytes", .type = JV_TYPE_U64, .flags = JV_REQUIRED },
	{ .name = "sandbox_id", .type = JV_TYPE_STRING, .flags = JV_REQUIRED },
};

/* ---- list_dir ---- */

struct list_args {
	const char *path;
};

struct listing {
	struct file_work work;
	struct guest_entry *entries; /* arena */
	size_t n;
	bool has_failed;
};

static void listed_entry(void *user, const struct guest_entry *entry)
{
	struct listing *l = user;

	if (l->n == ENTRIES_MAX)
		return;
	if (file_entry_copy(l->work.call->arena, entry, &l->entries[l->n]) < 0)
		l->has_failed = true;
	else
		l->n++;
}

static int by_path(const void *a, const void *b)
{
	const struct guest_entry *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static void listed(void *user, uint64_t count)
{
	struct listing *l = user;
	struct tool_call *t = l->work.call;
	struct jw w = jw_begin(&t->structured);

	l->work.op = NULL;
	if (l->has_failed)
		return file_work_fail(&l->work, &(struct err){ ENOMEM, "out of memory" });
	qsort(l->entries, l->n, sizeof(*l->entries), by_path);
	jw_object_begin(&w);
	jw_str_field(&w, "path", l->work.path);
	jw_key(&w, "entries");
	jw_array_begin(&w);
	for (size_t i = 0; i < l->n; i++) {
		jw_object_begin(&w);
		jw_str_field(&w, "name", l->entries[i].path);
		jw_str_field(&w, "type", file_type_name(l->entries[i].type));
		jw_uint_field(&w, "size", l->entries[i].size);
		jw_object_end(&w);
	}
	jw_array_end(&w);
	jw_bool_field(&w, "truncated", count > l->n);
	jw_uint_field(&w, "total", count);
	jw_object_end(&w);
	file_work_end(&l->work);
	tool_end(t, &w);
}

static void run_list(struct tool_call *t)
{
	static const struct file_ops ops = {
		.entry = listed_entry,
		.done = listed,
		.failed = file_work_failed,
	};
	const struct list_args *a = t->args;
	struct listing *l = file_work_create(t, sizeof(*l), a->path);

	if (!l)
		return;
	l->entries = arena_array(t->arena, ENTRIES_MAX, sizeof(*l->entries));
	if (!l->entries)
		return tool_fail(t, "out of memory");
	(void)file_work_start(&l->work, &(struct guest_file){ .op = FILE_LIST, .depth = 1 }, &ops);
}

static const struct jv_field list_in[] = {
	JV_FIELD("path", STRING, struct list_args, path, .min = 1, .max = TOOL_PATH_MAX - 1,
		 .help = "the directory: /workspace unless given"),
};
static const struct list_args list_defaults = { .path = "." };
static const struct jv_field entry_out[] = {
	{ .name = "name", .type = JV_TYPE_STRING, .flags = JV_REQUIRED },
	{ .name = "type",
	  .type = JV_TYPE_STRING,
	  .flags = JV_REQUIRED,
	  .help = "file, directory, symlink or other" },
	{ .name = "size", .type = JV_TYPE_U64, .flags = JV_REQUIRED, .help = "in bytes" },
};
static const struct jv_field list_out[] = {
	{ .name = "path", .type = JV_TYPE_STRING, .flags = JV_REQUIRED },
	{ .name = "entries",
	  .type = JV_TYPE_OBJECTS,
	  .flags = JV_REQUIRED,
	  .sub = entry_out,
	  .sub_count = TOOL_ARRAY_LEN(entry_out) },
	{ .name = "truncated",
	  .type = JV_TYPE_BOOL,
	  .flags = JV_REQUIRED,
	  .help = "there are more than these" },
	{ .name = "total", .type = JV_TYPE_U64, .flags = JV_REQUIRED },
};

/* ---- the table ---- */

static const struct tool rows[] = {
	{ .name = "read_file",
	  .title = "Read a file",
	  .about = "The text of a file in the sandbox, or lines of it. Of a long one the "
		   "beginning is given, and where to go on; pictures and other files that are no "
		   "text come as such when they are small.",
	  .in = read_in,
	  .n_in = TOOL_ARRAY_LEN(read_in),
	  .size = sizeof(struct read_args),
	  .hints = TOOL_READ_ONLY | TOOL_IDEMPOTENT,
	  .flags = TOOL_IN_BOX,
	  .scopes = SCOPE_FILE_READ,
	  .run = run_read },
	{ .name = "write_file",
	  .title = "Write a file",
	  .about = "Writes a file in the sandbox; missing directories are made, and a file that "
		   "is there is replaced in one step.",
	  .in = write_in,
	  .n_in = TOOL_ARRAY_LEN(write_in),
	  .size = sizeof(struct write_args),
	  .out = write_out,
	  .n_out = TOOL_ARRAY_LEN(write_out),
	  .hints = TOOL_DESTRUCTIVE | TOOL_IDEMPOTENT,
	  .flags = TOOL_IN_BOX,
	  .scopes = SCOPE_FILE_WRITE,
	  .run = run_write },
	{ .name = "list_dir",
	  .title = "List a directory",
	  .about = "What is in a directory of the sandbox, by name.",
	  .in = list_in,
	  .n_in = TOOL_ARRAY_LEN(list_in),
	  .size = sizeof(struct list_args),
	  .defaults = &list_defaults,
	  .out = list_out,
	  .n_out = TOOL_ARRAY_LEN(list_out),
	  .hints = TOOL_READ_ONLY | TOOL_IDEMPOTENT,
	  .flags = TOOL_IN_BOX,
	  .scopes = SCOPE_FILE_READ,
	  .run = run_list },
};
const struct tool_table tools_file_table = { rows, TOOL_ARRAY_LEN(rows) };
