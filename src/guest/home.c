#include "guest/home.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"

/* Puts the parts of `path` behind those in dst, which is "" or "/a/b". */
static int add_parts(char dst[PATH_BYTES], const char *path)
{
	struct str rest = str_of(path), part;
	size_t n = strlen(dst);

	while (str_split(&rest, '/', &part)) {
		if (part.len == 0 || str_is(part, "."))
			continue;
		if (str_is(part, "..")) {
			while (n > 0 && dst[--n] != '/')
				;
			dst[n] = '\0';
			continue;
		}
		if (n + 1 + part.len >= PATH_BYTES)
			return -ENAMETOOLONG;
		dst[n++] = '/';
		memcpy(dst + n, part.data, part.len);
		n += part.len;
		dst[n] = '\0';
	}
	return 0;
}

int home_resolve(const char *home, const char *path, char ret[PATH_BYTES], struct err *err)
{
	char made[PATH_BYTES] = "";
	int r = 0;

	if (path[0] == '~' && path[1] != '\0' && path[1] != '/')
		return err_set(err, EINVAL, "'%.150s': only one's own home has a name", path);
	if (path[0] != '/')
		r = add_parts(made, home);
	if (r == 0)
		r = add_parts(made, path[0] == '~' ? path + 1 : path);
	if (r < 0)
		return err_set(err, ENAMETOOLONG, "the path is longer than %d bytes",
			       PATH_BYTES - 1);
	return str_copy(ret, PATH_BYTES, made[0] ? made : "/");
}
