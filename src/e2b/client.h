/* Who is asking: the SDK and its version, as its headers say it. A generation of the protocol that
 * nobody here has ever seen is told so at once, instead of failing somewhere on the way. */
#pragma once

#include <stdbool.h>

struct api_call;
struct err;

#define E2B_MAJOR_MIN 1u /* generations that are known, both included */
#define E2B_MAJOR_MAX 2u

/* Of the User-Agent ("e2b-js-sdk/2.51.0 e2b-cli/2.19.0") or of package_version, the older word for
 * it; each may be NULL. 0, also when neither names an SDK; -EPROTONOSUPPORT: *err names the
 * version, and those that are known. */
int client_check(const char *agent, const char *package_version, struct err *err);
/* The same of a call; false after 400. */
bool client_is_known(struct api_call *c);
