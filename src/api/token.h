/* Requests that come with an access token of an identity provider instead of a key of ours. */
#pragma once

struct api_call;
struct err;
struct principal;

/* The token of an Authorization header, or of ?token=; NULL: it has none, or no provider is known
 * here. Borrowed from the text. */
const char *token_of(const struct api_call *c, const char *authorization, const char *query);
/* 0: *ret is filled. -EACCES: refused. -EINPROGRESS: its key is being looked for; `again` comes
 * with the call once it has been, and the answer is then one of the two others. */
int token_check(struct api_call *c, const char *token, void (*again)(struct api_call *c),
		struct principal *ret, struct err *err);
