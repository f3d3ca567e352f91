/* A way out of a sandbox: a listener inside, at a port of the box's own 127.0.0.1, and the proxy of
 * egress/ behind it, which goes where its policy lets it. Open as long as it is kept. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct api;
struct egress_policy;
struct egress_rules;
struct err;
struct sandbox;
struct way; /* opaque */

struct way_ops {
	/* One of the two, later: it is open, at this port; */
	void (*open)(void *user, uint16_t port);
	/* or it cannot be. It is still the caller's to close. */
	void (*failed)(void *user, const struct err *err);
	/* After open(): its box is gone, and it leads nowhere. The same. NULL: nobody asks. */
	void (*lost)(void *user);
};

/* lasts: as long as its sandbox, which it does not keep from being idle. */
int way_open(struct api *api, struct sandbox *sb, const struct egress_policy *policy, bool lasts,
	     const struct way_ops *ops, void *user, struct way **ret, struct err *err);
void way_set_rules(struct way *w, const struct egress_rules *rules); /* as egress_set_rules() */
void way_close(struct way *w);                                       /* takes NULL */
