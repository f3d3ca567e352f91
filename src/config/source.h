/* Readers of the files: they turn foreign text into pairs and know nothing of settings. */
#pragma once

#include <stddef.h>

struct err;

/* A name and its value, both for the call only, and the line they stand on. A negative result ends
 * the reading and is passed on; the text in err is the caller's then. value NULL: YAML's null. */
typedef int (*source_fn)(void *user, const char *name, const char *value, size_t line,
			 struct err *err);

/* holt.yaml: one mapping; the keys of mappings inside are joined with "_", sequences of scalars
 * with
 * ",". Anchors, aliases, tags, further documents and NUL bytes are refused. file is for messages.
 * -EINVAL, -ENOMEM. */
int yaml_read(const char *file, const char *text, size_t n, source_fn fn, void *user,
	      struct err *err);

/* .env: lines of KEY=VALUE, `export` before it or not, '...' as it is, "..." with \n \t \\ \" \$
 * and lines inside, # for comments. What does not look like that is passed over, since the file is
 * not ours alone; an unfinished quote or a NUL byte is an error. -EINVAL, -ENOMEM. */
int dotenv_read(const char *file, const char *text, size_t n, source_fn fn, void *user,
		struct err *err);
