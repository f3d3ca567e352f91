#include "sandbox/webhook.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "sandbox/sandbox.h"
#include "json/jv.h"
#include "json/jw.h"

#define WEBHOOKS_MAX 1024u
#define WEBHOOKS_OWNER_MAX 32u
#define TEXT_MAX (16u << 10)

#define URL(struct_, ...) \
	JV_FIELD("url", STRING, struct_, url, .min = 1, .max = WEBHOOK_URL_MAX, __VA_ARGS__)
#define EVENTS(struct_)                                                         \
	JV_FIELD("events", STRINGS, struct_, events, .max = WEBHOOK_EVENTS_MAX, \
		 .text_max = EVENT_KIND_MAX, .help = "kinds, \"sandbox.*\" or \"*\"")
#define SECRET(struct_)                                                        \
	JV_FIELD("secret", STRING, struct_, secret, .min = WEBHOOK_SECRET_MIN, \
		 .max = WEBHOOK_SECRET_MAX, .help = "signs what is sent; never shown again")

const struct jv_field webhook_fields[WEBHOOK_FIELDS] = {
	JV_FIELD("name", STRING, struct webhook_wish, name, .flags = JV_REQUIRED, .min = 1,
		 .max = SANDBOX_NAME_MAX),
	URL(struct webhook_wish, .flags = JV_REQUIRED, .help = "https://..."),
	EVENTS(struct webhook_wish),
	SECRET(struct webhook_wish),
	JV_FIELD("enabled", BOOL, struct webhook_wish, enabled),
	JV_FIELD("allOwners", BOOL, struct webhook_wish, all_owners,
		 .help = "everybody's events; for admins"),
};
const struct webhook_wish webhook_defaults = { .enabled = true };

const struct jv_field webhook_patch_fields[WEBHOOK_PATCH_FIELDS] = {
	URL(struct webhook_patch),
	EVENTS(struct webhook_patch),
	SECRET(struct webhook_patch),
	JV_FIELD("enabled", BOOL, struct webhook_patch, enabled,
		 .help = "true: goes on where it stopped"),
	JV_FIELD("rotateSecret", BOOL, struct webhook_patch, rotate,
		 .help = "makes another secret, and shows it once"),
};
const struct webhook_patch webhook_patch_defaults = { .events.len = SIZE_MAX,
						      .enabled.said = WEBHOOK_UNSAID };

/* ---- as it is kept ---- */

static const struct jv_field kept[] = {
	URL(struct webhook, .flags = JV_REQUIRED),
	EVENTS(struct webhook),
	SECRET(struct webhook),
	JV_FIELD("allOwners", BOOL, struct webhook, all_owners),
	JV_FIELD("after", U64, struct webhook, after),
};

int webhook_write(const struct webhook *h, struct buf *b)
{
	struct jw w = jw_begin(b);

	jw_object_begin(&w);
	jw_str_field(&w, "url", h->url);
	jw_key(&w, "events");
	jw_array_begin(&w);
	for (size_t i = 0; i < h->events.len; i++)
		jw_string(&w, h->events.items[i]);
	jw_array_end(&w);
	jw_str_field(&w, "secret", h->secret);
	jw_bool_field(&w, "allOwners", h->all_owners);
	jw_uint_field(&w, "after", h->after);
	jw_object_end(&w);
	return jw_end(&w);
}

static void webhook_free(void *data)
{
	struct webhook *h = data;

	(void)arena_free(h->arena);
	free(h);
}

static int webhook_parse(const char *text, void **ret)
{
	struct webhook *h = calloc(1, sizeof(*h));
	struct jv_doc *doc = NULL;
	int r = h && (h->arena = arena_create(TEXT_MAX * 2)) ? 0 : -ENOMEM;

	if (r == 0)
		r = jv_parse(text, strlen(text), TEXT_MAX, &doc, NULL);
	if (r == 0)
		r = jv_decode_known(jv_root(doc), kept, sizeof(kept) / sizeof(kept[0]), h->arena, h,
				    NULL);
	(void)jv_free(doc);
	if (r == 0 && !h->secret)
		r = -EINVAL;
	if (r == 0)
		*ret = h;
	else if (h)
		webhook_free(h);
	return r == 0 || r == -ENOMEM ? r : -EINVAL;
}

const struct object_kind webhook_kind = {
	.name = "webhook",
	.noun = "webhook",
	.max = WEBHOOKS_MAX,
	.owner_max = WEBHOOKS_OWNER_MAX,
	.parse = webhook_parse,
	.free = webhook_free,
	.event = "webhook",
};

/* ---- what may be asked for ---- */

int webhook_check_events(const struct jv_strings *events, struct err *err)
{
	for (size_t i = 0; i < events->len; i++)
		if (!event_pattern_is_valid(events->items[i]))
			return err_set(err, EINVAL, "events: there is no kind '%.63s'",
				       events->items[i]);
	return 0;
}

int webhook_check_secret(const char *secret, struct err *err)
{
	for (const char *p = secret; *p; p++)
		if (*p <= ' ' || *p > '~')
			return err_set(err, EINVAL,
				       "secret: want letters, digits and signs, without blanks");
	return 0;
}

bool webhook_wants(const struct webhook *h, const char *owner, const char *event_owner,
		   const char *kind)
{
	if (!h->all_owners && strcmp(owner, event_owner) != 0)
		return false;
	for (size_t i = 0; i < h->events.len; i++)
		if (event_pattern_matches(h->events.items[i], kind))
			return true;
	return h->events.len == 0;
}
