#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"

#define TEXT_MAX 1024
#define LINE_MAX_BYTES (TEXT_MAX * 4 + 128) /* every byte may become "\xNN" */

static const char *const names[] = {
	[LOG_ERROR] = "error",
	[LOG_WARN] = "warn",
	[LOG_INFO] = "info",
	[LOG_DEBUG] = "debug",
};
#define LEVEL_COUNT (sizeof(names) / sizeof(names[0]))

static atomic_int current_level = LOG_INFO;

void log_set_level(enum log_level level)
{
	atomic_store_explicit(&current_level, (int)level, memory_order_relaxed);
}

int log_level_from(const char *name, enum log_level *ret)
{
	for (size_t i = 0; name && i < LEVEL_COUNT; i++) {
		if (strcmp(names[i], name) == 0) {
			*ret = (enum log_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

/* Bytes of s that may stand in a line as they are; 0 when the first one must be escaped. C1
 * controls (U+0080..U+009F) move a terminal's cursor just like the ASCII ones. */
static size_t plain(const char *s, size_t n)
{
	unsigned char c = (unsigned char)s[0];

	if (c < 0x80)
		return c >= 0x20 && c != 0x7f && c != '\\';
	if (c == 0xc2 && n > 1 && (unsigned char)s[1] < 0xa0)
		return 0;
	for (size_t len = 2; len <= 4 && len <= n; len++)
		if (utf8_is_valid(s, len))
			return len;
	return 0;
}

static size_t escape(char *dst, size_t size, const char *s, size_t n)
{
	static const char hex[] = "0123456789abcdef";
	size_t len = 0;

	for (size_t i = 0, k; i < n && len + 5 <= size; i += k ? k : 1) {
		unsigned char c = (unsigned char)s[i];

		k = plain(s + i, n - i);
		if (k > 0) {
			memcpy(dst + len, s + i, k);
			len += k;
			continue;
		}
		dst[len++] = '\\';
		if (c == '\n' || c == '\\') {
			dst[len++] = c == '\n' ? 'n' : '\\';
			continue;
		}
		dst[len++] = 'x';
		dst[len++] = hex[c >> 4];
		dst[len++] = hex[c & 15];
	}
	return len;
}

void log_line(enum log_level level, const char *module, const char *fmt, ...)
{
	int saved = errno, n;
	char text[TEXT_MAX], line[LINE_MAX_BYTES], time[CLOCK_ISO_SIZE];
	size_t len, text_len;
	ssize_t written;
	va_list ap;

	if ((int)level > atomic_load_explicit(&current_level, memory_order_relaxed))
		return;
	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	text_len = strnlen(text, sizeof(text));
	if ((size_t)n >= sizeof(text)) /* cut, and it shows */
		memcpy(text + sizeof(text) - 4, "...", 4);

	clock_iso(clock_wall_ms(), time);
	n = snprintf(line, 128, "%s %s %.40s: ", time, names[level], module);
	len = n < 0 ? 0 : (size_t)n;
	len += escape(line + len, sizeof(line) - len - 1, text, text_len);
	line[len++] = '\n';
	/* One write, so that lines of several processes do not mix. A lost line harms nobody. */
	written = write(STDERR_FILENO, line, len);
	(void)written;
	errno = saved;
}
