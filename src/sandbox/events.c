#include "sandbox/events.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "loop/loop.h"
#include "sandbox/event_kinds.h"
#include "sandbox/journal.h"
#include "store/store.h"
#include "telemetry/metrics.h"
#include "json/jw.h"

#define TRIM_EVERY_MS 600000u
#define TRIM_LEAST_MS 1000u
#define TRIM_MAX 5000u
#define TEXT_MAX (64u << 10)

struct events {
	struct events_options o;
	struct journal *events, *security;
	struct loop_timer *trim;
};

/* {"subject":...} and the members of the event's own text. */
static int write_text(const struct event *ev, struct buf *b)
{
	struct jw w = jw_begin(b);
	int r;

	jw_object_begin(&w);
	jw_str_field(&w, "subject", ev->subject);
	jw_object_end(&w);
	r = jw_end(&w);
	if (r < 0 || !ev->text || strlen(ev->text) <= 2)
		return r;
	b->data[b->len - 1] = ',';
	return buf_puts(b, ev->text + 1);
}

void events_emit(struct events *e, const struct event *ev)
{
	_cleanup_(buf_done) struct buf b = { .max = TEXT_MAX };
	bool is_security;

	assert(event_kind_is_known(ev->kind)); /* the list is the contract */
	if (!e)
		return;
	is_security = strncmp(ev->kind, SECURITY_PREFIX, strlen(SECURITY_PREFIX)) == 0;
	if (is_security)
		metrics_inc(e->o.metrics, METRIC_SECURITY_EVENTS,
			    LABELS(ev->kind + strlen(SECURITY_PREFIX)));
	if (write_text(ev, &b) < 0 ||
	    journal_append(is_security ? e->security : e->events, ev->owner, ev->kind, b.data) < 0)
		metrics_inc(e->o.metrics, METRIC_EVENTS_LOST, LABELS());
}

struct journal *events_journal(struct events *e)
{
	return e->events;
}

struct journal *events_security(struct events *e)
{
	return e->security;
}

static void trim(void *user)
{
	struct events *e = user;
	int64_t cut = clock_wall_ms() - (int64_t)e->o.retention_ms;

	/* What is left of a large cut goes the next time. */
	(void)store_trim_journal(e->o.store, EVENT_STREAM, cut, TRIM_MAX, NULL, NULL);
	(void)store_trim_journal(e->o.store, SECURITY_STREAM, cut, TRIM_MAX, NULL, NULL);
}

/* A tenth of the time that is kept, so that a short one is meant as it is said. */
static uint64_t trim_every(uint64_t retention_ms)
{
	uint64_t ms = retention_ms / 10;

	return ms < TRIM_LEAST_MS ? TRIM_LEAST_MS : ms > TRIM_EVERY_MS ? TRIM_EVERY_MS : ms;
}

static int open_log(struct events *e, const char *stream, struct journal **ret, struct err *err)
{
	struct journal_options o = { .loop = e->o.loop, .store = e->o.store, .stream = stream };

	return journal_open(&o, ret, err);
}

int events_open(const struct events_options *o, struct events **ret, struct err *err)
{
	_cleanup_(events_free_p) struct events *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return err_sys(err, ENOMEM, "events");
	e->o = *o;
	r = open_log(e, EVENT_STREAM, &e->events, err);
	if (r == 0)
		r = open_log(e, SECURITY_STREAM, &e->security, err);
	if (r < 0)
		return r;
	r = loop_timer_create(o->loop, trim, e, &e->trim);
	if (r < 0)
		return err_sys(err, r, "events");
	loop_timer_start(e->trim, trim_every(o->retention_ms) / 10, trim_every(o->retention_ms));
	*ret = TAKE(e);
	return 0;
}

struct events *events_free(struct events *e)
{
	if (!e)
		return NULL;
	e->trim = loop_timer_free(e->trim);
	e->events = journal_free(e->events);
	e->security = journal_free(e->security);
	free(e);
	return NULL;
}
