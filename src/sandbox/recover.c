/* After a start, and whenever the launcher comes back: rows and boxes are made to agree. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "sandbox/ask.h"
#include "sandbox/build.h"
#include "sandbox/execution.h"
#include "sandbox/registry.h"
#include "sandbox/row.h"
#include "sandbox/session.h"
#include "sandbox/slot.h"

#define ATTACH_AT_ONCE 32u

/* ---- loading rows ---- */

static int fill(struct sandbox *sb, const struct sandbox_row *row)
{
	struct row_info i;
	int r = row_read(row, &i);

	if (r == -ENOMEM)
		return r;
	if (r < 0) { /* nobody can use what is not known: it ends */
		i = (struct row_info){ .info.state = SANDBOX_STOPPING };
		sandbox_set_reason(sb, "its record is damaged");
	}
	sb->env = i.env; /* ours now */
	sb->kit = i.kit;
	if (layers_hold(sb->all, &i.layers) < 0)
		return -ENOMEM;
	sb->layers = i.layers;
	if (layers_hold(sb->all, &i.kit.layers) < 0) {
		sb->kit.layers.n = 0;
		return -ENOMEM;
	}
	sb->volumes = i.volumes;
	sb->metadata = i.metadata;
	sb->note = i.note;
	sb->grant = i.grant;
	sb->life = i.info.life;
	sb->limits = i.info.limits;
	sb->is_warm = i.info.warm;
	sb->profile = i.info.profile;
	sb->strict = i.info.strict;
	sb->is_internal = i.info.is_internal;
	(void)str_copy(sb->id, sizeof(sb->id), row->id);
	(void)str_copy(sb->owner, sizeof(sb->owner), row->owner);
	(void)str_copy(sb->key_id, sizeof(sb->key_id), row->key_id);
	(void)str_copy(sb->name, sizeof(sb->name), row->name);
	(void)str_copy(sb->template, sizeof(sb->template), row->template);
	if (r == 0)
		sandbox_set_reason(sb, "%s", row->reason);
	if (sb->is_internal) { /* the job that it was made for is gone */
		i.info.state = SANDBOX_STOPPING;
		sandbox_set_reason(sb, "interrupted");
	}
	sb->created_ms = row->created_ms;
	sb->expires_ms = row->expires_ms;
	sb->timeout_ms = (uint64_t)row->timeout_ms;
	sb->idle_ms = (uint64_t)row->idle_ms;
	sb->remaining_ms = (uint64_t)row->remaining_ms;
	sb->used_at = now_ms(sb->all);
	sb->is_found_again = i.info.state != SANDBOX_SUSPENDED; /* that has no box to be found */
	/* One being created has no row, and what has ended is not live. */
	sandbox_adopt_state(sb, i.info.state == SANDBOX_CREATING || !state_is_live(i.info.state)
					? SANDBOX_RUNNING
					: i.info.state);
	return 0;
}

static int add_row(struct sandboxes *all, const struct sandbox_row *row)
{
	struct sandbox *sb = sandbox_alloc(all);
	int r;

	if (!sb)
		return -ENOMEM;
	r = fill(sb, row);
	if (r == 0)
		r = sandbox_register(sb);
	if (r < 0) {
		sandbox_unref(sb);
		return r;
	}
	return row->box_id[0] == '\0' ? 0 : sandbox_set_box(sb, row->box_id);
}

struct loading {
	struct sandboxes *all;
	int r;
};

static void on_row(void *user, const struct sandbox_row *row)
{
	struct loading *l = user;

	if (l->r == 0)
		l->r = add_row(l->all, row);
}

int recover_load(struct sandboxes *all, struct err *err)
{
	struct loading l = { .all = all };
	int r = store_load_live_sandboxes(all->store, on_row, &l, err);

	if (r < 0)
		return r;
	if (l.r < 0)
		return err_sys(err, l.r, "load sandboxes");
	r = quota_load(all, err);
	if (r == 0)
		r = usage_load(all, err);
	if (r == 0)
		r = executions_load(all, err);
	if (r < 0)
		return r;
	contexts_load(all);
	return contexts_load_env(all, err);
}

