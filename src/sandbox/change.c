/* Changes of a living sandbox: pause, resume, patch; and its clocks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sandbox/ask.h"
#include "sandbox/check.h"
#include "sandbox/registry.h"

/* ---- clocks: they stand still while it is paused ---- */

void ttl_begin(struct sandbox *sb)
{
	sb->expires_at = sb->timeout_ms ? now_ms(sb->all) + sb->timeout_ms : 0;
	sb->expires_ms = sb->timeout_ms ? wall_ms(sb->all) + (int64_t)sb->timeout_ms : 0;
	sb->remaining_ms = 0;
}

void ttl_pause(struct sandbox *sb)
{
	uint64_t now = now_ms(sb->all);

	/* One that is due is not kept for ever by a remaining time of 0, which means none. What is
	 * kept at its timeout has all of its time again. */
	if (sb->expires_at > now)
		sb->remaining_ms = sb->expires_at - now;
	else if (sb->expires_at > 0)
		sb->remaining_ms = sb->life.on_timeout == LAPSE_DELETE ? 1 : sb->timeout_ms;
	else
		sb->remaining_ms = 0;
	sb->expires_at = 0;
	sb->expires_ms = 0;
	contexts_pause(sb);
}

void ttl_resume(struct sandbox *sb)
{
	uint64_t left = sb->remaining_ms;

	sb->expires_at = left ? now_ms(sb->all) + left : 0;
	sb->expires_ms = left ? wall_ms(sb->all) + (int64_t)left : 0;
	sb->remaining_ms = 0;
	sb->lapse_after = 0;
	contexts_resume(sb);
	sandbox_touch(sb);
}

/* ---- pause ---- */

static void tell_busy(struct sandbox *sb, enum wait_kind kind)
{
	struct err err = { 0 };

	(void)err_set(&err, EBUSY, "the sandbox is %s", state_name(sb->state));
	sandbox_tell(sb, kind, &err);
}

static void on_paused(struct sandbox *sb, int r)
{
	struct err err = record_error(r);

	if (sb->state != SANDBOX_PAUSING) {
		tell_busy(sb, WAIT_PAUSE);
		return;
	}
	sandbox_set_state(sb, SANDBOX_PAUSED); /* also when the store does not know yet */
	sandbox_tell(sb, WAIT_PAUSE, r < 0 ? &err : NULL);
}

static void on_frozen(void *user, const struct provider_reply *reply)
{
	struct sandbox *sb = user;
	struct err err = { 0 };

	if (sb->state != SANDBOX_PAUSING) {
		tell_busy(sb, WAIT_PAUSE);
	} else if (reply->code < 0) {
		err = ask_error(reply);
		sandbox_set_state(sb, SANDBOX_RUNNING);
		reaper_note(sb);
		sandbox_tell(sb, WAIT_PAUSE, &err);
	} else {
		ttl_pause(sb);
		record_put(sb, SANDBOX_PAUSED, on_paused);
	}
	sandbox_unref(sb);
}

void sandbox_pause(struct sandbox *sb, sandbox_cb cb, void *user)
{
	struct answer *a = answer_create(sb->all, cb, user);

	if (!a)
		return;
	if (sb->state == SANDBOX_PAUSED) {
		answer_give(a, sb, NULL);
	} else if (sb->state == SANDBOX_PAUSING) {
		(void)sandbox_wait(sb, WAIT_PAUSE, a);
	} else if (sb->state != SANDBOX_RUNNING) {
		answer_busy(a, sb);
	} else {
		(void)sandbox_wait(sb, WAIT_PAUSE, a);
		sandbox_set_state(sb, SANDBOX_PAUSING);
		ask_provider(sb->all, &(struct ask){ .kind = ASK_FREEZE, .box_id = sb->box_id },
			     on_frozen, sandbox_ref(sb));
	}
}

/* ---- resume ---- */

static void on_resumed(struct sandbox *sb, int r)
{
	struct err err = record_error(r);

	if (sb->state != SANDBOX_RESUMING) {
		tell_busy(sb, WAIT_RESUME);
		return;
	}
	sandbox_set_state(sb, SANDBOX_RUNNING);
	reaper_note(sb);
	sandbox_tell(sb, WAIT_RESUME, r < 0 ? &err : NULL);
}

void resume_linked(struct sandbox *sb)
{
	sb->waits_for_link = false;
	if (sb->state != SANDBOX_RESUMING)
		return;
	ttl_resume(sb);
	record_put(sb, SANDBOX_RUNNING, on_resumed);
}

