/* The audit log: a chained journal, and its head in a file of its own, so that a log whose end was
 * cut off is noticed. A line is given to the store in the order of the calls and does not hold up
 * an answer. From a call's beginning until its line is in the store it has a place in another file
 * (audit_open.h): after a kill the next start writes the line, or one of kind "interrupted" for a
 * call whose end nobody has seen.
 *
 * While the store does not take lines, as many calls may change something as there are places; then
 * none: better no service than one that leaves no trace.
 *
 * Old lines go after the retention, the oldest first. A line of kind "cut" says before how far,
 * with the hash of the last one that went: from there the chain can be checked (telemetry/audit.h).
 */
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
#define AUDIT_TRIM_MS 3600000u
#define AUDIT_TRIM_LINES 500u /* that one line of kind "cut" speaks of */

struct audit_log_options { /* borrowed */
	struct loop *loop;
	const struct store *store;
	int dir_fd;            /* where the head is kept */
	uint64_t retention_ms; /* how long lines are kept; 0: for ever */
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
/* A call that may change something begins; asked after audit_log_is_writable(). Its place, or -1:
 * then it has a line of kind "began" instead. */
int audit_log_begin(struct audit_log *a, const char *owner, const char *text);
/* It is over, and this is its line. place: -1, or as it was given. */
void audit_log_end(struct audit_log *a, int place, const char *owner, const char *kind,
		   const char *text);
void audit_log_trim(struct audit_log *a); /* by itself every hour, too */
/* False: nothing may be changed now. */
bool audit_log_is_writable(const struct audit_log *a);
/* The end of what is in the store. */
void audit_log_head(const struct audit_log *a, struct audit_chain *ret);
bool audit_log_is_intact(const struct audit_log *a); /* as far as the head can tell */
