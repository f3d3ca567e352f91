/* Requests that come with what opens one sandbox alone, and is no key: a session's token, or an
 * address that is signed. Neither is kept anywhere: both end with the sandbox, and with the key
 * that they were made for. */
#pragma once

#include <stdbool.h>

#include "auth/box_token.h"

struct api_call;
struct buf;
struct err;
struct principal;
struct sandbox;

/* The token of this sandbox or volume for the caller. -EPERM: they lack a scope that it carries;
 * -EINVAL without a secret, -ENOMEM, -EIO. No other function gives one out. */
int box_auth_give(const struct api_call *c, enum box_token kind, const char *id,
		  char ret[BOX_TOKEN_SIZE]);

/* The sandbox's owner, with these scopes, and in this sandbox only. */
void box_auth_fill(const struct sandbox *sb, unsigned scopes, struct principal *ret);

/* What follows "Bearer box_" in an Authorization header, or "box_" in ?token= (either may be NULL);
 * NULL: it is something else. Borrowed from the text. */
const char *box_auth_token(const char *authorization, const char *query);
/* 0: *ret is filled. -EACCES: refused. */
int box_auth_check(struct api_call *c, const char *token, struct principal *ret, struct err *err);
/* "Bearer box_..." of this sandbox, appended; errors as of box_auth_give(). */
int box_auth_write(const struct api_call *c, const char *sandbox_id, struct buf *ret);

/* Whether a request without a key says that its address is signed (auth/signed_file.h). */
bool box_auth_is_signed(struct api_call *c);
int box_auth_check_signed(struct api_call *c, struct principal *ret, struct err *err);
