#include "sandbox/prepare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/str.h"
#include "sandbox/execution.h"
#include "sandbox/ports.h"
#include "sandbox/registry.h"

#define AGAIN_MS 50u    /* between two looks at a port */
#define SAID_MAX 160    /* bytes of what the command said, in the reason */
#define ANSWER_MAX 12   /* "HTTP/1.1 200": no more of an answer is looked at */
#define ANSWER_MS 5000u /* that one answer may take */

/* Runs until the user's command ends well; it comes as an argument, so nothing is quoted. */
#define READY_LOOP "until /bin/sh -c \"$1\" >/dev/null 2>&1; do sleep 0.1; done"

struct prepare {
	struct sandbox *sb;             /* owned reference */
	struct execution *x, *check;    /* owned references; NULL */
	struct exec_wait *end, *passed; /* owned; NULL */
	bool is_over;                   /* then() is due in the next turn */
	struct later soon;
	struct err err;       /* for then() */
	struct port_use *use; /* borrowed; NULL: no connection */
	struct loop_io *io;   /* owned */
	int fd;               /* owned; -1 */
	char answer[ANSWER_MAX + 1];
	size_t n_answer;
	struct loop_timer *again, *deadline; /* owned */
	void (*then)(struct sandbox *sb, const struct err *err);
};

static void hang_up(struct prepare *p)
{
	p->io = loop_io_free(p->io);
	p->fd = fd_close(p->fd);
	port_use_end(p->use);
	p->use = NULL;
	p->n_answer = 0;
}

/* Nothing of it happens any more. */
static void settle(struct prepare *p)
{
	exec_unwait(p->end);
	exec_unwait(p->passed);
	p->end = p->passed = NULL;
	hang_up(p);
	p->again = loop_timer_free(p->again);
	p->deadline = loop_timer_free(p->deadline);
}

static void prepare_free(struct prepare *p)
{
	settle(p);
	p->sb->prepare = NULL;
	list_remove(&p->soon.node);
	exec_unref(p->x);
	exec_unref(p->check);
	free(p);
}

static void run_over(struct later *l, bool is_over)
{
	struct prepare *p = LIST_ENTRY(l, struct prepare, soon);
	struct sandbox *sb = p->sb;
	struct err err = p->err;

	void (*then)(struct sandbox *, const struct err *) = p->then;

	prepare_free(p);
	if (is_over)
		return; /* the sandbox goes with the registry */
	then(sb, err.code ? &err : NULL);
	sandbox_unref(sb);
}

/* Not from here: what follows may end the connection that tells us of this. */
static void finish(struct prepare *p, const struct err *err)
{
	if (p->is_over)
		return;
	p->is_over = true;
	settle(p);
	if (p->check && p->check->state == EXECUTION_RUNNING)
		(void)exec_cancel(p->check);
	if (err)
		p->err = *err;
	else if (p->x)
		memcpy(p->sb->start_id, p->x->id, sizeof(p->sb->start_id));
	later_post(p->sb->all, &p->soon, run_over);
}

/* ---- why not ---- */

/* The end of what it said, as one line. */
static void said(const struct execution *x, char dst[SAID_MAX + 1])
{
	const struct output *o = x ? exec_output(x) : NULL;
	uint64_t end = o ? output_end(o) : 0, at = end > SAID_MAX ? end - SAID_MAX : 0, omitted;
	struct output_chunk c;
	size_t n = 0;

	while (o && n < SAID_MAX && output_read(o, at, &c, &omitted)) {
		const char *text = c.data;

		for (size_t i = 0; i < c.len && n < SAID_MAX; i++)
			dst[n++] = text[i] >= ' ' && text[i] <= '~' ? text[i] : ' ';
		at = c.seq + c.len;
	}
	while (n > 0 && dst[n - 1] == ' ')
		n--;
	dst[n] = '\0';
}

