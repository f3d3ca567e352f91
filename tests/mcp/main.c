/* The daemon with the conformance suite's fixtures in it, open to everybody on this machine: for
 * tests only. usage: mcp-fixtures serve --name VALUE ... as `holt serve` takes them. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "api/call.h"
#include "api/door.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "config/config.h"
#include "daemon/app.h"
#include "daemon/toolset.h"
#include "fixtures.h"

#define FLAGS_MAX 32
#define OWNER "conformance"
#define DAY_MS 86400000 /* longer than any run */

/* The suite brings no key: whoever comes is the same owner. */
static int let_in(struct api_call *c, void (*again)(struct api_call *c), struct principal *ret,
		  struct err *err)
{
	(void)c;
	(void)again;
	(void)err;
	*ret = (struct principal){ .role = ROLE_USER,
				   .scopes = SCOPE_ALL,
				   .expires_ms = clock_wall_ms() + DAY_MS };
	return str_copy(ret->owner, sizeof(ret->owner), OWNER);
}

/* --name VALUE ...: -1 when they are not such pairs. */
static int read_flags(int argc, char **argv, struct config_flag *flags)
{
	int n = 0;

	for (int i = 2; i < argc; i += 2) {
		if (strncmp(argv[i], "--", 2) != 0 || i + 1 == argc || n == FLAGS_MAX)
			return -1;
		flags[n++] = (struct config_flag){ argv[i], argv[i + 1] };
	}
	return n;
}

int main(int argc, char **argv)
{
	static const struct tool_table *const tools[] = { &fixture_contents, &fixture_questions,
							  &fixture_jobs, NULL };
	struct api_door door = mcp_door;
	const struct app_extras extras = { .fixtures = &fixture_offers,
					   .tools = tools,
					   .door = &door };
	_cleanup_(config_free_p) struct config *config = NULL;
	struct config_flag flags[FLAGS_MAX];
	struct config_args from = { .flags = flags };
	struct err err = { 0 };
	int n = read_flags(argc, argv, flags);

	if (n < 0) {
		(void)fputs("usage: mcp-fixtures serve --name VALUE ...\n", stderr);
		return 2;
	}
	from.flag_count = (size_t)n;
	door.authenticate = let_in;
	(void)signal(SIGPIPE, SIG_IGN);
	if (config_load(&from, &config, &err) < 0 || app_serve_with(config, &extras, &err) < 0) {
		(void)fprintf(stderr, "mcp-fixtures: %s\n", err.text);
		return 1;
	}
	return 0;
}
