/* Who asks. The caller of a request (api_call.who) is written here and nowhere else, and only from
 * what an authenticator has verified; what a request says of its target (api_call.claim) is no
 * evidence of anything. */
#pragma once

#include <stdbool.h>

struct api_call;
struct err;
struct principal;

/* Nobody, who may do nothing: before the request is authenticated, and of public routes. */
void call_auth_init(struct api_call *c);
/* Who asks, whether the route is for them, for this sandbox and now. False: answered, or `again`
 * comes with the call. */
bool call_authenticate(struct api_call *c, void (*again)(struct api_call *c));
/* The principal that an authenticator has verified is the caller from here on, with what its user's
 * record and the life of its sandbox leave of it. -EACCES: refused; -ENOMEM. */
int call_admit(struct api_call *c, const struct principal *verified, struct err *err);
