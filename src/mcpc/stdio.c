#include "mcpc/stdio.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/str.h"
#include "loop/loop.h"
#include "mcpc/stdio_impl.h"

#define ARENA_MAX (1u << 20)
#define SAID_MAX 1024u        /* bytes of a line of errors that are logged */
#define KEEP_MAX (256u << 10) /* of a buffer that is empty again */
#define MASK_MIN 4u           /* bytes: what is shorter than this is no secret */
#define MASK "***"

static const struct mcpc_transport_ops transport_ops;

void stdio_yard_init(struct stdio_yard *y, struct loop *loop, struct sandboxes *sandboxes)
{
	*y = (struct stdio_yard){ .loop = loop, .sandboxes = sandboxes };
	list_init(&y->all);
}

void stdio_yard_done(struct stdio_yard *y)
{
	if (!y->all.next)
		return;
	LIST_FOREACH (&y->all, s, struct stdio, node)
		(void)stdio_free(s);
}

/* ---- making ---- */

static int copy_env(struct stdio *s, const struct jv_pairs *env)
{
	struct jv_pair *items = arena_array(s->arena, env->len + 1, sizeof(*items));

	for (size_t i = 0; items && i < env->len; i++) {
		const struct jv_pair *p = &env->items[i];

		items[i].name = arena_strndup(s->arena, p->name, strlen(p->name));
		items[i].value = arena_strndup(s->arena, p->value, strlen(p->value));
		if (!items[i].name || !items[i].value)
			return -ENOMEM;
	}
	s->env = (struct jv_pairs){ items, env->len };
	return items ? 0 : -ENOMEM;
}

static void lapse(void *user);

int stdio_init(struct stdio *s, struct stdio_yard *y, const struct stdio_ops *ops,
	       const struct stdio_spec *spec, struct err *err)
{
	int r;

	s->t.ops = &transport_ops;
	s->ops = ops;
	s->yard = y;
	list_push_back(&y->all, &s->node);
	buf_init(&s->line, MCPC_MESSAGE_MAX);
	buf_init(&s->out, STDIO_OUT_MAX);
	buf_init(&s->said, SAID_MAX);
	s->arena = arena_create(ARENA_MAX);
	s->name = s->arena ? arena_strndup(s->arena, spec->name, strlen(spec->name)) : NULL;
	r = s->name ? copy_env(s, &spec->env) : -ENOMEM;
	if (r == 0)
		r = loop_timer_create(y->loop, lapse, s, &s->timer);
	return r < 0 ? err_sys(err, r, "server") : 0;
}

static void wipe(struct stdio *s)
{
	for (size_t i = 0; i < s->env.len; i++)
		if (s->env.items[i].value)
			explicit_bzero((char *)s->env.items[i].value,
				       strlen(s->env.items[i].value));
}

struct stdio *stdio_free(struct stdio *s)
{
	struct stdio_yard *y = s ? s->yard : NULL;

	if (!s)
		return NULL;
	if (s->ops)
		s->ops->drop(s);
	list_remove(&s->node);
	s->timer = loop_timer_free(s->timer);
	wipe(s);
	s->arena = arena_free(s->arena);
	buf_done(&s->line);
	buf_done(&s->said);
	buf_done(&s->out);
	free(s);
	if (y->empty && list_is_empty(&y->all))
		y->empty(y->user);
	return NULL;
}

/* ---- what it says ---- */

static void lose(struct stdio *s, const struct err *err)
{
	if (s->is_lost || s->is_closing)
		return;
	s->is_lost = true;
	if (s->t.events)
		s->t.events->lost(s->t.user, err);
}

void stdio_lose(struct stdio *s, int code, const char *fmt, ...)
{
	struct err err = { .code = code };
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(err.text, sizeof(err.text), fmt, ap);
	va_end(ap);
	lose(s, &err);
}

void stdio_lose_ended(struct stdio *s, int exit_code, int signo)
{
	const char *colon = s->last[0] ? ": " : "";

	if (signo)
		stdio_lose(s, EPIPE, "the server was ended by signal %d%s%s", signo, colon,
			   s->last);
	else
		stdio_lose(s, EPIPE, "the server has ended with exit code %d%s%s", exit_code, colon,
			   s->last);
}

static void empty(struct buf *b)
{
	if (b->cap > KEEP_MAX) {
		size_t max = b->max;

		buf_done(b);
		buf_init(b, max);
	} else {
		buf_clear(b);
	}
}

/* Programs that greet on their output are forgiven, up to a point. */
static void take_line(struct stdio *s)
{
	struct str text = str_trim((struct str){ buf_str(&s->line), s->line.len });

	if (text.len == 0)
		return;
	if (text.data[0] != '{' && text.data[0] != '[') {
		log_debug("mcpc", "%s: a line on its output is no message", s->name);
		if (++s->junk > STDIO_JUNK_MAX)
			stdio_lose(s, EPROTO, "what the server writes is no MCP");
		return;
	}
	if (s->t.events)
		s->t.events->message(s->t.user, buf_str(&s->line), s->line.len);
}

