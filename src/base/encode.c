#include "base/encode.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

static const char hex_digits[] = "0123456789abcdef";

void encode_hex(const void *src, size_t n, char *dst)
{
	const uint8_t *p = src;

	for (size_t i = 0; i < n; i++) {
		*dst++ = hex_digits[p[i] >> 4];
		*dst++ = hex_digits[p[i] & 15];
	}
	*dst = '\0';
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

ssize_t decode_hex(const char *src, size_t n, void *dst, size_t size)
{
	uint8_t *out = dst;

	if (n % 2 != 0)
		return -EINVAL;
	if (n / 2 > size)
		return -E2BIG;
	for (size_t i = 0; i < n; i += 2) {
		int hi = hex_value(src[i]), lo = hex_value(src[i + 1]);

		if (hi < 0 || lo < 0)
			return -EINVAL;
		out[i / 2] = (uint8_t)(hi << 4 | lo);
	}
	return (ssize_t)(n / 2);
}

/* The two alphabets differ in their last two characters and in the padding. */
struct base64 {
	char c62, c63;
	bool padded;
};
static const struct base64 standard = { '+', '/', true };
static const struct base64 url = { '-', '_', false };

static char base64_digit(const struct base64 *kind, unsigned v)
{
	if (v < 26)
		return (char)('A' + v);
	if (v < 52)
		return (char)('a' + (v - 26));
	if (v < 62)
		return (char)('0' + (v - 52));
	return v == 62 ? kind->c62 : kind->c63;
}

static int base64_value(const struct base64 *kind, char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == kind->c62)
		return 62;
	return c == kind->c63 ? 63 : -1;
}

static size_t base64_encode(const struct base64 *kind, const uint8_t *p, size_t n, char *dst)
{
	char *out = dst;

	for (size_t i = 0; i < n; i += 3) {
		size_t have = n - i < 3 ? n - i : 3;
		uint32_t word = (uint32_t)p[i] << 16;

		if (have > 1)
			word |= (uint32_t)p[i + 1] << 8;
		if (have > 2)
			word |= p[i + 2];
		for (size_t k = 0; k < have + 1; k++)
			*out++ = base64_digit(kind, word >> (18 - 6 * k) & 63);
		for (size_t k = have; kind->padded && k < 3; k++)
			*out++ = '=';
	}
	*out = '\0';
	return (size_t)(out - dst);
}

/* One group of 2..4 digits to 1..3 bytes. Bits behind the last byte must be zero: otherwise two
 * texts would mean the same bytes, and a token could be respelled. */
static int base64_group(const struct base64 *kind, const char *src, size_t digits, uint8_t *out)
{
	uint32_t word = 0;

	for (size_t k = 0; k < digits; k++) {
		int v = base64_value(kind, src[k]);

		if (v < 0)
			return -EINVAL;
		word |= (uint32_t)v << (18 - 6 * k);
	}
	for (size_t k = 0; k + 1 < digits; k++)
		out[k] = (uint8_t)(word >> (16 - 8 * k));
	return word & (0xffffffu >> (8 * (digits - 1))) ? -EINVAL : 0;
}

static ssize_t base64_decode(const struct base64 *kind, const char *src, size_t n, void *dst,
			     size_t size)
{
	uint8_t *out = dst;
	size_t len;

	if (kind->padded) {
		if (n % 4 != 0)
			return -EINVAL;
		for (int k = 0; k < 2 && n > 0 && src[n - 1] == '='; k++)
			n--;
	}
	if (n % 4 == 1)
		return -EINVAL;
	len = n / 4 * 3 + (n % 4 ? n % 4 - 1 : 0);
	if (len > size)
		return -E2BIG;
	for (size_t i = 0; i < n; i += 4, out += 3) {
		int r = base64_group(kind, src + i, n - i < 4 ? n - i : 4, out);

		if (r < 0)
			return r;
	}
	return (ssize_t)len;
}

size_t encode_base64(const void *src, size_t n, char *dst)
{
	return base64_encode(&standard, src, n, dst);
}

ssize_t decode_base64(const char *src, size_t n, void *dst, size_t size)
{
	return base64_decode(&standard, src, n, dst, size);
}

size_t encode_base64url(const void *src, size_t n, char *dst)
{
	return base64_encode(&url, src, n, dst);
}

ssize_t decode_base64url(const char *src, size_t n, void *dst, size_t size)
{
	return base64_decode(&url, src, n, dst, size);
}
