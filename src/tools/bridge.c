#include "tools/bridge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "sandbox/ports.h"
#include "sandbox/sandbox.h"
#include "spec/guest.h"
#include "tools/bridge_impl.h"

#define LOOK_MS 500
#define SETTLE_MS 100 /* servers tell of their changes one by one */

const char *bridge_sandbox(const struct bridge *b)
{
	return b->who.sandbox_id;
}

static struct bridge *find(const struct bridges *all, const char *sandbox_id)
{
	LIST_FOREACH (&all->all, b, struct bridge, node)
		if (strcmp(bridge_sandbox(b), sandbox_id) == 0)
			return b;
	return NULL;
}

struct bridge *bridge_free(struct bridge *b)
{
	list_remove(&b->node);
	LIST_FOREACH (&b->conns, c, struct bridge_conn, node)
		bridge_conn_close(c);
	bridge_files_end(b);
	port_use_end(b->use);
	b->look = loop_timer_free(b->look);
	free(b->grant);
	free(b);
	return NULL;
}

void bridge_note_use(struct bridge *b)
{
	if (b->n_calls == 0)
		loop_timer_stop(b->look);
	else if (b->n_calls == 1)
		loop_timer_start(b->look, LOOK_MS, LOOK_MS);
	if (!b->use)
		return;
	port_use_set_busy(b->use, b->n_calls > 0);
	port_use_touch(b->use);
}

/* ---- the listener ---- */

static void connected(void *user, int fd)
{
	bridge_conn_open(user, fd);
}

static void failed(void *user, const struct err *err)
{
	struct bridge *b = user;

	b->use = NULL;
	log_warn("tools", "sandbox %s has no tools: %s", bridge_sandbox(b), err->text);
	(void)bridge_free(b);
}

static void ended(void *user)
{
	struct bridge *b = user;

	b->use = NULL;
	(void)bridge_free(b);
}

static void listening(void *user, uint16_t port)
{
	struct bridge *b = user;

	(void)port;
	bridge_note_use(b);
}

static void look(void *user)
{
	bridge_look(user);
}

static void fill_who(struct bridge *b, const struct sandbox_info *info)
{
	b->who.role = ROLE_USER;
	(void)str_copy(b->who.owner, sizeof(b->who.owner), info->owner);
	(void)str_copy(b->who.sandbox_id, sizeof(b->who.sandbox_id), info->id);
	(void)str_copy(b->who.key_id, sizeof(b->who.key_id), info->key_id);
}

static int open_bridge(struct bridges *all, struct sandbox *sb, struct bridge **ret,
		       struct err *err)
{
	static const struct port_use_ops ops = { connected, failed, ended, listening };
	struct bridge *b = calloc(1, sizeof(*b));
	struct sandbox_info info;
	int r;

	if (!b)
		return err_sys(err, ENOMEM, "tools");
	sandbox_info(sb, &info);
	b->all = all;
	list_init(&b->conns);
	list_init(&b->waiters);
	list_push_back(&all->all, &b->node);
	fill_who(b, &info);
	b->grant = strdup(info.grant);
	if (!b->grant || loop_timer_create(all->deps.loop, look, b, &b->look) < 0)
		r = err_sys(err, ENOMEM, "tools");
	else
		r = port_listen_at(sb, GUEST_TOOLS_SOCKET, &ops, b, &b->use, err);
	if (r < 0) {
		b->use = NULL;
		(void)bridge_free(b);
		return r;
	}
	*ret = b;
	return 0;
}

static void on_reach(void *user, struct sandbox *sb)
{
	struct bridges *all = user;
	struct bridge *b = find(all, sandbox_id(sb));
	struct err err = { 0 };

	if (!b && open_bridge(all, sb, &b, &err) < 0)
		log_warn("tools", "sandbox %s has no tools: %s", sandbox_id(sb), err.text);
	else
		bridge_files_want(b);
}

/* ---- what servers offer ---- */

static void settled(void *user)
{
	struct bridges *all = user;

	LIST_FOREACH (&all->all, b, struct bridge, node)
		bridge_files_want(b);
}

static void changed(void *user, const char *server)
{
	struct bridges *all = user;

	(void)server;
	all->version++;
	loop_timer_start(all->settle, SETTLE_MS, 0);
}

int bridges_create(const struct bridges_deps *deps, struct bridges **ret, struct err *err)
{
	struct bridges *all = calloc(1, sizeof(*all));
	int r;

	if (!all)
		return err_sys(err, ENOMEM, "bridges");
	all->deps = *deps;
	all->version = 1;
	list_init(&all->all);
	r = loop_timer_create(deps->loop, settled, all, &all->settle);
	if (r < 0) {
		free(all);
		return err_sys(err, r, "bridges");
	}
	all->watch = (struct mcpc_watch){ .changed = changed, .user = all };
	mcpc_servers_watch(deps->servers, &all->watch);
	sandboxes_on_reach(deps->sandboxes, on_reach, all);
	*ret = all;
	return 0;
}

struct bridges *bridges_free(struct bridges *all)
{
	if (!all)
		return NULL;
	all->is_closing = true;
	sandboxes_on_reach(all->deps.sandboxes, NULL, NULL);
	mcpc_servers_unwatch(&all->watch);
	LIST_FOREACH (&all->all, b, struct bridge, node)
		(void)bridge_free(b);
	all->settle = loop_timer_free(all->settle);
	(void)stubs_free(all->made.stubs);
	free(all->made.grant);
	free(all);
	return NULL;
}

void bridges_settle(struct bridges *all, const char *sandbox_id, void (*done)(void *user),
		    void *user)
{
	struct bridge *b = all ? find(all, sandbox_id) : NULL;

	if (b)
		bridge_files_wait(b, done, user);
	else
		done(user);
}
