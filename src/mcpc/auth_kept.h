/* Where a server's tokens outlast the daemon: among its credentials, under what the server is
 * called and where it is, so that a server at another address never gets them. On the loop. */
#pragma once

struct auth_kept; /* opaque */
struct err;
struct sandboxes;

/* NULL without memory. */
struct auth_kept *auth_kept_create(struct sandboxes *all, const char *server, const char *url);
/* What was put and is not written yet still is. Takes NULL, returns NULL. */
struct auth_kept *auth_kept_free(struct auth_kept *k);
const char *auth_kept_find(struct auth_kept *k); /* borrowed for the turn of the loop; NULL */
/* NULL: forgets it. A failure is said to the log: there is a token, for as long as we run. */
void auth_kept_put(struct auth_kept *k, const char *json);
