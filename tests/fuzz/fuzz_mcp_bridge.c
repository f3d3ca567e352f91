/* Lines of an MCP client in one piece and in pieces (the first byte says how long): the same
 * messages go on, and the same answers come back. Every second request is answered with its own
 * text, which must not confuse anybody. */
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/mcp_bridge.h"
#include "fuzz.h"
#include "mcpc/mcpc.h"
#include "json/jv.h"

struct peer {
	struct mcpc_transport transport; /* first */
	struct buf all;
	size_t len; /* of it, before the end */
	unsigned n_sent, n_over;
};

static int on_send(struct mcpc_transport *t, const struct mcpc_send *m, struct err *err)
{
	struct peer *p = (struct peer *)t;

	(void)err;
	(void)buf_printf(&p->all, "%s|%s|%s|%d|", m->id ? m->id : "", m->method ? m->method : "",
			 m->name ? m->name : "", m->is_modern);
	(void)buf_append(&p->all, m->text, m->len);
	(void)buf_putc(&p->all, '\n');
	if (++p->n_sent % 2 == 0)
		t->events->message(t->user, m->text, m->len);
	else if (m->id && p->n_sent % 3 == 0)
		t->events->failed(t->user, m->id, 500, m->text, m->len, NULL);
	return 0;
}

static void on_forget(struct mcpc_transport *t, const char *id)
{
	(void)buf_printf(&((struct peer *)t)->all, "forget %s\n", id);
}

static void on_agreed(struct mcpc_transport *t, const char *version)
{
	(void)buf_printf(&((struct peer *)t)->all, "agreed %s\n", version);
}

static void on_close(struct mcpc_transport *t)
{
	t->events = NULL;
}

static const struct mcpc_transport_ops ops = { .send = on_send,
					       .forget = on_forget,
					       .agreed = on_agreed,
					       .close = on_close,
					       .forget_cancels = true };

static void on_line(void *user, const char *text, size_t n)
{
	struct peer *p = user;
	struct jv_doc *doc = NULL;

	MUST(!memchr(text, '\n', n));
	MUST(jv_parse(text, n, n, &doc, NULL) == 0);
	doc = jv_free(doc);
	(void)buf_append(&p->all, text, n);
	(void)buf_putc(&p->all, '\n');
}

static void on_over(void *user)
{
	((struct peer *)user)->n_over++;
}

static const struct mcp_bridge_ops bridge_ops = { .line = on_line, .over = on_over };

static void run(const uint8_t *data, size_t n, size_t step, struct peer *p)
{
	struct mcp_bridge *b = NULL;

	*p = (struct peer){ .transport.ops = &ops };
	MUST(mcp_bridge_create(&p->transport, &bridge_ops, p, &b, NULL) == 0);
	for (size_t at = 0; at < n; at += step)
		mcp_bridge_feed(b, (const char *)data + at, n - at < step ? n - at : step);
	p->len = p->all.len; /* what is said at the end has no order */
	mcp_bridge_end(b);
	MUST(p->n_over <= 1);
	b = mcp_bridge_free(b);
	MUST(p->transport.events == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct peer whole, pieces;

	if (size < 2)
		return 0;
	run(data + 1, size - 1, size, &whole);
	run(data + 1, size - 1, 1 + data[0] % 64, &pieces);
	MUST(whole.len == pieces.len);
	MUST(whole.len == 0 || memcmp(whole.all.data, pieces.all.data, whole.len) == 0);
	buf_done(&whole.all);
	buf_done(&pieces.all);
	return 0;
}
