#include "api/way.h"

#include <errno.h>
#include <stdlib.h>

#include "api/call.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "egress/proxy.h"
#include "sandbox/events.h"
#include "sandbox/ports.h"
#include "sandbox/sandbox.h"
#include "json/jw.h"

struct way {
	struct api *api;
	struct egress *egress; /* owned */
	struct port_use *use;  /* owned: the listener in the box */
	struct way_ops ops;
	void *user;
	bool lasts;
	char sandbox_id[ID_LEN + 1], owner[SANDBOX_OWNER_MAX + 1];
};

static void count(struct way *w)
{
	if (w->use && w->egress)
		port_use_count(w->use, egress_bytes(w->egress));
}

static void connected(void *user, int fd)
{
	struct way *w = user;

	count(w);
	if (w->lasts && w->use)
		port_use_touch(w->use);
	egress_accept(w->egress, fd);
}

static void failed(void *user, const struct err *err)
{
	struct way *w = user;

	w->use = NULL;
	w->ops.failed(w->user, err);
}

static void lost(void *user)
{
	struct way *w = user;

	w->use = NULL;
	if (w->ops.lost)
		w->ops.lost(w->user);
}

static void listening(void *user, uint16_t port)
{
	struct way *w = user;

	if (w->lasts)
		port_use_set_busy(w->use, false);
	w->ops.open(w->user, port);
}

/* A program in the box asked for something else. */
static void refused(void *user, const char *host, uint16_t port, const char *why)
{
	const struct way *way = user;
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	jw_object_begin(&w);
	jw_str_field(&w, "host", host);
	jw_uint_field(&w, "port", port);
	jw_str_field(&w, "why", why);
	jw_object_end(&w);
	if (jw_end(&w) == 0)
		events_emit(way->api->deps.events,
			    &(struct event){ .kind = "security.egress_refused",
					     .owner = way->owner,
					     .subject = way->sandbox_id,
					     .text = buf_str(&b) });
}

static int open_listener(struct way *w, struct sandbox *sb, const struct egress_policy *policy,
			 struct err *err)
{
	static const struct port_use_ops ops = { connected, failed, lost, listening };
	struct egress_options o = { .loop = w->api->deps.loop,
				    .resolver = w->api->deps.resolver,
				    .owner = w->owner,
				    .policy = *policy,
				    .bytes_max = w->lasts ? UINT64_MAX : EGRESS_BYTES_MAX,
				    .refused = refused,
				    .user = w };
	int r = egress_create(&o, &w->egress, err);

	return r < 0 ? r : port_listen(sb, &ops, w, &w->use, err);
}

int way_open(struct api *api, struct sandbox *sb, const struct egress_policy *policy, bool lasts,
	     const struct way_ops *ops, void *user, struct way **ret, struct err *err)
{
	struct way *w = calloc(1, sizeof(*w));
	struct sandbox_info info;
	int r;

	if (!w)
		return err_sys(err, ENOMEM, "a way out");
	sandbox_info(sb, &info);
	w->api = api;
	w->ops = *ops;
	w->user = user;
	w->lasts = lasts;
	(void)str_copy(w->sandbox_id, sizeof(w->sandbox_id), info.id);
	(void)str_copy(w->owner, sizeof(w->owner), info.owner);
	r = open_listener(w, sb, policy, err);
	if (r < 0) {
		w->use = NULL;
		way_close(w);
		return r;
	}
	*ret = w;
	return 0;
}

void way_set_rules(struct way *w, const struct egress_rules *rules)
{
	egress_set_rules(w->egress, rules);
}

void way_close(struct way *w)
{
	if (!w)
		return;
	count(w);
	port_use_end(w->use);
	w->egress = egress_free(w->egress);
	free(w);
}