static void on_thawed(void *user, const struct provider_reply *reply)
{
	struct sandbox *sb = user;
	struct err err = { 0 };

	if (sb->state != SANDBOX_RESUMING) {
		tell_busy(sb, WAIT_RESUME);
	} else if (reply->code < 0) {
		err = ask_error(reply);
		sandbox_set_state(sb, SANDBOX_PAUSED);
		sandbox_tell(sb, WAIT_RESUME, &err);
	} else if (sb->guest && !sb->is_guest_ready) {
		/* It was frozen when we found it again: only now it can say what lives in it. */
		sb->waits_for_link = true;
	} else {
		resume_linked(sb);
	}
	sandbox_unref(sb);
}

void sandbox_resume(struct sandbox *sb, sandbox_cb cb, void *user)
{
	struct answer *a = answer_create(sb->all, cb, user);
	struct err err = { 0 };

	if (!a)
		return;
	if (sb->state == SANDBOX_RUNNING) {
		answer_give(a, sb, NULL);
	} else if (sb->state == SANDBOX_RESUMING) {
		(void)sandbox_wait(sb, WAIT_RESUME, a);
	} else if (sb->state != SANDBOX_PAUSED) {
		answer_busy(a, sb);
	} else if (quota_admit(sb, SANDBOX_RESUMING, &err) < 0) {
		answer_give(a, NULL, &err);
	} else {
		(void)sandbox_wait(sb, WAIT_RESUME, a);
		sandbox_set_state(sb, SANDBOX_RESUMING);
		ask_provider(sb->all, &(struct ask){ .kind = ASK_THAW, .box_id = sb->box_id },
			     on_thawed, sandbox_ref(sb));
	}
}

/* ---- patch ---- */

/* What may be asked for; 0, or why not. */
static int check_patch(const struct sandbox *sb, const struct sandbox_patch *p, struct err *err)
{
	int r = p->has_timeout ? check_timeout(&sb->all->settings, p->timeout_ms, err) : 0;

	if (r == 0 && p->has_timeout && p->timeout_ms == 0)
		r = err_set(err, EINVAL, "timeout: want more than 0");
	if (r == 0 && p->has_metadata)
		r = check_metadata(p->metadata, p->n_metadata, err);
	if (r == 0 && p->note)
		r = check_note(p->note, err);
	return r;
}

/* -ENOMEM: nothing is changed then. */
static int replace_texts(struct sandbox *sb, const struct sandbox_patch *p)
{
	_free_ char *note = p->note ? strdup(p->note) : NULL;
	struct pairs metadata = { 0 };

	if (p->note && !note)
		return -ENOMEM;
	if (p->has_metadata) {
		if (pairs_copy(p->metadata, p->n_metadata, &metadata) < 0)
			return -ENOMEM;
		pairs_done(&sb->metadata);
		sb->metadata = metadata;
	}
	if (note) {
		free(sb->note);
		sb->note = TAKE(note);
	}
	return 0;
}

/* 0, or why not; nothing is changed then. */
static int apply(struct sandbox *sb, const struct sandbox_patch *p, struct err *err)
{
	int r = check_patch(sb, p, err);

	if (r < 0)
		return r;
	if (replace_texts(sb, p) < 0)
		return err_sys(err, ENOMEM, "metadata");
	if (p->has_on_timeout)
		sb->life.on_timeout = p->life.on_timeout;
	if (p->has_auto_resume)
		sb->life.auto_resume = p->life.auto_resume;
	if (p->has_timeout) {
		sb->timeout_ms = p->timeout_ms;
		if (state_stands_still(sb->state))
			sb->remaining_ms = p->timeout_ms;
		else
			ttl_begin(sb);
		reaper_note(sb);
	}
	return 0;
}

void sandbox_patch(struct sandbox *sb, const struct sandbox_patch *p, sandbox_cb cb, void *user)
{
	struct answer *a = answer_create(sb->all, cb, user);
	struct err err = { 0 };
	int r;

	if (!a)
		return;
	if (sb->state != SANDBOX_RUNNING && sb->state != SANDBOX_PAUSED &&
	    sb->state != SANDBOX_SUSPENDED) {
		answer_busy(a, sb);
		return;
	}
	r = apply(sb, p, &err);
	if (r < 0)
		answer_give(a, NULL, &err);
	else
		record_answer(sb, a);
}

static void prolonged(void *user, struct sandbox *sb, const struct err *err)
{
	(void)user, (void)sb, (void)err;
}

void sandbox_prolong(struct sandbox *sb)
{
	struct sandbox_patch patch = { .has_timeout = true, .timeout_ms = sb->timeout_ms };
	uint64_t now = now_ms(sb->all);

	if (sb->state == SANDBOX_RUNNING && sb->expires_at > now &&
	    sb->expires_at - now < sb->timeout_ms / 2)
		sandbox_patch(sb, &patch, prolonged, NULL);
}
