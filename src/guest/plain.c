#include "guest/plain.h"

#include <string.h>

#define WORD_BYTES                                                       \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789" \
	"/._-+,:@%="

bool plain_split(const char *line, struct plain *ret)
{
	size_t len = strlen(line), words = 0;
	char *at = ret->text;

	if (line[0] != '/' || len >= sizeof(ret->text))
		return false;
	memcpy(at, line, len + 1);
	while (*at) {
		size_t n = strspn(at, WORD_BYTES);

		if (n == 0 || words == PLAIN_WORDS)
			return false;
		ret->argv[words++] = at;
		at += n;
		n = strspn(at, " \t");
		if (n == 0)
			break;
		*at = '\0';
		at += n;
	}
	ret->argv[words] = NULL;
	return *at == '\0';
}

/* Options, files to be read first, functions that could bear the program's name. */
bool plain_env(const char *const *envp)
{
	static const char *const prefixes[] = { "BASH", "SHELLOPTS=", "ENV=" };

	for (; *envp; envp++)
		for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
			if (strncmp(*envp, prefixes[i], strlen(prefixes[i])) == 0)
				return false;
	return true;
}
