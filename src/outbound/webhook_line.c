#include "outbound/webhook_line.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "store/store.h"
#include "json/jv.h"
#include "json/jw.h"

static const char *const states[] = { "trying", "delivered", "given_up" };

void line_init(struct webhook_line *l, uint64_t after)
{
	*l = (struct webhook_line){ .looked = after };
	list_init(&l->queue);
}

void line_done(struct webhook_line *l)
{
	LIST_FOREACH (&l->queue, e, struct line_event, node) {
		list_remove(&e->node);
		free(e);
	}
	l->n = l->bytes = 0;
}

bool line_has_room(const struct webhook_line *l)
{
	return l->n == 0 || (l->n < LINE_EVENTS_MAX && l->bytes < LINE_BYTES_MAX);
}

static const char *put(char **at, const char *text)
{
	size_t n = strlen(text) + 1;
	char *dst = *at;

	memcpy(dst, text, n);
	*at += n;
	return dst;
}

static int push(struct webhook_line *l, const struct journal_row *row)
{
	size_t n = strlen(row->owner) + strlen(row->kind) + strlen(row->text) + 3;
	struct line_event *e = calloc(1, sizeof(*e) + n);
	char *at;

	if (!e)
		return -ENOMEM;
	at = e->bytes;
	e->seq = row->seq;
	e->at_ms = row->at_ms;
	e->owner = put(&at, row->owner);
	e->kind = put(&at, row->kind);
	e->text = put(&at, row->text);
	e->size = n;
	list_push_back(&l->queue, &e->node);
	l->n++;
	l->bytes += n;
	return 0;
}

static void miss(struct webhook_line *l, uint64_t n)
{
	l->missed += n;
	l->missed_total += n;
}

void line_look_past(struct webhook_line *l, uint64_t seq)
{
	if (seq <= l->looked)
		return;
	miss(l, seq - l->looked);
	l->looked = seq;
}

int line_look(struct webhook_line *l, const struct journal_row *row, bool wanted)
{
	int r = wanted ? push(l, row) : 0;

	if (r < 0)
		return r;
	line_look_past(l, row->seq - 1);
	l->looked = row->seq;
	return 0;
}

struct line_event *line_head(const struct webhook_line *l)
{
	return list_is_empty(&l->queue) ? NULL : LIST_ENTRY(l->queue.next, struct line_event, node);
}

uint64_t line_cursor(const struct webhook_line *l)
{
	const struct line_event *e = line_head(l);

	return e ? e->seq - 1 : l->looked;
}

const struct line_delivery *line_trouble(const struct webhook_line *l)
{
	const struct line_delivery *d =
		l->n_deliveries > 0 ? &l->deliveries[l->n_deliveries - 1] : NULL;

	return d && d->state == LINE_TRYING ? d : NULL;
}

void line_rewind(struct webhook_line *l)
{
	l->looked = line_cursor(l);
	l->due_ms = 0;
	line_done(l);
}

/* ---- tries ---- */

uint64_t line_delay_ms(const struct line_rules *rules, uint32_t failures, uint32_t random)
{
	uint64_t ms = rules->retry_ms;

	for (uint32_t i = 1; i < failures && ms < LINE_DELAY_MAX_MS; i++)
		ms *= 2;
	if (ms > LINE_DELAY_MAX_MS)
		ms = LINE_DELAY_MAX_MS;
	return ms - ms / 2 + random % (ms / 2 + 1);
}

/* The record of the event that is tried: the last one, or a new one behind it. */
static struct line_delivery *record(struct webhook_line *l, const struct line_event *e,
				    int64_t wall_ms)
{
	struct line_delivery *d;

	if (l->n_deliveries > 0 && l->deliveries[l->n_deliveries - 1].seq == e->seq)
		return &l->deliveries[l->n_deliveries - 1];
	if (l->n_deliveries == LINE_DELIVERIES_MAX)
		memmove(l->deliveries, l->deliveries + 1,
			--l->n_deliveries * sizeof(l->deliveries[0]));
	d = &l->deliveries[l->n_deliveries++];
	*d = (struct line_delivery){ .seq = e->seq, .first_ms = wall_ms };
	(void)snprintf(d->kind, sizeof(d->kind), "%s", e->kind); /* a strange one is cut */
	return d;
}

static void pop(struct webhook_line *l, struct line_event *e)
{
	list_remove(&e->node);
	l->n--;
	l->bytes -= e->size;
	l->due_ms = 0;
	free(e);
}

static enum line_state judge(const struct line_rules *rules, const struct line_delivery *d,
			     const struct line_try *t)
{
	if (t->ok)
		return LINE_DELIVERED;
	/* A clock that was set must not throw away what has hardly been tried. */
	if (d->tries >= LINE_TRIES_MIN && t->wall_ms - d->first_ms >= (int64_t)rules->give_up_ms)
		return LINE_GIVEN_UP;
	return LINE_TRYING;
}

