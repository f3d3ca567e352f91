/* Stop and start: a sandbox without a box, whose files lie in layers.
 *
 * Nothing that was acknowledged is lost on the way. The box is frozen first, so what is taken is
 * all that there is; it is destroyed only when the store knows of the layers; and a sandbox that is
 * being started is a suspended one to the store until its box is there. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/str.h"
#include "sandbox/ask.h"
#include "sandbox/execution.h"
#include "sandbox/prepare.h"
#include "sandbox/quota.h"
#include "sandbox/registry.h"
#include "sandbox/slot.h"
#include "sandbox/snapshot.h"

/* ---- stop ---- */

static void on_thawed(void *user, const struct provider_reply *r)
{
	struct sandbox *sb = user;

	if (sb->state == SANDBOX_SUSPENDING) {
		/* It could not be let go on: then it is paused, and the caller may try. */
		if (r->code < 0)
			ttl_pause(sb);
		sandbox_set_state(sb, r->code < 0 ? SANDBOX_PAUSED : SANDBOX_RUNNING);
		reaper_note(sb);
		record_put(sb, sb->state, NULL);
	}
	sandbox_unref(sb);
}

/* It stays what it was. */
static void fall_back(struct sandbox *sb, const struct err *err)
{
	layers_drop(sb->all, &sb->stopped);
	sb->stopped.n = 0;
	sandbox_tell(sb, WAIT_SUSPEND, err);
	if (sb->was_paused)
		sandbox_set_state(sb, SANDBOX_PAUSED);
	else
		ask_provider(sb->all, &(struct ask){ .kind = ASK_THAW, .box_id = sb->box_id },
			     on_thawed, sandbox_ref(sb));
}

/* Only now its volumes are free. A box that is left is found by the next sweep. */
static void on_box_gone(void *user, const struct provider_reply *r)
{
	struct sandbox *sb = user;

	if (r->code == 0 && sb->box_id[0] == '\0') /* else it has another one already */
		usage_box(sb, &r->usage);
	sandbox_tell(sb, WAIT_SUSPEND, NULL);
	sandbox_unref(sb);
}

static void on_suspended(struct sandbox *sb, int r)
{
	struct err err = record_error(r);
	char box_id[ID_LEN + 1];

	if (sb->state != SANDBOX_SUSPENDING)
		return; /* it has ended meanwhile, and who waits knows */
	if (r < 0) {
		if (!sb->was_paused)
			ttl_resume(sb);
		fall_back(sb, &err);
		return;
	}
	(void)str_copy(box_id, sizeof(box_id), sb->box_id);
	sandbox_drop_box(sb);
	sb->box_id[0] = '\0';
	link_close(sb);
	layers_drop(sb->all, &sb->layers);
	sb->layers = sb->stopped; /* held already */
	sb->stopped.n = 0;
	sandbox_set_state(sb, SANDBOX_SUSPENDED);
	executions_interrupt(sb, "the sandbox was stopped");
	ask_provider(sb->all, &(struct ask){ .kind = ASK_DESTROY, .box_id = box_id }, on_box_gone,
		     sandbox_ref(sb));
}

static void on_layer(void *user, const struct layers *chain, const struct layer_info *info,
		     const struct err *err)
{
	struct sandbox *sb = user;
	struct err failed = { 0 };

	(void)info;
	if (sb->state == SANDBOX_SUSPENDING) {
		if (!err && layers_hold(sb->all, chain) < 0)
			(void)err_sys(&failed, ENOMEM, "stop the sandbox");
		if (err || failed.code) {
			fall_back(sb, err ? err : &failed);
		} else {
			sb->stopped = *chain;
			if (!sb->was_paused)
				ttl_pause(sb);
			record_put(sb, SANDBOX_SUSPENDED, on_suspended);
		}
	}
	sandbox_unref(sb);
}

static void on_frozen(void *user, const struct provider_reply *r)
{
	struct sandbox *sb = user;
	struct err err = { 0 };

	if (sb->state != SANDBOX_SUSPENDING) {
		sandbox_unref(sb);
	} else if (r->code < 0) {
		err = ask_error(r);
		sandbox_set_state(sb, SANDBOX_RUNNING);
		reaper_note(sb);
		sandbox_tell(sb, WAIT_SUSPEND, &err);
		sandbox_unref(sb);
	} else {
		layer_take(sb, 0, on_layer, sb);
	}
}

