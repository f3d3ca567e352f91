/* Files over plain HTTP: what reading and writing share. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct api_call;
struct err;
struct route_body;

#define ENVD_METADATA_KEY_MAX 246u    /* bytes of a key: the kernel's limit less the prefix */
#define ENVD_METADATA_BYTES_MAX 4096u /* of all keys and values, each key with "user.e2b." */

extern const struct route_body e2b_body_compose; /* envd_info.c */

/* ?username=, "" for the sandbox's own. False: answered. */
bool envd_user(struct api_call *c, const char **ret);
/* An error of a file operation, as these calls tell it: ends the request. */
void envd_fail(struct api_call *c, const struct err *err);
/* X-Metadata-* of the request as attributes of a file (spec/guest.h), in the arena. 0, -EINVAL or
 * -E2BIG with a reason, -ENOMEM. */
int envd_metadata(struct api_call *c, const char **ret, size_t *ret_len, struct err *err);
