#include "tools/skill_uri.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "httpc/url.h"
#include "net/percent.h"

int skill_uri(struct buf *b, const char *name, const char *path)
{
	(void)buf_puts(b, SKILL_SCHEME);
	(void)buf_puts(b, name);
	if (path[0] != '\0')
		(void)buf_putc(b, '/');
	return url_escape_path(b, path);
}

int skill_uri_read(const char *uri, char *text, const char **ret_name, const char **ret_path)
{
	struct str s = str_of(uri);
	char *slash;

	if (!str_starts(s, SKILL_SCHEME) || s.len >= SKILL_URI_MAX || strpbrk(uri, "?#"))
		return -EINVAL;
	s.data += strlen(SKILL_SCHEME);
	s.len -= strlen(SKILL_SCHEME);
	if (percent_decode(s, false, text) < 0)
		return -EINVAL;
	slash = strchr(text, '/');
	if (slash)
		*slash = '\0';
	*ret_name = text;
	*ret_path = slash ? slash + 1 : "";
	return 0;
}
