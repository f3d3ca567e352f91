/* What an MCP server may say, line by line, to a client that lists and calls. The first byte says
 * which era it is told; "$" stands for the id of our last request. "!N" refuses that request with
 * status 400 + N and the rest of the line as its body, "!x" ends the server. All that we send must
 * be messages, and a request ends once. */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "fuzz.h"
#include "loop/loop.h"
#include "mcpc/mcpc.h"
#include "json/rpc.h"

#define LINES_MAX 64
#define CALLS_MAX 64

struct peer {
	struct mcpc_transport transport; /* first */
	struct mcpc *client;
	char id[32];
	unsigned ended[CALLS_MAX];
	unsigned n_calls, n_asked;
};

struct ticket { /* of one request */
	struct peer *peer;
	unsigned number;
} tickets[CALLS_MAX];

static int on_send(struct mcpc_transport *t, const struct mcpc_send *m, struct err *err)
{
	struct peer *p = (struct peer *)t;
	struct jv_doc *doc = NULL;
	struct rpc_message q;

	MUST(m->text[m->len] == '\0' && strlen(m->text) == m->len);
	MUST(jv_parse(m->text, m->len, MCPC_MESSAGE_MAX, &doc, err) == 0);
	MUST(rpc_read(jv_root(doc), &q, err) == 0);
	MUST((q.kind == RPC_REQUEST) == (m->id != NULL));
	doc = jv_free(doc);
	if (m->id)
		(void)memcpy(p->id, m->id, strlen(m->id) + 1); /* ours are numbers */
	return 0;
}

static void on_forget(struct mcpc_transport *t, const char *id)
{
	(void)t;
	MUST(id[0]);
}

static void on_close(struct mcpc_transport *t)
{
	t->events = NULL;
}

static const struct mcpc_transport_ops ops = { .send = on_send,
					       .forget = on_forget,
					       .close = on_close };

static void done(void *user, const struct mcpc_outcome *o)
{
	const struct ticket *t = user;

	MUST((o->err.code == 0) == (jv_kind(o->result) == JV_OBJECT));
	MUST(++t->peer->ended[t->number] == 1);
}

static struct ticket *next(struct peer *p)
{
	struct ticket *t = &tickets[p->n_calls];

	if (p->n_calls == CALLS_MAX)
		return NULL;
	*t = (struct ticket){ p, p->n_calls++ };
	return t;
}

/* As soon as it is ready, and again whenever something was asked: a list and a call. */
static void ask(struct peer *p)
{
	struct ticket *t = next(p);

	if (t)
		(void)mcpc_list(p->client, "tools/list", "tools", done, t, NULL);
	t = next(p);
	if (t)
		(void)mcpc_request(p->client,
				   &(struct mcpc_request){
					   .method = "tools/call",
					   .params = "{\"name\":\"t\",\"arguments\":{\"a\":\"b\"}}",
					   .done = done,
					   .user = t },
				   NULL, NULL);
}

static void ready(void *user, const struct err *err)
{
	if (!err || err->code == 0)
		ask(user);
}

static void asked(void *user, struct mcpc *c, void *question, const char *method, struct jv params)
{
	struct peer *p = user;

	(void)params;
	MUST(method[0] || method[0] == '\0');
	if (p->n_asked++ % 3 == 0)
		mcpc_refuse(c, question, -1, "no");
	else if (p->n_asked % 3 == 1)
		mcpc_answer(c, question, "{\"action\":\"accept\"}");
}

static const struct mcpc_handlers handlers = { .asked = asked };

static void say(struct peer *p, const char *line, size_t n)
{
	struct buf b = { 0 };
	struct err err = { .code = EPIPE, .text = "gone" };

	for (size_t i = 0; i < n; i++)
		(void)(line[i] == '$' ? buf_puts(&b, p->id) : buf_putc(&b, line[i]));
	if (b.len >= 2 && b.data[0] == '!' && b.data[1] == 'x')
		p->transport.events->lost(p->transport.user, &err);
	else if (b.len >= 2 && b.data[0] == '!')
		p->transport.events->failed(p->transport.user, p->id, 400 + b.data[1] - '0',
					    b.data + 2, b.len - 2, &err);
	else
		p->transport.events->message(p->transport.user, buf_str(&b), b.len);
	buf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const versions[] = { NULL, "2026-07-28", "2025-11-25" };
	struct peer p = { .transport.ops = &ops };
	struct mcpc_options o = { .name = "f", .version = "1", .handlers = &handlers, .user = &p };
	const char *at = (const char *)data + 1, *end = (const char *)data + size;

	if (size < 2)
		return 0;
	MUST(loop_create(&o.loop, NULL) == 0);
	o.only_version = versions[data[0] % 3];
	MUST(mcpc_create(&o, &p.transport, &p.client, NULL) == 0);
	mcpc_connect(p.client, ready, &p);
	for (int i = 0; i < LINES_MAX && at < end; i++) {
		const char *lf = memchr(at, '\n', (size_t)(end - at));
		size_t n = lf ? (size_t)(lf - at) : (size_t)(end - at);

		say(&p, at, n);
		at += n + 1;
	}
	p.client = mcpc_free(p.client);
	MUST(p.transport.events == NULL);
	o.loop = loop_free(o.loop);
	return 0;
}
