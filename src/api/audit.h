/* What the audit log gets from the doors: every call that changes something, and every refusal. */
#pragma once

#include <stdbool.h>

struct api_call;
struct http_request;

/* Before a call is handled. False after 503: it would change something, and cannot be noted. */
bool audit_may_begin(struct api_call *c);
/* A request is over. c may be NULL. */
void audit_note(const struct api_call *c, const struct http_request *r, int status);