/* ---- comparing ---- */

/* What the row says about its clock, in the state in which the box was found. */
static void set_clock(struct sandbox *sb, bool was_paused)
{
	struct sandboxes *all = sb->all;
	int64_t left = sb->expires_ms - wall_ms(all);

	if (was_paused && sb->state == SANDBOX_RUNNING) {
		ttl_resume(sb);
	} else if (!was_paused && sb->expires_ms > 0) {
		if (left > (int64_t)sb->timeout_ms) { /* the clock was set back meanwhile */
			left = (int64_t)sb->timeout_ms;
			sb->expires_ms = wall_ms(all) + left;
		}
		sb->expires_at = now_ms(all) + (uint64_t)(left > 0 ? left : 0);
		if (sb->expires_at == 0)
			sb->expires_at = 1;
		if (sb->state == SANDBOX_PAUSED)
			ttl_pause(sb);
	}
}

/* A row may be one step behind its box: what the box is counts. */
static void resolve_state(struct sandbox *sb)
{
	enum sandbox_state was = sb->state;
	enum sandbox_state is = sb->is_frozen ? SANDBOX_PAUSED : SANDBOX_RUNNING;

	sb->is_found_again = false;
	if (was != is)
		sandbox_adopt_state(sb, is);
	set_clock(sb, was == SANDBOX_PAUSED || was == SANDBOX_RESUMING);
	reaper_note(sb);
	if (was != is)
		record_put(sb, is, NULL);
}

static void compare_box(struct sandboxes *all, const struct launch_box_info *b, bool is_ready)
{
	struct sandbox *sb = map_get(all->by_id, b->tag, strlen(b->tag));

	if (sb && (sb->state == SANDBOX_CREATING || sb->state == SANDBOX_STARTING) &&
	    sb->box_id[0] == '\0' && !is_ready)
		return; /* its claim is on its way */
	if (!sb || !state_is_live(sb->state) || strcmp(sb->box_id, b->id) != 0) {
		stop_stranger(all, b->id);
		return;
	}
	sb->is_listed = true;
	sb->is_frozen = b->frozen != 0;
}

static void compare_listed(struct sandbox *sb, bool is_ready)
{
	usage_found(sb);
	if (sb->state == SANDBOX_STOPPING) {
		stop_destroy(sb);
		return;
	}
	if (sb->is_found_again)
		resolve_state(sb);
	if (!sb->guest && is_ready && sb->state != SANDBOX_CREATING)
		sb->needs_link = true;
}

static void compare_missing(struct sandbox *sb)
{
	bool is_old = sb->is_found_again;

	usage_lost(sb);
	sb->is_found_again = false;
	if (sb->state == SANDBOX_STOPPING) {
		if (!sb->is_destroying)
			stop_gone(sb);
		return;
	}
	sandbox_set_reason(sb, is_old ? "its box ended while nobody watched" : "its box ended");
	stop_died(sb);
}

static struct sandbox *next_to_compare(struct sandboxes *all)
{
	LIST_FOREACH (&all->sandboxes, sb, struct sandbox, node)
		if (sb->needs_compare) {
			sb->needs_compare = false;
			if (state_is_live(sb->state) && sb->box_id[0] != '\0')
				return sb;
		}
	return NULL;
}

void recover_compare(struct sandboxes *all, const struct provider_reply *r, bool is_ready)
{
	struct sandbox *sb;

	LIST_FOREACH (&all->sandboxes, one, struct sandbox, node) {
		one->is_listed = false;
		one->needs_compare = true;
	}
	for (size_t i = 0; i < r->n_boxes; i++)
		compare_box(all, &r->boxes[i], is_ready);
	while ((sb = next_to_compare(all))) { /* anew: users are told of ends on the way */
		if (sb->is_listed)
			compare_listed(sb, is_ready);
		else
			compare_missing(sb);
	}
}

/* ---- being over ---- */

struct ready_answer {
	struct later later;
	void (*done)(void *user, const struct err *err);
	void *user;
	struct err err;
};

