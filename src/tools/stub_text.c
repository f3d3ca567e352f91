#include "tools/stub_text.h"

#include <stdint.h>
#include <string.h>

#include "base/str.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

/* Words that either language keeps for itself, and names of files that are ours. */
static const char *const reserved[] = {
	"False",   "None",       "True",     "and",    "arguments", "as",         "assert",
	"async",   "await",      "break",    "call",   "case",      "catch",      "class",
	"const",   "continue",   "debugger", "def",    "default",   "del",        "delete",
	"do",      "elif",       "else",     "enum",   "eval",      "except",     "export",
	"extends", "false",      "finally",  "for",    "from",      "function",   "global",
	"if",      "implements", "import",   "in",     "index",     "instanceof", "interface",
	"is",      "lambda",     "let",      "match",  "new",       "nonlocal",   "not",
	"null",    "or",         "package",  "pass",   "private",   "protected",  "public",
	"raise",   "return",     "search",   "static", "super",     "switch",     "this",
	"throw",   "true",       "try",      "type",   "typeof",    "undefined",  "var",
	"void",    "while",      "with",     "yield",  "README",    "args",       "more",
	"self",
};

static bool is_reserved(const char *name)
{
	for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
		if (strcmp(reserved[i], name) == 0)
			return true;
	return false;
}

/* Bytes behind the first of a character. */
static bool is_inner(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

void stub_name(const char *foreign, char dst[STUB_NAME_MAX])
{
	size_t n = 0;

	/* What begins with an underscore is the language's or ours. */
	if (foreign[0] == '\0' || !strchr(LETTERS, foreign[0]))
		dst[n++] = 'x';
	if (n > 0 && foreign[0] != '_')
		dst[n++] = '_';
	for (const char *p = foreign; *p && n < 64; p++)
		if (!is_inner(*p))
			dst[n++] = strchr(LETTERS DIGITS, *p) ? *p : '_';
	dst[n] = '\0';
	if (is_reserved(dst)) {
		dst[n++] = '_';
		dst[n] = '\0';
	}
}

void stub_name_again(const char *name, unsigned n, char dst[STUB_NAME_MAX])
{
	(void)str_format(dst, STUB_NAME_MAX, "%s_%u", name, n);
}

/* The character at p, which is valid UTF-8; p is moved behind it. */
static uint32_t next_char(const char **p)
{
	unsigned char c = (unsigned char)*(*p)++;
	uint32_t v = c < 0x80 ? c : c < 0xe0 ? c & 0x1f : c < 0xf0 ? c & 0x0f : c & 0x07;

	while (is_inner(**p))
		v = v << 6 | ((unsigned char)*(*p)++ & 0x3f);
	return v;
}

static void put_escaped(struct buf *b, enum stub_language lang, uint32_t c)
{
	if (c < 0x10000)
		(void)buf_printf(b, "\\u%04x", c);
	else
		(void)buf_printf(b, lang == STUB_PYTHON ? "\\U%08x" : "\\u{%x}", c);
}

void stub_literal(struct buf *b, enum stub_language lang, const char *text)
{
	(void)buf_putc(b, '"');
	while (*text) {
		uint32_t c = next_char(&text);

		if (c == '"' || c == '\\')
			(void)buf_printf(b, "\\%c", (char)c);
		else if (c >= 0x20 && c < 0x7f)
			(void)buf_putc(b, (char)c);
		else
			put_escaped(b, lang, c);
	}
	(void)buf_putc(b, '"');
}

/* Controls, line ends of other kinds, and what turns the direction of text: a reader must see what
 * the language sees. */
static bool is_hidden(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c <= 0xa0) || c == 0xad || (c >= 0x200b && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
	       (c >= 0xe0000 && c <= 0xe0fff);
}

static void put_prose_char(struct buf *b, enum stub_language lang, const char *at, size_t n,
			   char before)
{
	if (lang == STUB_PYTHON && (*at == '"' || *at == '\\'))
		(void)buf_printf(b, "\\%c", *at);
	else if (lang == STUB_NODE && *at == '/' && before == '*')
		(void)buf_puts(b, " /");
	else
		(void)buf_append(b, at, n);
}

void stub_prose(struct buf *b, enum stub_language lang, const char *text, size_t max,
		const char *indent)
{
	const char *begin = text;
	char before = '*'; /* of the comment itself */

	while (*text) {
		const char *at = text;
		uint32_t c = next_char(&text);

		if ((size_t)(text - begin) > max) {
			(void)buf_puts(b, " ...");
			return;
		}
		if (c == '\n')
			(void)buf_printf(b, "\n%s", indent);
		else if (is_hidden(c))
			(void)buf_putc(b, ' ');
		else
			put_prose_char(b, lang, at, (size_t)(text - at), before);
		before = c == '\n' && lang == STUB_NODE ? '*' : *at;
	}
}
