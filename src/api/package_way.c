#include "api/package_way.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "config/config.h"
#include "egress/proxy.h"
#include "sandbox/events.h"
#include "sandbox/ports.h"
#include "sandbox/sandbox.h"
#include "json/jw.h"

const char *const package_names[PACKAGE_MANAGERS] = {
	[PACKAGE_PIP] = "pip",
	[PACKAGE_NPM] = "npm",
	[PACKAGE_CARGO] = "cargo",
	[PACKAGE_GO] = "go",
};

struct package_way {
	struct api *api;
	struct egress *egress; /* owned */
	struct port_use *use;  /* owned: the listener in the box */
	struct package_way_ops ops;
	void *user;
	char sandbox_id[ID_LEN + 1], owner[SANDBOX_OWNER_MAX + 1];
};

const struct config_list *package_registries(const struct api *api, enum package_manager m)
{
	const struct config *c = api->deps.config;
	const struct config_list *const lists[PACKAGE_MANAGERS] = {
		[PACKAGE_PIP] = &c->registry_pip,
		[PACKAGE_NPM] = &c->registry_npm,
		[PACKAGE_CARGO] = &c->registry_cargo,
		[PACKAGE_GO] = &c->registry_go,
	};

	return lists[m];
}

int package_check(const struct api *api, enum package_manager m, const char *const *packages,
		  size_t n, struct err *err)
{
	for (size_t k = 0; k < n; k++)
		if (!package_is_good(m, packages[k]))
			return err_set(err, EINVAL,
				       "packages: '%.60s' is no name and version for %s",
				       packages[k], package_names[m]);
	if (package_registries(api, m)->len > 0)
		return 0;
	return err_set(err, EOPNOTSUPP, "no registry for %s is configured: set registry_%s",
		       package_names[m], package_names[m]);
}

/* ---- the way ---- */

static void connected(void *user, int fd)
{
	struct package_way *w = user;

	egress_accept(w->egress, fd);
}

static void failed(void *user, const struct err *err)
{
	struct package_way *w = user;

	w->use = NULL;
	w->ops.failed(w->user, err);
}

/* The box is gone; the command ends by that. */
static void lost(void *user)
{
	struct package_way *w = user;

	w->use = NULL;
}

static void listening(void *user, uint16_t port)
{
	struct package_way *w = user;

	w->ops.open(w->user, port);
}

/* A program in the box asked for something else. */
static void refused(void *user, const char *host, uint16_t port, const char *why)
{
	const struct package_way *way = user;
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

static int open_listener(struct package_way *w, struct sandbox *sb, enum package_manager m,
			 struct err *err)
{
	static const struct port_use_ops ops = { connected, failed, lost, listening };
	const struct config_list *list = package_registries(w->api, m);
	struct egress_options o = { .loop = w->api->deps.loop,
				    .bytes_max = EGRESS_BYTES_MAX,
				    .refused = refused,
				    .user = w };
	int r = 0;

	o.policy.allow_private = w->api->deps.config->registry_allow_private;
	for (size_t k = 0; k < list->len && r == 0; k++)
		r = policy_allow_url(&o.policy, list->items[k], err);
	if (r == 0)
		r = egress_create(&o, &w->egress, err);
	return r < 0 ? r : port_listen(sb, &ops, w, &w->use, err);
}

int package_way_open(struct api *api, struct sandbox *sb, enum package_manager m,
		     const struct package_way_ops *ops, void *user, struct package_way **ret,
		     struct err *err)
{
	struct package_way *w = calloc(1, sizeof(*w));
	struct sandbox_info info;
	int r;

	if (!w)
		return err_sys(err, ENOMEM, "packages");
	sandbox_info(sb, &info);
	w->api = api;
	w->ops = *ops;
	w->user = user;
	(void)str_copy(w->sandbox_id, sizeof(w->sandbox_id), info.id);
	(void)str_copy(w->owner, sizeof(w->owner), info.owner);
	r = open_listener(w, sb, m, err);
	if (r < 0) {
		w->use = NULL;
		package_way_close(w);
		return r;
	}
	*ret = w;
	return 0;
}

void package_way_close(struct package_way *w)
{
	if (!w)
		return;
	if (w->use && w->egress)
		port_use_count(w->use, egress_bytes(w->egress));
	port_use_end(w->use);
	w->egress = egress_free(w->egress);
	free(w);
}

int package_way_plan(const struct api *api, enum package_manager m, const char *const *packages,
		     size_t n, uint16_t port, struct arena *a, struct package_plan *ret)
{
	char proxy[32];

	(void)str_format(proxy, sizeof(proxy), "http://127.0.0.1:%u", port);
	return package_plan(m, packages, n, package_registries(api, m)->items[0],
			    arena_strndup(a, proxy, strlen(proxy)), a, ret);
}
