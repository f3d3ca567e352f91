#include "sandbox/registry.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/str.h"
#include "provider/guest_client.h"
#include "sandbox/announce.h"
#include "sandbox/ask.h"
#include "sandbox/build.h"
#include "sandbox/build_cache.h"
#include "sandbox/build_files.h"
#include "sandbox/credential.h"
#include "sandbox/execution.h"
#include "sandbox/layers.h"
#include "sandbox/objects.h"
#include "sandbox/pool.h"
#include "sandbox/prepare.h"
#include "sandbox/session.h"
#include "sandbox/slot.h"
#include "sandbox/snapshot.h"
#include "sandbox/template_alias.h"
#include "sandbox/template_own.h"
#include "sandbox/vault.h"
#include "sandbox/volume.h"
#include "sandbox/webhook.h"

#define TABLE_MAX (1u << 20) /* rows of an earlier configuration may be more than max_sandboxes */
#define NAME_KEY_MAX (SANDBOX_OWNER_MAX + SANDBOX_NAME_MAX + 2)

/* ---- one sandbox ---- */

static void count_state(struct sandboxes *all, enum sandbox_state s)
{
	metrics_set(all->metrics, METRIC_SANDBOXES, LABELS(state_name(s)),
		    (double)all->by_state[s]);
}

struct sandbox *sandbox_alloc(struct sandboxes *all)
{
	struct sandbox *sb = calloc(1, sizeof(*sb));

	if (!sb)
		return NULL;
	sb->all = all;
	sb->refs = 1;
	for (int i = 0; i < WAIT_COUNT; i++)
		list_init(&sb->waits[i]);
	list_init(&sb->dirty);
	list_init(&sb->executions);
	list_init(&sb->file_ops);
	list_init(&sb->file_waits);
	list_init(&sb->file_turn.node);
	list_init(&sb->watchers);
	list_init(&sb->contexts);
	list_init(&sb->ports);
	list_init(&sb->port_uses);
	list_push_back(&all->sandboxes, &sb->node);
	all->by_state[sb->state]++;
	count_state(all, sb->state);
	return sb;
}

static void free_sandbox(struct sandbox *sb)
{
	sb->all->by_state[sb->state]--;
	count_state(sb->all, sb->state);
	quota_leave(sb);
	list_remove(&sb->node);
	list_remove(&sb->dirty);
	list_remove(&sb->file_turn.node);
	contexts_drop(sb);
	watchers_drop(sb);
	link_close(sb);
	ports_drop(sb);
	pairs_done(&sb->env);
	pairs_done(&sb->metadata);
	free(sb->note);
	free(sb->grant);
	series_done(&sb->series);
	kit_done(&sb->kit);
	free(sb);
}

struct sandbox *sandbox_ref(struct sandbox *sb)
{
	sb->refs++;
	return sb;
}

void sandbox_unref(struct sandbox *sb)
{
	if (--sb->refs == 0)
		free_sandbox(sb);
}

/* The key of by_name; its length, 0 for a sandbox without a name. What is looked for may be any
 * text, and so may an owner: between the two stands what neither can hold, so that no owner reaches
 * another's by a name that completes theirs. */
static size_t name_key(char key[NAME_KEY_MAX], const char *owner, const char *name)
{
	size_t begin = strlen(owner) + 1, n = strlen(name);

	if (n == 0 || begin + n > NAME_KEY_MAX)
		return 0;
	memcpy(key, owner, begin);
	memcpy(key + begin, name, n);
	return begin + n;
}

int sandbox_register(struct sandbox *sb)
{
	struct sandboxes *all = sb->all;
	char key[NAME_KEY_MAX];
	size_t n = name_key(key, sb->owner, sb->name);
	int r = map_put(all->by_id, sb->id, strlen(sb->id), sb, NULL);

	if (r < 0)
		return r;
	if (n > 0)
		r = map_put(all->by_name, key, n, sb, NULL);
	if (r < 0) {
		(void)map_remove(all->by_id, sb->id, strlen(sb->id));
		return r;
	}
	sb->is_registered = true;
	return 0;
}

void sandbox_unregister(struct sandbox *sb)
{
	struct sandboxes *all = sb->all;
	char key[NAME_KEY_MAX];
	size_t n = name_key(key, sb->owner, sb->name);

	assert(sb->is_registered);
	sb->is_registered = false;
	sandbox_drop_box(sb);
	(void)map_remove(all->by_id, sb->id, strlen(sb->id));
	if (n > 0 && map_get(all->by_name, key, n) == sb)
		(void)map_remove(all->by_name, key, n);
	sandbox_unref(sb);
}

