#include "outbound/webhooks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "crypto/random.h"
#include "loop/loop.h"
#include "outbound/courier.h"
#include "outbound/webhook_send.h"
#include "outbound/webhooks_impl.h"
#include "sandbox/events.h"
#include "store/store.h"
#include "telemetry/metrics.h"
#include "json/jv.h"
#include "json/jw.h"

#define STATE_KIND "webhook_state" /* of the store's objects: a line, by the webhook's id */
#define TICK_MS 1000u              /* lines are written down so often, as far as they changed */
#define MOVED_MS 30000u            /* and those which only looked at others' events, so often */
#define PAGE 100u
#define AGAIN_MS 1000u         /* after the store or the courier could not */
#define ANSWER_MAX (16u << 10) /* of which nothing is used */
#define STATE_TEXT_MAX (64u << 10)

struct hook_read {         /* a page of the log on its way */
	struct hook *hook; /* NULL: it is gone */
	uint64_t known;    /* what was committed when it was asked for */
};

struct hook_send { /* a message on its way */
	struct list node;
	struct hook *hook; /* NULL: it is gone */
	uint64_t seq;
	uint64_t began_ms;
	webhook_test_cb cb; /* of a test; else NULL */
	void *user;
};

static struct journal *log_of(const struct webhooks *w)
{
	return events_journal(w->o.events);
}

static enum webhook_reach reach(const struct webhooks *w, const char *owner)
{
	return w->o.reach ? w->o.reach(w->o.user, owner) : WEBHOOK_REACH_ALL;
}

/* The object of one that may be sent to now; NULL. */
static const struct object *find_open(const struct hook *h)
{
	const struct object *o = objects_find(h->all->objects, h->id, NULL);

	if (!o || o->state != WEBHOOK_ENABLED || reach(h->all, o->owner) == WEBHOOK_REACH_NONE)
		return NULL;
	return o;
}

static bool is_wanted(const struct hook *h, const struct object *o, const struct journal_row *row)
{
	const struct webhook *data = o->data;

	if (data->all_owners && strcmp(o->owner, row->owner) != 0 &&
	    reach(h->all, o->owner) != WEBHOOK_REACH_ALL)
		return false;
	return webhook_wants(data, o->owner, row->owner, row->kind);
}

/* ---- reading the log ---- */

static void wait_again(struct hook *h)
{
	loop_timer_start(h->timer, AGAIN_MS, 0);
}

static void look(struct hook *h, const struct object *o, const struct journal_row *rows, size_t n)
{
	uint64_t missed = h->line.missed_total;
	size_t waiting = h->line.n;

	for (size_t i = 0; i < n && line_has_room(&h->line); i++)
		if (line_look(&h->line, &rows[i], is_wanted(h, o, &rows[i])) < 0)
			break; /* is read again */
	h->is_moved = true;
	h->is_dirty |= h->line.n > waiting || h->line.missed_total > missed;
	metrics_add(h->all->o.metrics, METRIC_WEBHOOK_MISSED, LABELS(),
		    (double)(h->line.missed_total - missed));
}

static void got_page(void *user, int r, const struct journal_row *rows, size_t n, bool more)
{
	struct hook_read *read = user;
	struct hook *h = read->hook;
	uint64_t known = read->known;
	const struct object *o;

	free(read);
	if (!h)
		return;
	h->read = NULL;
	o = find_open(h);
	if (r < 0) {
		wait_again(h);
		return;
	}
	if (!o)
		return;
	if (n > 0) {
		look(h, o, rows, n);
	} else if (!more) { /* forgotten, all of it */
		line_look_past(&h->line, known);
		h->is_dirty = true;
	}
	hook_pump(h);
}

static void read_log(struct hook *h)
{
	struct hook_read *read = calloc(1, sizeof(*read));
	struct store_journal_filter f = { .after_seq = h->line.looked };

	if (!read) {
		wait_again(h);
		return;
	}
	read->hook = h;
	read->known = journal_committed(log_of(h->all));
	/* Of all owners: a gap in the numbers is how what was forgotten is found out. */
	if (store_list_journal(h->all->o.store, EVENT_STREAM, &f, PAGE, got_page, read) < 0) {
		free(read);
		wait_again(h);
		return;
	}
	h->read = read;
}

