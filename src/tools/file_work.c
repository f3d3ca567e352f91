#include "tools/file_work.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "sandbox/files.h"
#include "tools/impl.h"

static const char *const entry_types[] = {
	[ENTRY_FILE] = "file",
	[ENTRY_DIR] = "directory",
	[ENTRY_SYMLINK] = "symlink",
	[ENTRY_OTHER] = "other",
};

const char *file_type_name(uint8_t type)
{
	return type <= ENTRY_OTHER ? entry_types[type] : "other";
}

void *file_work_create(struct tool_call *t, size_t size, const char *path)
{
	struct file_work *j = arena_alloc(t->arena, size);
	const char *whole;

	if (!j) {
		tool_fail(t, "out of memory");
		return NULL;
	}
	whole = tool_path(t, path);
	if (!whole)
		return NULL;
	j->call = t;
	j->path = whole;
	return j;
}

static void cancel(struct tool_call *t)
{
	file_work_end(t->work);
	tool_cancel_soon(t);
}

int file_work_try(struct file_work *j, struct guest_file *f, const struct file_ops *ops,
		  struct err *err)
{
	struct sandbox *sb = tool_find_box(j->call);
	int r;

	if (!sb)
		return err_set(err, ENOENT, "the sandbox has ended");
	f->path = j->path;
	f->user = "";
	if (!f->target)
		f->target = "";
	r = file_start(sb, f, ops, j, &j->op, err);
	if (r < 0) {
		j->op = NULL;
		return r;
	}
	j->call->work = j;
	j->call->cancel = cancel;
	return 0;
}

bool file_work_start(struct file_work *j, struct guest_file *f, const struct file_ops *ops)
{
	struct err err = { 0 };

	if (file_work_try(j, f, ops, &err) == 0)
		return true;
	file_work_fail(j, &err);
	return false;
}

void file_work_end(struct file_work *j)
{
	file_cancel(TAKE(j->op));
	buf_done(&j->data);
}

void file_work_fail(struct file_work *j, const struct err *err)
{
	struct tool_call *t = j->call;
	const char *path = j->path;

	file_work_end(j);
	tool_fail(t, "%s: %s%s", path, err->text[0] ? err->text : strerror(err->code),
		  t->is_new_box ? " (the sandbox is new, and what was in another is not here)"
				: "");
}

void file_work_failed(void *user, const struct err *err)
{
	struct file_work *j = user;

	j->op = NULL;
	file_work_fail(j, err);
}

void file_work_room(void *user)
{
	struct file_work *j = user;

	while (j->sent < j->data.len) {
		ssize_t n = file_send(j->op, j->data.data + j->sent, j->data.len - j->sent);

		if (n <= 0)
			return; /* room() comes again, or failed() */
		j->sent += (size_t)n;
	}
	if (j->sent == j->data.len) {
		j->sent++; /* the end is sent once */
		(void)file_send(j->op, NULL, 0);
	}
}
