/* HTTP+SSE, the transport of 2024-11-05: a stream that is opened first says where messages are to
 * be posted, and brings all answers. Tried when a server refuses `initialize` as the later
 * revisions send it; the refusal stands when there is no such stream. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "mcpc/http_impl.h"

/* "http://host:1" of "http://host:1/path". */
static size_t origin_len(const char *url)
{
	const char *host = strstr(url, "://");

	return host ? (size_t)(host - url) + 3 + strcspn(host + 3, "/?#") : 0;
}

/* Where messages go: an address of the same server, or the key would go elsewhere. */
static int resolve(const struct mcpc_http *h, const char *said, struct buf *ret)
{
	size_t n = h->server ? 0 : origin_len(h->url);
	const char *slash = strrchr(h->url + n, '/');

	if (strstr(said, "://"))
		return !h->server && strncmp(said, h->url, n) == 0 && origin_len(said) == n
			       ? buf_puts(ret, said)
			       : -EXDEV;
	if (said[0] == '/' && said[1] == '/')
		return -EXDEV;
	(void)buf_append(ret, h->url, n);
	if (said[0] != '/' && slash)
		(void)buf_append(ret, h->url + n, (size_t)(slash - h->url) - n);
	if (said[0] != '/')
		(void)buf_putc(ret, '/');
	return buf_puts(ret, said);
}

static void fail_held(struct mcpc_http *h, int status, const struct err *err)
{
	LIST_FOREACH (&h->all, x, struct mcpc_exchange, node) {
		if (!x->is_held || x->is_over)
			continue;
		x->is_over = true;
		if (x->id && !h->is_closed)
			h->base.events->failed(h->base.user, x->id, status, "", 0, err);
	}
}

int mcpc_http_old_open(struct mcpc_http *h, struct err *err)
{
	int r;

	h->is_old = true;
	h->ear = mcpc_exchange_create(h, NULL, err);
	if (!h->ear)
		return -ENOMEM;
	r = mcpc_exchange_start(h->ear, err);
	if (r < 0)
		mcpc_exchange_drop(h->ear);
	h->gate = h->ear;
	return r;
}

bool mcpc_http_old_try(struct mcpc_exchange *x, const struct courier_answer *a)
{
	struct mcpc_http *h = x->h;
	struct err err = { 0 };

	if (!x->is_first || h->is_old || a->status < 400 || a->status >= 500 || a->status == 401 ||
	    a->status == 403)
		return false;
	if (mcpc_http_old_open(h, &err) < 0) {
		h->is_old = false;
		return false;
	}
	h->old_status = a->status;
	h->old_err = a->err;
	x->is_held = true;
	return true;
}

void mcpc_http_old_endpoint(struct mcpc_http *h, const char *said)
{
	_cleanup_(buf_done) struct buf url = { .max = COURIER_URL_MAX };
	struct mcpc_exchange *ear = h->ear;
	struct err err = { 0 };
	int r = h->post_url ? -EEXIST : resolve(h, said, &url);

	if (r == 0 && !h->server)
		r = courier_check_url(url.data, &err);
	if (r == 0) {
		h->post_url = buf_take(&url);
		mcpc_http_pass_gate(h, ear);
		return;
	}
	(void)err_set(&err, EXDEV, "the server wants messages at another place than its own");
	h->gate = NULL; /* nothing goes on */
	mcpc_exchange_drop(ear);
	fail_held(h, 0, &err);
}

void mcpc_http_old_ended(struct mcpc_http *h, const struct courier_answer *a)
{
	struct err err = a->err;
	bool was_open = h->post_url != NULL;

	if (err.code == 0)
		(void)err_set(&err, ECONNRESET, "the server has closed its stream");
	h->gate = NULL;
	mcpc_exchange_drop(h->ear);
	if (h->is_closed)
		return;
	fail_held(h, h->old_status, h->old_status ? &h->old_err : &err);
	if (was_open && !h->is_closed)
		h->base.events->lost(h->base.user, &err); /* answers came there and nowhere else */
	h->is_old = h->is_old_only;
}