/* Who has seen all before it takes it from here; others read it when it is their turn. */
static void committed(void *user, const struct journal_row *row)
{
	struct webhooks *w = user;

	LIST_FOREACH (&w->hooks, h, struct hook, node) {
		const struct object *o = find_open(h);

		if (o && !h->read && h->line.looked + 1 == row->seq && line_has_room(&h->line))
			look(h, o, row, 1);
		hook_pump(h);
	}
}

/* ---- sending ---- */

static void send_free(struct hook_send *s)
{
	list_remove(&s->node);
	free(s);
}

static bool is_delivered(const struct courier_answer *a)
{
	return a->status >= 200 && a->status < 300;
}

/* For its owner: what the other server said stays out of it. */
static void explain(const struct courier_answer *a, char text[LINE_ERROR_MAX + 1])
{
	if (is_delivered(a))
		text[0] = '\0';
	else if (a->status >= 300 && a->status < 400)
		(void)str_format(text, LINE_ERROR_MAX + 1,
				 "answered %d: redirects are not followed", a->status);
	else if (a->status > 0)
		(void)str_format(text, LINE_ERROR_MAX + 1, "answered %d", a->status);
	else
		(void)str_format(text, LINE_ERROR_MAX + 1, "%.*s", LINE_ERROR_MAX, a->err.text);
}

static void on_gone(void *user, struct object *o, const struct err *err)
{
	struct webhooks *w = user;

	if (err) /* its next try, after the next tick, asks again */
		return;
	events_emit(
		w->o.events,
		&(struct event){ .kind = "webhook.disabled", .owner = o->owner, .subject = o->id });
}

static void count(const struct hook *h, enum line_state state)
{
	static const char *const names[] = { "failed", "delivered", "given_up" };

	metrics_inc(h->all->o.metrics, METRIC_WEBHOOK_DELIVERIES, LABELS(names[state]));
}

static void take_answer(struct hook *h, const struct courier_answer *a, uint64_t seq,
			uint32_t took_ms)
{
	struct line_rules rules = { h->all->o.retry_ms, h->all->o.give_up_ms };
	struct object *o = objects_find(h->all->objects, h->id, NULL);
	const struct line_event *head = line_head(&h->line);
	char error[LINE_ERROR_MAX + 1];
	struct line_try t = { .ok = is_delivered(a),
			      .status = a->status,
			      .took_ms = took_ms,
			      .error = error,
			      .now_ms = clock_now_ms(),
			      .wall_ms = clock_wall_ms() };

	if (!head || head->seq != seq) /* it was changed meanwhile, and is looked at anew */
		return;
	explain(a, error);
	random_bytes(&t.random, sizeof(t.random));
	count(h, line_tried(&h->line, &rules, &t));
	h->is_dirty = true;
	if (a->status == 410 && o && o->state == WEBHOOK_ENABLED)
		objects_change(h->all->objects, h->id, WEBHOOK_GONE, o->text, on_gone, h->all);
}

static void answered(void *user, const struct courier_answer *a)
{
	struct hook_send *s = user;
	struct hook *h = s->hook;

	if (h) {
		h->send = NULL;
		take_answer(h, a, s->seq, (uint32_t)(clock_now_ms() - s->began_ms));
		hook_pump(h);
	}
	send_free(s);
}

static void answered_test(void *user, const struct courier_answer *a)
{
	struct hook_send *s = user;
	char error[LINE_ERROR_MAX + 1];
	struct webhook_answer answer = { .ok = is_delivered(a),
					 .status = a->status,
					 .took_ms = (uint32_t)(clock_now_ms() - s->began_ms),
					 .error = error };

	if (s->hook)
		s->hook->test = NULL;
	explain(a, error);
	s->cb(s->user, &answer, NULL);
	send_free(s);
}

/* *ret is under way when this returns 0. */
static int send_row(struct hook *h, const struct object *o, const struct journal_row *row,
		    uint64_t missed, courier_fn *done, struct hook_send **ret)
{
	const struct webhook *data = o->data;
	struct hook_send *s = calloc(1, sizeof(*s));
	struct webhook_message m;
	struct courier_request req = { .method = "POST",
				       .url = data->url,
				       .headers = m.list,
				       .type = "application/json",
				       .max = ANSWER_MAX,
				       .timeout_ms = h->all->o.timeout_ms,
				       .public_only = !h->all->o.allow_private,
				       .closed = h->all->o.closed,
				       .owner = o->owner };
	int r = s ? webhook_message_make(row, h->id, data->secret, missed, clock_wall_ms(), &m)
		  : -ENOMEM;

	if (r == 0) {
		s->hook = h;
		s->seq = row->seq;
		s->began_ms = clock_now_ms();
		req.body = m.body.data;
		req.body_len = m.body.len;
		r = courier_send(h->all->o.courier, &req, done, s);
		webhook_message_done(&m);
	}
	if (r < 0) {
		free(s);
		return r;
	}
	list_push_back(&h->all->sends, &s->node);
	*ret = s;
	return 0;
}

