/* What happens by itself: sandboxes whose time is over, another try of what has failed, boxes that
 * nobody knows, rows that are old. */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "sandbox/announce.h"
#include "sandbox/ask.h"
#include "sandbox/build_cache.h"
#include "sandbox/build_files.h"
#include "sandbox/execution.h"
#include "sandbox/layers.h"
#include "sandbox/registry.h"
#include "sandbox/session.h"

#define WARN_MS 60000u /* before the end of its time; a tenth of it, if that is less */
#define CUT_EVERY 60u  /* sweeps */
#define CUT_ROWS 500u  /* at once: others need not wait long for the store */

static bool is_busy(const struct sandbox *sb)
{
	return sb->n_running > sb->n_quiet || sb->n_readers > sb->n_quiet ||
	       sb->n_file_ops > sb->n_watches || sb->n_file_waits > 0 || sb->n_port_busy > 0;
}

/* When it is to end if nothing happens before, and why; 0: never. */
static uint64_t due(const struct sandbox *sb, const char **ret_why)
{
	uint64_t at = sb->expires_at;

	*ret_why = "timeout";
	if (sb->state != SANDBOX_RUNNING)
		return 0;
	if (sb->idle_ms > 0 && !is_busy(sb) && (at == 0 || sb->used_at + sb->idle_ms < at)) {
		at = sb->used_at + sb->idle_ms;
		*ret_why = "idle";
	}
	return at > 0 && at < sb->lapse_after ? sb->lapse_after : at;
}

/* When to tell that its time is over soon; 0: not to be told, or told already. */
static uint64_t warn_at(const struct sandbox *sb)
{
	uint64_t lead = sb->timeout_ms / 10 < WARN_MS ? sb->timeout_ms / 10 : WARN_MS;

	if (sb->state != SANDBOX_RUNNING || sb->expires_at <= lead ||
	    sb->warned_of == sb->expires_at)
		return 0;
	return sb->expires_at - lead;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a == 0 || (b > 0 && b < a) ? b : a;
}

static void arm(struct sandboxes *all, uint64_t at)
{
	uint64_t now = now_ms(all);

	all->reap_at_ms = at;
	loop_timer_start(all->reap, at > now ? at - now : 0, 0);
}

void reaper_note(struct sandbox *sb)
{
	struct sandboxes *all = sb->all;
	const char *why;
	uint64_t at = sooner(due(sb, &why), warn_at(sb));

	if (at > 0 && (all->reap_at_ms == 0 || at < all->reap_at_ms))
		arm(all, at);
}

/* The first whose time is over; NULL: *ret_next is when the next will be due, or 0. */
static struct sandbox *find_due(struct sandboxes *all, const char **ret_why, uint64_t *ret_next)
{
	uint64_t now = now_ms(all);

	*ret_next = 0;
	LIST_FOREACH (&all->sandboxes, sb, struct sandbox, node) {
		uint64_t at = due(sb, ret_why);

		if (at > 0 && at <= now)
			return sb;
		*ret_next = sooner(*ret_next, sooner(at, warn_at(sb)));
	}
	return NULL;
}

/* Only writes to the log of events: nobody is called back. */
static void warn_of_ends(struct sandboxes *all)
{
	uint64_t now = now_ms(all);

	LIST_FOREACH (&all->sandboxes, sb, struct sandbox, node) {
		uint64_t at = warn_at(sb);

		if (at == 0 || at > now)
			continue;
		sb->warned_of = sb->expires_at;
		announce_expiring(sb);
	}
}

static void on_lapsed(void *user, struct sandbox *sb, const struct err *err)
{
	(void)user;
	(void)sb;
	(void)err; /* one that could not be kept goes on, and is tried again */
}

