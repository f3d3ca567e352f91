/* A user as an answer, and the answer to who is asking. */
#include "api/call.h"
#include "api/handlers.h"
#include "api/keys.h"
#include "api/limits.h"
#include "api/users.h"
#include "auth/users.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "sandbox/quota.h"
#include "json/jw.h"

/* is_limit: 0 is none. */
static void write_quota(struct jw *w, const char *name, const struct quota *q, bool is_limit)
{
	jw_key(w, name);
	jw_object_begin(w);
	for (int i = 0; i < QUOTA_COUNT; i++) {
		const char *kind = quota_name((enum quota_kind)i);

		if (is_limit && q->v[i] == 0)
			jw_null_field(w, kind);
		else if (i == QUOTA_CPU)
			jw_double_field(w, kind, (double)q->v[i] / 1000);
		else
			jw_uint_field(w, kind, q->v[i]);
	}
	jw_object_end(w);
}

static void write_rates(struct jw *w, const struct api_call *c, const char *owner)
{
	char text[RATE_TEXT_SIZE];

	jw_key(w, "rateLimits");
	jw_object_begin(w);
	for (int i = 0; i < RATE_CLASS_COUNT; i++) {
		struct rate rate = limits_rate(c->api, owner, (enum rate_class)i);

		rate_format(rate, text);
		jw_str_field(w, rate_class_name((enum rate_class)i), rate.count ? text : NULL);
	}
	jw_object_end(w);
}

static void write_limits(struct jw *w, const struct api_call *c, const char *owner)
{
	struct quota limits, used;

	quota_of(c->api->deps.sandboxes, owner, &limits, &used);
	write_quota(w, "quota", &limits, true);
	write_quota(w, "use", &used, false);
	write_rates(w, c, owner);
}

void user_json(struct jw *w, const struct api_call *c, const struct user *u)
{
	jw_object_begin(w);
	jw_str_field(w, "name", u->name);
	jw_str_field(w, "role", role_name(u->role));
	jw_str_field(w, "status", u->is_disabled ? "disabled" : "active");
	write_limits(w, c, u->name);
	jw_iso_field(w, "createdAt", u->created_ms);
	jw_iso_field(w, "updatedAt", u->updated_ms);
	jw_object_end(w);
}

void api_user(struct api_call *c)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	jw_object_begin(&w);
	jw_str_field(&w, "owner", c->who->owner);
	jw_str_field(&w, "role", role_name(c->who->role));
	jw_str_field(&w, "keyId", c->who->key_id);
	jw_str_field(&w, "sandboxId", c->who->sandbox_id[0] ? c->who->sandbox_id : NULL);
	keys_write_scopes(&w, c->who->scopes);
	write_limits(&w, c, c->who->owner);
	jw_object_end(&w);
	call_reply(c, 200, &w);
}
