/* A server in a sandbox of its own, which is made for it and ends with it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "loop/loop.h"
#include "mcpc/stdio_impl.h"
#include "sandbox/exec.h"
#include "sandbox/sandbox.h"

#define TURN_CHUNKS 16u /* of its output, before others have their turn */
#define FEED_MAX (64u << 10)
#define JOB "mcp-server"
#define LIFE_MS (24ull * 3600 * 1000)
#define LIFE_PART 4 /* of its life: then it is given a new one, when it is used */

struct box {
	struct stdio s;
	const char *const *argv; /* arena */
	size_t argc;
	const char *cwd;
	struct stdio_network network;   /* its texts are the row's, which outlives it */
	const struct sandbox_pair *way; /* arena: what leads programs out */
	size_t n_way;
	char id[ID_LEN + 1];        /* of the sandbox; "": none yet, or none any more */
	uint64_t lives_from;        /* loop's time of its last life */
	bool is_pending;            /* an answer of the service is on its way to us */
	struct execution *x;        /* owned reference; NULL */
	struct exec_reader *reader; /* owned; NULL */
	struct loop_task soon;      /* reads on */
	struct loop_task over;      /* frees it */
};

static struct box *box_of(struct stdio *s)
{
	return (struct box *)s;
}

static struct sandbox *find(const struct box *b)
{
	return b->id[0] ? sandboxes_find(b->s.yard->sandboxes, b->id, NULL) : NULL;
}

static void ignore(void *user, struct sandbox *sb, const struct err *err)
{
	(void)user;
	(void)sb;
	(void)err; /* an end that fails is tried again by itself */
}

static void let_go(struct box *b)
{
	if (b->x)
		exec_on_room(b->x, NULL, NULL);
	exec_reader_close(b->reader);
	b->reader = NULL;
	if (b->x)
		exec_unref(b->x);
	b->x = NULL;
}

/* Nothing of it is left to wait for: the sandbox goes. */
static void finish(struct box *b)
{
	struct sandbox *sb = find(b);

	let_go(b);
	if (sb)
		sandbox_delete(sb, "its server has ended", ignore, NULL);
	b->id[0] = '\0';
	if (b->s.is_closing && !b->is_pending)
		loop_task_post(b->s.yard->loop, &b->over);
}

/* ---- what is said ---- */

static uint64_t life_ms(const struct box *b)
{
	return b->s.yard->life_ms ? b->s.yard->life_ms : LIFE_MS;
}

/* What is used does not end by its time. */
static void live_on(struct box *b)
{
	uint64_t now = loop_now_ms(b->s.yard->loop);
	struct sandbox *sb = now - b->lives_from > life_ms(b) / LIFE_PART ? find(b) : NULL;

	if (!sb)
		return;
	b->lives_from = now;
	sandbox_patch(sb, &(struct sandbox_patch){ .has_timeout = true, .timeout_ms = life_ms(b) },
		      ignore, NULL);
}

static void flush(struct stdio *s)
{
	struct box *b = box_of(s);
	int r = 0;

	live_on(b);
	while (b->x && r == 0 && s->out_at < s->out.len) {
		size_t n = s->out.len - s->out_at;

		n = n < FEED_MAX ? n : FEED_MAX;
		r = exec_stdin(b->x, s->out.data + s->out_at, n);
		if (r == 0)
			s->out_at += n;
	}
	/* -EAGAIN: on_room() comes; all else: the end does. */
}

static void on_room(void *user)
{
	flush(user);
}

static void on_ended(struct box *b)
{
	struct exec_info i;

	exec_info(b->x, &i);
	stdio_said(&b->s, "\n", 1);
	if (i.state == EXECUTION_EXITED)
		stdio_lose_ended(&b->s, i.exit_code, i.signal);
	else
		stdio_lose(&b->s, EPIPE, "the server's sandbox has ended: %.120s", i.reason);
	finish(b);
}

static void readable(void *user)
{
	struct box *b = user;
	struct output_chunk c;
	uint64_t omitted;
	int r = 1;

	for (unsigned i = 0; i < TURN_CHUNKS && r > 0 && b->reader; i++) {
		r = exec_read(b->reader, &c, &omitted);
		if (r > 0 && c.stream == 1)
			stdio_feed(&b->s, c.data, c.len);
		else if (r > 0)
			stdio_said(&b->s, c.data, c.len);
	}
	if (r > 0)
		loop_task_post(b->s.yard->loop, &b->soon);
	else if (r < 0)
		on_ended(b);
}

/* ---- the beginning ---- */

static void started(void *user, struct execution *x, const struct err *err)
{
	struct box *b = user;

	b->is_pending = false;
	if (!err && !b->s.is_closing) {
		b->x = exec_ref(x);
		b->reader = exec_reader_open(x, 0, readable, b);
	}
	if (err)
		stdio_lose(&b->s, err->code, "start the server: %.180s", err->text);
	else if (!b->s.is_closing && !b->reader)
		stdio_lose(&b->s, ENOMEM, "start the server: no memory");
	if (err || !b->reader) {
		finish(b);
		return;
	}
	exec_on_room(x, on_room, b);
	flush(&b->s);
}

