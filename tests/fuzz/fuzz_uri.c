/* Any text as the address of a resource: what is taken names a sandbox or a skill and an absolute
 * path or one in it, and written again it is read as the same. */
#include <string.h>

#include "base/buf.h"
#include "fuzz.h"
#include "mcp/box.h"
#include "tools/skill_uri.h"

static void box(const char *uri)
{
	struct mcp_box_uri one = { 0 }, two = { 0 };
	struct buf b = { 0 };

	if (mcp_box_uri_read(uri, &one) < 0)
		return;
	MUST(one.id[0] != '\0' && strlen(one.id) < sizeof(one.id));
	MUST(one.path[0] == '/' && strlen(one.path) < sizeof(one.path));
	if (strpbrk(one.id, "/?#%"))
		return; /* no id has these: it will not be found */
	MUST(mcp_box_uri_write(&b, one.id, one.path) == 0);
	if (b.len < sizeof(one.path)) {
		MUST(mcp_box_uri_read(buf_str(&b), &two) == 0);
		MUST(strcmp(one.id, two.id) == 0 && strcmp(one.path, two.path) == 0);
	}
	buf_done(&b);
}

static void skill(const char *uri)
{
	char text[SKILL_URI_MAX], again[SKILL_URI_MAX];
	const char *name, *path, *name2, *path2;
	struct buf b = { 0 };

	if (skill_uri_read(uri, text, &name, &path) < 0)
		return;
	MUST(strlen(name) + strlen(path) < SKILL_URI_MAX);
	if (strpbrk(name, "?#%"))
		return; /* no name has these */
	MUST(skill_uri(&b, name, path) == 0);
	if (b.len < SKILL_URI_MAX) {
		MUST(skill_uri_read(buf_str(&b), again, &name2, &path2) == 0);
		MUST(strcmp(name, name2) == 0 && strcmp(path, path2) == 0);
	}
	buf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *uri = malloc(size + 1);

	if (!uri)
		return 0;
	if (size > 0)
		memcpy(uri, data, size);
	uri[size] = '\0';
	box(uri);
	skill(uri);
	free(uri);
	return 0;
}