static void fail(struct prepare *p, const char *why)
{
	char text[SAID_MAX + 1];
	struct err err = { 0 };

	said(p->x, text);
	(void)err_set(&err, ECANCELED, "start: %s%s%s", why, text[0] ? ": " : "", text);
	finish(p, &err);
}

static void fail_ended(struct prepare *p, const struct execution *x)
{
	char why[64];

	if (x->state == EXECUTION_FAILED || x->state == EXECUTION_INTERRUPTED)
		(void)str_format(why, sizeof(why), "%.60s", x->reason);
	else if (x->signal != 0)
		(void)str_format(why, sizeof(why), "the command was ended by signal %d", x->signal);
	else
		(void)str_format(why, sizeof(why), "the command ended with exit code %d",
				 x->exit_code);
	fail(p, why);
}

static void on_late(void *user)
{
	struct prepare *p = user;
	uint64_t ms = p->sb->kit.make.start.timeout_ms;
	char why[48];

	(void)str_format(why, sizeof(why), "not ready within %llu s",
			 (unsigned long long)((ms ? ms : START_TIMEOUT_DEFAULT_MS) / 1000));
	fail(p, why);
}

/* ---- looking at a port ---- */

static void dial(void *user);

static void dial_again(struct prepare *p)
{
	hang_up(p);
	loop_timer_start(p->again, AGAIN_MS, 0);
}

/* "HTTP/1.x 2..": anything else is not ready yet. */
static void on_answer(void *user, unsigned events)
{
	struct prepare *p = user;
	ssize_t n = recv(p->fd, p->answer + p->n_answer, ANSWER_MAX - p->n_answer, MSG_DONTWAIT);

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		dial_again(p);
		return;
	}
	p->n_answer += (size_t)n;
	if (p->n_answer < ANSWER_MAX)
		return;
	if (strncmp(p->answer, "HTTP/1.", 7) == 0 && p->answer[8] == ' ' && p->answer[9] == '2')
		finish(p, NULL);
	else
		dial_again(p);
}