int sandbox_set_box(struct sandbox *sb, const char *box_id)
{
	int r = str_copy(sb->box_id, sizeof(sb->box_id), box_id);

	return r < 0 ? r : map_put(sb->all->by_box, box_id, strlen(box_id), sb, NULL);
}

void sandbox_drop_box(struct sandbox *sb)
{
	struct map *by_box = sb->all->by_box;
	size_t n = strlen(sb->box_id);

	if (n > 0 && map_get(by_box, sb->box_id, n) == sb)
		(void)map_remove(by_box, sb->box_id, n);
}

void sandbox_adopt_state(struct sandbox *sb, enum sandbox_state s)
{
	struct sandboxes *all = sb->all;
	enum sandbox_state from = sb->state;

	all->by_state[from]--;
	all->by_state[s]++;
	sb->state = s;
	quota_settle(sb);
	count_state(all, from);
	count_state(all, s);
	usage_settle(sb);
}

void sandbox_set_state(struct sandbox *sb, enum sandbox_state to)
{
	enum sandbox_state from = sb->state;

	assert(state_may_become(sb->state, to)); /* a bug of ours, never input */
	sandbox_adopt_state(sb, to);
	announce_state(sb, from);
	sandbox_reach(sb);
}

void sandboxes_on_reach(struct sandboxes *all, void (*fn)(void *user, struct sandbox *sb),
			void *user)
{
	all->on_reach = fn;
	all->reach_user = user;
}

void sandbox_reach(struct sandbox *sb)
{
	if (sb->grant && sb->state == SANDBOX_RUNNING && sb->guest && sb->is_guest_ready &&
	    sb->all->on_reach)
		sb->all->on_reach(sb->all->reach_user, sb);
}

void sandbox_set_reason(struct sandbox *sb, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(sb->reason, sizeof(sb->reason), fmt, ap);
	va_end(ap);
}

int sandbox_check_usable(const struct sandbox *sb, struct err *err)
{
	static const char *const why[SANDBOX_STATE_COUNT] = {
		[SANDBOX_CREATING] = "being created",
		[SANDBOX_PAUSING] = "being paused",
		[SANDBOX_PAUSED] = "paused",
		[SANDBOX_RESUMING] = "being resumed",
		[SANDBOX_STOPPING] = "ending",
		[SANDBOX_STOPPED] = "gone",
		[SANDBOX_FAILED] = "gone",
		[SANDBOX_SUSPENDING] = "being stopped",
		[SANDBOX_SUSPENDED] = "stopped",
		[SANDBOX_STARTING] = "being started",
	};

	if (sb->state != SANDBOX_RUNNING)
		return err_set(err, EBUSY, "the sandbox is %s", why[sb->state]);
	if (sb->is_guest_ready)
		return 0;
	if (sb->guest || sb->is_found_again || sb->needs_link)
		return err_set(err, EREMOTEIO, "the sandbox's box is being found again");
	return err_set(err, EPIPE,
		       sb->is_foreign ? "the sandbox's box is of another version of the service"
				      : "the sandbox's box does not answer");
}

/* ---- the registry ---- */

static void run_turn(void *user)
{
	struct sandboxes *all = user;
	struct list todo = LIST_INIT(todo);

	/* Detached: what is posted on the way waits for the next turn. */
	LIST_FOREACH (&all->later, l, struct later, node) {
		list_remove(&l->node);
		list_push_back(&todo, &l->node);
	}
	while (!list_is_empty(&todo)) {
		struct later *l = LIST_ENTRY(todo.next, struct later, node);

		list_remove(&l->node);
		l->run(l, false);
	}
}

static void on_tick(void *user)
{
	tick_run(user);
}

static void on_reap(void *user)
{
	struct sandboxes *all = user;

	all->reap_at_ms = 0;
	reaper_run(all);
}

static void on_sweep(void *user)
{
	sweep_run(user);
}

static void on_account(void *user)
{
	usage_checkpoint(user);
}

static uint64_t real_now_ms(void *user)
{
	(void)user;
	return clock_now_ms();
}

static int64_t real_wall_ms(void *user)
{
	(void)user;
	return clock_wall_ms();
}

