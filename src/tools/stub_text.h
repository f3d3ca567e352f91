/* Foreign words in files that are programs: names become identifiers, texts become literals or
 * comments, and none of them can become code. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define STUB_NAME_MAX 80u /* bytes of an identifier, with its NUL */

enum stub_language { STUB_PYTHON, STUB_NODE };

/* An identifier of both languages and a file's name, of [A-Za-z0-9_] and no reserved word. */
void stub_name(const char *foreign, char dst[STUB_NAME_MAX]);
/* The same with a number behind it: of the n-th that would be called so. */
void stub_name_again(const char *name, unsigned n, char dst[STUB_NAME_MAX]);
/* A string literal, quotes included, in ASCII. */
void stub_literal(struct buf *b, enum stub_language lang, const char *text);
/* The inside of a docstring ("""...""") or of a block comment: up to max bytes of it, "..." where
 * more is left out; lines behind the first begin with `indent`. */
void stub_prose(struct buf *b, enum stub_language lang, const char *text, size_t max,
		const char *indent);
