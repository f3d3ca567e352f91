/* Which servers' tools the programs in a sandbox may call, as JSON: true is all of them, an array
 * of names is these. The sandbox keeps it and knows no more about tools. */
#pragma once

#include <stdbool.h>

struct err;

#define GRANT_SERVERS_MAX 64u
#define GRANT_NAME_MAX 64u
#define GRANT_TEXT_MAX (16u << 10)

/* -EINVAL: "tools: ..." */
int grant_check(const char *json, struct err *err);
bool grant_has(const char *json, const char *server); /* "" has none */