static int open_timers(struct sandboxes *all)
{
	int r = loop_timer_create(all->loop, on_tick, all, &all->tick);

	if (r == 0)
		r = loop_timer_create(all->loop, on_reap, all, &all->reap);
	if (r == 0)
		r = loop_timer_create(all->loop, on_sweep, all, &all->sweep);
	if (r == 0)
		r = loop_timer_create(all->loop, on_account, all, &all->account);
	if (r == 0)
		r = builds_create(all, &all->builds);
	if (r == 0) {
		loop_timer_start(all->sweep, SWEEP_MS, SWEEP_MS);
		loop_timer_start(all->account, USAGE_EVERY_MS, USAGE_EVERY_MS);
	}
	return r;
}

static struct sandboxes *alloc_registry(const struct sandboxes_deps *deps)
{
	struct sandboxes *all = calloc(1, sizeof(*all));

	if (!all)
		return NULL;
	all->loop = deps->loop;
	all->store = deps->store;
	all->metrics = deps->metrics;
	all->events = deps->events;
	all->tracer = deps->tracer;
	all->settings = deps->settings;
	if (all->settings.silence_ms == 0)
		all->settings.silence_ms = SILENCE_MS;
	all->clock = deps->clock ? *deps->clock
				 : (struct sandbox_clock){ real_now_ms, real_wall_ms, NULL };
	list_init(&all->pools_later.node);
	list_init(&all->sandboxes);
	list_init(&all->strays);
	list_init(&all->flights);
	list_init(&all->pending);
	list_init(&all->asks);
	list_init(&all->later);
	list_init(&all->dirty);
	list_init(&all->dirty_executions);
	loop_task_init(&all->turn, run_turn, all);
	all->quota_of = deps->quota_of;
	all->quota_user = deps->quota_user;
	all->machine_use = deps->machine_use;
	all->machine_user = deps->machine_user;
	all->quota = quota_book_create();
	all->kept = map_create(TABLE_MAX);
	all->by_id = map_create(TABLE_MAX);
	all->by_name = map_create(TABLE_MAX);
	all->by_box = map_create(TABLE_MAX);
	all->output_budget = output_budget_create(all->settings.output_max);
	all->layers = map_create(TABLE_MAX);
	all->slots = slots_create();
	return all;
}

static int open_objects(struct sandboxes *all, struct err *err)
{
	/* In this order: what comes later names what was before. */
	static const struct object_kind *const kinds[OBJECTS_COUNT] = {
		[OBJECTS_POOL] = &pool_kind,
		[OBJECTS_SNAPSHOT] = &snapshot_kind,
		[OBJECTS_VOLUME] = &volume_kind,
		[OBJECTS_TEMPLATE] = &template_kind,
		[OBJECTS_ALIAS] = &alias_kind,
		[OBJECTS_BUILD] = &build_kind,
		[OBJECTS_BUILD_FILE] = &build_file_kind,
		[OBJECTS_BUILD_LAYER] = &build_entry_kind,
		[OBJECTS_WEBHOOK] = &webhook_kind,
		[OBJECTS_SECRET] = &vault_kind,
		[OBJECTS_SESSION] = &session_kind,
		[OBJECTS_CREDENTIAL] = &credential_kind,
	};
	int r = 0;

	for (int i = 0; i < OBJECTS_COUNT && r == 0; i++)
		r = objects_create(all, kinds[i], &all->objects[i], err);
	return r;
}

const struct limits *sandboxes_limits_max(const struct sandboxes *all)
{
	return &all->settings.limits_max;
}

struct objects *sandboxes_objects(struct sandboxes *all, enum object_set set)
{
	return all->objects[set];
}

int sandboxes_create(const struct sandboxes_deps *deps, struct sandboxes **ret, struct err *err)
{
	_cleanup_(sandboxes_free_p) struct sandboxes *all = alloc_registry(deps);
	int r;

	if (!all || !all->by_id || !all->by_name || !all->by_box || !all->output_budget ||
	    !all->layers || !all->slots || !all->quota || !all->kept)
		return err_sys(err, ENOMEM, "the sandboxes' registry");
	r = spec_fill_limits(&all->settings.limits, NULL, err);
	if (r < 0)
		return r;
	r = open_timers(all);
	if (r < 0)
		return err_sys(err, r, "the sandboxes' timers");
	r = open_objects(all, err);
	if (r < 0)
		return r;
	r = recover_load(all, err);
	if (r == 0)
		r = ports_load(all, err);
	if (r < 0)
		return r;
	pools_loaded(all);
	build_files_settle(all);
	reaper_cut(all);
	*ret = TAKE(all);
	return 0;
}

