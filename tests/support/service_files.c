#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "service_impl.h"

struct file_op {
	struct list node;
	struct sandboxes *all;
	struct file_ops ops;
	void *user;
	struct guest_file f;
	char path[128], target[128];
	struct loop_task task;
	struct buf in; /* what was sent */
	uint64_t at;
	size_t window;
	bool is_held, is_sent, has_entry;
	unsigned serial; /* no two are the same */
};

struct service_file *service_file(struct sandboxes *s, const char *path)
{
	for (size_t i = 0; i < FAKE_FILES_MAX; i++)
		if (s->files[i].path[0] && strcmp(s->files[i].path, path) == 0)
			return &s->files[i];
	return NULL;
}

struct service_file *service_put(struct sandboxes *s, const char *path, uint8_t type,
				 const char *data, size_t n)
{
	struct service_file *f = service_file(s, path);

	for (size_t i = 0; !f && i < FAKE_FILES_MAX; i++)
		if (!s->files[i].path[0])
			f = &s->files[i];
	if (!f || str_copy(f->path, sizeof(f->path), path) < 0)
		abort();
	f->type = type;
	f->inode = ++s->inodes;
	f->mtime_ns = 784111777000000000 + f->inode;
	buf_clear(&f->data);
	if (buf_append(&f->data, data, n) < 0)
		abort();
	return f;
}

static void op_free(struct file_op *op)
{
	loop_task_cancel(&op->task);
	list_remove(&op->node);
	buf_done(&op->in);
	free(op);
}

/* A callback may have ended it. */
static bool is_live(const struct sandboxes *s, unsigned serial)
{
	LIST_FOREACH (&s->ops, op, struct file_op, node)
		if (op->serial == serial)
			return true;
	return false;
}

void service_files_done(struct sandboxes *s)
{
	if (!list_is_empty(&s->ops))
		abort(); /* somebody forgot an operation */
	for (size_t i = 0; i < FAKE_FILES_MAX; i++)
		buf_done(&s->files[i].data);
}

static void op_done(struct file_op *op, uint64_t count)
{
	struct file_ops ops = op->ops;
	void *user = op->user;

	op_free(op);
	ops.done(user, count);
}

static void op_failed(struct file_op *op, int code)
{
	struct file_ops ops = op->ops;
	struct err err = { 0 };
	void *user = op->user;

	(void)err_sys(&err, code, "%s", op->path);
	op_free(op);
	ops.failed(user, &err);
}

static void give_entry(struct file_op *op, const struct service_file *f, const char *path)
{
	op->ops.entry(op->user, &(struct guest_entry){
					.type = f->type,
					.mode = f->type == ENTRY_DIR ? 040755 : 0100644,
					.uid = 1000,
					.gid = 1000,
					.size = f->data.len,
					.mtime_ns = f->mtime_ns,
					.inode = f->inode,
					.path = path,
					.target = "",
				});
}

static void run_list(struct file_op *op)
{
	struct sandboxes *all = op->all;
	unsigned serial = op->serial;
	size_t n = strlen(op->path);

	for (size_t i = 0; i < FAKE_FILES_MAX && is_live(all, serial); i++) {
		const struct service_file *f = &all->files[i];

		if (strncmp(f->path, op->path, n) == 0 && f->path[n] == '/')
			give_entry(op, f, f->path + n + 1);
	}
	if (is_live(all, serial))
		op_done(op, 0);
}

static void read_chunk(struct file_op *op, const struct service_file *f, size_t n)
{
	struct sandboxes *all = op->all;
	unsigned serial = op->serial;

	op->at += n;
	op->ops.data(op->user, f->data.data + op->at - n, n);
	if (is_live(all, serial) && !op->is_held)
		loop_task_post(all->loop, &op->task);
}

/* One chunk a turn. */
static void run_read(struct file_op *op, const struct service_file *f)
{
	struct sandboxes *all = op->all;
	uint64_t end = op->f.length ? op->f.offset + op->f.length : f->data.len;
	unsigned serial = op->serial;

	if (!op->has_entry && op->f.op == FILE_READ) {
		op->has_entry = true;
		op->at = op->f.offset;
		give_entry(op, f, op->path);
	}
	if (!is_live(all, serial))
		return;
	if (all->read_fails_at && op->at >= all->read_fails_at)
		op_failed(op, EIO);
	else if (op->at >= end)
		op_done(op, op->at - op->f.offset);
	else
		read_chunk(op, f, end - op->at < all->chunk ? end - op->at : all->chunk);
}

