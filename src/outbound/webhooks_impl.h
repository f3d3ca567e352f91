/* The inside of webhooks: what the files that change them and that serve them know of each other.
 */
#pragma once

#include "base/list.h"
#include "outbound/webhook_line.h"
#include "outbound/webhooks.h"
#include "sandbox/journal.h"

struct hook_read;
struct hook_send;

struct hook { /* one webhook */
	struct list node;
	struct webhooks *all;
	char id[ID_LEN + 1];
	struct webhook_line line;
	struct hook_read *read; /* under way; it frees itself */
	struct hook_send *send; /* the same */
	struct hook_send *test;
	struct loop_timer *timer; /* owned: the next try */
	bool is_dirty;            /* the store does not know what became of an event */
	bool is_moved;            /* it only has looked further */
	uint64_t saved_ms;
};

struct webhooks {
	struct webhooks_options o;
	struct objects *objects; /* borrowed */
	struct list hooks;
	struct list changes; /* struct hook_change: on their way to the store */
	struct list sends;   /* struct hook_send: on their way to other servers */
	struct journal_listener listener;
	struct loop_timer *tick; /* runs while there are any */
};

struct hook *hook_find(const struct webhooks *w, const char *id);
/* NULL without memory. */
struct hook *hook_create(struct webhooks *w, struct object *o);
void hook_free(struct hook *h);
void hook_forget(struct hook *h); /* and what the store keeps of it */
void hook_pump(struct hook *h);   /* does what can be done now */
/* One that has been changed: goes on with what it is now. */
void hook_renew(struct hook *h);

/* ---- webhook_change.c ---- */

void webhook_changes_drop(struct webhooks *w); /* nobody is told any more */
