#include "net/percent.h"

#include <errno.h>

#include "base/encode.h"

ssize_t percent_decode(struct str s, bool form, char *dst)
{
	size_t n = 0;

	for (size_t i = 0; i < s.len; i++) {
		char c = s.data[i];

		if (c == '%') {
			if (s.len - i < 3 || decode_hex(s.data + i + 1, 2, &c, 1) != 1)
				return -EINVAL;
			i += 2;
		} else if (c == '+' && form) {
			c = ' ';
		}
		if (c == '\0')
			return -EINVAL;
		dst[n++] = c;
	}
	dst[n] = '\0';
	return (ssize_t)n;
}
