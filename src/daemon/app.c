#include "daemon/app.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/api.h"
#include "api/door.h"
#include "auth/api_key.h"
#include "auth/users.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/str.h"
#include "config/config.h"
#include "crypto/secret.h"
#include "daemon/admin_key.h"
#include "daemon/confine.h"
#include "daemon/descriptors.h"
#include "daemon/first_key.h"
#include "daemon/greet.h"
#include "daemon/machinery.h"
#include "daemon/own_secret.h"
#include "daemon/servers_open.h"
#include "daemon/starter.h"
#include "daemon/telling.h"
#include "daemon/toolset.h"
#include "daemon/users_load.h"
#include "e2b/e2b.h"
#include "httpc/guard.h"
#include "loop/loop.h"
#include "loop/resolve.h"
#include "mcp/server.h"
#include "net/http.h"
#include "net/tls.h"
#include "provider/privilege.h"
#include "sandbox/sandbox.h"
#include "store/store.h"
#include "telemetry/metrics.h"

#define DRAIN_MS 5000
#define MINUTE_MS 60000
#define KEYS_USED_MAX 64
#define SPOOL "output"
#define FILES "files"

static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
#define SIGNAL_COUNT (sizeof(signals) / sizeof(signals[0]))

struct app {
	const struct config *config; /* borrowed */
	struct err *err;             /* borrowed: why it ends */
	/* Owned from here on, in the order they are made. */
	struct keeper_dirs dirs;
	struct first_key_file key_file;
	int listen_fd; /* bound while we were root; -1: not yet, or taken */
	struct machine_gauge gauge;
	int spool_fd; /* directory of output that outlives us */
	int files_fd; /* directory of archives for builds */
	char data_path[4096];
	struct keeper_client keeper;
	bool has_keeper, is_root;
	struct starter starter;
	struct launcher_options launcher;
	struct launcher_source source;
	struct tls *tls;
	struct guard_nets closed; /* addresses that nothing may go to */
	struct resolver *resolver;
	struct loop *loop;
	struct loop_signal *signals[SIGNAL_COUNT];
	struct metrics *metrics;
	struct store store;
	struct loop_io *store_io;
	struct auth_keys *keys;
	struct users *users;
	struct loop_timer *minute;
	struct telling telling;
	struct sandboxes *sandboxes;
	struct machinery *machinery;
	struct buf servers_json; /* of others' MCP servers, until they are open */
	struct toolset toolset;
	const struct app_extras *extras; /* borrowed; NULL: none */
	const struct api_door *doors[API_DOORS_MAX + 1];
	struct api *api;
	struct secret *secret;
	struct http_cors cors;
	struct http_server *server;
	char first_key[API_KEY_SIZE];
	bool is_listening, is_stopping;
	int result;
};

/* ---- before the loop: what needs privilege, then without ---- */

/* A key that only root can read is read while we are root. */
static int open_tls(struct app *a, struct err *err)
{
	const struct config *c = a->config;

	return c->tls_cert ? tls_create(c->tls_cert, c->tls_key, &a->tls, err) : 0;
}

static int open_dirs(struct app *a, const struct account *account, struct err *err)
{
	int r = keeper_prepare(a->config->state_dir, account->uid, account->gid, &a->dirs, err);

	if (r == 0)
		r = str_format(a->data_path, sizeof(a->data_path), "%s/data", a->config->state_dir);
	if (r == 0)
		r = first_key_open(a->config->admin_key_file, a->dirs.data_fd, &a->key_file, err);
	a->launcher = (struct launcher_options){
		.cgroup = settings_find("cgroup")->choices[a->config->cgroup],
		.persistent = true,
		.state_fd = a->dirs.boxes_fd,
		.layers_bytes = a->config->layers_on == CONFIG_DISK ? a->config->layers_bytes : 0,
		.build_ms = (uint32_t)a->config->launcher_timeout_ms,
	};
	return r;
}

/* The parent process stays behind as the keeper, and another one for tool servers: both may do what
 * we may not any more. */
