#include "api/cursor.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/encode.h"
#include "base/parse.h"
#include "base/str.h"

/* "1763239000123:" and an id, in base64url. */
#define PLAIN_MAX (20 + CURSOR_ID_MAX)

_Static_assert(BASE64_SIZE(PLAIN_MAX) <= CURSOR_SIZE, "a cursor fits");

int cursor_parse(const char *text, struct cursor *ret)
{
	char plain[PLAIN_MAX + 1], *colon;
	ssize_t n = decode_base64url(text, strlen(text), plain, PLAIN_MAX);
	struct cursor c;

	if (n < 0)
		return -EINVAL;
	plain[n] = '\0';
	colon = strchr(plain, ':');
	if (!colon || strlen(plain) != (size_t)n || colon[1] == '\0')
		return -EINVAL;
	*colon = '\0';
	if (parse_i64(plain, 1, INT64_MAX, &c.before_ms) < 0 ||
	    str_copy(c.before_id, sizeof(c.before_id), colon + 1) < 0)
		return -EINVAL;
	*ret = c;
	return 0;
}

int cursor_format(int64_t before_ms, const char *before_id, char dst[CURSOR_SIZE])
{
	char plain[PLAIN_MAX + 1];

	if (before_ms <= 0 || !before_id[0] || strlen(before_id) > CURSOR_ID_MAX ||
	    str_format(plain, sizeof(plain), "%" PRId64 ":%s", before_ms, before_id) < 0)
		return -EINVAL;
	(void)encode_base64url(plain, strlen(plain), dst);
	return 0;
}