static void run_ready(struct later *l, bool is_over)
{
	struct ready_answer *a = LIST_ENTRY(l, struct ready_answer, later);

	if (!is_over)
		a->done(a->user, a->err.code ? &a->err : NULL);
	free(a);
}

static void finish(struct sandboxes *all, const struct err *err)
{
	struct ready_answer *a = calloc(1, sizeof(*a));
	struct recovery over = all->recovery;

	all->recovery = (struct recovery){ .attaching = over.attaching, .awaited = over.awaited };
	if (!err) {
		all->is_recovered = true;
		executions_clean_spool(all);
	}
	if (!over.done)
		free(a);
	else if (!a) /* NOTE: without memory, from here. */
		over.done(over.user, err);
	else {
		a->done = over.done;
		a->user = over.user;
		if (err)
			a->err = *err;
		later_post(all, &a->later, run_ready);
	}
}

static bool is_linked(const struct sandboxes *all)
{
	LIST_FOREACH (&all->sandboxes, sb, struct sandbox, node)
		if (sb->needs_link)
			return false;
	return true;
}

bool recover_is_waiting(const struct sandboxes *all)
{
	return all->recovery.is_active;
}

void recover_check(struct sandboxes *all)
{
	if (!all->recovery.is_active || !all->recovery.is_listed)
		return;
	if (now_ms(all) >= all->recovery.until_ms ||
	    (all->recovery.attaching == 0 && all->recovery.awaited == 0 && is_linked(all)))
		finish(all, NULL);
}

void recover_settle(struct sandbox *sb)
{
	sb->needs_link = false;
	if (sb->is_awaited) {
		sb->is_awaited = false;
		sb->all->recovery.awaited--;
	}
	recover_check(sb->all);
}

void recover_link_ready(struct sandbox *sb)
{
	recover_settle(sb);
	if (sb->waits_for_link)
		resume_linked(sb);
	sandbox_reach(sb);
}

/* ---- connecting ---- */

static void attach_more(struct sandboxes *all)
{
	LIST_FOREACH (&all->sandboxes, sb, struct sandbox, node) {
		if (all->recovery.attaching >= ATTACH_AT_ONCE)
			return;
		if (sb->needs_link && !sb->is_attaching)
			recover_attach(sb);
	}
}

static void on_usage(void *user, const struct provider_reply *r)
{
	struct sandbox *sb = user;

	if (r->code == 0) {
		sb->oom_kills = r->usage.oom_kills;
		usage_box(sb, &r->usage);
	}
	sandbox_unref(sb);
}

/* 0, or why it cannot be reached. */
static int connect(struct sandbox *sb, const struct provider_reply *r, struct err *err)
{
	if (r->code < 0)
		return err_set(err, -r->code, "%s", r->text);
	sb->needs_link = false;
	return link_open(sb, TAKE_FD(r->box->sock), false, err);
}

/* The launcher's trouble, not the box's. */
static bool is_passing(const struct provider_reply *r)
{
	return r->code == -EPIPE || r->code == -EAGAIN || r->code == -ETIMEDOUT;
}

static void attached(struct sandbox *sb, const struct provider_reply *reply)
{
	struct sandboxes *all = sb->all;
	struct err err = { 0 };
	int r;

	if (sb->state == SANDBOX_STOPPING || !state_is_live(sb->state) || sb->guest) {
		sb->needs_link = false;
		return;
	}
	if (is_passing(reply))
		return; /* it is tried again when that is over */
	r = connect(sb, reply, &err);
	if (r < 0) {
		sandbox_set_reason(sb, "its box cannot be reached: %.180s", err.text);
		stop_kill(sb);
		return;
	}
	if (all->recovery.is_active && !sb->is_frozen) {
		sb->is_awaited = true;
		all->recovery.awaited++;
	}
	/* How often memory ran out before is not what later ends are blamed on. */
	ask_provider(all,
		     &(struct ask){ .kind = ASK_USAGE, .box_id = sb->box_id, .is_impatient = true },
		     on_usage, sandbox_ref(sb));
}