/* Its time is over, for this reason. */
static void lapse(struct sandbox *sb, const char *why)
{
	sb->lapse_after = now_ms(sb->all) + LAPSE_AGAIN_MS;
	if (sb->life.on_timeout == LAPSE_PAUSE)
		sandbox_pause(sb, on_lapsed, NULL);
	else if (sb->life.on_timeout == LAPSE_STOP)
		sandbox_suspend(sb, on_lapsed, NULL);
	else
		stop_begin(sb, why);
}

void reaper_run(struct sandboxes *all)
{
	struct sandbox *sb;
	const char *why;
	uint64_t next;

	warn_of_ends(all);
	/* Anew each time: the end of one may tell others, who do as they like. */
	while ((sb = find_due(all, &why, &next)))
		lapse(sb, why);
	if (next > 0)
		arm(all, next);
}

void tick_need(struct sandboxes *all)
{
	if (all->is_ticking)
		return;
	all->is_ticking = true;
	loop_timer_start(all->tick, TICK_MS, 0);
}

/* One of those that need another try; NULL. */
static struct sandbox *find_stuck(struct sandboxes *all, struct sandbox *behind)
{
	bool is_behind = behind == NULL;

	LIST_FOREACH (&all->sandboxes, sb, struct sandbox, node) {
		if (is_behind && ((sb->state == SANDBOX_STOPPING && !sb->is_destroying &&
				   sb->box_id[0] != '\0' && all->is_recovered) ||
				  sb->lost_at_ms != 0))
			return sb;
		is_behind = is_behind || sb == behind;
	}
	return NULL;
}

static bool retry_stuck(struct sandboxes *all)
{
	struct sandbox *sb = find_stuck(all, NULL);
	bool is_more = false;

	while (sb) {
		struct sandbox *next;

		(void)sandbox_ref(sb);
		if (sb->state == SANDBOX_STOPPING)
			stop_destroy(sb);
		else
			is_more = link_retry(sb) || is_more;
		next = find_stuck(all, sb);
		sandbox_unref(sb);
		sb = next;
	}
	return is_more;
}

void tick_run(struct sandboxes *all)
{
	bool is_more;

	all->is_ticking = false;
	is_more = record_retry(all);
	is_more = executions_retry(all) || is_more;
	is_more = ask_expire(all) || is_more;
	is_more = files_expire(all) || is_more;
	is_more = retry_stuck(all) || is_more;
	is_more = recover_retry(all) || is_more;
	recover_check(all);
	if (is_more || recover_is_waiting(all))
		tick_need(all);
}

static void on_swept(void *user, const struct provider_reply *r)
{
	struct sandboxes *all = user;

	all->is_sweeping = false;
	if (r->code == 0)
		recover_compare(all, r, false);
	layers_sweep(all);
}

void sweep_run(struct sandboxes *all)
{
	if (all->sweeps++ % CUT_EVERY == CUT_EVERY - 1)
		reaper_cut(all);
	executions_clean_spool(all);
	build_files_sweep(all);
	build_cache_sweep(all);
	sessions_settle(all);
	if (!all->has_provider || !all->is_recovered || all->is_sweeping || all->recovery.is_active)
		return;
	all->is_sweeping = true;
	ask_provider(all, &(struct ask){ .kind = ASK_LIST, .is_impatient = true }, on_swept, all);
}

static void on_cut(void *user, int r)
{
	_free_ struct flight *f = user;
	struct sandboxes *all = f->all;

	if (!flight_end(f))
		return;
	all->is_cutting = false;
	if (r > 0)
		reaper_cut(all);
}

void reaper_cut(struct sandboxes *all)
{
	struct flight *f = all->is_cutting ? NULL : malloc(sizeof(*f));
	int64_t cut = wall_ms(all) - (int64_t)all->settings.retention_ms;

	if (!f)
		return;
	if (store_delete_old(all->store, cut, CUT_ROWS, on_cut, f) < 0) {
		free(f); /* the next hour tries again */
		return;
	}
	all->is_cutting = true;
	flight_begin(all, f);
}
