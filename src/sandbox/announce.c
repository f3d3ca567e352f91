#include "sandbox/announce.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "sandbox/context.h"
#include "sandbox/event_kinds.h"
#include "sandbox/events.h"
#include "sandbox/execution.h"
#include "sandbox/objects.h"
#include "sandbox/ports.h"
#include "sandbox/registry.h"
#include "json/jw.h"

static void emit(struct sandboxes *all, const struct event *ev, struct jw *w)
{
	struct event e = *ev;

	jw_object_end(w);
	e.text = jw_end(w) < 0 ? NULL : w->buf->data;
	events_emit(all->events, &e);
}

static void announce(struct sandbox *sb, const char *kind)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	if (!sb->all->events)
		return;
	jw_object_begin(&w);
	jw_str_field(&w, "name", sb->name);
	jw_str_field(&w, "template", sb->template);
	jw_str_field(&w, "status", state_name(sb->state));
	jw_str_field(&w, "reason", sb->reason);
	emit(sb->all, &(struct event){ .kind = kind, .owner = sb->owner, .subject = sb->id }, &w);
}

void announce_created(struct sandbox *sb)
{
	announce(sb, "sandbox.created");
}

void announce_state(struct sandbox *sb, enum sandbox_state from)
{
	switch (sb->state) {
	case SANDBOX_RUNNING:
		if (from == SANDBOX_CREATING)
			announce(sb, "sandbox.running");
		if (from == SANDBOX_RESUMING)
			announce(sb, "sandbox.resumed");
		if (from == SANDBOX_STARTING)
			announce(sb, "sandbox.started");
		return;
	case SANDBOX_SUSPENDED:
		if (from == SANDBOX_SUSPENDING)
			announce(sb, "sandbox.suspended");
		return;
	case SANDBOX_PAUSED:
		if (from == SANDBOX_PAUSING)
			announce(sb, "sandbox.paused");
		return;
	case SANDBOX_STOPPED:
		announce(sb, "sandbox.stopped");
		return;
	case SANDBOX_FAILED:
		announce(sb, "sandbox.failed");
		return;
	default:
		return;
	}
}

void announce_expiring(struct sandbox *sb)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	if (!sb->all->events)
		return;
	jw_object_begin(&w);
	jw_str_field(&w, "name", sb->name);
	jw_iso_field(&w, "expiresAt", sb->expires_ms);
	jw_str_field(&w, "onTimeout", lapse_names[sb->life.on_timeout]);
	emit(sb->all,
	     &(struct event){ .kind = "sandbox.expiring", .owner = sb->owner, .subject = sb->id },
	     &w);
}

static void announce_execution(struct execution *x, const char *kind, const char *result)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	if (!x->all->events)
		return;
	jw_object_begin(&w);
	jw_str_field(&w, "sandbox", x->sandbox_id);
	if (result) {
		jw_str_field(&w, "result", result);
		jw_int_field(&w, "exitCode", x->exit_code);
		jw_int_field(&w, "signal", x->signal);
		jw_uint_field(&w, "wallMs", x->wall_us / 1000);
		jw_uint_field(&w, "cpuMs", x->cpu_us / 1000);
	}
	emit(x->all, &(struct event){ .kind = kind, .owner = x->owner, .subject = x->id }, &w);
}

void announce_start(struct execution *x)
{
	announce_execution(x, "execution.started", NULL);
}

/* A system call that the filter kills for shows as this signal, or as a shell's word for it. */
static bool is_seccomp_kill(const struct execution *x)
{
	return x->signal == SIGSYS || x->exit_code == 128 + SIGSYS;
}

void announce_end(struct execution *x, const char *result)
{
	announce_execution(x, "execution.ended", result);
	if (x->flags & EXECUTION_OOM_KILLED)
		announce_execution(x, SECURITY_PREFIX "oom_killed", result);
	if (x->flags & EXECUTION_TIMED_OUT)
		announce_execution(x, SECURITY_PREFIX "timed_out", result);
	if (is_seccomp_kill(x))
		announce_execution(x, SECURITY_PREFIX "seccomp_killed", result);
}

void announce_object(struct sandboxes *all, const char *event, const char *verb,
		     const struct object *o)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	char kind[EVENT_KIND_MAX + 1];
	struct jw w = jw_begin(&b);

	if (!all->events || str_format(kind, sizeof(kind), "%s.%s", event, verb) < 0)
		return;
	jw_object_begin(&w);
	jw_str_field(&w, "name", o->name);
	emit(all, &(struct event){ .kind = kind, .owner = o->owner, .subject = o->id }, &w);
}

void announce_preload(struct sandbox *sb, const char *reason)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	if (!sb->all->events)
		return;
	jw_object_begin(&w);
	jw_str_field(&w, "template", sb->template);
	jw_str_field(&w, "reason", reason);
	emit(sb->all,
	     &(struct event){
		     .kind = "sandbox.preload_failed", .owner = sb->owner, .subject = sb->id },
	     &w);
}

void announce_context(struct sandbox *sb, const struct context *c, const char *kind,
		      const char *reason)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct context_info info;

	if (!sb->all->events)
		return;
	context_info(c, &info);
	jw_object_begin(&w);
	jw_str_field(&w, "sandbox", sb->id);
	jw_str_field(&w, "name", info.name);
	jw_str_field(&w, "language", context_language_name(info.language));
	jw_str_field(&w, "reason", reason);
	emit(sb->all, &(struct event){ .kind = kind, .owner = sb->owner, .subject = info.id }, &w);
}

void announce_port(struct sandbox *sb, const struct port_info *port, bool is_open)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	if (!sb->all->events)
		return;
	jw_object_begin(&w);
	jw_str_field(&w, "sandbox", sb->id);
	jw_uint_field(&w, "port", port->port);
	if (is_open)
		jw_bool_field(&w, "public", port->is_public);
	emit(sb->all,
	     &(struct event){ .kind = is_open ? "port.opened" : "port.closed",
			      .owner = sb->owner,
			      .subject = sb->id },
	     &w);
}

void announce_quota(struct sandboxes *all, const char *owner, const struct quota_refusal *q)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	if (!all->events)
		return;
	jw_object_begin(&w);
	jw_str_field(&w, "quota", quota_name(q->kind));
	jw_uint_field(&w, "limit", q->limit);
	jw_uint_field(&w, "used", q->used);
	emit(all, &(struct event){ .kind = "quota.exceeded", .owner = owner, .subject = owner },
	     &w);
}