static void on_connected(void *user, int fd)
{
	struct prepare *p = user;
	const char *path = p->sb->kit.make.start.ready_http;
	char ask[MAKEUP_PATH_MAX + 80];
	int r;

	p->fd = fd;
	if (!path || path[0] == '\0') {
		finish(p, NULL);
		return;
	}
	r = str_format(ask, sizeof(ask),
		       "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
	/* A new connection takes as little as that at once. */
	if (r == 0 && send(fd, ask, strlen(ask), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		r = -errno;
	if (r == 0)
		r = loop_io_create(p->sb->all->loop, fd, on_answer, p, &p->io);
	if (r == 0)
		r = loop_io_want(p->io, LOOP_READ);
	if (r < 0)
		dial_again(p);
	else
		loop_timer_start(p->again, ANSWER_MS, 0); /* one that stays silent is asked anew */
}

static void on_refused(void *user, const struct err *err)
{
	struct prepare *p = user;

	(void)err; /* whatever it is: until the deadline it may become better */
	p->use = NULL;
	dial_again(p);
}

static void on_hung_up(void *user)
{
	struct prepare *p = user;

	p->use = NULL;
	dial_again(p);
}

static void dial(void *user)
{
	static const struct port_use_ops ops = { .connected = on_connected,
						 .failed = on_refused,
						 .ended = on_hung_up };
	struct prepare *p = user;
	struct err err = { 0 };

	hang_up(p);
	if (port_dial_early(p->sb, (uint16_t)p->sb->kit.make.start.ready_port, &ops, p, &p->use,
			    &err) < 0)
		dial_again(p);
}

/* ---- the command, and the one that says when ---- */

static void on_passed(void *user, struct execution *x)
{
	struct prepare *p = user;

	p->passed = NULL;
	if (x->state == EXECUTION_EXITED && x->exit_code == 0)
		finish(p, NULL);
	else
		fail(p, "the ready command was ended");
}

static void on_check(void *user, struct execution *x, const struct err *err)
{
	struct sandbox *sb = user;
	struct prepare *p = sb->prepare;

	if (p && !p->is_over && err) {
		fail(p, err->text);
	} else if (p && !p->is_over) {
		p->check = exec_ref(x);
		p->passed = exec_wait(x, on_passed, p);
		if (!p->passed)
			fail(p, "out of memory");
	} else if (x) {
		(void)exec_cancel(x); /* too late */
	}
	sandbox_unref(sb);
}

static void check(struct prepare *p)
{
	const struct makeup_start *s = &p->sb->kit.make.start;
	const char *argv[] = { "/bin/sh", "-c", READY_LOOP, "ready", s->ready_command };
	struct exec_request req = { .kind = EXECUTION_COMMAND,
				    .argv = argv,
				    .argc = sizeof(argv) / sizeof(argv[0]),
				    .is_start = true };

	if (s->ready_port > 0)
		dial(p);
	else if (s->ready_command && s->ready_command[0] != '\0')
		exec_start(p->sb, &req, on_check, sandbox_ref(p->sb));
	else
		finish(p, NULL);
}

/* A command that ends well has left something behind that will be ready. */
static void on_end(void *user, struct execution *x)
{
	struct prepare *p = user;

	p->end = NULL;
	if (x->state != EXECUTION_EXITED || x->exit_code != 0)
		fail_ended(p, x);
}

static void on_start(void *user, struct execution *x, const struct err *err)
{
	struct sandbox *sb = user;
	struct prepare *p = sb->prepare;

	if (p && !p->is_over && err) {
		fail(p, err->text);
	} else if (p && !p->is_over) {
		p->x = exec_ref(x);
		if (x->state != EXECUTION_RUNNING && x->exit_code != 0)
			fail_ended(p, x);
		else if (!(p->end = exec_wait(x, on_end, p)))
			fail(p, "out of memory");
		else
			check(p);
	} else if (x) {
		(void)exec_cancel(x);
	}
	sandbox_unref(sb);
}

static struct prepare *prepare_create(struct sandbox *sb)
{
	struct prepare *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->sb = sb;
	p->fd = -1;
	list_init(&p->soon.node);
	sb->prepare = p;
	if (loop_timer_create(sb->all->loop, dial, p, &p->again) == 0 &&
	    loop_timer_create(sb->all->loop, on_late, p, &p->deadline) == 0)
		return p;
	prepare_free(p);
	return NULL;
}

void prepare_begin(struct sandbox *sb, void (*then)(struct sandbox *sb, const struct err *err))
{
	const struct makeup_start *s = &sb->kit.make.start;
	struct exec_request req = { .kind = EXECUTION_COMMAND,
				    .command = s->command,
				    .background = true,
				    .is_start = true };
	struct err err = { 0 };
	struct prepare *p;

	sb->start_id[0] = '\0';
	/* A job of ours builds on what is there: it does not need it to run. */
	if (sb->is_internal || !s->command || s->command[0] == '\0') {
		then(sb, NULL);
		return;
	}
	p = prepare_create(sb);
	if (!p) {
		(void)err_sys(&err, ENOMEM, "start");
		then(sb, &err);
		return;
	}
	(void)sandbox_ref(sb);
	p->then = then;
	loop_timer_start(p->deadline, s->timeout_ms ? s->timeout_ms : START_TIMEOUT_DEFAULT_MS, 0);
	exec_start(sb, &req, on_start, sandbox_ref(sb));
}

void prepare_cancel(struct sandbox *sb, const struct err *why)
{
	if (sb->prepare)
		finish(sb->prepare, why);
}

void prepare_record(struct sandbox *sb)
{
	struct execution *x = sb->start_id[0] ? execution_by_id(sb, sb->start_id) : NULL;

	sb->start_id[0] = '\0';
	/* A failure is no harm: the box tells of it after a restart, and its end is recorded. */
	if (x && x->state == EXECUTION_RUNNING)
		(void)execution_record_start(x);
}

void prepare_drop(struct sandbox *sb)
{
	if (sb->prepare)
		prepare_free(sb->prepare);
}
