/* Webhooks. */
#include "api/schemas_impl.h"

static const char *const states[] = { "active", "failing", "disabled", "gone", NULL };
static const char *const delivery_states[] = { "trying", "delivered", "given_up", NULL };

static const struct schema_field webhook[] = {
	FIELD("id", STRING),
	FIELD("name", STRING),
	FIELD("owner", STRING),
	FIELD("url", STRING),
	FIELD("events", STRINGS, .help = "patterns of kinds; none: all"),
	FIELD("allOwners", BOOL),
	FIELD("enabled", BOOL),
	FIELD("status", STRING, .choices = states, .help = "gone: its server has answered 410"),
	FIELD("lastError", STRING, .help = "of the event that is being tried again"),
	FIELD("attempts", INT, .help = "to send it; 0: all is well"),
	FIELD("delivered", INT),
	FIELD("failed", INT, .help = "attempts"),
	FIELD("givenUp", INT, .help = "events that were tried for too long"),
	FIELD("missed", INT,
	      .help = "given up, or forgotten before they could be sent; of the latter at most"),
	FIELD("deliveredAt", TIME | NIL, .help = "the last time"),
	FIELD("createdAt", TIME),
	FIELD("updatedAt", TIME),
	FIELD("secret", STRING, .optional = 1, .help = "only in the answer that makes it up"),
};

static const struct schema_field webhook_list[] = {
	FIELD("items", LIST, .ref = "Webhook"),
	NEXT,
};

static const struct schema_field delivery[] = {
	FIELD("seq", INT, .help = "the event's"),
	FIELD("kind", STRING),
	FIELD("status", STRING, .choices = delivery_states),
	FIELD("attempts", INT),
	FIELD("firstAt", TIME),
	FIELD("lastAt", TIME),
	FIELD("tookMs", INT, .help = "the last attempt"),
	FIELD("httpStatus", INT | NIL, .help = "null: there was no answer"),
	FIELD("error", STRING, .help = "empty: none"),
};

static const struct schema_field delivery_list[] = {
	FIELD("items", LIST, .ref = "WebhookDelivery"),
};

static const struct schema_field test[] = {
	FIELD("delivered", BOOL),
	FIELD("httpStatus", INT | NIL, .help = "null: there was no answer"),
	FIELD("tookMs", INT),
	FIELD("error", STRING, .help = "empty: none"),
};

static const struct schema list[] = {
	SCHEMA("Webhook", "A server that is told of events", webhook),
	SCHEMA("WebhookList", "A page of webhooks, newest first", webhook_list),
	SCHEMA("WebhookDelivery", "An event, and the attempts to send it", delivery),
	SCHEMA("WebhookDeliveryList", "The last deliveries, newest first", delivery_list),
	SCHEMA("WebhookTest", "What became of a ping", test),
};

const struct schema_group schemas_webhooks = { list, ARRAY_LEN(list) };
