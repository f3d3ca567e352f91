/* A door beside Holt's own: another protocol in front of the same services. Its rows go through the
 * same dispatcher as ours, in the same order: who asks, what for, how often, noted, and only then
 * handled. What it does its own way is in this struct. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct api_call;
struct api_route_table;
struct err;
struct principal;

#define API_DOORS_MAX 8u

struct api_door {
	const char *name;
	/* Bodies take fields that no table knows: others' contracts grow. NULL: nothing but other()
	 */
	const struct api_route_table *table;
	/* Whether a request is this door's; asked in the order of the doors, before the routes. May
	 * fill in c->claim. */
	bool (*claims)(struct api_call *c);
	/* Who asks: fills in *ret with what it has verified, bound to the sandbox where that is all
	 * that the door opens. NULL: as the API's key says. -EACCES: refused. -EINPROGRESS: it has
	 * answered, or `again` comes with the call. */
	int (*authenticate)(struct api_call *c, void (*again)(struct api_call *c),
			    struct principal *ret, struct err *err);
	/* An error's answer. field may be NULL. */
	void (*refuse)(struct api_call *c, int status, const char *code, const char *message,
		       const char *field);
	/* Answers what no row matches; NULL: 404 or 405. */
	void (*other)(struct api_call *c);
};
