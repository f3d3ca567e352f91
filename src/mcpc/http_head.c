/* The headers of requests to an MCP server. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "mcpc/http_impl.h"
#include "mcpc/mirror.h"

#define HEAD_MAX (COURIER_HEADERS_MAX - 1)

struct head {
	char **lines; /* owned; HEAD_MAX + 1 */
	size_t n;
	int failed;
};

static void add_line(struct head *h, struct buf *line)
{
	if (h->failed == 0 && line->failed)
		h->failed = -ENOMEM;
	if (h->failed == 0 && h->n == HEAD_MAX)
		h->failed = -E2BIG;
	if (h->failed < 0) {
		buf_done(line);
		return;
	}
	h->lines[h->n++] = buf_take(line);
}

static void add(struct head *h, const char *name, const char *value)
{
	struct buf line = { 0 };

	(void)buf_puts(&line, name);
	(void)buf_puts(&line, value);
	add_line(h, &line);
}

static void add_encoded(struct head *h, const char *name, const char *value)
{
	struct buf line = { 0 };

	(void)buf_puts(&line, name);
	if (mcpc_mirror_value(&line, str_of(value)) < 0 && h->failed == 0)
		h->failed = -E2BIG;
	add_line(h, &line);
}

static int begin(struct head *h)
{
	*h = (struct head){ .lines = calloc(HEAD_MAX + 1, sizeof(*h->lines)) };
	return h->lines ? 0 : -ENOMEM;
}

static int end(struct head *h, char ***ret)
{
	if (h->failed < 0) {
		mcpc_http_head_free(h->lines);
		return h->failed;
	}
	*ret = h->lines;
	return 0;
}

void mcpc_http_head_free(char **headers)
{
	for (size_t i = 0; headers && headers[i]; i++) {
		explicit_bzero(headers[i], strlen(headers[i]));
		free(headers[i]);
	}
	free(headers);
}

int mcpc_http_head_keep(struct mcpc_exchange *x, const struct mcpc_send *m)
{
	struct head h;

	if (begin(&h) < 0)
		return -ENOMEM;
	if (m->version)
		add(&h, "MCP-Protocol-Version: ", m->version);
	if (m->is_modern && m->method)
		add(&h, "Mcp-Method: ", m->method);
	if (m->is_modern && m->name)
		add_encoded(&h, "Mcp-Name: ", m->name);
	for (size_t i = 0; m->headers && m->headers[i]; i++)
		add(&h, m->headers[i], "");
	return end(&h, &x->headers);
}

static bool has_version(const struct mcpc_exchange *x)
{
	return x->headers && x->headers[0] && str_starts(str_of(x->headers[0]), "MCP-Protocol-");
}

static void add_all(struct head *h, char *const *lines)
{
	for (; lines && *lines; lines++)
		add(h, *lines, "");
}

/* What the legacy era wants once its handshake has begun. */
static void add_session(struct head *h, const struct mcpc_exchange *x)
{
	if (x->is_modern || x->is_first)
		return;
	if (!has_version(x) && x->h->version[0])
		add(h, "MCP-Protocol-Version: ", x->h->version);
	if (x->h->session[0])
		add(h, "Mcp-Session-Id: ", x->h->session);
}

int mcpc_http_head_write(struct mcpc_exchange *x, char ***ret)
{
	const char *token = x->h->auth ? x->h->auth->ops->token(x->h->auth, &x->token_no) : NULL;
	bool is_post = x->body && !x->is_resuming;
	struct head h;

	if (begin(&h) < 0)
		return -ENOMEM;
	if (token)
		add(&h, "Authorization: Bearer ", token);
	add(&h, "Accept: ", is_post ? "application/json, text/event-stream" : "text/event-stream");
	add_all(&h, x->h->headers);
	add_all(&h, x->headers);
	add_session(&h, x);
	if (!is_post && x->last_event[0])
		add(&h, "Last-Event-ID: ", x->last_event);
	return end(&h, ret);
}