static int start_helpers(struct app *a, const struct account *account, struct err *err)
{
	int r = keeper_start(&a->launcher, &a->keeper, err);

	if (r < 0)
		return r;
	a->has_keeper = true;
	a->dirs.boxes_fd = a->launcher.state_fd = -1; /* the keeper's now */
	a->source = keeper_source(&a->keeper);
	return starter_start(&a->servers_json, a->is_root ? account : NULL, &a->starter, err);
}

/* From root to nobody in particular. */
static int drop_root(const struct app *a, const struct confinement *c,
		     const struct account *account, struct err *err)
{
	struct err why = { 0 };
	int r = confine_apart(c, &why);

	if (r < 0 && r != -EPERM)
		return err_set(err, -r, "%s", why.text);
	if (r < 0) /* in some containers not even root may */
		log_warn("daemon", "%s", why.text);
	r = privilege_drop(account, err);
	if (r == 0 && access(a->data_path, R_OK | W_OK | X_OK) < 0)
		return err_set(err, EACCES,
			       "'%s' cannot be reached by the account '%s': choose a --state-dir "
			       "whose parents others may enter",
			       a->data_path, account->name);
	return r;
}

/* Ports below 1024 are root's to give. Behind the helpers, so that none of them keeps it; a socket
 * with a name is to be the account's, and waits. */
static int bind_port(struct app *a, struct err *err)
{
	if (!a->is_root || confinement_has_unix(a->config))
		return 0;
	a->listen_fd = net_bind(a->config->listen, err);
	return a->listen_fd < 0 ? a->listen_fd : 0;
}

static int lose_privilege(struct app *a, const struct confinement *c, const struct account *account,
			  struct err *err)
{
	int r = start_helpers(a, account, err);

	if (r == 0)
		r = bind_port(a, err);
	if (r == 0)
		r = a->is_root ? drop_root(a, c, account, err) : privilege_seal(err);
	return r < 0 ? r : keeper_tie(&a->keeper, err);
}

