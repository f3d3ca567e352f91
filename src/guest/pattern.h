/* What grep and replace look for: plain bytes, or a POSIX extended regular expression of the box's
 * own libc. Bytes, not characters: "." is one byte, and case is that of ASCII. */
#pragma once

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

#define PATTERN_GROUPS 10 /* the match and what nine pairs of parentheses matched */

struct pattern {
	const char *text; /* borrowed */
	size_t len;
	bool has_regex;  /* also of plain text in any case */
	bool has_groups; /* the request's own expression: a replacement can name its groups */
	regex_t regex;
};

/* flags: FILE_REGEX, FILE_ICASE. EINVAL with the library's own words. */
int pattern_init(struct pattern *p, const char *text, uint32_t flags, struct err *err);
void pattern_done(struct pattern *p); /* also of a zeroed one */

/* The first match at or behind `from`; line[len] must be NUL, and no other byte of it. 1 with the
 * offsets in the line, 0 without one, -ENOMEM. */
int pattern_find(const struct pattern *p, const char *line, size_t len, size_t from,
		 regmatch_t ret[PATTERN_GROUPS]);

/* What stands for a match: with a regular expression \0 to \9 are its groups, \n and \t a newline
 * and a tab, \\ a backslash; otherwise every byte is itself. */
int pattern_check_replacement(const struct pattern *p, const char *text, struct err *err);
int pattern_expand(const struct pattern *p, const char *text, const char *line,
		   const regmatch_t match[PATTERN_GROUPS], struct buf *to);
