/* Requests that come with what opens one sandbox alone, and is no key: a session's token, or an
 * address that is signed. Neither is kept anywhere: both end with the sandbox. */
#pragma once

#include <stdbool.h>

struct api_call;
struct buf;
struct err;
struct sandbox;

/* What an agent does in its sandbox; what becomes of the sandbox is its owner's to say. */
#define BOX_AUTH_SESSION_SCOPES \
	(SCOPE_SANDBOX_READ | SCOPE_EXEC | SCOPE_FILE_READ | SCOPE_FILE_WRITE)

/* The caller is the sandbox's owner from here on, with these scopes, and in this sandbox only. */
void box_auth_become(struct api_call *c, const struct sandbox *sb, unsigned scopes);

/* What follows "Bearer box_" in an Authorization header, or "box_" in ?token= (either may be NULL);
 * NULL: it is something else. Borrowed from the text. */
const char *box_auth_token(const char *authorization, const char *query);
/* 0: c->who is filled. -EACCES: refused. */
int box_auth_check(struct api_call *c, const char *token, struct err *err);
/* "Bearer box_..." of this sandbox, appended. */
int box_auth_write(const struct api_call *c, const char *sandbox_id, struct buf *ret);

/* Whether a request without a key says that its address is signed (auth/signed_file.h). */
bool box_auth_is_signed(struct api_call *c);
int box_auth_check_signed(struct api_call *c, struct err *err);
