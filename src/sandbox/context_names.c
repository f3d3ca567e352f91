/* What states and languages are called. */
#include <errno.h>
#include <strings.h>

#include "sandbox/context.h"

static const char *const languages[CONTEXT_LANGUAGE_COUNT] = {
	[CONTEXT_PYTHON] = "python",
	[CONTEXT_JAVASCRIPT] = "javascript",
	[CONTEXT_TYPESCRIPT] = "typescript",
	[CONTEXT_BASH] = "bash",
	[CONTEXT_R] = "r",
	[CONTEXT_JAVA] = "java",
};

const char *context_language_name(enum context_language l)
{
	return languages[l];
}

int context_language_from(const char *name, enum context_language *ret)
{
	static const struct {
		const char *alias;
		enum context_language language;
	} aliases[] = {
		{ "py", CONTEXT_PYTHON },         { "python3", CONTEXT_PYTHON },
		{ "js", CONTEXT_JAVASCRIPT },     { "node", CONTEXT_JAVASCRIPT },
		{ "nodejs", CONTEXT_JAVASCRIPT }, { "ts", CONTEXT_TYPESCRIPT },
		{ "deno", CONTEXT_TYPESCRIPT },   { "sh", CONTEXT_BASH },
		{ "shell", CONTEXT_BASH },
	};

	for (int i = 0; i < CONTEXT_LANGUAGE_COUNT; i++)
		if (strcasecmp(name, languages[i]) == 0) {
			*ret = (enum context_language)i;
			return 0;
		}
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (strcasecmp(name, aliases[i].alias) == 0) {
			*ret = aliases[i].language;
			return 0;
		}
	return -EINVAL;
}

const char *context_state_name(enum context_state s)
{
	static const char *const names[CONTEXT_STATE_COUNT] = { "starting", "idle", "busy",
								"failed" };

	return names[s];
}

const char *context_status_name(enum context_status s)
{
	static const char *const names[CONTEXT_STATUS_COUNT] = { "ok", "error", "interrupted",
								 "timeout", "lost" };

	return names[s];
}
