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

#define TEXT_MAX 1024  /* bytes of a message before escaping */
#define VALUE_MAX 512  /* bytes of a field's value before escaping */
#define LINE_ROOM 8192 /* a message of which every byte becomes "\u0001" fits */
#define TAIL_ROOM 32   /* always left for what ends a line */

static const char *const names[] = {
	[LOG_ERROR] = "error",
	[LOG_WARN] = "warn",
	[LOG_INFO] = "info",
	[LOG_DEBUG] = "debug",
};
#define LEVEL_COUNT (sizeof(names) / sizeof(names[0]))

static atomic_int current_level = LOG_INFO;
static atomic_int current_format = LOG_LOGFMT;

void log_set_level(enum log_level level)
{
	atomic_store_explicit(&current_level, (int)level, memory_order_relaxed);
}

void log_set_format(enum log_format format)
{
	atomic_store_explicit(&current_format, (int)format, memory_order_relaxed);
}

bool log_is_on(enum log_level level)
{
	return (int)level <= atomic_load_explicit(&current_level, memory_order_relaxed);
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

/* A line in the making, on the stack: logging must work when memory does not. */
struct line {
	size_t len;
	bool json;
	bool full; /* something did not fit */
	char data[LINE_ROOM];
};

static void put(struct line *l, const char *s, size_t n)
{
	if (l->full || n > sizeof(l->data) - TAIL_ROOM - l->len) {
		l->full = true;
		return;
	}
	memcpy(l->data + l->len, s, n);
	l->len += n;
}

static void puts_(struct line *l, const char *s)
{
	put(l, s, strlen(s));
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

/* A byte that may not stand there: \n, \\, \" and \xNN, or \u00NN in JSON, where a byte that is no
 * character becomes the one that stands for such. */
static void put_escape(struct line *l, unsigned char c)
{
	char text[8] = { '\\', (char)c, '\0' };

	if (c == '\n')
		text[1] = 'n';
	else if (c >= 0x80 && l->json)
		memcpy(text, "\xef\xbf\xbd", 4);
	else if (c != '\\' && c != '"')
		(void)snprintf(text, sizeof(text), l->json ? "\\u%04x" : "\\x%02x", c);
	puts_(l, text);
}

static void put_text(struct line *l, const char *s, size_t n, bool quoted)
{
	for (size_t i = 0, k; i < n; i += k ? k : 1) {
		k = plain(s + i, n - i);
		if (k == 1 && s[i] == '"' && quoted)
			k = 0;
		if (k > 0)
			put(l, s + i, k);
		else
			put_escape(l, (unsigned char)s[i]);
	}
}

static void put_quoted(struct line *l, const char *s, size_t n)
{
	put(l, "\"", 1);
	put_text(l, s, n, true);
	put(l, "\"", 1);
}

static void put_head(struct line *l, enum log_level level, const char *module, const char *text,
		     size_t n)
{
	char time[CLOCK_ISO_SIZE];
	size_t module_len = strnlen(module, 40);

	clock_iso(clock_wall_ms(), time);
	if (!l->json) {
		puts_(l, time);
		put(l, " ", 1);
		puts_(l, names[level]);
		put(l, " ", 1);
		put_text(l, module, module_len, false);
		put(l, ": ", 2);
		put_text(l, text, n, false);
		return;
	}
	puts_(l, "{\"time\":\"");
	puts_(l, time);
	puts_(l, "\",\"level\":\"");
	puts_(l, names[level]);
	puts_(l, "\",\"module\":");
	put_quoted(l, module, module_len);
	puts_(l, ",\"message\":");
	put_quoted(l, text, n);
}

static bool needs_quotes(const char *s)
{
	for (size_t i = 0; s[i]; i++)
		if (s[i] == ' ' || s[i] == '=' || s[i] == '"' || (signed char)s[i] < 0x20)
			return true;
	return s[0] == '\0' || strchr(s, '\\') || strchr(s, 0x7f);
}

static void put_string(struct line *l, const char *s)
{
	char cut[VALUE_MAX + 4];

	if (strnlen(s, VALUE_MAX + 1) > VALUE_MAX) {
		size_t n = utf8_prefix(s, VALUE_MAX, NULL);

		n = n + 4 > VALUE_MAX ? n : VALUE_MAX; /* else it was no UTF-8 anyway */
		memcpy(cut, s, n);
		memcpy(cut + n, "...", 4);
		s = cut;
	}
	if (l->json || needs_quotes(s))
		put_quoted(l, s, strlen(s));
	else
		puts_(l, s);
}

static void put_field(struct line *l, const struct log_field *f)
{
	char number[32] = "";

	if (l->json) {
		put(l, ",", 1);
		put_quoted(l, f->key, strlen(f->key));
		put(l, ":", 1);
	} else {
		put(l, " ", 1);
		puts_(l, f->key);
		put(l, "=", 1);
	}
	switch (f->type) {
	case LOG_FIELD_STR:
		put_string(l, f->text);
		return;
	case LOG_FIELD_INT:
		(void)snprintf(number, sizeof(number), "%lld", (long long)f->i);
		break;
	case LOG_FIELD_UINT:
		(void)snprintf(number, sizeof(number), "%llu", (unsigned long long)f->u);
		break;
	case LOG_FIELD_MS:
		(void)snprintf(number, sizeof(number), "%llu.%03llu",
			       (unsigned long long)f->u / 1000, (unsigned long long)f->u % 1000);
		break;
	case LOG_FIELD_BOOL:
		puts_(l, f->u ? "true" : "false");
		return;
	}
	puts_(l, number);
}

/* A field stands whole or not at all. */
static void put_fields(struct line *l, const struct log_field *fields)
{
	for (; fields->key && !l->full; fields++) {
		size_t before = l->len;

		if (fields->type == LOG_FIELD_STR && !fields->text)
			continue;
		put_field(l, fields);
		if (l->full)
			l->len = before;
	}
}

static void write_line(struct line *l)
{
	static const char *const cut[] = { " cut=true", ",\"cut\":true" };
	const char *tail = l->json ? "}\n" : "\n";
	ssize_t written;

	/* TAIL_ROOM was kept for these. */
	if (l->full) {
		memcpy(l->data + l->len, cut[l->json], strlen(cut[l->json]));
		l->len += strlen(cut[l->json]);
	}
	memcpy(l->data + l->len, tail, strlen(tail));
	l->len += strlen(tail);
	/* One write, so that lines of several processes do not mix. A lost line harms nobody. */
	written = write(STDERR_FILENO, l->data, l->len);
	(void)written;
}

static bool is_json(void)
{
	return atomic_load_explicit(&current_format, memory_order_relaxed) == LOG_JSON;
}

void log_line(enum log_level level, const char *module, const char *fmt, ...)
{
	struct line l;
	char text[TEXT_MAX];
	int saved = errno, n;
	va_list ap;

	if (!log_is_on(level))
		return;
	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	if ((size_t)n >= sizeof(text)) /* cut, and it shows */
		memcpy(text + sizeof(text) - 4, "...", 4);
	l.len = 0;
	l.full = false;
	l.json = is_json();
	put_head(&l, level, module, text, strlen(text));
	write_line(&l);
	errno = saved;
}

void log_fields(enum log_level level, const char *module, const char *message,
		const struct log_field *fields)
{
	struct line l;
	int saved = errno;

	if (!log_is_on(level))
		return;
	l.len = 0;
	l.full = false;
	l.json = is_json();
	put_head(&l, level, module, message, strnlen(message, TEXT_MAX));
	put_fields(&l, fields);
	write_line(&l);
	errno = saved;
}