static void run(struct box *b, struct sandbox *sb)
{
	struct exec_request req = { .kind = EXECUTION_COMMAND,
				    .argv = b->argv,
				    .argc = b->argc,
				    .cwd = b->cwd,
				    .user = "",
				    .has_stdin = true,
				    .is_unbounded = true,
				    .tag = b->s.name };
	size_t n = b->s.env.len + b->n_way;
	struct sandbox_pair *env = arena_array(b->s.arena, n + 1, sizeof(*env));

	for (size_t i = 0; env && i < b->n_way; i++)
		env[i] = b->way[i];
	for (size_t i = 0; env && i < b->s.env.len; i++) /* its own come last: they win */
		env[b->n_way + i] =
			(struct sandbox_pair){ b->s.env.items[i].name, b->s.env.items[i].value };
	if (!env) {
		stdio_lose(&b->s, ENOMEM, "start the server: no memory");
		finish(b);
		return;
	}
	req.env = env;
	req.n_env = n;
	b->is_pending = true;
	exec_start(sb, &req, started, b);
}

/* Copied: they are theirs. False: without memory, or there are none. */
static bool take_way(struct box *b, const struct sandbox_pair *env, size_t n)
{
	struct sandbox_pair *own = arena_array(b->s.arena, n + 1, sizeof(*own));

	for (size_t i = 0; own && i < n; i++) {
		own[i].name = arena_strndup(b->s.arena, env[i].name, strlen(env[i].name));
		own[i].value = arena_strndup(b->s.arena, env[i].value, strlen(env[i].value));
		if (!own[i].name || !own[i].value)
			return false;
	}
	b->way = own;
	b->n_way = own ? n : 0;
	return b->n_way > 0;
}

static void led(void *user, const struct sandbox_pair *env, size_t n)
{
	struct box *b = user;
	struct sandbox *sb = find(b);

	b->is_pending = false;
	if (!sb)
		stdio_lose(&b->s, EPIPE, "the server's sandbox has ended");
	else if (!take_way(b, env, n))
		stdio_lose(&b->s, ENETUNREACH, "network: nothing leads out of sandboxes here");
	if (b->s.is_lost || b->s.is_closing)
		finish(b);
	else
		run(b, sb);
}

static bool wants_way(const struct box *b)
{
	return b->network.is_open || b->network.allow.len > 0;
}

static void made(void *user, struct sandbox *sb, const struct err *err)
{
	struct box *b = user;

	b->is_pending = false;
	if (err) {
		stdio_lose(&b->s, err->code, "the server's sandbox: %.180s", err->text);
		finish(b);
		return;
	}
	(void)str_copy(b->id, sizeof(b->id), sandbox_id(sb));
	if (b->s.is_closing) {
		finish(b);
	} else if (wants_way(b)) {
		b->is_pending = true;
		if (b->s.yard->way.open)
			b->s.yard->way.open(b->s.yard->way.self, sb, &b->network, led, b);
		else
			led(b, NULL, 0);
	} else {
		run(b, sb);
	}
}

static void make(struct box *b, const struct stdio_spec *spec)
{
	const struct sandbox_pair purpose[] = { { "holt.job", JOB }, { "holt.mcp", b->s.name } };
	struct sandbox_request req = { .owner = spec->owner,
				       .name = "",
				       .template = spec->template,
				       .snapshot = spec->snapshot,
				       .limits = spec->limits,
				       .volumes = spec->volumes.n ? &spec->volumes : NULL,
				       .timeout_ms = life_ms(b),
				       .is_internal = true,
				       .metadata = purpose,
				       .n_metadata = 2 };

	b->is_pending = true;
	b->lives_from = loop_now_ms(b->s.yard->loop);
	sandbox_create(b->s.yard->sandboxes, &req, made, b);
}

/* ---- the end ---- */

static void hang_up(struct stdio *s)
{
	struct box *b = box_of(s);

	loop_task_cancel(&b->soon);
	if (b->x && b->reader) {
		(void)exec_stdin_end(b->x);
		loop_task_post(s->yard->loop, &b->soon); /* what is left of its output goes by */
	} else {
		finish(b);
	}
}

static void terminate(struct stdio *s)
{
	const struct box *b = box_of(s);

	if (b->x)
		(void)exec_cancel(b->x);
}

static void end_now(struct stdio *s)
{
	finish(box_of(s));
}

static void drop(struct stdio *s)
{
	struct box *b = box_of(s);

	loop_task_cancel(&b->soon);
	loop_task_cancel(&b->over);
	let_go(b);
}

static const struct stdio_ops box_ops = {
	.flush = flush,
	.hang_up = hang_up,
	.terminate = terminate,
	.kill = end_now,
	.drop = drop,
};

static void free_soon(void *user)
{
	(void)stdio_free(user);
}

static int copy_command(struct box *b, const struct stdio_spec *spec)
{
	struct arena *a = b->s.arena;
	const char **argv = arena_array(a, spec->argc + 1, sizeof(*argv));

	for (size_t i = 0; argv && i < spec->argc; i++) {
		argv[i] = arena_strndup(a, spec->argv[i], strlen(spec->argv[i]));
		if (!argv[i])
			return -ENOMEM;
	}
	b->argv = argv;
	b->argc = spec->argc;
	b->cwd = arena_strndup(a, spec->cwd, strlen(spec->cwd));
	b->network = spec->network;
	return argv && b->cwd ? 0 : -ENOMEM;
}

int stdio_box_open(struct stdio_yard *y, const struct stdio_spec *spec, struct mcpc_transport **ret,
		   struct err *err)
{
	struct box *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return err_sys(err, ENOMEM, "server");
	loop_task_init(&b->soon, readable, b);
	loop_task_init(&b->over, free_soon, b);
	r = stdio_init(&b->s, y, &box_ops, spec, err);
	if (r == 0 && copy_command(b, spec) < 0)
		r = err_sys(err, ENOMEM, "server");
	if (r < 0) {
		(void)stdio_free(&b->s);
		return r;
	}
	make(b, spec);
	*ret = &b->s.t;
	return 0;
}
