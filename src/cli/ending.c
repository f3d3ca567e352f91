#include "cli/ending.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>

#include "base/str.h"
#include "cli/command.h"

static bool is_true(struct jv v)
{
	bool yes = false;

	return jv_bool(v, &yes) == 0 && yes;
}

/* What could not be started: the codes of a shell, by the words of the box. */
static int code_of_failure(const char *reason)
{
	static const struct {
		const char *words;
		int code;
	} rows[] = {
		{ "No such file or directory", CLI_NOT_FOUND },
		{ "Permission denied", CLI_NOT_EXECUTABLE },
		{ "Exec format error", CLI_NOT_EXECUTABLE },
		{ "Is a directory", CLI_NOT_EXECUTABLE },
	};

	if (strncmp(reason, "exec ", 5) != 0)
		return CLI_ERROR; /* the working directory, the user: not the program */
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (str_ends(str_of(reason), rows[i].words))
			return rows[i].code;
	return CLI_ERROR;
}

static int say_timeout(uint64_t timeout_ms)
{
	if (timeout_ms)
		cli_say("timed out after %g s (see --timeout)", (double)timeout_ms / 1000);
	else
		cli_say("timed out (see --timeout)");
	return CLI_TIMED_OUT;
}

static int say_exit(struct jv execution)
{
	const char *signal = jv_text(jv_get(execution, "signal"));
	int64_t code = CLI_ERROR;

	(void)jv_i64(jv_get(execution, "exitCode"), &code);
	if (is_true(jv_get(execution, "oomKilled")) && code != 0)
		cli_say("killed: out of memory (see --memory of 'holt sandbox create')");
	else if (signal)
		cli_say("killed by signal %d (%s)", (int)(code - CLI_SIGNAL),
			strncmp(signal, "SIG", 3) == 0 ? signal + 3 : signal);
	return (int)(code & 0xff);
}

int ending_say(struct jv execution, uint64_t timeout_ms)
{
	const char *status = jv_text(jv_get(execution, "status"));
	const char *reason = jv_text(jv_get(execution, "reason"));

	if (!status)
		status = "";
	if (strcmp(status, "timeout") == 0)
		return say_timeout(timeout_ms);
	if (strcmp(status, "failed") == 0) {
		cli_say("%s", reason ? reason : "it could not be started");
		return code_of_failure(reason ? reason : "");
	}
	if (strcmp(status, "interrupted") == 0) {
		cli_say("interrupted: %s", reason ? reason : "the sandbox ended");
		return CLI_ERROR;
	}
	return say_exit(execution);
}