static void on_attached(void *user, const struct provider_reply *reply)
{
	struct sandbox *sb = user;
	struct sandboxes *all = sb->all;

	sb->is_attaching = false;
	all->recovery.attaching--;
	attached(sb, reply);
	sandbox_unref(sb);
	if (!is_passing(reply))
		attach_more(all);
	recover_check(all);
}

void recover_attach(struct sandbox *sb)
{
	if (sb->is_attaching)
		return;
	sb->is_attaching = true;
	sb->all->recovery.attaching++;
	ask_provider(
		sb->all,
		&(struct ask){ .kind = ASK_ATTACH, .box_id = sb->box_id, .is_impatient = true },
		on_attached, sandbox_ref(sb));
}

/* ---- the provider comes and goes ---- */

static void on_listed(void *user, const struct provider_reply *r)
{
	struct sandboxes *all = user;
	struct err err = { 0 };

	if (!all->recovery.is_active)
		return; /* it went again */
	if (r->code < 0) {
		(void)err_set(&err, -r->code, "list the boxes: %s", r->text);
		all->needs_list = true;
		finish(all, &err);
		tick_need(all);
		return;
	}
	all->recovery.is_listed = true;
	recover_compare(all, r, true);
	layers_sweep(all);
	volumes_settle(all);
	builds_settle(all);
	sessions_settle(all);
	ask_flush(all);
	attach_more(all);
	recover_check(all);
	tick_need(all);
}

static void list(struct sandboxes *all)
{
	all->needs_list = false;
	all->recovery.is_active = true;
	all->recovery.is_listed = false;
	all->recovery.until_ms = now_ms(all) + GUEST_PATIENCE_MS;
	ask_provider(all, &(struct ask){ .kind = ASK_LIST, .is_impatient = true }, on_listed, all);
}

bool recover_retry(struct sandboxes *all)
{
	if (!all->has_provider)
		return false;
	if (all->needs_list)
		list(all);
	else if (!is_linked(all))
		attach_more(all);
	return all->needs_list || !is_linked(all);
}

void sandboxes_provider_ready(struct sandboxes *all, const struct provider *p,
			      void (*done)(void *user, const struct err *err), void *user)
{
	if (all->recovery.is_active)
		sandboxes_provider_lost(all);
	all->provider = *p;
	all->has_provider = true;
	all->recovery.done = done;
	all->recovery.user = user;
	slots_tell(all); /* first: what asks for boxes of them comes behind */
	list(all);
}

static void tell_gauges(struct sandboxes *all, const struct build_state *s)
{
	metrics_set(all->metrics, METRIC_BUILDS_STUCK, LABELS(), s->stuck);
	metrics_set(all->metrics, METRIC_ENDS_LATE, LABELS(), s->ends_late);
	metrics_set(all->metrics, METRIC_LOCKS_UNCOUNTED, LABELS(), s->uncounted);
}

void sandboxes_builds(struct sandboxes *all, const struct build_state *s)
{
	if (s->late > 0 && all->building.late == 0)
		log_error("sandbox", "no box can be built at present: %s", s->why);
	if (s->late == 0 && all->building.late > 0)
		log_info("sandbox", "boxes can be built again");
	if (s->given_up > all->building.given_up)
		metrics_add(all->metrics, METRIC_BUILDS_GIVEN_UP, LABELS(),
			    (double)(s->given_up - all->building.given_up));
	if (s->uncounted > 0 && all->building.uncounted == 0)
		log_error("sandbox", "file locks of boxes are not counted at present");
	if (s->uncounted == 0 && all->building.uncounted > 0)
		log_info("sandbox", "file locks of boxes are counted again");
	tell_gauges(all, s);
	all->building = *s;
}

void sandboxes_provider_lost(struct sandboxes *all)
{
	struct err err = { 0 };

	all->has_provider = false;
	all->needs_list = false;
	all->building = (struct build_state){ 0 }; /* the next one's are its own */
	tell_gauges(all, &all->building);
	if (!all->recovery.is_active)
		return;
	(void)err_set(&err, EPIPE, "the launcher is gone");
	finish(all, &err);
}
