/* What the files of the control plane's sandboxes share. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct api_call;
struct sandbox;

/* "Sandbox". */
void e2b_reply_sandbox(struct api_call *c, int status, struct sandbox *sb);
/* False after 400: more than may be had. */
bool e2b_timeout(struct api_call *c, uint64_t seconds, uint64_t *ret_ms);
/* X-Next-Token: behind the last of the page. */
void e2b_next_token(struct api_call *c, bool more, int64_t before_ms, const char *before_id);

struct cursor;
/* ?nextToken=; absent leaves *ret as it is. False after 400. */
bool e2b_take_token(struct api_call *c, struct cursor *ret);
