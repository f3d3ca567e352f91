/* How sandboxes end: as asked for, or because their box did. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/map.h"
#include "base/str.h"
#include "sandbox/ask.h"
#include "sandbox/execution.h"
#include "sandbox/prepare.h"
#include "sandbox/registry.h"
#include "sandbox/session.h"
#include "sandbox/vault.h"

static void on_end_recorded(struct sandbox *sb, int r)
{
	struct err err = record_error(r);

	sandbox_tell(sb, WAIT_END, r < 0 ? &err : NULL);
}

void stop_tell_waiting(struct sandbox *sb, const struct err *err)
{
	static const enum wait_kind kinds[] = { WAIT_PAUSE, WAIT_RESUME, WAIT_SUSPEND, WAIT_START };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		sandbox_tell(sb, kinds[i], err);
}

void sandbox_drop_layers(struct sandbox *sb)
{
	layers_drop(sb->all, &sb->layers);
	layers_drop(sb->all, &sb->stopped);
	layers_drop(sb->all, &sb->kit.layers);
	sb->layers.n = sb->stopped.n = sb->kit.layers.n = 0;
}

/* The box is gone; what is left is to say so. */
static void end(struct sandbox *sb, enum sandbox_state state)
{
	struct err err = { 0 };

	(void)sandbox_ref(sb);
	sandbox_set_state(sb, state);
	(void)err_set(&err, EBUSY, "the sandbox has ended: %s", sb->reason);
	prepare_cancel(sb, &err);
	sb->ended_ms = wall_ms(sb->all);
	sb->expires_at = 0;
	sandbox_drop_box(sb);
	link_close(sb);
	ports_forget(sb);
	contexts_forget(sb);
	executions_interrupt(sb, sb->reason);
	recover_settle(sb);
	sandbox_drop_layers(sb);
	stop_tell_waiting(sb, &err);
	metrics_inc(sb->all->metrics, METRIC_SANDBOX_ENDS,
		    LABELS(state == SANDBOX_STOPPED ? sb->reason : "failed"));
	record_put(sb, state, on_end_recorded);
	stop_forget(sb);
	sandbox_unref(sb);
}

void stop_forget(struct sandbox *sb)
{
	if (sb->is_registered && sb->is_recorded && list_is_empty(&sb->executions))
		sandbox_unregister(sb);
}

void stop_failed(struct sandbox *sb)
{
	end(sb, SANDBOX_FAILED);
}

void stop_gone(struct sandbox *sb)
{
	end(sb, SANDBOX_STOPPED);
}

static void on_stranger_gone(void *user, const struct provider_reply *r)
{
	(void)user; /* a failure is the next sweep's: it finds the box again */
	(void)r;
}

void stop_stranger(struct sandboxes *all, const char *box_id)
{
	ask_provider(all, &(struct ask){ .kind = ASK_DESTROY, .box_id = box_id }, on_stranger_gone,
		     NULL);
}

static void on_killed(void *user, const struct provider_reply *r)
{
	struct sandbox *sb = user;

	if (r->code == 0)
		usage_box(sb, &r->usage);
	sandbox_unref(sb);
}

void stop_kill(struct sandbox *sb)
{
	ask_provider(sb->all, &(struct ask){ .kind = ASK_DESTROY, .box_id = sb->box_id }, on_killed,
		     sandbox_ref(sb));
	stop_failed(sb);
}

static void on_destroyed(void *user, const struct provider_reply *r)
{
	struct sandbox *sb = user;
	struct sandboxes *all = sb->all;
	struct err err = { 0 };

	sb->is_destroying = false;
	store_hold(all->store, true); /* its use and its end are one commit */
	if (r->code == 0)
		usage_box(sb, &r->usage);
	if (sb->state != SANDBOX_STOPPING) {
		/* recovery has seen that it is gone */
	} else if (r->code == 0 || r->code == -ENOENT) {
		stop_gone(sb);
	} else {
		err = ask_error(r);
		sandbox_tell(sb, WAIT_END, &err);
		tick_need(sb->all);
	}
	store_hold(all->store, false);
	sandbox_unref(sb);
}

void stop_destroy(struct sandbox *sb)
{
	if (sb->is_destroying)
		return;
	if (sb->box_id[0] == '\0') { /* it was suspended, or not yet started again */
		stop_gone(sb);
		return;
	}
	sb->is_destroying = true;
	ask_provider(sb->all, &(struct ask){ .kind = ASK_DESTROY, .box_id = sb->box_id },
		     on_destroyed, sandbox_ref(sb));
}

