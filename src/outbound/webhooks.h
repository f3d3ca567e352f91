/* Webhooks: events that are sent to servers of users. Each webhook has a place of its own in the
 * log of events, kept in the store, so that neither a restart nor a kill loses one: an event is
 * sent at least once, in order, and one at a time. What fails is tried again, less and less often,
 * and given up after about a day. One that does not answer delays nobody else's.
 *
 * Objects are those of OBJECTS_WEBHOOK; they are changed through here only. For the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "sandbox/objects.h"
#include "sandbox/webhook.h"

struct courier;
struct err;
struct guard_nets;
struct events;
struct loop;
struct metrics;
struct sandboxes;
struct store;
struct webhook_line;
struct webhooks; /* opaque */

/* Whose events an owner's webhooks may have now. */
enum webhook_reach {
	WEBHOOK_REACH_NONE, /* is shut out: their webhooks wait */
	WEBHOOK_REACH_OWN,
	WEBHOOK_REACH_ALL, /* an admin */
};

struct webhooks_options { /* borrowed */
	struct loop *loop;
	const struct store *store;
	struct sandboxes *sandboxes;
	struct events *events;
	struct courier *courier;
	struct metrics *metrics;
	enum webhook_reach (*reach)(void *user, const char *owner); /* NULL: all */
	void *user;
	bool allow_private; /* addresses that are not of the public internet, and http:// */
	const struct guard_nets *closed; /* borrowed: addresses that nobody may name; NULL */
	uint32_t timeout_ms;
	uint64_t retry_ms, give_up_ms; /* see webhook_line.h */
};

int webhooks_open(const struct webhooks_options *o, struct webhooks **ret, struct err *err);
/* After the courier, which calls nobody back any more, and before the registry. Takes NULL. */
struct webhooks *webhooks_free(struct webhooks *w);
CLEANUP_FUNC(struct webhooks *, webhooks_free)

/* secret: one that was made up, for the owner's eyes; NULL: none was. err NULL: done. */
typedef void (*webhook_cb)(void *user, struct object *o, const char *secret, const struct err *err);

/* EINVAL (a bad value, named), EEXIST (the name), EDQUOT. */
void webhooks_add(struct webhooks *w, const char *owner, const struct webhook_wish *wish,
		  webhook_cb cb, void *user);
/* ENOENT, EINVAL, EBUSY. */
void webhooks_change(struct webhooks *w, const char *id, const struct webhook_patch *patch,
		     webhook_cb cb, void *user);
void webhooks_remove(struct webhooks *w, const char *id, object_cb cb, void *user);
void webhooks_end_owner(struct webhooks *w, const char *owner); /* all of theirs */

/* How it goes; NULL: not known. Borrowed for the turn of the loop. */
static inline const struct webhook_line *webhook_line_of(const struct object *o)
{
	return o->more;
}

struct webhook_answer { /* to a test */
	bool ok;
	int status; /* 0: there was none */
	uint32_t took_ms;
	const char *error; /* "": ok */
};
typedef void (*webhook_test_cb)(void *user, const struct webhook_answer *a, const struct err *err);
/* Sends a webhook.ping past the line, once; also to one that is disabled. ENOENT, EBUSY (one is
 * under way), EAGAIN. */
void webhooks_test(struct webhooks *w, const char *id, webhook_test_cb cb, void *user);
