#include "daemon/telling.h"

#include "auth/users.h"
#include "config/config.h"
#include "crypto/secret.h"
#include "outbound/courier.h"
#include "outbound/jwks_source.h"
#include "outbound/otlp.h"
#include "outbound/webhooks.h"
#include "sandbox/audit_log.h"
#include "sandbox/events.h"

#define FLUSH_MS 5000

static void tampered(void *user, const char *what)
{
	struct telling *t = user;

	(void)what; /* the log has said it */
	events_emit(t->events, &(struct event){ .kind = SECURITY_PREFIX "audit_tampered",
						.owner = "",
						.subject = AUDIT_STREAM });
}

static int open_logs(struct telling *t, const struct telling_deps *deps, struct err *err)
{
	struct events_options events = { .loop = deps->loop,
					 .store = deps->store,
					 .metrics = deps->metrics,
					 .retention_ms = deps->config->event_retention_ms };
	struct audit_log_options audit = { .loop = deps->loop,
					   .store = deps->store,
					   .dir_fd = deps->dir_fd,
					   .retention_ms = deps->config->audit_retention_ms,
					   .tampered = tampered,
					   .user = t };
	int r = events_open(&events, &t->events, err);

	if (r == 0 && deps->config->audit)
		r = audit_log_open(&audit, &t->audit, err);
	return r;
}

static int open_traces(struct telling *t, const struct telling_deps *deps, struct err *err)
{
	const struct config *c = deps->config;
	struct otlp_options o = { .loop = deps->loop,
				  .courier = t->courier,
				  .metrics = deps->metrics,
				  .endpoint = c->otlp_endpoint,
				  .headers = secret_reveal(c->otlp_headers, NULL),
				  .service = c->otlp_service ? c->otlp_service : "holt",
				  .version = HOLT_VERSION,
				  .every_ms = (uint32_t)c->otlp_interval_ms,
				  .sample = c->otlp_sample_milli / 1000.0 };
	int r = c->otlp_endpoint ? otlp_create(&o, &t->otlp, err) : 0;

	if (r == 0)
		courier_set_tracer(t->courier, otlp_tracer(t->otlp));
	return r;
}

int telling_open(struct telling *t, const struct telling_deps *deps, struct err *err)
{
	const struct config *c = deps->config;
	int r = open_logs(t, deps, err);

	if (r == 0)
		r = courier_create(deps->loop, &t->courier, err);
	if (r == 0)
		courier_set_resolver(t->courier, deps->resolver);
	if (r == 0)
		r = open_traces(t, deps, err);
	if (r == 0 && c->jwt_jwks)
		r = jwks_source_create(deps->loop, t->courier, c->jwt_jwks, c->jwt_refresh_ms,
				       &t->jwks, err);
	return r;
}

/* Who has no record is whoever their key says: it was asked when the webhook was made. */
static enum webhook_reach reach(void *user, const char *owner)
{
	const struct telling *t = user;
	const struct user *u = users_find(t->users, owner);

	if (u && u->is_disabled)
		return WEBHOOK_REACH_NONE;
	return !u || u->role == ROLE_ADMIN ? WEBHOOK_REACH_ALL : WEBHOOK_REACH_OWN;
}

int telling_open_webhooks(struct telling *t, const struct telling_deps *deps,
			  struct sandboxes *sandboxes, struct users *users, struct err *err)
{
	const struct config *c = deps->config;
	struct webhooks_options o = { .loop = deps->loop,
				      .store = deps->store,
				      .sandboxes = sandboxes,
				      .events = t->events,
				      .courier = t->courier,
				      .metrics = deps->metrics,
				      .reach = reach,
				      .user = t,
				      .allow_private = c->webhook_allow_private,
				      .closed = deps->closed,
				      .timeout_ms = (uint32_t)c->webhook_timeout_ms,
				      .retry_ms = c->webhook_retry_ms,
				      .give_up_ms = c->webhook_give_up_ms };

	t->users = users;
	return webhooks_open(&o, &t->webhooks, err);
}

void telling_close_webhooks(struct telling *t)
{
	t->courier = courier_free(t->courier); /* first: it calls nobody back any more */
	t->webhooks = webhooks_free(t->webhooks);
}

void telling_close(struct telling *t)
{
	t->courier = courier_free(t->courier); /* first: it calls nobody back any more */
	t->jwks = jwks_source_free(t->jwks);
	t->otlp = otlp_free(t->otlp);
	t->audit = audit_log_free(t->audit);
	t->events = events_free(t->events);
}

struct tracer *telling_tracer(const struct telling *t)
{
	return otlp_tracer(t->otlp);
}

bool telling_flush(struct telling *t, void (*done)(void *user), void *user)
{
	if (t->otlp)
		otlp_flush(t->otlp, FLUSH_MS, done, user);
	return t->otlp != NULL;
}
