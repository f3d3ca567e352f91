/* write_file, list_dir. Paths are resolved in the box, by its own process. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/encode.h"
#include "base/err.h"
#include "sandbox/files.h"
#include "tools/file_work.h"
#include "tools/impl.h"

#define CONTENT_MAX (16u << 20) /* bytes of content to write; a request has its own limit */
#define ENTRIES_MAX 1000u       /* of a directory that are told */

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
