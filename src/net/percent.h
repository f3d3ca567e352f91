/* Percent-decoding, strict. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/str.h"

/* dst has room for s.len + 1; the text is NUL-terminated. Its length, or -EINVAL for a bad escape
 * and for %00. form: '+' is a blank. */
ssize_t percent_decode(struct str s, bool form, char *dst);