enum line_state line_tried(struct webhook_line *l, const struct line_rules *rules,
			   const struct line_try *t)
{
	struct line_event *e = line_head(l);
	struct line_delivery *d;

	assert(e); /* who tries has looked */
	d = record(l, e, t->wall_ms);
	d->tries++;
	d->last_ms = t->wall_ms;
	d->took_ms = t->took_ms;
	d->status = t->status;
	(void)snprintf(d->error, sizeof(d->error), "%s", t->ok ? "" : t->error);
	d->state = judge(rules, d, t);
	l->failed += !t->ok;
	switch (d->state) {
	case LINE_TRYING:
		l->due_ms = t->now_ms + line_delay_ms(rules, d->tries, t->random);
		break;
	case LINE_DELIVERED:
		l->delivered++;
		l->delivered_ms = t->wall_ms;
		l->missed = 0;
		pop(l, e);
		break;
	case LINE_GIVEN_UP:
		l->given_up++;
		miss(l, 1);
		pop(l, e);
		break;
	}
	return d->state;
}

/* ---- as it is kept ---- */

void line_write_delivery(struct jw *w, const struct line_delivery *d)
{
	jw_object_begin(w);
	jw_uint_field(w, "seq", d->seq);
	jw_str_field(w, "kind", d->kind);
	jw_str_field(w, "status", states[d->state]);
	jw_uint_field(w, "attempts", d->tries);
	jw_iso_field(w, "firstAt", d->first_ms);
	jw_iso_field(w, "lastAt", d->last_ms);
	jw_uint_field(w, "tookMs", d->took_ms);
	if (d->status)
		jw_int_field(w, "httpStatus", d->status);
	else
		jw_null_field(w, "httpStatus");
	jw_str_field(w, "error", d->error);
	jw_object_end(w);
}

void line_write(const struct webhook_line *l, struct jw *w)
{
	jw_uint_field(w, "cursor", line_cursor(l));
	jw_uint_field(w, "delivered", l->delivered);
	jw_uint_field(w, "failed", l->failed);
	jw_uint_field(w, "givenUp", l->given_up);
	jw_uint_field(w, "missed", l->missed);
	jw_uint_field(w, "missedTotal", l->missed_total);
	jw_iso_field(w, "deliveredAt", l->delivered_ms);
	jw_key(w, "deliveries");
	jw_array_begin(w);
	for (size_t i = 0; i < l->n_deliveries; i++)
		line_write_delivery(w, &l->deliveries[i]);
	jw_array_end(w);
}

static int64_t read_time(struct jv v)
{
	const char *text = jv_text(v);
	int64_t ms = 0;

	return text && clock_from_iso(text, &ms) == 0 ? ms : 0;
}

static int read_delivery(struct jv o, struct line_delivery *d)
{
	const char *kind = jv_text(jv_get(o, "kind")), *state = jv_text(jv_get(o, "status"));
	const char *error = jv_text(jv_get(o, "error"));
	uint64_t tries = 0, took = 0;
	int64_t status = 0;
	int at = LINE_GIVEN_UP;

	*d = (struct line_delivery){ .first_ms = read_time(jv_get(o, "firstAt")),
				     .last_ms = read_time(jv_get(o, "lastAt")) };
	if (!kind || !state || !error || jv_u64(jv_get(o, "seq"), &d->seq) < 0 ||
	    str_copy(d->kind, sizeof(d->kind), kind) < 0 ||
	    str_copy(d->error, sizeof(d->error), error) < 0)
		return -EINVAL;
	while (at > LINE_TRYING && strcmp(states[at], state) != 0)
		at--;
	(void)jv_u64(jv_get(o, "attempts"), &tries);
	(void)jv_u64(jv_get(o, "tookMs"), &took);
	(void)jv_i64(jv_get(o, "httpStatus"), &status);
	d->state = (enum line_state)at;
	d->tries = (uint32_t)tries;
	d->took_ms = (uint32_t)took;
	d->status = (int)status;
	return 0;
}

int line_read(struct webhook_line *l, struct jv object)
{
	struct webhook_line was = { 0 };
	struct jv list = jv_get(object, "deliveries");

	if (jv_u64(jv_get(object, "cursor"), &was.looked) < 0)
		return -EINVAL;
	(void)jv_u64(jv_get(object, "delivered"), &was.delivered);
	(void)jv_u64(jv_get(object, "failed"), &was.failed);
	(void)jv_u64(jv_get(object, "givenUp"), &was.given_up);
	(void)jv_u64(jv_get(object, "missed"), &was.missed);
	(void)jv_u64(jv_get(object, "missedTotal"), &was.missed_total);
	was.delivered_ms = read_time(jv_get(object, "deliveredAt"));
	JV_FOREACH (list, it)
		if (was.n_deliveries < LINE_DELIVERIES_MAX &&
		    read_delivery(it.value, &was.deliveries[was.n_deliveries]) == 0)
			was.n_deliveries++;
	line_done(l);
	*l = was;
	list_init(&l->queue);
	return 0;
}
