/* Calls that are under way, in a file that is mapped into memory: what is written there is found by
 * the next process however this one ends, and costs no more than copying it. A place is taken when
 * a call begins, says how it ended when that is known, and is free again when its line is in the
 * store. So a deed has a line, or a place here. No loop, no store. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct audit_open; /* opaque */
struct err;

#define AUDIT_OPEN_FILE "audit.open"
#define AUDIT_OPEN_SLOTS 512
#define AUDIT_OPEN_TEXT_MAX 3900u /* bytes of a line's text here; a longer one is left out */

/* Makes the file, with all of its room, or takes over the one that is there. */
int audit_open_create(int dir_fd, struct audit_open **ret, struct err *err);
struct audit_open *audit_open_free(struct audit_open *o); /* takes NULL, returns NULL */
CLEANUP_FUNC(struct audit_open *, audit_open_free)

bool audit_open_has_room(const struct audit_open *o);
/* A place, from 0; -1: there is none, or the text is too long. */
int audit_open_take(struct audit_open *o, const char *owner, const char *text);
/* It has ended, and its line will be this one. */
void audit_open_settle(struct audit_open *o, int place, uint64_t seq, const char *kind,
		       const char *text);
/* Lines until here are in the store: their places are free. */
void audit_open_committed(struct audit_open *o, uint64_t seq);

struct audit_left {
	int place;
	uint64_t seq; /* 0: it was under way, and text is what was known when it began */
	const char *owner, *kind, *text;
};
/* What an earlier process has left, in the order of its lines, and behind them what was under way.
 * The places stay taken: settle() them. Texts are borrowed until then. */
size_t audit_open_left(struct audit_open *o, struct audit_left ret[AUDIT_OPEN_SLOTS]);
