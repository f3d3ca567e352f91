/* Lines for a shell that need none: an absolute path and words in which nothing means anything to
 * it. To start the shell costs more than to start most programs. */
#pragma once

#include <stdbool.h>

#define PLAIN_MAX 512 /* bytes of a line */
#define PLAIN_WORDS 32

struct plain {
	const char *argv[PLAIN_WORDS + 1]; /* into text, NULL-terminated */
	char text[PLAIN_MAX];
};

/* False: the shell must look at it. */
bool plain_split(const char *line, struct plain *ret);
/* False: a variable would make the shell do more than run the line. NULL-terminated. */
bool plain_env(const char *const *envp);
