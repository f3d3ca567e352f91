/* Origins: which web pages may speak to us. Inside of net/. */
#pragma once

#include <stdbool.h>

struct err;
struct http_cors;
struct http_request;

/* NULL is fine (off). -EINVAL for credentials together with "*" and for what is no origin. */
int cors_check(const struct http_cors *cors, struct err *err);
/* Adds the headers that an allowed origin needs. True when the request was a preflight, which is
 * then answered. */
bool cors_answer(struct http_request *r, const struct http_cors *cors);
/* "*" allows any; list may be NULL. */
bool cors_is_listed(const char *const *list, const char *origin);
/* The Origin is the same scheme://host as the one that was asked for. */
bool cors_is_same(const struct http_request *r, const char *origin);
