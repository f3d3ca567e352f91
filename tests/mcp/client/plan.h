/* What the client of the conformance suite does at a server: all tools, resources and prompts that
 * it offers, one after the other. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "json/jv.h"

struct jw;
struct mcpc;

struct plan {
	struct mcpc *client;
	struct jv_doc *context; /* borrowed: what the scenario says; NULL: nothing */
	void (*over)(void *user, bool is_good);
	void *user;
	struct jv_doc *tools; /* owned */
	struct buf steps;     /* method, NUL, params, NUL, ... */
	size_t at;            /* in steps */
	size_t list;          /* the kind that is being listed */
	bool has_failed;
};

void plan_run(struct plan *p);
void plan_done(struct plan *p);
/* A value that a schema is content with: its default, or anything of its type. */
void plan_write_value(struct jw *w, struct jv schema);
