#include "sandbox/template.h"

#include <string.h>

#include "base/str.h"
#include "spec/guest.h"

static const struct template_row rows[] = {
	{ .name = "python",
	  .about = "Python 3, an interpreter waiting",
	  .id = 1,
	  .flags = TEMPLATE_WARM_PYTHON },
	{ .name = "node",
	  .about = "Node.js, an interpreter waiting",
	  .id = 2,
	  .flags = TEMPLATE_WARM_NODE },
	{ .name = "bash", .about = "a shell, nothing waiting", .id = 3 },
	{ .name = "base",
	  .about = "Python and Node.js, both waiting",
	  .id = 4,
	  .flags = TEMPLATE_WARM_PYTHON | TEMPLATE_WARM_NODE },
	{ .name = "e2b",
	  .about = "a machine of one's own: writable root, sudo, a home directory",
	  .id = 5,
	  .flags = TEMPLATE_WRITABLE_ROOT | TEMPLATE_SUDO,
	  .workdir = "/home/user",
	  .path = GUEST_ROOT_PATH },
};

/* How others name a runtime. Boxes are made of the machine's own programs, so a version is a wish
 * that can only be checked for its major number, and not at all where any will do. */
static const struct {
	const char *name, *row;
	const char
		*version; /* what may stand behind a colon: this major one, "": any; NULL: none */
} aliases[] = {
	{ "python", "python", "3" }, { "python3", "python", "3" },   { "node", "node", "" },
	{ "nodejs", "node", "" },    { "javascript", "node", NULL }, { "js", "node", NULL },
	{ "sh", "bash", NULL },      { "shell", "bash", NULL },
};

const struct template_row *template_rows(size_t *ret_n)
{
	*ret_n = sizeof(rows) / sizeof(rows[0]);
	return rows;
}

static const struct template_row *find_row(struct str name)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (str_is(name, rows[i].name))
			return &rows[i];
	return NULL;
}

/* "3.11" is of major "3", "18" of any. */
static bool version_fits(const char *version, const char *major)
{
	size_t n = strlen(major);

	if (version[0] == '\0' || version[strspn(version, "0123456789.")] != '\0')
		return false;
	return strncmp(version, major, n) == 0 &&
	       (n == 0 || version[n] == '\0' || version[n] == '.');
}

const struct template_row *template_find(const char *name)
{
	const char *colon = strchr(name, ':');
	struct str base = { name, colon ? (size_t)(colon - name) : strlen(name) };

	if (name[0] == '\0')
		return find_row(str_of(TEMPLATE_DEFAULT));
	if (!colon && find_row(base))
		return find_row(base);
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++) {
		if (!str_is(base, aliases[i].name))
			continue;
		if (colon && (!aliases[i].version || !version_fits(colon + 1, aliases[i].version)))
			return NULL;
		return find_row(str_of(aliases[i].row));
	}
	return NULL;
}