void sandbox_suspend(struct sandbox *sb, sandbox_cb cb, void *user)
{
	struct answer *a = answer_create(sb->all, cb, user);

	if (!a)
		return;
	if (sb->state == SANDBOX_SUSPENDED) {
		answer_give(a, sb, NULL);
	} else if (sb->state == SANDBOX_SUSPENDING) {
		(void)sandbox_wait(sb, WAIT_SUSPEND, a);
	} else if (sb->state != SANDBOX_RUNNING && sb->state != SANDBOX_PAUSED) {
		answer_busy(a, sb);
	} else {
		sb->was_paused = sb->state == SANDBOX_PAUSED;
		(void)sandbox_wait(sb, WAIT_SUSPEND, a);
		sandbox_set_state(sb, SANDBOX_SUSPENDING);
		(void)sandbox_ref(sb);
		if (sb->was_paused)
			layer_take(sb, 0, on_layer, sb);
		else
			ask_provider(sb->all,
				     &(struct ask){ .kind = ASK_FREEZE, .box_id = sb->box_id },
				     on_frozen, sb);
	}
}

/* ---- start ---- */

/* No box: it waits for another try. */
static void not_started(struct sandbox *sb, const struct err *err)
{
	link_close(sb);
	executions_interrupt(sb, "the sandbox could not be started");
	if (sb->box_id[0] != '\0') {
		sandbox_drop_box(sb);
		stop_stranger(sb->all, sb->box_id);
		sb->box_id[0] = '\0';
	}
	sandbox_set_state(sb, SANDBOX_SUSPENDED);
	sandbox_tell(sb, WAIT_START, err);
}

static void on_started(struct sandbox *sb, int r)
{
	struct err err = record_error(r);

	if (sb->state != SANDBOX_STARTING)
		return;
	if (r < 0) {
		ttl_pause(sb);
		not_started(sb, &err);
		return;
	}
	sandbox_set_state(sb, SANDBOX_RUNNING);
	reaper_note(sb);
	prepare_record(sb);
	sandbox_tell(sb, WAIT_START, NULL);
}

static void on_prepared(struct sandbox *sb, const struct err *err)
{
	if (sb->state != SANDBOX_STARTING)
		return; /* it has ended, and who waits knows */
	if (err) {
		not_started(sb, err);
	} else {
		ttl_resume(sb);
		record_put(sb, SANDBOX_RUNNING, on_started);
	}
}

static void on_claimed(void *user, const struct provider_reply *reply)
{
	struct sandbox *sb = user;
	struct err err = { 0 };
	int r = reply->code;

	slot_drop(sb->all, sb->template_id);
	if (sb->state != SANDBOX_STARTING) {
		if (r == 0) /* it was ended meanwhile */
			stop_stranger(sb->all, reply->box->id);
	} else {
		if (r < 0)
			err = ask_error(reply);
		else
			r = create_take_box(sb, reply->box, &err);
		if (r < 0) {
			not_started(sb, &err);
		} else {
			prepare_begin(sb, on_prepared);
		}
	}
	sandbox_unref(sb);
}

/* The machine or its settings may be smaller than when it was made. */
static int admit_start(struct sandbox *sb, struct err *err)
{
	spec_clamp_limits(&sb->limits, &sb->all->settings.limits_max);
	return quota_admit(sb, SANDBOX_STARTING, err);
}

void sandbox_start(struct sandbox *sb, sandbox_cb cb, void *user)
{
	struct answer *a = answer_create(sb->all, cb, user);
	struct err err = { 0 };

	if (!a)
		return;
	if (sb->state == SANDBOX_RUNNING) {
		answer_give(a, sb, NULL);
	} else if (sb->state == SANDBOX_STARTING) {
		(void)sandbox_wait(sb, WAIT_START, a);
	} else if (sb->state != SANDBOX_SUSPENDED) {
		answer_busy(a, sb);
	} else if (admit_start(sb, &err) < 0 || create_check_disk(sb, &err) < 0 ||
		   kit_slot(sb->all, &sb->kit, sb->strict, &sb->template_id, &err) < 0) {
		answer_give(a, NULL, &err);
	} else {
		(void)sandbox_wait(sb, WAIT_START, a);
		sandbox_set_state(sb, SANDBOX_STARTING);
		create_claim(sb, 0, on_claimed, sandbox_ref(sb));
	}
}