/* Nobody waits for executions: their box is about to go. */
static void on_stop_recorded(struct sandbox *sb, int r)
{
	char why[SANDBOX_TEXT_MAX + 1];

	(void)r; /* the end goes on; the row is tried again */
	if (sb->state != SANDBOX_STOPPING)
		return;
	(void)str_format(why, sizeof(why), "the sandbox was ended: %.200s", sb->reason);
	link_close(sb);
	executions_interrupt(sb, why);
	stop_destroy(sb);
}

void stop_begin(struct sandbox *sb, const char *reason)
{
	struct err err = { 0 };

	sandbox_set_state(sb, SANDBOX_STOPPING);
	sandbox_set_reason(sb, "%s", reason);
	(void)err_set(&err, EBUSY, "the sandbox is ending: %s", sb->reason);
	stop_tell_waiting(sb, &err);
	record_put(sb, SANDBOX_STOPPING, on_stop_recorded);
}

struct pending_stop {
	struct later later;
	struct sandbox *sb; /* owned reference */
	char reason[SANDBOX_TEXT_MAX + 1];
};

static void run_stop(struct later *l, bool is_over)
{
	struct pending_stop *p = LIST_ENTRY(l, struct pending_stop, later);
	enum sandbox_state s = p->sb->state;

	struct err err = { 0 };

	if (!is_over && s == SANDBOX_CREATING) { /* it is not to become one */
		(void)err_set(&err, ECANCELED, "the sandbox was ended: %.200s", p->reason);
		prepare_cancel(p->sb, &err);
	}
	if (!is_over && s != SANDBOX_CREATING && s != SANDBOX_STOPPING && state_is_live(s))
		stop_begin(p->sb, p->reason);
	sandbox_unref(p->sb);
	free(p);
}

void sandbox_delete(struct sandbox *sb, const char *reason, sandbox_cb cb, void *user)
{
	struct answer *a = answer_create(sb->all, cb, user);
	struct pending_stop *p;
	struct err err = { 0 };

	if (!a)
		return;
	if (!state_is_live(sb->state)) {
		answer_give(a, sb, NULL);
		return;
	}
	/* Not from here: the end tells those who wait for executions and files of it. */
	p = calloc(1, sizeof(*p));
	if (!p) {
		(void)err_sys(&err, ENOMEM, "end the sandbox");
		answer_give(a, NULL, &err);
		return;
	}
	p->sb = sandbox_ref(sb);
	(void)str_format(p->reason, sizeof(p->reason), "%.200s", reason);
	later_post(sb->all, &p->later, run_stop);
	(void)sandbox_wait(sb, WAIT_END, a);
}

static void ended(void *user, struct sandbox *sb, const struct err *err)
{
	(void)user;
	(void)sb;
	(void)err;
}

void sandboxes_end_owner(struct sandboxes *all, const char *owner, const char *reason)
{
	LIST_FOREACH (&all->sandboxes, sb, struct sandbox, node)
		if (strcmp(sb->owner, owner) == 0 && state_is_live(sb->state))
			sandbox_delete(sb, reason, ended, NULL);
	vault_end_owner(all, owner);
	sessions_end_owner(all, owner);
}

/* "killed by signal 9 (out of memory)" */
static void set_death(struct sandbox *sb, int status, const struct box_usage *usage)
{
	const char *why = usage && usage->oom_kills > 0 ? " (out of memory)" : "";

	if (status < 0)
		sandbox_set_reason(sb, "its box ended%s", why);
	else if (WIFSIGNALED(status))
		sandbox_set_reason(sb, "its box ended: killed by signal %d%s", WTERMSIG(status),
				   why);
	else
		sandbox_set_reason(sb, "its box ended: exit status %d%s", WEXITSTATUS(status), why);
}

void stop_died(struct sandbox *sb)
{
	struct err err = { 0 };

	if (sb->state != SANDBOX_CREATING) {
		stop_failed(sb);
		return;
	}
	sb->is_died = true;
	(void)err_set(&err, EREMOTEIO, "start: %s", sb->reason);
	prepare_cancel(sb, &err);
}

void sandboxes_box_died(struct sandboxes *all, const char *box_id, int status,
			const struct box_usage *usage)
{
	struct sandbox *sb = map_get(all->by_box, box_id, strlen(box_id));

	if (!sb || sb->state == SANDBOX_STOPPING || !state_is_live(sb->state))
		return; /* nobody's, or its destruction is on its way and says so itself */
	set_death(sb, status, usage);
	if (usage)
		usage_box(sb, usage);
	stop_died(sb);
}
