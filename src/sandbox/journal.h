/* The writing end of a log in the store: gives each line its place, keeps the order, and keeps what
 * the store could not take until it can. Lines are told to whoever listens once they are committed,
 * in their order: what is told survives the end of the process. For the loop's thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/list.h"

struct err;
struct journal; /* opaque */
struct journal_row;
struct jw;
struct loop;
struct store;

#define JOURNAL_WAITING_MAX 4096u /* lines that the store has not taken */
#define JOURNAL_RETRY_MS 1000u

struct journal_options {
	struct loop *loop;         /* borrowed */
	const struct store *store; /* borrowed */
	const char *stream;        /* borrowed */
	/* May be NULL: fills in the hash of a line that is about to be written; all else is there.
	 * Called in the order of the lines. */
	void (*seal)(void *user, struct journal_row *row);
	/* May be NULL: the last line that the store has, before anything is appended. */
	void (*last)(void *user, const struct journal_row *row);
	void *user;
};

/* Blocks: looks for the log's end. */
int journal_open(const struct journal_options *o, struct journal **ret, struct err *err);
/* What the store has not taken is lost. Takes NULL, returns NULL. */
struct journal *journal_free(struct journal *j);
CLEANUP_FUNC(struct journal *, journal_free)

/* The line's number, above 0, or -EAGAIN (too many wait), -E2BIG, -ENOMEM: it is lost and counted.
 * Texts are copied. */
int64_t journal_append(struct journal *j, const char *owner, const char *kind, const char *text);
/* Numbers begin behind this one, if it is higher: of a log whose end was lost. */
void journal_skip(struct journal *j, uint64_t seq);

uint64_t journal_last(const struct journal *j);      /* the last line, also one on its way; 0 */
uint64_t journal_committed(const struct journal *j); /* the last line that is in the store; 0 */
bool journal_is_stuck(const struct journal *j);      /* the store does not take lines now */
bool journal_has_room(const struct journal *j);      /* less than three quarters of it are full */
uint64_t journal_lost(const struct journal *j);      /* lines that there was no room for */

/* A line as members of a JSON object: seq, at, owner, kind, data. */
void journal_write(struct jw *w, const struct journal_row *row);

struct journal_listener {
	struct list node;
	void (*committed)(void *user, const struct journal_row *row); /* borrowed for the call */
	void *user;
};
void journal_listen(struct journal *j, struct journal_listener *l);
void journal_unlisten(struct journal_listener *l);
