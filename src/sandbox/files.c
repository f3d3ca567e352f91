#include "sandbox/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "provider/guest_client.h"
#include "sandbox/registry.h"
#include "telemetry/trace.h"

struct file_op {
	struct list node;   /* in sandbox.file_ops */
	struct sandbox *sb; /* borrowed: its sandbox outlives it */
	uint32_t id;
	bool is_watch;
	bool is_look; /* at what the sandbox does: no use of it */
	enum guest_file_op kind;
	struct span *span; /* NULL: in no trace */
	struct file_ops ops;
	void *user;
};

static void op_end(struct file_op *op)
{
	struct sandbox *sb = op->sb;

	list_remove(&op->node);
	sb->n_file_ops--;
	if (!op->is_look)
		sandbox_touch(sb);
	reaper_note(sb);
	span_end(op->span);
	free(op);
}

static void on_entry(void *user, const struct guest_entry *entry)
{
	struct file_op *op = user;

	if (op->ops.entry)
		op->ops.entry(op->user, entry);
}

static void on_found(void *user, const struct guest_found *found)
{
	struct file_op *op = user;

	if (op->ops.found)
		op->ops.found(op->user, found);
}

static void on_data(void *user, const void *data, size_t n)
{
	struct file_op *op = user;

	if (op->ops.data)
		op->ops.data(op->user, data, n);
}

static void on_taken(void *user, uint64_t bytes)
{
	struct file_op *op = user;

	(void)bytes;
	if (op->ops.room)
		op->ops.room(op->user);
}

static void on_event(void *user, enum guest_event event, const char *path)
{
	struct file_op *op = user;

	if (op->ops.event)
		op->ops.event(op->user, event, path);
}

static void on_done(void *user, uint64_t count)
{
	struct file_op *op = user;
	struct file_ops ops = op->ops;
	void *to = op->user;

	if (op->is_watch) {
		if (ops.armed)
			ops.armed(to);
		return;
	}
	op_end(op);
	if (ops.done)
		ops.done(to, count);
}

static void fail(struct file_op *op, int code, const char *text)
{
	void (*failed)(void *user, const struct err *err) = op->ops.failed;
	void *to = op->user;
	struct err err = { 0 };

	(void)err_set(&err, code, "%s", text);
	span_fail(op->span, strerror(code)); /* the text may name a file */
	op_end(op);
	failed(to, &err);
}

static void on_failed(void *user, int code, const char *text)
{
	fail(user, code, text);
}

static const struct guest_callbacks callbacks = {
	.entry = on_entry,
	.found = on_found,
	.data = on_data,
	.taken = on_taken,
	.event = on_event,
	.done = on_done,
	.failed = on_failed,
};

int file_start(struct sandbox *sb, const struct guest_file *f, const struct file_ops *ops,
	       void *user, struct file_op **ret, struct err *err)
{
	struct file_op *op;
	int r;

	if (f->op != FILE_PORTS)
		sandbox_touch(sb);
	r = sandbox_check_usable(sb, err);
	if (r < 0)
		return r;
	if (sb->n_file_ops >= SANDBOX_FILE_OPS_MAX)
		return err_set(err, EAGAIN, "%u file operations run in this sandbox, the limit",
			       SANDBOX_FILE_OPS_MAX);
	op = calloc(1, sizeof(*op));
	if (!op)
		return err_sys(err, ENOMEM, "file operation");
	r = guest_file(sb->guest, f, &callbacks, op, &op->id, err);
	if (r < 0) {
		free(op);
		return r;
	}
	op->sb = sb;
	op->is_watch = f->op == FILE_WATCH;
	op->kind = (enum guest_file_op)f->op;
	op->is_look = f->op == FILE_PORTS;
	op->ops = *ops;
	op->user = user;
	list_push_back(&sb->file_ops, &op->node);
	sb->n_file_ops++;
	link_kick(sb);
	*ret = op;
	return 0;
}

void file_trace(struct file_op *op, const struct trace_context *trace)
{
	static const char *const names[FILE_OP_COUNT] = {
		[FILE_STAT] = "file.stat",       [FILE_LIST] = "file.list",
		[FILE_READ] = "file.read",       [FILE_WRITE] = "file.write",
		[FILE_MKDIR] = "file.mkdir",     [FILE_RENAME] = "file.rename",
		[FILE_REMOVE] = "file.remove",   [FILE_CHMOD] = "file.chmod",
		[FILE_WATCH] = "file.watch",     [FILE_TAR_GET] = "file.tar_get",
		[FILE_TAR_PUT] = "file.tar_put", [FILE_FIND] = "file.find",
		[FILE_GREP] = "file.grep",       [FILE_REPLACE] = "file.replace",
		[FILE_PORTS] = "file.ports",     [FILE_COMPOSE] = "file.compose",
	};

	op->span = span_begin(op->sb->all->tracer, trace, SPAN_INTERNAL, names[op->kind]);
	span_str(op->span, "holt.sandbox.id", op->sb->id);
}

ssize_t file_send(struct file_op *op, const void *data, size_t n)
{
	ssize_t r = guest_data(op->sb->guest, op->id, data, n);

	link_kick(op->sb);
	return r;
}

void file_hold(struct file_op *op, bool hold)
{
	guest_hold(op->sb->guest, op->id, hold);
	link_kick(op->sb);
}

void file_cancel(struct file_op *op)
{
	if (!op)
		return;
	if (op->sb->guest) {
		(void)guest_cancel(op->sb->guest, op->id);
		guest_forget(op->sb->guest, op->id);
		link_kick(op->sb);
	}
	op_end(op);
}

void files_fail(struct sandbox *sb, const char *why)
{
	while (!list_is_empty(&sb->file_ops))
		fail(LIST_ENTRY(sb->file_ops.next, struct file_op, node), EPIPE, why);
}

void files_drop(struct sandbox *sb)
{
	LIST_FOREACH (&sb->file_ops, op, struct file_op, node) {
		list_remove(&op->node);
		span_drop(op->span);
		free(op);
	}
	sb->n_file_ops = 0;
}