void stdio_feed(struct stdio *s, const char *data, size_t n)
{
	while (n > 0 && !s->is_lost && !s->is_closing) {
		const char *end = memchr(data, '\n', n);
		size_t len = end ? (size_t)(end - data) : n;

		if (buf_append(&s->line, data, len) < 0) {
			buf_done(&s->line);
			stdio_lose(s, EMSGSIZE, "the server has sent a line of more than %u bytes",
				   MCPC_MESSAGE_MAX);
			return;
		}
		if (!end)
			return;
		data += len + 1;
		n -= len + 1;
		take_line(s);
		empty(&s->line);
	}
}

/* Values of its environment are not for the log. */
static void mask(const struct stdio *s, const char *text, struct buf *ret)
{
	while (*text) {
		const struct jv_pair *hit = NULL;

		for (size_t i = 0; i < s->env.len && !hit; i++) {
			const char *v = s->env.items[i].value;

			if (strlen(v) >= MASK_MIN && strncmp(text, v, strlen(v)) == 0)
				hit = &s->env.items[i];
		}
		if (hit) {
			(void)buf_puts(ret, MASK);
			text += strlen(hit->value);
		} else {
			(void)buf_putc(ret, *text >= ' ' || *text < 0 ? *text : ' ');
			text++;
		}
	}
}

static void take_said(struct stdio *s)
{
	_cleanup_(buf_done) struct buf clean = { .max = 2 * SAID_MAX };

	mask(s, buf_str(&s->said), &clean);
	buf_clear(&s->said);
	if (clean.len == 0)
		return;
	(void)snprintf(s->last, sizeof(s->last), "%s", buf_str(&clean));
	log_debug("mcpc", "%s: %s", s->name, buf_str(&clean));
}

void stdio_said(struct stdio *s, const char *data, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (data[i] == '\n')
			take_said(s);
		else if (s->said.len < SAID_MAX - 1) /* the rest of a long line is not of use */
			(void)buf_putc(&s->said, data[i] ? data[i] : ' ');
	}
}

/* ---- the transport ---- */

static int send_message(struct mcpc_transport *t, const struct mcpc_send *m, struct err *err)
{
	struct stdio *s = (struct stdio *)t;
	int r;

	if (s->is_lost || s->is_closing)
		return err_set(err, EPIPE, "the server has ended");
	if (s->out_at == s->out.len) {
		empty(&s->out);
		s->out_at = 0;
	} else if (s->out_at > KEEP_MAX) {
		buf_drop(&s->out, s->out_at);
		s->out_at = 0;
	}
	r = buf_reserve(&s->out, m->len + 1);
	if (r == -E2BIG)
		return err_set(err, EAGAIN, "the server does not read what it is sent");
	if (r < 0)
		return err_sys(err, r, "message");
	(void)buf_append(&s->out, m->text, m->len);
	(void)buf_putc(&s->out, '\n');
	s->ops->flush(s);
	return 0;
}

static void forget(struct mcpc_transport *t, const char *id)
{
	(void)t;
	(void)id; /* an answer that comes all the same is passed over */
}

static void agreed(struct mcpc_transport *t, const char *version)
{
	(void)t;
	(void)version;
}

static uint64_t grace_ms(const struct stdio *s)
{
	return s->yard->grace_ms ? s->yard->grace_ms : STDIO_GRACE_MS;
}

/* One step further towards the end. */
static void lapse(void *user)
{
	struct stdio *s = user;

	if (s->end == STDIO_LIVES) {
		stdio_lose(s, EPIPE, "the server has closed its output%s%s", s->last[0] ? ": " : "",
			   s->last);
	} else if (s->end == STDIO_HUNG_UP) {
		s->end = STDIO_ASKED;
		loop_timer_start(s->timer, grace_ms(s), 0);
		s->ops->terminate(s);
	} else if (s->end == STDIO_ASKED) {
		s->end = STDIO_KILLED;
		s->ops->kill(s);
	}
}

void stdio_fell_silent(struct stdio *s)
{
	if (s->end == STDIO_LIVES)
		loop_timer_start(s->timer, grace_ms(s), 0);
}

static void close_transport(struct mcpc_transport *t)
{
	struct stdio *s = (struct stdio *)t;

	s->is_closing = true;
	s->t.events = NULL;
	s->end = STDIO_HUNG_UP;
	loop_timer_start(s->timer, grace_ms(s), 0);
	s->ops->hang_up(s);
}

static const struct mcpc_transport_ops transport_ops = {
	.send = send_message,
	.forget = forget,
	.agreed = agreed,
	.close = close_transport,
};
