/* Users over HTTP: written to the store first, then to the table that requests are checked against.
 */
#pragma once

struct api;
struct api_call;
struct jw;
struct user;

/* Lets go of writes that are still on their way: for api_free(). */
void users_forget(struct api *api);
/* A user with what they may have and what they have. */
void user_json(struct jw *w, const struct api_call *c, const struct user *u);
