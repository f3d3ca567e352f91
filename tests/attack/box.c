/* A box as the attacks see it from outside: opened, spoken to with a deadline, closed, gone. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attack.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"

#define OUTPUT_KEPT (1u << 20)
#define ARGS_MAX 64

static void read_ids(struct box *b)
{
	char path[64], text[256];
	unsigned inner, outer, count;

	(void)snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)b->l.pid);
	if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) > 0 &&
	    sscanf(text, "%u %u %u", &inner, &outer, &count) == 3 && count > 1) {
		b->uid_base = outer;
		b->uid_count = count + 1;
	}
	b->pid_ns = machine_ns(b->l.pid, "pid");
}

void box_open(struct world *w, struct box *b, uint32_t template_id, const struct limits *limits)
{
	struct launch_spec spec = { .template_id = template_id };
	struct err err = { 0 };

	assert_null(b->guest);
	*b = (struct box){ 0 };
	if (limits)
		spec.limits = *limits;
	if (launcher_claim_sync(w->launcher, &spec, &b->l, &err) < 0)
		fail_msg("claim: %s", err.text);
	read_ids(b);
	if (guest_create(b->l.sock, &b->guest, &err) < 0)
		fail_msg("guest: %s", err.text);
	b->l.sock = -1;
}

void box_drop(struct world *w, struct box *b)
{
	if (!b->guest)
		return;
	(void)launcher_destroy_sync(w->launcher, b->l.id, NULL, NULL);
	b->guest = guest_free(b->guest);
	(void)fd_close(b->l.pidfd);
	*b = (struct box){ 0 };
}

void box_expect_gone(const struct box *b, uint64_t before)
{
	int left = 0;

	/* The dead may take a moment until their parents have taken note of them. */
	for (int i = 0; b->uid_count && i < 50; i++) {
		left = machine_with_ids(b->uid_base, b->uid_count, before, i == 49);
		if (left == 0)
			break;
		(void)usleep(20000);
	}
	assert_int_equal(left, 0);
	assert_true(b->pid_ns == 0 || machine_ns(b->l.pid, "pid") != b->pid_ns);
}

/* It cannot be destroyed because it has died by itself: says how. */
static void fail_lost(struct world *w, const struct err *err)
{
	struct box_usage usage = { 0 };
	char id[ID_LEN + 1] = "";
	int status = 0;

	(void)launcher_next_death(w->launcher, id, &status, &usage);
	fail_msg("destroy: %s; last death told: '%s', wait status %#x, %u kills for memory",
		 err->text, id, (unsigned)status, usage.oom_kills);
}

void box_close(struct world *w, struct box *b, struct box_usage *ret)
{
	struct err err = { 0 };
	struct box_usage usage = { 0 };
	uint64_t before = machine_ticks();
	struct box was = *b;

	/* The socket stays open until then: a guest whose client is gone ends by itself. */
	if (launcher_destroy_sync(w->launcher, was.l.id, &usage, &err) < 0)
		fail_lost(w, &err);
	b->guest = guest_free(b->guest);
	(void)fd_close(b->l.pidfd);
	*b = (struct box){ 0 };
	if (ret)
		*ret = usage;
	box_expect_gone(&was, before);
}

void box_upload(struct world *w, struct box *b)
{
	int r = api_put(b,
			&(struct guest_file){ .op = FILE_WRITE,
					      .mode = 0755,
					      .user = "",
					      .path = ATTACK_PROBE,
					      .target = "" },
			w->probe.data, w->probe.len, NULL);

	if (r < 0)
		fail_msg("upload the probe: %s", strerror(-r));
}

void box_expect_answer(struct box *b)
{
	int r = guest_ping_sync(b->guest, 1000);

	if (r < 0)
		fail_msg("the box does not answer: %s", strerror(-r));
}

static void on_started(void *user, uint32_t pid, bool warm)
{
	struct op *op = user;

	op->started = true;
	op->warm = warm;
	op->pid = pid;
}

