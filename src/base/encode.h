/* Hex and base64 (RFC 4648, and the URL alphabet without padding). Decoding is strict. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* dst needs 2 * n + 1 bytes. */
void encode_hex(const void *src, size_t n, char *dst);
/* Bytes written to dst (at most size), -EINVAL, -E2BIG. */
ssize_t decode_hex(const char *src, size_t n, void *dst, size_t size);

#define BASE64_SIZE(n) (((n) + 2) / 3 * 4 + 1)
size_t encode_base64(const void *src, size_t n, char *dst); /* length without the NUL */
ssize_t decode_base64(const char *src, size_t n, void *dst, size_t size);
size_t encode_base64url(const void *src, size_t n, char *dst);
ssize_t decode_base64url(const char *src, size_t n, void *dst, size_t size);
