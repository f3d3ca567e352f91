#include "sandbox/files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "provider/guest_client.h"
#include "sandbox/registry.h"
#include "spec/wire.h"
#include "telemetry/trace.h"

#define FILE_WORKS 20 /* times as long for one whose box answers otherwise */

struct file_op {
	struct list node;   /* in sandbox.file_ops, or in .file_waits */
	struct sandbox *sb; /* borrowed: its sandbox outlives it */
	uint32_t id;        /* 0: it waits */
	void *frame;        /* owned: what is to be asked; NULL: it has been */
	size_t frame_len;
	bool is_held, has_eof; /* what was said to it, also while it waits */
	bool is_watch;
	bool is_look;   /* at what the sandbox does: no use of it */
	bool is_taking; /* it waits for bytes of the caller's, who has sent all that it took */
	bool is_armed;
	uint64_t moved_ms; /* when it last said something, or was last the caller's turn */
	enum guest_file_op kind;
	struct span *span; /* NULL: in no trace */
	struct file_ops ops;
	void *user;
};

static void begin_waiting(struct later *l, bool is_over);

static void moved(struct file_op *op)
{
	op->moved_ms = now_ms(op->sb->all);
}

static void op_end(struct file_op *op)
{
	struct sandbox *sb = op->sb;

	list_remove(&op->node);
	if (op->frame)
		sb->n_file_waits--;
	else
		sb->n_file_ops--;
	sb->n_file_watches -= op->is_watch;
	if (sb->n_file_waits > 0 && list_is_empty(&sb->file_turn.node))
		later_post(sb->all, &sb->file_turn, begin_waiting);
	if (!op->is_look)
		sandbox_touch(sb);
	reaper_note(sb);
	span_end(op->span);
	free(op->frame);
	free(op);
}

static void on_entry(void *user, const struct guest_entry *entry)
{
	struct file_op *op = user;

	moved(op);
	if (op->ops.entry)
		op->ops.entry(op->user, entry);
}

static void on_found(void *user, const struct guest_found *found)
{
	struct file_op *op = user;

	moved(op);
	if (op->ops.found)
		op->ops.found(op->user, found);
}

static void on_data(void *user, const void *data, size_t n)
{
	struct file_op *op = user;

	moved(op);
	if (op->ops.data)
		op->ops.data(op->user, data, n);
}