static void keep(struct buf *b, const void *data, size_t n)
{
	if (b->len + n <= OUTPUT_KEPT)
		(void)buf_append(b, data, n);
}

static void on_output(void *user, int stream, uint64_t offset, const void *data, size_t n)
{
	struct op *op = user;

	(void)offset;
	op->bytes += n;
	keep(stream == 2 ? &op->err : &op->out, data, n);
}

static void on_data(void *user, const void *data, size_t n)
{
	struct op *op = user;

	op->bytes += n;
	keep(&op->out, data, n);
}

static void on_entry(void *user, const struct guest_entry *e)
{
	struct op *op = user;

	op->count++;
	if (op->names.len < OUTPUT_KEPT)
		(void)buf_printf(&op->names, "%u %o %u %llu %s%s%s\n", e->type, e->mode, e->uid,
				 (unsigned long long)e->size, e->path, e->target[0] ? " -> " : "",
				 e->target);
}

static void on_done(void *user, uint64_t count)
{
	struct op *op = user;

	op->count = count;
	op->ended = true;
}

static void on_exited(void *user, const struct guest_exit *ex)
{
	struct op *op = user;

	op->exit = *ex;
	op->ended = true;
}

static void on_failed(void *user, int code, const char *text)
{
	struct op *op = user;

	op->code = code;
	op->ended = true;
	(void)snprintf(op->text, sizeof(op->text), "%s", text);
}

static const struct guest_callbacks callbacks = {
	.started = on_started,
	.output = on_output,
	.data = on_data,
	.entry = on_entry,
	.done = on_done,
	.exited = on_exited,
	.failed = on_failed,
};

void op_done(struct op *op)
{
	buf_done(&op->out);
	buf_done(&op->err);
	buf_done(&op->names);
}

/* One turn of the box's socket, at most that long. */
static void turn(struct box *b, uint64_t ms)
{
	struct pollfd p = { .fd = guest_fd(b->guest), .events = POLLIN };

	if (guest_wants_write(b->guest))
		p.events |= POLLOUT;
	if (poll(&p, 1, (int)ms) > 0)
		(void)guest_dispatch(b->guest);
}

bool box_wait(struct box *b, struct op *op, unsigned ms)
{
	uint64_t until = clock_now_ms() + ms, now;

	while (!op->ended && (now = clock_now_ms()) < until)
		turn(b, until - now);
	return op->ended;
}

void box_wait_ready(struct box *b, struct op *op)
{
	uint64_t until = clock_now_ms() + 20000;

	while (!op->ended && clock_now_ms() < until && !strstr(buf_str(&op->out), "ready") &&
	       !strstr(buf_str(&op->out), "filled"))
		turn(b, 100);
	if (op->ended || clock_now_ms() >= until)
		fail_msg("it did not get ready: %s %s%s", op->text, buf_str(&op->out),
			 buf_str(&op->err));
}

void box_start_argv(struct box *b, const struct guest_exec *e, struct op *op)
{
	struct err err = { 0 };

	*op = (struct op){ 0 };
	if (guest_exec(b->guest, e, &callbacks, op, &op->id, &err) < 0)
		fail_msg("exec: %s", err.text);
}

void box_start(struct world *w, struct box *b, const char *line, const struct attack *a,
	       struct op *op)
{
	static const char *const env[] = { "PATH=/usr/bin:/bin" };
	_cleanup_(buf_done) struct buf text = { 0 };
	struct guest_exec *e = calloc(1, sizeof(*e));
	unsigned flags = a ? a->flags : 0;

