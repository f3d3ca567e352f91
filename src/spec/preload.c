/* Names of modules that interpreters import ahead. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "spec/launch.h"

static bool is_name_byte(char c, bool first)
{
	if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_')
		return true;
	return !first && c >= '0' && c <= '9';
}

/* "numpy,os.path": dotted names with commas between them. The text reaches an interpreter inside
 * the box, so nothing but names gets through. */
static bool preload_is_valid(const char *s)
{
	bool first = true; /* a name begins here */

	if (*s == '\0')
		return true;
	for (; *s; s++) {
		if ((*s == '.' || *s == ',') && !first)
			first = true;
		else if (is_name_byte(*s, first))
			first = false;
		else
			return false;
	}
	return !first;
}

/* "lodash,@scope/name/part": what require() takes, but no path of the machine or of a package. The
 * text is data to whoever reads it. */
static bool node_name_is_valid(struct str name)
{
	for (size_t i = 0; i < name.len; i++)
		if (!is_name_byte(name.data[i], false) && !memchr("@/.-", name.data[i], 4))
			return false;
	return name.len > 0 && !memchr("/.-", name.data[0], 3);
}

static bool preload_node_is_valid(const char *s)
{
	struct str rest = str_of(s), name;

	if (*s == '\0')
		return true;
	while (str_split(&rest, ',', &name))
		if (!node_name_is_valid(name))
			return false;
	return s[strlen(s) - 1] != ',' && !strstr(s, "..");
}

static int check(const char *what, const char *list, bool (*is_valid)(const char *s),
		 struct err *err)
{
	if (strnlen(list, TEMPLATE_PRELOAD_MAX + 1) > TEMPLATE_PRELOAD_MAX)
		return err_set(err, E2BIG, "template %s is above %u bytes", what,
			       TEMPLATE_PRELOAD_MAX);
	return is_valid(list)
		       ? 0
		       : err_set(err, EINVAL, "template %s '%.60s': want module names and commas",
				 what, list);
}

int spec_check_preload(const struct template_spec *t, struct err *err)
{
	int r = check("preload", t->preload ? t->preload : "", preload_is_valid, err);

	return r < 0 ? r
		     : check("preload of Node", t->preload_node ? t->preload_node : "",
			     preload_node_is_valid, err);
}