struct sandboxes *sandboxes_free(struct sandboxes *all)
{
	if (!all)
		return NULL;
	loop_task_cancel(&all->turn);
	builds_stop(all);
	while (!list_is_empty(&all->later)) {
		struct later *l = LIST_ENTRY(all->later.next, struct later, node);

		list_remove(&l->node);
		l->run(l, true);
	}
	ask_drop(all);
	LIST_FOREACH (&all->flights, f, struct flight, node)
		f->all = NULL;
	execution_drop_all(&all->strays);
	LIST_FOREACH (&all->sandboxes, sb, struct sandbox, node) {
		prepare_drop(sb);
		contexts_drop(sb);
		watchers_drop(sb);
		files_drop(sb);
		ports_drop(sb);
		execution_drop_all(&sb->executions);
		sandbox_drop_waits(sb);
		free_sandbox(sb);
	}
	(void)loop_timer_free(all->tick);
	(void)loop_timer_free(all->reap);
	(void)loop_timer_free(all->sweep);
	(void)loop_timer_free(all->account);
	(void)map_free(all->by_id);
	(void)map_free(all->by_name);
	(void)map_free(all->by_box);
	(void)output_budget_unref(all->output_budget);
	for (int i = 0; i < OBJECTS_COUNT; i++)
		(void)objects_free(all->objects[i]);
	LIST_FOREACH (&all->pending, p, struct pending, node)
		p->drop(p);
	(void)builds_free(all->builds);
	(void)slots_free(all->slots);
	layers_forget(all);
	(void)quota_book_free(all->quota);
	usage_forget(all);
	free(all);
	return NULL;
}

/* ---- finding ---- */

struct sandbox *sandboxes_by_name(struct sandboxes *all, const char *owner, const char *name)
{
	char key[NAME_KEY_MAX];
	size_t n = name_key(key, owner, name);

	return n > 0 ? map_get(all->by_name, key, n) : NULL;
}

struct sandbox *sandboxes_find(struct sandboxes *all, const char *id_or_name, const char *owner)
{
	struct sandbox *sb = map_get(all->by_id, id_or_name, strlen(id_or_name));

	if (sb && owner && strcmp(sb->owner, owner) != 0)
		sb = NULL;
	if (!sb && owner)
		sb = sandboxes_by_name(all, owner, id_or_name);
	return sb && state_is_live(sb->state) ? sb : NULL;
}

struct sandbox *sandboxes_search(struct sandboxes *all,
				 bool (*is)(void *user, const struct sandbox *sb), void *user)
{
	LIST_FOREACH (&all->sandboxes, sb, struct sandbox, node)
		if (state_is_live(sb->state) && is(user, sb))
			return sb;
	return NULL;
}

const char *sandbox_id(const struct sandbox *sb)
{
	return sb->id;
}

void sandbox_touch(struct sandbox *sb)
{
	sb->used_at = now_ms(sb->all);
}

void sandbox_info(const struct sandbox *sb, struct sandbox_info *ret)
{
	bool is_paused = state_stands_still(sb->state);

	*ret = (struct sandbox_info){
		.id = sb->id,
		.owner = sb->owner,
		.key_id = sb->key_id,
		.name = sb->name,
		.template = sb->template,
		.runtime = sb->kit.runtime,
		.reason = sb->reason,
		.box_id = sb->box_id,
		.state = sb->state,
		.profile = sb->profile,
		.strict = sb->strict,
		.warm = sb->is_warm,
		.is_internal = sb->is_internal,
		.is_existing = sb->is_existing,
		.claim_us = sb->claim_us,
		.store_us = sb->store_us,
		.total_us = sb->total_us,
		.limits = sb->limits,
		.env = sb->env.items,
		.metadata = sb->metadata.items,
		.n_env = sb->env.len,
		.n_metadata = sb->metadata.len,
		.volumes = &sb->volumes,
		.created_ms = sb->created_ms,
		.expires_ms = is_paused ? 0 : sb->expires_ms,
		.ended_ms = sb->ended_ms,
		.timeout_ms = sb->timeout_ms,
		.idle_ms = sb->idle_ms,
		.remaining_ms = is_paused ? sb->remaining_ms : 0,
		.life = sb->life,
		.note = sb->note ? sb->note : "",
		.grant = sb->grant ? sb->grant : "",
		.n_executions = sb->n_running,
	};
	memcpy(ret->step_ns, sb->step_ns, sizeof(ret->step_ns));
}

void sandboxes_stats(const struct sandboxes *all, struct sandboxes_stats *ret)
{
	*ret = (struct sandboxes_stats){ .executions = all->n_running,
					 .is_metered = all->provider.is_metered,
					 .builds = &all->building,
					 .is_ready = all->has_provider && all->is_recovered };
	memcpy(ret->by_state, all->by_state, sizeof(ret->by_state));
}