	assert_non_null(e);
	e->argv[0] = ATTACK_PROBE;
	e->argc = 1 + world_expand(w, line, &text, e->argv + 1, ARGS_MAX);
	e->envp[0] = env[0];
	e->envc = 1;
	e->flags = flags & ON_TERMINAL ? EXEC_PTY : 0;
	e->timeout_ms = a && a->timeout_ms ? a->timeout_ms : ATTACK_TIMEOUT_MS;
	e->grace_ms = GUEST_SIGNAL_DEFAULT_GRACE_MS;
	e->output_limit = OUTPUT_KEPT;
	e->user = flags & AS_ROOT && !w->rootless ? "root" : "";
	e->cwd = "/tmp";
	e->code = "";
	box_start_argv(b, e, op);
	free(e);
}

/* The verdict is the last line, and the exit code must agree with it. */
void op_expect_held(const char *line, const struct op *op, unsigned flags)
{
	const char *out = buf_str(&op->out);

	if (op->code)
		fail_msg("%s: %s", line, op->text);
	if (strstr(out, "broken: "))
		fail_msg("%s: %s", line, strstr(out, "broken: "));
	if (op->exit.flags & EXIT_SIGNALED)
		fail_msg("%s: ended by signal %u: %s%s", line, op->exit.code, out,
			 buf_str(&op->err));
	if (flags & MAY_BE_ABSENT && op->exit.code == 77)
		return;
	if (op->exit.code != 0 || !strstr(out, "held: "))
		fail_msg("%s: code %u: %s%s", line, op->exit.code, out, buf_str(&op->err));
}

void box_expect_held(struct world *w, struct box *b, const char *line, unsigned flags)
{
	const struct attack a = { .flags = flags };
	struct op op;

	box_start(w, b, line, &a, &op);
	if (!box_wait(b, &op, ATTACK_TIMEOUT_MS + 5000))
		fail_msg("%s: no end", line);
	op_expect_held(line, &op, flags);
	op_done(&op);
}

/* Sends what fits; -EAGAIN when the window is full. */
static int feed(struct box *b, uint32_t id, const char **data, size_t *left, bool *open)
{
	ssize_t n;

	while (*left > 0) {
		n = guest_data(b->guest, id, *data, *left);
		if (n <= 0)
			return n < 0 ? (int)n : -EAGAIN;
		*data += n;
		*left -= (size_t)n;
	}
	n = guest_data(b->guest, id, NULL, 0);
	*open = n == -EAGAIN;
	return 0;
}

int api_put(struct box *b, const struct guest_file *f, const void *data, size_t n, struct op *op)
{
	uint64_t until = clock_now_ms() + API_MS;
	const char *p = data;
	struct op own = { 0 };
	bool open = true;
	int code;

	op = op ? op : &own;
	*op = (struct op){ 0 };
	if (guest_file(b->guest, f, &callbacks, op, &op->id, NULL) < 0)
		return -EIO;
	while (!op->ended && clock_now_ms() < until) {
		if (open)
			(void)feed(b, op->id, &p, &n, &open);
		turn(b, 50);
	}
	code = op->ended ? -op->code : -ETIMEDOUT;
	if (!op->ended)
		guest_forget(b->guest, op->id);
	if (op == &own)
		op_done(op);
	return code;
}

int api_file(struct box *b, const struct guest_file *f, struct op *op)
{
	struct op own = { 0 };
	int code;

	op = op ? op : &own;
	*op = (struct op){ 0 };
	if (guest_file(b->guest, f, &callbacks, op, &op->id, NULL) < 0)
		return -EIO;
	code = box_wait(b, op, API_MS) ? -op->code : -ETIMEDOUT;
	if (!op->ended)
		guest_forget(b->guest, op->id);
	if (op == &own)
		op_done(op);
	return code;
}

int api_read(struct box *b, const char *path, struct op *op)
{
	return api_file(
		b, &(struct guest_file){ .op = FILE_READ, .user = "", .path = path, .target = "" },
		op);
}

int api_write(struct box *b, const char *path, const void *data, size_t n)
{
	return api_put(
		b,
		&(struct guest_file){
			.op = FILE_WRITE, .mode = 0644, .user = "", .path = path, .target = "" },
		data, n, NULL);
}
