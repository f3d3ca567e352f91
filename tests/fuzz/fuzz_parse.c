/* Any text as number, size, duration, share of a core, hex and base64. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/parse.h"
#include "fuzz.h"

#define LO 10u
#define HI 1000000u
#define MARK 0xdeadbeefu

static void check_u64(const char *s)
{
	uint64_t v = MARK;
	int64_t i = MARK;
	char text[24];
	int r = parse_u64(s, 0, UINT64_MAX, &v);

	MUST(r == 0 || ((r == -EINVAL || r == -ERANGE) && v == MARK));
	if (r == 0) {
		(void)snprintf(text, sizeof(text), "%" PRIu64, v);
		while (*s == '0' && s[1])
			s++;
		MUST(strcmp(text, s) == 0);
	}
	r = parse_i64(s, -100, 100, &i);
	MUST(r == 0 ? i >= -100 && i <= 100 : i == MARK);
}

static void check_bounded(const char *s)
{
	uint64_t narrow = MARK, wide = MARK;
	uint32_t cpu = MARK;
	int flag = -1;

	MUST(parse_size(s, LO, HI, &narrow) == 0 ? narrow >= LO && narrow <= HI : narrow == MARK);
	MUST(parse_size(s, 0, UINT64_MAX, &wide) == 0 || narrow == MARK);
	MUST(narrow == MARK || narrow == wide);
	narrow = MARK;
	MUST(parse_duration(s, LO, HI, &narrow) == 0 ? narrow >= LO && narrow <= HI
						     : narrow == MARK);
	MUST(parse_cpu(s, LO, HI, &cpu) == 0 ? cpu >= LO && cpu <= HI : cpu == MARK);
	MUST(parse_bool(s, &flag) == 0 ? flag == 0 || flag == 1 : flag == -1);
}

/* Strict decoders: an accepted text is the one that encoding gives (of hex, but for the case). */
static void check_base64(const char *s, size_t n, uint8_t *bytes, char *text)
{
	ssize_t len = decode_base64(s, n, bytes, n);

	if (len >= 0) {
		MUST(encode_base64(bytes, (size_t)len, text) == n && memcmp(text, s, n) == 0);
		MUST(len == 0 || decode_base64(s, n, bytes, (size_t)len - 1) == -E2BIG);
	}
	len = decode_base64url(s, n, bytes, n);
	if (len >= 0)
		MUST(encode_base64url(bytes, (size_t)len, text) == n && memcmp(text, s, n) == 0);
	len = decode_hex(s, n, bytes, n);
	if (len >= 0) {
		encode_hex(bytes, (size_t)len, text);
		MUST((size_t)len * 2 == n && strncasecmp(text, s, n) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_free_ char *s = malloc(size + 1), *text = malloc(BASE64_SIZE(size) + size);
	_free_ uint8_t *bytes = malloc(size ? size : 1);

	if (!s || !text || !bytes)
		return 0;
	if (size > 0)
		memcpy(s, data, size);
	s[size] = '\0';
	check_u64(s);
	check_bounded(s);
	check_base64(s, size, bytes, text);
	return 0;
}