static void send_head(struct hook *h, const struct object *o)
{
	const struct line_event *e = line_head(&h->line);
	struct journal_row row = { .stream = EVENT_STREAM,
				   .seq = e->seq,
				   .at_ms = e->at_ms,
				   .owner = e->owner,
				   .kind = e->kind,
				   .text = e->text };

	if (send_row(h, o, &row, h->line.missed, answered, &h->send) < 0)
		wait_again(h); /* too much waits for other servers, or there is no memory */
}

void hook_pump(struct hook *h)
{
	const struct object *o = find_open(h);
	uint64_t now = clock_now_ms();

	/* One that is being changed goes on as what it then is. */
	if (!o || o->is_writing || h->send)
		return;
	if (!line_head(&h->line)) {
		if (!h->read && h->line.looked < journal_committed(log_of(h->all)))
			read_log(h);
		return;
	}
	if (h->line.due_ms > now)
		loop_timer_start(h->timer, h->line.due_ms - now, 0);
	else
		send_head(h, o);
}

static void due(void *user)
{
	hook_pump(user);
}

void webhooks_test(struct webhooks *w, const char *id, webhook_test_cb cb, void *user)
{
	struct hook *h = hook_find(w, id);
	const struct object *o = h ? objects_find(w->objects, id, NULL) : NULL;
	struct journal_row row = { .stream = EVENT_STREAM,
				   .at_ms = clock_wall_ms(),
				   .kind = "webhook.ping",
				   .text = "{}" };
	struct err err = { 0 };
	int r;

	if (!o)
		(void)err_set(&err, ENOENT, "there is no webhook '%.64s'", id);
	else if (h->test)
		(void)err_set(&err, EBUSY, "a test of this webhook is under way");
	if (err.code) {
		cb(user, NULL, &err);
		return;
	}
	row.owner = o->owner;
	r = send_row(h, o, &row, 0, answered_test, &h->test);
	if (r < 0) {
		(void)err_sys(&err, r, "webhook");
		cb(user, NULL, &err);
		return;
	}
	h->test->cb = cb;
	h->test->user = user;
}

/* ---- what is kept ---- */

static int write_state(const struct hook *h, struct buf *b)
{
	struct jw w = jw_begin(b);

	jw_object_begin(&w);
	line_write(&h->line, &w);
	jw_object_end(&w);
	return jw_end(&w);
}

static void save(struct hook *h)
{
	_cleanup_(buf_done) struct buf b = { .max = STATE_TEXT_MAX };
	struct object_row row = { .kind = STATE_KIND,
				  .id = h->id,
				  .created_ms = clock_wall_ms(),
				  .updated_ms = clock_wall_ms() };

	if ((!h->is_dirty && !h->is_moved) || write_state(h, &b) < 0)
		return;
	row.text = b.data;
	/* NOTE: what the disk refuses is not asked for again before the line moves on: until then
	 * the store knows an earlier place, and a receiver would get some events twice. */
	if (store_put_object(h->all->o.store, &row, NULL, NULL) < 0)
		return;
	h->is_dirty = h->is_moved = false;
	h->saved_ms = clock_now_ms();
}

static void load_state(void *user, const struct object_row *row)
{
	struct webhooks *w = user;
	struct hook *h = hook_find(w, row->id);
	struct jv_doc *doc = NULL;

	if (!h) { /* of one that was removed when we were ended */
		(void)store_delete_object(w->o.store, STATE_KIND, row->id, NULL, NULL);
		return;
	}
	if (jv_parse(row->text, strlen(row->text), STATE_TEXT_MAX, &doc, NULL) < 0 ||
	    line_read(&h->line, jv_root(doc)) < 0)
		log_warn("webhook", "%s begins anew: its record is damaged", row->id);
	(void)jv_free(doc);
}