/* A directory below the data's, made if it is not there. */
static int open_below(const struct app *a, const char *name, int *ret, struct err *err)
{
	if (mkdirat(a->dirs.data_fd, name, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "%s/%s", a->data_path, name);
	*ret = openat(a->dirs.data_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *ret < 0 ? err_sys(err, errno, "%s/%s", a->data_path, name) : 0;
}

static int settle(struct app *a, struct err *err)
{
	struct account account = { .uid = geteuid(), .gid = getegid() };
	_cleanup_(confinement_done) struct confinement limits = { 0 };
	int r;

	a->is_root = account.uid == 0;
	r = a->is_root ? privilege_find_account(a->config->user, &account, err) : 0;
	descriptors_raise();
	if (r == 0)
		r = open_dirs(a, &account, err);
	if (r == 0)
		r = open_tls(a, err);
	if (r == 0)
		r = servers_read(a->config, &a->servers_json, err);
	if (r == 0)
		r = confinement_init(&limits, a->config, a->data_path, &a->servers_json, err);
	if (r == 0)
		r = lose_privilege(a, &limits, &account, err);
	if (r == 0)
		r = open_below(a, SPOOL, &a->spool_fd, err);
	if (r == 0)
		r = open_below(a, FILES, &a->files_fd, err);
	if (r == 0)
		r = own_secret_open(a->dirs.data_fd, &a->secret, err);
	return r < 0 ? r : confine_self(&limits, err);
}

/* ---- the end ---- */

static void told(void *user)
{
	struct app *a = user;

	loop_stop(a->loop);
}

/* What is known by now is all there is to tell. */
static void ended(void *user)
{
	struct app *a = user;

	if (!telling_flush(&a->telling, told, a))
		loop_stop(a->loop);
}

/* No request is left. */
static void drained(void *user)
{
	struct app *a = user;

	if (!toolset_stop(&a->toolset, ended, a))
		ended(a);
}

static void stop(struct app *a, int result)
{
	if (a->is_stopping)
		return;
	a->is_stopping = true;
	a->result = result;
	if (a->is_listening)
		http_server_drain(a->server, DRAIN_MS, drained, a);
	else
		loop_stop(a->loop);
}

static void fail(struct app *a, const struct err *err)
{
	stop(a, err_copy(a->err, err));
}

static void caught(void *user, int signo)
{
	struct app *a = user;
	struct err err = { 0 };

	if (signo != SIGHUP) {
		log_info("daemon", "ending; boxes live on");
		stop(a, 0);
		return;
	}
	if (!a->tls)
		return;
	if (tls_reload(a->tls, &err) < 0)
		log_error("daemon", "the certificate stays as it was: %s", err.text);
	else
		log_info("daemon", "certificate read again");
}

/* ---- the services ---- */

static void store_ready(void *user, unsigned events)
{
	struct app *a = user;

	(void)events;
	store_dispatch(&a->store);
}

static void store_wrote(void *user, int r, uint64_t took_us, size_t batch)
{
	struct app *a = user;

	(void)batch;
	metrics_observe(a->metrics, METRIC_STORE_WRITE_SECONDS, LABELS(), (double)took_us / 1e6);
	if (r < 0 && r != -EEXIST && r != -ENOENT)
		metrics_inc(a->metrics, METRIC_STORE_ERRORS, LABELS("write"));
}

static void add_key(void *user, const struct key_row *row)
{
	struct app *a = user;
	struct err err = { 0 };

	if (auth_keys_put(a->keys, row, &err) < 0)
		log_error("daemon", "key %s is not usable: %s", row->id, err.text);
}

/* When keys were last used is written down now and then; it is not worth more. */
static void note_keys_used(void *user)
{
	struct app *a = user;
	struct auth_used used[KEYS_USED_MAX];
	size_t n = auth_keys_take_used(a->keys, used, KEYS_USED_MAX);

	for (size_t i = 0; i < n; i++)
		(void)store_touch_key(&a->store, used[i].key_id, used[i].last_used_ms, NULL, NULL);
}

/* A burst of streams leaves the heap in pieces; whole pages of it are given back. */
static void every_minute(void *user)
{
	note_keys_used(user);
	(void)malloc_trim(0);
}

static int open_store(struct app *a, struct err *err)
{
	struct store_options o = { .dir = a->data_path,
				   .size_max = a->config->max_store_bytes,
				   .on_write = store_wrote,
				   .user = a };
	int r = store_open_sqlite(&o, &a->store, err);

	if (r < 0)
		return r;
	r = loop_io_create(a->loop, store_fd(&a->store), store_ready, a, &a->store_io);
	if (r == 0)
		r = loop_io_want(a->store_io, LOOP_READ);
	return r < 0 ? err_sys(err, r, "watch the store") : 0;
}

static void quota_of_user(void *user, const char *owner, struct quota *ret)
{
	const struct app *a = user;
	const struct user *u = users_find(a->users, owner);
	/* Of owners without a record, the first key's is the only admin that is known. */
	bool is_admin = u ? u->role == ROLE_ADMIN : strcmp(owner, ADMIN_KEY_OWNER) == 0;

	for (int i = 0; is_admin && i < QUOTA_COUNT; i++)
		if (a->config->quota_auto & 1u << i)
			ret->v[i] = 0;
	users_quota(a->users, owner, ret);
}

static bool use_of_machine(void *user, struct machine_use *ret)
{
	const struct app *a = user;

	return machine_gauge_read(&a->gauge, ret);
}

static int open_keys(struct app *a, struct err *err)
{
	int r = users_load(&a->store, &a->users, err);

	if (r < 0)
		return r;
	a->keys = auth_keys_create(AUTH_KEYS_MAX);
	if (!a->keys)
		return err_sys(err, ENOMEM, "keys");
	r = store_load_keys(&a->store, add_key, a, err);
	if (r == 0)
		r = first_key_make(&a->store, a->keys, &a->key_file, a->first_key,
				   sizeof(a->first_key), err);
	if (r == 0)
		r = loop_timer_create(a->loop, every_minute, a, &a->minute);
	if (r == 0)
		loop_timer_start(a->minute, MINUTE_MS, MINUTE_MS);
	a->key_file.fd = fd_close(a->key_file.fd);
	return r;
}

static struct telling_deps telling_deps(struct app *a)
{
	return (struct telling_deps){
		.loop = a->loop,
		.config = a->config,
		.store = &a->store,
		.metrics = a->metrics,
		.closed = &a->closed,
		.resolver = a->resolver,
		.dir_fd = a->dirs.data_fd,
	};
}

static int close_networks(struct app *a, struct err *err)
{
	const struct config_list *list = &a->config->egress_deny;
	struct err why = { 0 };

	for (size_t i = 0; i < list->len; i++)
		if (guard_nets_add(&a->closed, list->items[i], &why) < 0)
			return err_set(err, EINVAL, "egress_deny: %s", why.text);
	return 0;
}

static int open_telling(struct app *a, struct err *err)
{
	struct telling_deps deps = telling_deps(a);
	int r = close_networks(a, err);

	return r < 0 ? r : telling_open(&a->telling, &deps, err);
}

static int open_webhooks(struct app *a, struct err *err)
{
	struct telling_deps deps = telling_deps(a);

	return telling_open_webhooks(&a->telling, &deps, a->sandboxes, a->users, err);
}

static int open_sandboxes(struct app *a, struct err *err)
{
	const struct config *c = a->config;
	struct sandboxes_deps deps = {
		.loop = a->loop,
		.store = &a->store,
		.metrics = a->metrics,
		.events = a->telling.events,
		.tracer = telling_tracer(&a->telling),
		.quota_of = quota_of_user,
		.quota_user = a,
		.machine_use = use_of_machine,
		.machine_user = a,
		.settings = { .max_sandboxes = c->max_sandboxes,
			      .max_builds = c->max_builds,
			      .timeout_ms = c->sandbox_timeout_ms,
			      .timeout_max_ms = c->sandbox_timeout_max_ms,
			      .idle_ms = c->sandbox_idle_timeout_ms,
			      .exec_timeout_ms = c->exec_timeout_ms,
			      .exec_timeout_max_ms = c->exec_timeout_max_ms,
			      .output_keep = (size_t)c->output_keep_bytes,
			      .output_max = c->max_output_bytes,
			      .retention_ms = c->retention_ms,
			      .silence_ms = c->launcher_timeout_ms,
			      .limits = c->limits,
			      .limits_max = c->limits_max,
			      .commit.v = { [QUOTA_CPU] = c->commit_cpu_milli,
					    [QUOTA_MEMORY] = c->commit_memory_bytes,
					    [QUOTA_PIDS] = c->commit_pids },
			      .reserve_bytes = c->reserve_bytes,
			      .processes_max = c->processes_max,
			      .pool_min = c->pool_min,
			      .pool_max = c->pool_max,
			      .pool_quiet_ms = (uint32_t)c->pool_quiet_ms,
			      .quota.v = { [QUOTA_SANDBOXES] = c->quota_sandboxes,
					   [QUOTA_CPU] = c->quota_cpu_milli,
					   [QUOTA_MEMORY] = c->quota_memory_bytes,
					   [QUOTA_DISK] = c->quota_disk_bytes,
					   [QUOTA_EXECUTIONS] = c->quota_executions,
					   [QUOTA_PIDS] = c->quota_pids },
			      .spool_fd = a->spool_fd,
			      .files_fd = a->files_fd,
			      .images_dir = c->images_dir,
			      .image_bytes = c->image_max_bytes,
			      .agent_grant =
				      c->mcp_servers_file && c->mcp_code_mode ? "true" : NULL,
			      .is_rootless = !a->is_root },
	};

	return sandboxes_create(&deps, &a->sandboxes, err);
}

static int open_toolset(struct app *a, struct err *err)
{
	struct toolset_deps deps = { .loop = a->loop,
				     .config = a->config,
				     .sandboxes = a->sandboxes,
				     .store = &a->store,
				     .secret = a->secret,
				     .extras = a->extras,
				     .courier = a->telling.courier,
				     .closed = &a->closed,
				     .events = a->telling.events,
				     .audit = a->telling.audit,
				     .metrics = a->metrics,
				     .servers_json = &a->servers_json,
				     .spawner = starter_spawner(&a->starter) };

	return toolset_open(&a->toolset, &deps, err);
}

/* What a request's head says of a sandbox goes before what its path says. */
static void list_doors(struct app *a)
{
	size_t n = 0;

	while (e2b_doors[n]) {
		a->doors[n] = e2b_doors[n];
		n++;
	}
	a->doors[n++] = a->extras && a->extras->door ? a->extras->door : &mcp_door;
	a->doors[n] = &e2b_control_door;
}

static int open_server(struct app *a, struct err *err)
{
	const struct config *c = a->config;
	struct api_deps deps = { .loop = a->loop,
				 .config = c,
				 .conns_max = descriptors_for_clients(c->max_connections),
				 .closed = &a->closed,
				 .resolver = a->resolver,
				 .sandboxes = a->sandboxes,
				 .store = &a->store,
				 .keys = a->keys,
				 .users = a->users,
				 .metrics = a->metrics,
				 .audit = a->telling.audit,
				 .events = a->telling.events,
				 .jwks = a->telling.jwks,
				 .tracer = telling_tracer(&a->telling),
				 .webhooks = a->telling.webhooks,
				 .mcp = a->toolset.mcp,
				 .skills = a->toolset.skills,
				 .servers = a->toolset.servers,
				 .bridges = a->toolset.bridges,
				 .doors = a->doors,
				 .secret = a->secret };
	struct http_server_options o = {
		.handle = api_handle, .done = api_done, .refuse = api_refuse, .crowded = api_crowded
	};
	int r;

	list_doors(a);
	r = api_create(&deps, &a->api, err);
	if (r < 0)
		return r;
	toolset_set_way(&a->toolset, a->api);
	o.user = a->api;
	o.limits.conns_max = deps.conns_max;
	o.limits.whole_ms = (unsigned)c->body_timeout_ms;
	if (c->cors_origins.len > 0) {
		a->cors.origins = c->cors_origins.items;
		a->cors.headers = HTTP_CORS_HEADERS ", " E2B_CORS_HEADERS;
		a->cors.expose = HTTP_CORS_EXPOSE ", " E2B_CORS_EXPOSE;
		o.cors = &a->cors;
	}
	return http_server_create(a->loop, &o, &a->server, err);
}

/* ---- a port ---- */

static void recovered(void *user, const struct err *why)
{
	struct app *a = user;
	struct err err = { 0 };
	int port;

	if (a->is_stopping || a->is_listening)
		return;
	if (why) {
		fail(a, why);
		return;
	}
	if (a->listen_fd >= 0)
		port = net_listen_on(a->server, TAKE_FD(a->listen_fd), a->tls, &err);
	else
		port = net_listen(a->server, a->config->listen, a->tls, &err);
	if (port >= 0 && confinement_has_unix(a->config) && confine_unix(&err) < 0)
		port = -1;
	if (port < 0) {
		fail(a, &err);
		return;
	}
	a->is_listening = true;
	toolset_start(&a->toolset);
	greet(a->config->listen, port, a->tls != NULL, a->first_key);
	explicit_bzero(a->first_key, sizeof(a->first_key));
}

/* ---- the launcher's news ---- */

static void launcher_ready(void *user, const struct provider *p, const struct launch_info *info)
{
	struct app *a = user;

	if (a->is_listening)
		metrics_inc(a->metrics, METRIC_LAUNCHER_RESTARTS, LABELS());
	if (info->cgroup_missing)
		log_warn("daemon", "not every limit can be enforced here: see holt doctor");
	sandboxes_provider_ready(a->sandboxes, p, recovered, a);
}

static void launcher_lost(void *user)
{
	struct app *a = user;

	sandboxes_provider_lost(a->sandboxes);
}

static void launcher_failed(void *user, const struct err *err)
{
	fail(user, err);
}

static void box_died(void *user, const char *box_id, int status, const struct box_usage *usage)
{
	struct app *a = user;

	sandboxes_box_died(a->sandboxes, box_id, status, usage);
}

static void builds_told(void *user, const struct build_state *s)
{
	struct app *a = user;

	sandboxes_builds(a->sandboxes, s);
}

static const struct machinery_ops machinery_ops = {
	.ready = launcher_ready,
	.lost = launcher_lost,
	.failed = launcher_failed,
	.died = box_died,
	.builds = builds_told,
};

static int start_machinery(struct app *a, struct err *err)
{
	const struct config *c = a->config;
	struct machinery_settings s = { .limits = c->limits,
					.hang_ms = (uint32_t)c->launcher_timeout_ms,
					.pool_min = c->pool_min,
					.pool_max = c->pool_max,
					.pool_quiet_ms = (uint32_t)c->pool_quiet_ms };

	return machinery_start(a->loop, &a->source, &s, &machinery_ops, a, &a->machinery, err);
}

static int open_resolver(struct app *a, struct err *err)
{
	const struct config_list *list = &a->config->dns_servers;
	_cleanup_(buf_done) struct buf servers = { 0 };

	for (size_t i = 0; i < list->len; i++)
		if (buf_printf(&servers, "%s%s", i > 0 ? "," : "", list->items[i]) < 0)
			return err_sys(err, ENOMEM, "resolver");
	return resolver_create(
		a->loop,
		&(struct resolve_options){ .servers = list->len > 0 ? buf_str(&servers) : NULL },
		&a->resolver, err);
}

static int open_loop(struct app *a, struct err *err)
{
	int r = loop_create(&a->loop, err);

	for (size_t i = 0; i < SIGNAL_COUNT && r == 0; i++)
		r = loop_signal_create(a->loop, signals[i], caught, a, &a->signals[i]);
	if (r < 0)
		return err_code(err) ? r : err_sys(err, r, "signals");
	a->metrics = metrics_create();
	return a->metrics ? open_resolver(a, err) : err_sys(err, ENOMEM, "metrics");
}

static void close_all(struct app *a)
{
	http_server_close(a->server);
	a->api = api_free(a->api);
	toolset_close(&a->toolset);
	a->machinery = machinery_stop(a->machinery);
	telling_close_webhooks(&a->telling);
	a->sandboxes = sandboxes_free(a->sandboxes);
	telling_close(&a->telling);
	a->resolver = resolver_free(a->resolver); /* behind all that asks it */
	if (a->keys && a->minute)
		note_keys_used(a);
	a->minute = loop_timer_free(a->minute);
	a->store_io = loop_io_free(a->store_io);
	store_close(&a->store);
	a->server = http_server_free(a->server);
	a->keys = auth_keys_free(a->keys);
	a->users = users_free(a->users);
	for (size_t i = 0; i < SIGNAL_COUNT; i++)
		a->signals[i] = loop_signal_free(a->signals[i]);
	a->loop = loop_free(a->loop);
	a->metrics = metrics_free(a->metrics);
	a->tls = tls_free(a->tls);
	starter_done(&a->starter);
	if (a->has_keeper)
		keeper_client_done(&a->keeper);
	machine_gauge_close(&a->gauge);
	(void)fd_close(a->spool_fd);
	(void)fd_close(a->files_fd);
	(void)fd_close(a->key_file.fd);
	(void)fd_close(a->listen_fd);
	keeper_dirs_done(&a->dirs);
	explicit_bzero(a->first_key, sizeof(a->first_key));
	buf_done(&a->servers_json);
	a->secret = secret_free(a->secret);
}

int app_serve_with(const struct config *c, const struct app_extras *extras, struct err *err)
{
	struct app a = { .config = c,
			 .extras = extras,
			 .err = err,
			 .key_file = { .fd = -1 },
			 .listen_fd = -1,
			 .gauge = machine_gauge_open(),
			 .spool_fd = -1,
			 .files_fd = -1,
			 .starter = { -1 },
			 .dirs = { -1, -1, -1 } };
	int (*const steps[])(struct app *, struct err *) = {
		settle,         open_loop,     open_store,   open_keys,   open_telling,
		open_sandboxes, open_webhooks, open_toolset, open_server, start_machinery
	};
	int r = config_check(c, err);

	log_set_level((enum log_level)c->log_level);
	log_set_format((enum log_format)c->log_format);
	for (size_t i = 0; i < c->warning_count; i++)
		log_warn("config", "%s", c->warnings[i]);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && r == 0; i++)
		r = steps[i](&a, err);
	if (r == 0) {
		loop_run(a.loop);
		r = a.result;
	}
	close_all(&a);
	return r;
}

int app_serve(const struct config *c, struct err *err)
{
	return app_serve_with(c, NULL, err);
}
