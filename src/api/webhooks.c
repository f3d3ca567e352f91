/* /webhooks: events that are sent to servers of users. */
#include "outbound/webhooks.h"

#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/handlers.h"
#include "api/object_list.h"
#include "api/problem.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "outbound/webhook_line.h"
#include "json/jw.h"

static const char *status_of(const struct object *o, const struct webhook_line *line)
{
	if (o->state == WEBHOOK_GONE)
		return "gone";
	if (o->state == WEBHOOK_DISABLED)
		return "disabled";
	return line && line_trouble(line) ? "failing" : "active";
}

static void write_line(struct jw *w, const struct webhook_line *line)
{
	static const struct webhook_line none = { 0 };
	const struct webhook_line *l = line ? line : &none;
	const struct line_delivery *trouble = line_trouble(l);

	jw_str_field(w, "lastError", trouble ? trouble->error : "");
	jw_uint_field(w, "attempts", trouble ? trouble->tries : 0);
	jw_uint_field(w, "delivered", l->delivered);
	jw_uint_field(w, "failed", l->failed);
	jw_uint_field(w, "givenUp", l->given_up);
	jw_uint_field(w, "missed", l->missed_total);
	jw_iso_field(w, "deliveredAt", l->delivered_ms);
}

/* secret NULL: it is not shown. */
static void write_webhook(struct jw *w, const struct object *o, const char *secret)
{
	const struct webhook_line *line = webhook_line_of(o);
	const struct webhook *h = o->data;

	jw_object_begin(w);
	jw_str_field(w, "id", o->id);
	jw_str_field(w, "name", o->name);
	jw_str_field(w, "owner", o->owner);
	jw_str_field(w, "url", h->url);
	jw_key(w, "events");
	jw_array_begin(w);
	for (size_t i = 0; i < h->events.len; i++)
		jw_string(w, h->events.items[i]);
	jw_array_end(w);
	jw_bool_field(w, "allOwners", h->all_owners);
	jw_bool_field(w, "enabled", o->state == WEBHOOK_ENABLED);
	jw_str_field(w, "status", status_of(o, line));
	write_line(w, line);
	jw_iso_field(w, "createdAt", o->created_ms);
	jw_iso_field(w, "updatedAt", o->updated_ms);
	if (secret)
		jw_str_field(w, "secret", secret);
	jw_object_end(w);
}

static void reply(struct api_call *c, int status, const struct object *o, const char *secret)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	write_webhook(&w, o, secret);
	call_reply(c, status, &w);
	if (secret && b.data)
		explicit_bzero(b.data, b.len);
}

/* NULL after 404. */
static struct object *find(struct api_call *c)
{
	return object_of_call(c, OBJECTS_WEBHOOK, "webhook", call_param(c, "wid"));
}

static void made(void *user, struct object *o, const char *secret, const struct err *err)
{
	struct api_call *c = user;

	if (err)
		return problem_reply(c, err);
	(void)str_copy(c->subject, sizeof(c->subject), o->id);
	reply(c, 201, o, secret);
}

static void changed(void *user, struct object *o, const char *secret, const struct err *err)
{
	if (err)
		return problem_reply(user, err);
	reply(user, 200, o, secret);
}

void api_webhook_create(struct api_call *c)
{
	const struct webhook_wish *wish = c->body;

	if (wish->all_owners && call_owner(c))
		return problem_status(c, 403, "allOwners: only an admin hears of everybody");
	webhooks_add(c->api->deps.webhooks, c->who->owner, wish, made, c);
}

static void write_listed(struct jw *w, const struct object *o)
{
	write_webhook(w, o, NULL);
}

void api_webhook_list(struct api_call *c)
{
	object_reply_list(c, OBJECTS_WEBHOOK, &(struct object_filter){ .owner = call_owner(c) },
			  write_listed);
}

void api_webhook_get(struct api_call *c)
{
	struct object *o = find(c);

	if (o)
		reply(c, 200, o, NULL);
}

void api_webhook_patch(struct api_call *c)
{
	struct object *o = find(c);

	if (o)
		webhooks_change(c->api->deps.webhooks, o->id, c->body, changed, c);
}

void api_webhook_delete(struct api_call *c)
{
	struct object *o = find(c);

	if (o)
		webhooks_remove(c->api->deps.webhooks, o->id, object_removed, c);
}

void api_webhook_deliveries(struct api_call *c)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct object *o = find(c);
	const struct webhook_line *l = o ? webhook_line_of(o) : NULL;

	if (!o)
		return;
	jw_object_begin(&w);
	jw_key(&w, "items");
	jw_array_begin(&w);
	for (size_t i = l ? l->n_deliveries : 0; i > 0; i--)
		line_write_delivery(&w, &l->deliveries[i - 1]);
	jw_array_end(&w);
	jw_object_end(&w);
	call_reply(c, 200, &w);
}

static void tested(void *user, const struct webhook_answer *a, const struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	if (err)
		return problem_reply(user, err);
	jw_object_begin(&w);
	jw_bool_field(&w, "delivered", a->ok);
	if (a->status)
		jw_int_field(&w, "httpStatus", a->status);
	else
		jw_null_field(&w, "httpStatus");
	jw_uint_field(&w, "tookMs", a->took_ms);
	jw_str_field(&w, "error", a->error);
	jw_object_end(&w);
	call_reply(user, 200, &w);
}

void api_webhook_test(struct api_call *c)
{
	struct object *o = find(c);

	if (o)
		webhooks_test(c->api->deps.webhooks, o->id, tested, c);
}