static void run_write(struct file_op *op)
{
	struct sandboxes *all = op->all;
	bool full = op->window == 0;

	if (op->is_sent && op->f.op == FILE_WRITE && op->f.flags & FILE_EXCL &&
	    service_file(all, op->path))
		return op_failed(op, EEXIST);
	if (op->is_sent && op->f.op == FILE_WRITE && all->overtakes) {
		all->overtakes = false;
		return op_failed(op, op->f.target[0] ? ESTALE : EPROTO);
	}
	if (op->is_sent) {
		(void)service_put(all, op->path, ENTRY_FILE, buf_str(&op->in), op->in.len);
		return op_done(op, op->in.len);
	}
	op->window = all->window;
	if (full)
		op->ops.room(op->user);
}

static void run_change(struct file_op *op, struct service_file *f)
{
	if (op->f.op == FILE_MKDIR) {
		(void)service_put(op->all, op->path, ENTRY_DIR, "", 0);
	} else if (op->f.op == FILE_RENAME) {
		(void)str_copy(f->path, sizeof(f->path), op->target);
	} else {
		if (f->type == ENTRY_DIR && !(op->f.flags & FILE_RECURSIVE))
			return op_failed(op, ENOTEMPTY);
		f->path[0] = '\0';
	}
	op_done(op, 1);
}

static void run_op(void *user)
{
	struct file_op *op = user;
	struct service_file *f = service_file(op->all, op->path);

	if (op->f.op == FILE_WRITE || op->f.op == FILE_TAR_PUT)
		return run_write(op);
	if (op->f.op == FILE_WATCH)
		return op->ops.armed(op->user);
	if (!f && op->f.op != FILE_MKDIR)
		return op_failed(op, ENOENT);
	switch (op->f.op) {
	case FILE_STAT:
		give_entry(op, f, op->path);
		return op_done(op, 1);
	case FILE_LIST:
		return run_list(op);
	case FILE_READ:
	case FILE_TAR_GET:
		return run_read(op, f);
	default:
		return run_change(op, f);
	}
}

int file_start(struct sandbox *sb, const struct guest_file *f, const struct file_ops *ops,
	       void *user, struct file_op **ret, struct err *err)
{
	struct file_op *op;

	if (sb->state == SANDBOX_PAUSED)
		return err_set(err, EBUSY, "the sandbox is paused");
	op = calloc(1, sizeof(*op));
	if (!op)
		abort();
	op->all = sb->all;
	op->serial = ++sb->all->serial;
	op->ops = *ops;
	op->user = user;
	op->f = *f;
	op->window = sb->all->window;
	(void)str_copy(op->path, sizeof(op->path), f->path);
	(void)str_copy(op->target, sizeof(op->target), f->target);
	loop_task_init(&op->task, run_op, op);
	list_push_back(&sb->all->ops, &op->node);
	if (f->op != FILE_WRITE && f->op != FILE_TAR_PUT)
		loop_task_post(sb->all->loop, &op->task);
	*ret = op;
	return 0;
}

void file_trace(struct file_op *op, const struct trace_context *trace)
{
	(void)op;
	(void)trace;
}

ssize_t file_send(struct file_op *op, const void *data, size_t n)
{
	size_t take = n < op->window ? n : op->window;

	if (n == 0)
		op->is_sent = true;
	else if (buf_append(&op->in, data, take) < 0)
		abort();
	op->window -= take;
	loop_task_post(op->all->loop, &op->task);
	return (ssize_t)take;
}

void file_hold(struct file_op *op, bool hold)
{
	op->all->held += hold;
	op->is_held = hold;
	if (!hold)
		loop_task_post(op->all->loop, &op->task);
}

void file_cancel(struct file_op *op)
{
	if (!op)
		return;
	op->all->file_cancels++;
	op_free(op);
}

void service_happened(struct sandboxes *s, enum guest_event event, const char *path)
{
	LIST_FOREACH (&s->ops, op, struct file_op, node)
		if (op->f.op == FILE_WATCH)
			op->ops.event(op->user, event, path);
}
