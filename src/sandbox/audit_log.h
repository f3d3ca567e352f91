/* The audit log: a chained journal, and its head in a file of its own, so that a log whose end was
 * cut off is noticed. A line is given to the store in the order of the calls and does not hold up
 * an answer; what the store cannot take is kept in memory, as much as there is room for, and when
 * that is nearly full nothing may be changed any more: better no service than one that leaves no
 * trace. */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"
#include "telemetry/audit.h"

struct audit_log; /* opaque */
struct err;
struct journal;
struct loop;
struct store;

#define AUDIT_STREAM "audit"
#define AUDIT_HEAD_FILE "audit.head"
#define AUDIT_HEAD_MS 1000u /* how long the file may be behind the log */

struct audit_log_options { /* borrowed */
	struct loop *loop;
	const struct store *store;
	int dir_fd; /* where the head is kept */
	/* May be NULL: the log is not what was written. Once, soon after the start. */
	void (*tampered)(void *user, const char *what);
	void *user;
};

/* Blocks: looks for the log's end and compares it with the head. A log that was cut goes on behind
 * the head, so that what is missing stays missing for everybody to see. */
int audit_log_open(const struct audit_log_options *o, struct audit_log **ret, struct err *err);
/* The head is written first. Takes NULL, returns NULL. */
struct audit_log *audit_log_free(struct audit_log *a);
CLEANUP_FUNC(struct audit_log *, audit_log_free)

void audit_log_append(struct audit_log *a, const char *owner, const char *kind, const char *text);
/* False: nothing may be changed now. */
bool audit_log_is_writable(const struct audit_log *a);
/* The end of what is in the store. */
void audit_log_head(const struct audit_log *a, struct audit_chain *ret);
bool audit_log_is_intact(const struct audit_log *a); /* as far as the head can tell */
