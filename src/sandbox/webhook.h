/* Webhooks as objects: who is told of which events, where, and with what secret it is signed. What
 * is sent, and what became of it, is outbound/webhooks.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sandbox/event_kinds.h"
#include "sandbox/objects.h"
#include "json/jv_decode.h"

struct arena;
struct buf;
struct err;

#define WEBHOOK_EVENTS_MAX 32
#define WEBHOOK_SECRET_MIN 16
#define WEBHOOK_SECRET_MAX 256
#define WEBHOOK_URL_MAX 2048
#define WEBHOOK_UNSAID 2

/* The state of its object. */
enum webhook_state {
	WEBHOOK_ENABLED,
	WEBHOOK_DISABLED, /* by its owner */
	WEBHOOK_GONE,     /* its receiver has answered 410 */
};

/* As clients write it. */
struct webhook_wish {
	const char *name, *url;
	struct jv_strings events; /* patterns; none: all */
	const char *secret;       /* NULL: one is made up */
	bool enabled;
	bool all_owners; /* everybody's events: an admin's */
};
#define WEBHOOK_FIELDS 6
extern const struct jv_field webhook_fields[WEBHOOK_FIELDS];
extern const struct webhook_wish webhook_defaults;

struct webhook_patch {
	const char *url, *secret; /* NULL: as it was */
	struct jv_strings events; /* len SIZE_MAX: as it was */
	union {
		bool on;
		uint8_t said; /* WEBHOOK_UNSAID: as it was */
	} enabled;
	bool rotate; /* another secret is made up */
};
#define WEBHOOK_PATCH_FIELDS 5
extern const struct jv_field webhook_patch_fields[WEBHOOK_PATCH_FIELDS];
extern const struct webhook_patch webhook_patch_defaults;

struct webhook {             /* the data of its object */
	struct arena *arena; /* owned: its texts */
	const char *url;
	struct jv_strings events;
	const char *secret;
	bool all_owners;
	uint64_t after; /* the last event of before it was made */
};
extern const struct object_kind webhook_kind;

/* What does not depend on where it leads: -EINVAL with "field: why". */
int webhook_check_events(const struct jv_strings *events, struct err *err);
int webhook_check_secret(const char *secret, struct err *err);
/* As the store keeps it. */
int webhook_write(const struct webhook *h, struct buf *b);
bool webhook_wants(const struct webhook *h, const char *owner, const char *event_owner,
		   const char *kind);
