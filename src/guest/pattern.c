#include "guest/pattern.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "spec/guest.h"

static int compile(struct pattern *p, const char *text, uint32_t flags, struct err *err)
{
	int cflags = REG_EXTENDED | (flags & FILE_ICASE ? REG_ICASE : 0);
	int r = regcomp(&p->regex, text, cflags);
	char why[128];

	if (r == 0) {
		p->has_regex = true;
		return 0;
	}
	if (r == REG_ESPACE)
		return err_set(err, EINVAL, "the pattern is too large");
	(void)regerror(r, &p->regex, why, sizeof(why));
	return err_set(err, EINVAL, "the pattern is not an extended regular expression: %s", why);
}

/* Plain text in any case: there is nothing in libc for it but the regular expressions. */
static int compile_plain(struct pattern *p, const char *text, uint32_t flags, struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	for (const char *c = text; *c; c++) {
		if (strchr("\\.[{()*+?|^$", *c))
			(void)buf_putc(&b, '\\');
		(void)buf_putc(&b, *c);
	}
	return b.failed ? err_sys(err, ENOMEM, "pattern") : compile(p, buf_str(&b), flags, err);
}

int pattern_init(struct pattern *p, const char *text, uint32_t flags, struct err *err)
{
	memset(p, 0, sizeof(*p));
	p->text = text;
	p->len = strlen(text);
	p->has_groups = flags & FILE_REGEX;
	if (p->len == 0)
		return err_set(err, EINVAL, "the pattern is empty");
	if (!(flags & (FILE_REGEX | FILE_ICASE)))
		return 0;
	/* Lines are searched one by one: what has a newline in it would silently find nothing. */
	if (strchr(text, '\n'))
		return err_set(err, EINVAL, "this pattern may have no newline in it");
	return flags & FILE_REGEX ? compile(p, text, flags, err)
				  : compile_plain(p, text, flags, err);
}

void pattern_done(struct pattern *p)
{
	if (p->has_regex)
		regfree(&p->regex);
	p->has_regex = false;
}

static int find_plain(const struct pattern *p, const char *line, size_t len, size_t from,
		      regmatch_t ret[PATTERN_GROUPS])
{
	const char *at = memmem(line + from, len - from, p->text, p->len);

	if (!at)
		return 0;
	ret[0].rm_so = (regoff_t)(at - line);
	ret[0].rm_eo = ret[0].rm_so + (regoff_t)p->len;
	return 1;
}

int pattern_find(const struct pattern *p, const char *line, size_t len, size_t from,
		 regmatch_t ret[PATTERN_GROUPS])
{
	int r;

	if (!p->has_regex)
		return find_plain(p, line, len, from, ret);
	r = regexec(&p->regex, line + from, PATTERN_GROUPS, ret, from > 0 ? REG_NOTBOL : 0);
	if (r != 0)
		return r == REG_NOMATCH ? 0 : -ENOMEM;
	for (size_t i = 0; i < PATTERN_GROUPS; i++) {
		if (ret[i].rm_so < 0)
			continue;
		ret[i].rm_so += (regoff_t)from;
		ret[i].rm_eo += (regoff_t)from;
	}
	return 1;
}

int pattern_check_replacement(const struct pattern *p, const char *text, struct err *err)
{
	if (!p->has_groups)
		return 0;
	for (const char *c = strchr(text, '\\'); c; c = strchr(c + 2, '\\')) {
		if (c[1] == '\0' || !strchr("0123456789nt\\", c[1]))
			return err_set(
				err, EINVAL,
				"the replacement's '\\' wants a digit, n, t or '\\' behind it");
		if (c[1] >= '1' && c[1] <= '9' && (size_t)(c[1] - '0') > p->regex.re_nsub)
			return err_set(err, EINVAL, "the pattern has no group %c", c[1]);
	}
	return 0;
}

int pattern_expand(const struct pattern *p, const char *text, const char *line,
		   const regmatch_t match[PATTERN_GROUPS], struct buf *to)
{
	for (const char *c = text; *c; c++) {
		const regmatch_t *m;

		if (*c != '\\' || !p->has_groups) {
			(void)buf_putc(to, *c);
			continue;
		}
		c++; /* there is one: it was checked */
		m = *c >= '0' && *c <= '9' ? &match[*c - '0'] : NULL;
		if (m && m->rm_so >= 0)
			(void)buf_append(to, line + m->rm_so, (size_t)(m->rm_eo - m->rm_so));
		else if (!m)
			(void)buf_putc(to, *c == 'n' ? '\n' : *c == 't' ? '\t' : '\\');
	}
	return to->failed ? -E2BIG : 0;
}
