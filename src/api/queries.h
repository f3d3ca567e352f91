/* The query parameters of each route, as data: the dispatcher refuses values that are out of bounds
 * before a handler is called, and the OpenAPI document is written from the same rows. What is in no
 * row is passed over, and a handler cannot ask for it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct api_call;
struct api_route;

enum query_type {
	QUERY_TEXT,   /* at most max bytes; 0: no other bound than the request line's */
	QUERY_BOOL,   /* 1, 0, true, false, yes, no, on, off */
	QUERY_U64,    /* from min to max */
	QUERY_MS,     /* a duration of at most max milliseconds */
	QUERY_CHOICE, /* one of choices */
};

struct route_query {
	const char *name; /* ends with a dot: every name that begins so */
	enum query_type type;
	uint64_t min, max;
	const char *const *choices; /* NULL-terminated */
	const char *help;
};

/* Tables of the routes, each ended by a row without a name. */
extern const struct route_query query_page[], query_templates[], query_keys[], query_sandboxes[],
	query_encoding[], query_output[], query_eof[], query_wait[], query_files[],
	query_file_get[], query_file_put[], query_file_remove[], query_user[], query_tree[],
	query_watch[], query_pty[], query_journal[], query_events[], query_usage[],
	query_agent_sessions[], query_agent_session[], query_session_sandbox[], query_tools[];

const struct route_query *query_find(const struct api_route *route, const char *name); /* or NULL */
/* False after 400: a value that its row does not take. */
bool query_check(struct api_call *c);
