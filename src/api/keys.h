/* Keys: made and revoked in the store first, then in the table that requests are checked against.
 */
#pragma once

#include <stdbool.h>

struct api;
struct api_call;
struct err;
struct jw;
struct key_row;

#define KEYS_USED_EVERY_MS 60000u

/* Writes down when keys were last used: for a timer. */
void keys_note_used(void *api);
/* Forgets what expired an hour ago or earlier, some at a time: for the same. */
void keys_expire(struct api *api);
/* Lets go of writes that are still on their way: for api_free(). */
void keys_forget(struct api *api);
/* All of an owner's are refused from now on, and forgotten. -EAGAIN: the store did not take all. */
int keys_end_owner(struct api *api, const char *owner);
/* A token's sandbox must live: 0, or -EACCES. "": it is none's. */
int keys_check_sandbox(const struct api *api, const char *sandbox_id, struct err *err);

/* The fields of a key, into an object that is open. */
void keys_write(struct jw *w, const struct key_row *row);
void keys_write_scopes(struct jw *w, unsigned scopes);
/* Of a route of one sandbox's tokens: whether there is that sandbox; false after 404. */
bool keys_find_sandbox(struct api_call *c);
/* Whether this key is one that the route shows to the caller. */
bool keys_are_seen(struct api_call *c, const struct key_row *row);
