/* Keys: made and revoked in the store first, then in the table that requests are checked against.
 */
#pragma once

struct api;

#define KEYS_USED_EVERY_MS 60000u

/* Writes down when keys were last used: for a timer. */
void keys_note_used(void *api);
/* Forgets what expired an hour ago or earlier, some at a time: for the same. */
void keys_expire(struct api *api);
/* Lets go of writes that are still on their way: for api_free(). */
void keys_forget(struct api *api);