/* A log that has forgotten all it had would give numbers a second time. */
static void keep_numbers(struct webhooks *w)
{
	LIST_FOREACH (&w->hooks, h, struct hook, node)
		journal_skip(log_of(w), h->line.looked);
}

static void tick(void *user)
{
	struct webhooks *w = user;
	int64_t now = clock_wall_ms(), oldest = now;

	LIST_FOREACH (&w->hooks, h, struct hook, node) {
		const struct line_event *e = line_head(&h->line);

		if (e && e->at_ms < oldest && find_open(h))
			oldest = e->at_ms;
		if (h->is_dirty || clock_now_ms() - h->saved_ms >= MOVED_MS)
			save(h);
		hook_pump(h); /* its owner may have been let in again */
	}
	metrics_set(w->o.metrics, METRIC_WEBHOOK_AGE, LABELS(), (double)(now - oldest) / 1e3);
	if (list_is_empty(&w->hooks))
		loop_timer_stop(w->tick);
}

/* ---- hooks ---- */

struct hook *hook_find(const struct webhooks *w, const char *id)
{
	LIST_FOREACH (&w->hooks, h, struct hook, node)
		if (strcmp(h->id, id) == 0)
			return h;
	return NULL;
}

struct hook *hook_create(struct webhooks *w, struct object *o)
{
	const struct webhook *data = o->data;
	struct hook *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	list_init(&h->node);
	h->all = w;
	line_init(&h->line, data->after);
	if (str_copy(h->id, sizeof(h->id), o->id) < 0 ||
	    loop_timer_create(w->o.loop, due, h, &h->timer) < 0) {
		free(h);
		return NULL;
	}
	o->more = &h->line;
	list_push_back(&w->hooks, &h->node);
	loop_timer_start(w->tick, TICK_MS, TICK_MS);
	return h;
}

void hook_free(struct hook *h)
{
	struct object *o = objects_find(h->all->objects, h->id, NULL);

	if (o)
		o->more = NULL;
	if (h->read)
		h->read->hook = NULL;
	if (h->send)
		h->send->hook = NULL;
	if (h->test)
		h->test->hook = NULL;
	list_remove(&h->node);
	h->timer = loop_timer_free(h->timer);
	line_done(&h->line);
	free(h);
}

void hook_forget(struct hook *h)
{
	(void)store_delete_object(h->all->o.store, STATE_KIND, h->id, NULL, NULL);
	hook_free(h);
}

void hook_renew(struct hook *h)
{
	line_rewind(&h->line);
	hook_pump(h);
}

struct adding {
	struct webhooks *w;
	int r;
};

static void add_loaded(void *user, struct object *o)
{
	struct adding *a = user;

	if (!hook_create(a->w, o))
		a->r = -ENOMEM;
}

int webhooks_open(const struct webhooks_options *o, struct webhooks **ret, struct err *err)
{
	_cleanup_(webhooks_free_p) struct webhooks *w = calloc(1, sizeof(*w));
	struct adding adding = { .w = w };
	int r;

	if (!w)
		return err_sys(err, ENOMEM, "webhooks");
	w->o = *o;
	list_init(&w->hooks);
	list_init(&w->changes);
	list_init(&w->sends);
	list_init(&w->listener.node);
	w->objects = sandboxes_objects(o->sandboxes, OBJECTS_WEBHOOK);
	r = loop_timer_create(o->loop, tick, w, &w->tick);
	if (r < 0)
		return err_sys(err, r, "webhooks");
	objects_each(w->objects, add_loaded, &adding);
	if (adding.r < 0)
		return err_sys(err, adding.r, "webhooks");
	r = store_load_objects(o->store, STATE_KIND, load_state, w, err);
	if (r < 0)
		return r;
	keep_numbers(w);
	metrics_set(o->metrics, METRIC_WEBHOOK_AGE, LABELS(), 0);
	w->listener.committed = committed;
	w->listener.user = w;
	journal_listen(log_of(w), &w->listener);
	*ret = TAKE(w);
	return 0;
}

struct webhooks *webhooks_free(struct webhooks *w)
{
	if (!w)
		return NULL;
	journal_unlisten(&w->listener);
	LIST_FOREACH (&w->hooks, h, struct hook, node) {
		save(h);
		hook_free(h);
	}
	LIST_FOREACH (&w->sends, s, struct hook_send, node)
		send_free(s);
	webhook_changes_drop(w);
	w->tick = loop_timer_free(w->tick);
	free(w);
	return NULL;
}