static void on_taken(void *user, uint64_t bytes)
{
	struct file_op *op = user;

	(void)bytes;
	moved(op);
	op->is_taking = !op->has_eof;
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
		op->is_armed = true;
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

/* Asks the box. What was said to it while it waited comes right behind. */
static int begin(struct file_op *op, const struct guest_file *f, struct err *err)
{
	struct sandbox *sb = op->sb;
	int r = guest_file(sb->guest, f, &callbacks, op, &op->id, err);

	if (r < 0)
		return r;
	list_push_back(&sb->file_ops, &op->node);
	sb->n_file_ops++;
	moved(op);
	op->is_taking = !op->has_eof && (f->op == FILE_WRITE || f->op == FILE_TAR_PUT);
	tick_need(sb->all);
	if (op->is_held)
		guest_hold(sb->guest, op->id, true);
	if (op->has_eof)
		(void)guest_data(sb->guest, op->id, NULL, 0);
	link_kick(sb);
	return 0;
}

static int begin_kept(struct file_op *op, struct err *err)
{
	struct wire_head head;
	struct guest_file f;
	void *frame = op->frame;
	struct rd r;
	int e = sandbox_check_usable(op->sb, err);

	if (e < 0)
		return e;
	if (wire_open(frame, op->frame_len, &head, &r) < 0 || guest_get_file(&r, &f) < 0)
		return err_set(err, EINVAL, "the box would not take this"); /* and says no more */
	list_remove(&op->node);
	e = begin(op, &f, err);
	if (e < 0) {
		list_push_back(&op->sb->file_waits, &op->node);
		return e;
	}
	op->frame = NULL;
	op->sb->n_file_waits--;
	free(frame);
	return 0;
}

/* As many as there is room for, in the order they came. */
static void begin_waiting(struct later *l, bool is_over)
{
	struct sandbox *sb = LIST_ENTRY(l, struct sandbox, file_turn);
	struct err err = { 0 };

	list_init(&l->node);
	if (is_over)
		return;
	(void)sandbox_ref(sb); /* who is told of a failure may let go of it */
	while (sb->n_file_ops < SANDBOX_FILE_OPS_MAX && sb->n_file_waits > 0) {
		struct file_op *op = LIST_ENTRY(sb->file_waits.next, struct file_op, node);

		if (begin_kept(op, &err) < 0)
			fail(op, err.code, err.text);
		else if (op->ops.room)
			op->ops.room(op->user);
	}
	sandbox_unref(sb);
}

/* Keeps the question, as the box will be asked it. */
static int keep(struct file_op *op, const struct guest_file *f, struct err *err)
{
	struct sandbox *sb = op->sb;
	uint8_t frame[WIRE_FRAME_MAX];
	long n = guest_put_file(frame, sizeof(frame), 0, f);

	if (sb->n_file_waits >= SANDBOX_FILE_WAITS_MAX)
		return err_set(err, EAGAIN, "%u file operations wait in this sandbox, the limit",
			       SANDBOX_FILE_WAITS_MAX);
	if (n < 0)
		return err_set(err, E2BIG, "the paths are too long");
	op->frame = malloc((size_t)n);
	if (!op->frame)
		return err_sys(err, ENOMEM, "file operation");
	memcpy(op->frame, frame, (size_t)n);
	op->frame_len = (size_t)n;
	list_push_back(&sb->file_waits, &op->node);
	sb->n_file_waits++;
	return 0;
}

static int check_start(struct sandbox *sb, const struct guest_file *f, struct err *err)
{
	int r = sandbox_check_usable(sb, err);

	/* What waits waits for others to end: some must be of a kind that does. */
	if (r == 0 && f->op == FILE_WATCH && sb->n_file_watches >= SANDBOX_WATCHES_MAX)
		r = err_set(err, EAGAIN, "%u watches are in this sandbox, the limit",
			    SANDBOX_WATCHES_MAX);
	return r;
}

int file_start(struct sandbox *sb, const struct guest_file *f, const struct file_ops *ops,
	       void *user, struct file_op **ret, struct err *err)
{
	bool has_room = sb->n_file_ops < SANDBOX_FILE_OPS_MAX && sb->n_file_waits == 0;
	struct file_op *op;
	int r;

	if (f->op != FILE_PORTS)
		sandbox_touch(sb);
	r = check_start(sb, f, err);
	if (r < 0)
		return r;
	op = calloc(1, sizeof(*op));
	if (!op)
		return err_sys(err, ENOMEM, "file operation");
	op->sb = sb;
	op->is_watch = f->op == FILE_WATCH;
	op->kind = (enum guest_file_op)f->op;
	op->is_look = f->op == FILE_PORTS;
	op->ops = *ops;
	op->user = user;
	r = has_room ? begin(op, f, err) : keep(op, f, err);
	if (r < 0) {
		free(op);
		return r;
	}
	sb->n_file_watches += op->is_watch;
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
	ssize_t r;

	if (op->frame) {
		op->has_eof = n == 0; /* all of it: nothing was taken before */
		return 0;
	}
	r = guest_data(op->sb->guest, op->id, data, n);
	op->has_eof = op->has_eof || (n == 0 && r >= 0);
	op->is_taking = n > 0 && r == (ssize_t)n;
	moved(op);
	link_kick(op->sb);
	return r;
}

void file_hold(struct file_op *op, bool hold)
{
	op->is_held = hold;
	moved(op);
	if (op->frame)
		return;
	guest_hold(op->sb->guest, op->id, hold);
	link_kick(op->sb);
}

void file_cancel(struct file_op *op)
{
	if (!op)
		return;
	if (op->sb->guest && !op->frame) {
		(void)guest_cancel(op->sb->guest, op->id);
		guest_forget(op->sb->guest, op->id);
		link_kick(op->sb);
	}
	op_end(op);
}

/* Is it the box's turn? A box that stands still has none, and a watch may be silent for ever. */
static bool is_due(const struct file_op *op)
{
	return op->sb->state == SANDBOX_RUNNING && !op->is_held && !op->is_taking && !op->is_armed;
}

/* Whether a box that is silent lives at all: it answers this, whatever it is busy with. */
static void ask_for_life(struct sandbox *sb, uint64_t now)
{
	static const struct guest_callbacks none = { 0 };
	uint32_t id;

	if (now - sb->pinged_ms < sb->all->settings.silence_ms / 2)
		return;
	sb->pinged_ms = now;
	if (guest_ping(sb->guest, &none, NULL, &id, NULL) == 0)
		link_kick(sb);
}

/* One that has shown no progress for too long; NULL. */
static struct file_op *find_late(struct sandbox *sb, uint64_t now)
{
	uint64_t limit = sb->all->settings.silence_ms;

	LIST_FOREACH (&sb->file_ops, op, struct file_op, node) {
		if (!is_due(op)) {
			op->moved_ms = now;
			continue;
		}
		if (now - op->moved_ms >= limit / 2)
			ask_for_life(sb, now);
		if (now - op->moved_ms >= limit * FILE_WORKS ||
		    (now - op->moved_ms >= limit && now - sb->heard_ms >= limit))
			return op;
	}
	return NULL;
}

static void expire(struct sandbox *sb, uint64_t now)
{
	struct file_op *op;

	while (sb->guest && (op = find_late(sb, now))) {
		log_warn("sandbox",
			 "%s: a file operation is given up: no progress in %" PRIu64 " ms", sb->id,
			 now - op->moved_ms);
		(void)guest_cancel(sb->guest, op->id);
		guest_forget(sb->guest, op->id);
		link_kick(sb);
		fail(op, ETIMEDOUT, "the sandbox has made no progress with this for too long");
	}
}

/* The next sandbox with operations under way, behind that one. */
static struct sandbox *next_busy(struct sandboxes *all, const struct sandbox *behind)
{
	bool is_behind = behind == NULL;

	LIST_FOREACH (&all->sandboxes, sb, struct sandbox, node) {
		if (is_behind && sb->n_file_ops > 0)
			return sb;
		is_behind = is_behind || sb == behind;
	}
	return NULL;
}

bool files_expire(struct sandboxes *all)
{
	uint64_t now = now_ms(all);
	struct sandbox *sb = next_busy(all, NULL);
	bool is_more = sb != NULL;

	while (sb) {
		struct sandbox *next;

		(void)sandbox_ref(sb); /* who is told of a failure may let go of it */
		expire(sb, now);
		next = next_busy(all, sb);
		sandbox_unref(sb);
		sb = next;
	}
	return is_more;
}

void files_fail(struct sandbox *sb, const char *why)
{
	while (!list_is_empty(&sb->file_ops))
		fail(LIST_ENTRY(sb->file_ops.next, struct file_op, node), EPIPE, why);
	while (!list_is_empty(&sb->file_waits))
		fail(LIST_ENTRY(sb->file_waits.next, struct file_op, node), EPIPE, why);
}

static void drop_all(struct list *ops)
{
	LIST_FOREACH (ops, op, struct file_op, node) {
		list_remove(&op->node);
		span_drop(op->span);
		free(op->frame);
		free(op);
	}
}

void files_drop(struct sandbox *sb)
{
	drop_all(&sb->file_ops);
	drop_all(&sb->file_waits);
	list_remove(&sb->file_turn.node);
	sb->n_file_ops = sb->n_file_waits = sb->n_file_watches = 0;
}
