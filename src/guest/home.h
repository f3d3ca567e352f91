/* Paths as a user writes them: from his home where they do not begin at the root. As text alone. */
#pragma once

#include "guest/path.h"

struct err;

/* "", "~", "~/a" and "a" begin in home; the answer is absolute, without empty parts, "." and "..".
 * -EINVAL for another's home ("~joe"), -ENAMETOOLONG. */
int home_resolve(const char *home, const char *path, char ret[PATH_BYTES], struct err *err);
