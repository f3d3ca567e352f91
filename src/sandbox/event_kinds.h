/* Every kind of event that there is, and what it says: the one list, from which the contract's
 * documents are written and by which patterns are checked. A pattern is a kind, the beginning of
 * some with a star behind a dot ("sandbox.*"), or "*". Those of security have a log of their own,
 * and no pattern names them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define EVENT_KIND_MAX 63 /* bytes of a kind, and of a pattern */

struct event_kind {
	const char *kind;  /* "sandbox.created" */
	const char *about; /* when, and what it says besides its subject */
};

const struct event_kind *event_kinds(size_t *ret_count);
bool event_kind_is_known(const char *kind);
/* Whether there is at least one kind that it matches. */
bool event_pattern_is_valid(const char *pattern);
/* "" matches all, as "*" does. */
bool event_pattern_matches(const char *pattern, const char *kind);
