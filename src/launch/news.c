#include "launch/news.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/str.h"
#include "launch/launch.h"
#include "spec/guest.h"

#define PRIME_ID UINT32_MAX /* of the execution before the first */
#define PRIME_TIMEOUT_MS 2000

/* Of a template's own, that a module is not there is the template's fault, and its first user is
 * told; but never the one who only wants his files back. */
static enum news on_ready(struct box *b, const struct guest_ready *r)
{
	bool has_no_lib = b->plan.preload[0] != '\0' && b->plan.lib_fd < 0;
	const char *why = has_no_lib ? "preload: holt-warm.so is not installed" : r->why;
	struct template *t = b->tmpl;

	b->flags |= (r->warm_python ? BOX_WARM_PYTHON : 0) | (r->warm_node ? BOX_WARM_NODE : 0);
	if (!(t->spec.flags & TEMPLATE_OWN_PRELOAD))
		return NEWS_READY;
	(void)str_copy(b->why, sizeof(b->why), why); /* fits: guest_get_ready() */
	if (b->generation == t->generation)
		(void)str_copy(t->why, sizeof(t->why), why);
	if (r->why_code != ENOPKG || b->has_own)
		return NEWS_READY;
	(void)err_set(&b->err, EOPNOTSUPP, "%s", r->why);
	return NEWS_END;
}

enum news news_read(struct box *b)
{
	char frame[1024];
	struct guest_ready ready;
	struct wire_head head;
	struct rd payload;
	ssize_t n = recv(b->sock, frame, sizeof(frame), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return NEWS_NONE;
	if (n <= 0 || wire_open(frame, (size_t)n, &head, &payload) < 0)
		return NEWS_END;
	if (head.type == G_READY && guest_get_ready(&payload, &ready) == 0)
		return on_ready(b, &ready);
	if (head.id == PRIME_ID)
		return head.type == G_EXIT || head.type == G_ERROR ? NEWS_PRIMED : NEWS_NONE;
	if (head.type == G_ERROR) {
		int code = (int)rd_u32(&payload);

		(void)err_set(&b->err, code ? code : EIO, "box: %s", rd_str(&payload));
	}
	return NEWS_END;
}

int news_prime(struct box *b)
{
	struct guest_exec e = { .argc = 1,
				.argv = { "/bin/echo" },
				.timeout_ms = PRIME_TIMEOUT_MS,
				.user = "",
				.cwd = "/",
				.code = "" };
	char frame[512];
	long n = guest_put_exec(frame, sizeof(frame), PRIME_ID, &e);

	return n > 0 && send(b->sock, frame, (size_t)n, MSG_NOSIGNAL) == n ? 0 : -EIO;
}
