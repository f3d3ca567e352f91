/* Answers that say no, as one line for a person. */
#pragma once

#include <stddef.h>

struct err;

/* From a status that is no success and its body: {"error":{"code","message","details"}}, or
 * anything else. Fills err and returns -errno:
 * 400 EINVAL, 401 EACCES, 403 EPERM, 404 ENOENT, 409 EBUSY, 412 EEXIST, 413 EFBIG, 429 and 503
 * EAGAIN, redirects EXDEV, everything else EREMOTEIO. */
int httpc_problem(int status, const char *body, size_t n, struct err *err);
