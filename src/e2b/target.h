/* Which plane a request is for, and which sandbox: by its headers, its host name, its token or its
 * signature, in this order (the oldest SDKs send nothing but the token). */
#pragma once

#include <stdbool.h>

struct api_call;
struct err;
struct principal;
struct sandbox;

#define E2B_HEADER_TRAFFIC "E2b-Traffic-Access-Token"

/* claims() of the doors. */
bool e2b_claims_envd(struct api_call *c);
bool e2b_claims_code(struct api_call *c);
bool e2b_claims_port(struct api_call *c); /* any other port of a sandbox */
bool e2b_claims_control(struct api_call *c);

/* authenticate() of envd and the code interpreter: by the sandbox's token, or for files a
 * signature. One that stands still is woken first where it may be; 502 when it is gone. */
int e2b_authenticate(struct api_call *c, void (*again)(struct api_call *c), struct principal *ret,
		     struct err *err);

/* The sandbox of the caller's token: live, and running when the request came. NULL after 502.
 * Borrowed for this turn of the loop. */
struct sandbox *e2b_sandbox(struct api_call *c);
/* Whether the sandbox that a request without a token names runs; false after 502. */
bool e2b_claimed_runs(struct api_call *c);
/* 502: it is not there, or stands still. */
void e2b_reply_gone(struct api_call *c);
