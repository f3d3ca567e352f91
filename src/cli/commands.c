/* Every command of `holt`, one row each. */
#include "cli/box_args.h"
#include "cli/command.h"

const struct command commands[] = {
	{
		.name = "exec",
		.operands = "-- COMMAND [ARG...]",
		.summary = "Run a command in a new box and remove the box afterwards",
		.details = "The box has no network, no capability, a read-only system and private, "
			   "empty\n"
			   "/tmp, /workspace and home. Unless told otherwise it may use 256 MiB, "
			   "half a core,\n"
			   "64 processes and 30 seconds. Standard input, output and error are the "
			   "command's.\n"
			   "\n"
			   "The exit code is the command's; 124 when it ran out of time, 128+N "
			   "when signal N\n"
			   "killed it (137 when it ran out of memory), 126 and 127 when it cannot "
			   "be started,\n"
			   "125 when Holt itself failed. Ctrl-C ends the box.\n",
		.examples = "holt exec -- echo hello\n"
			    "holt exec --memory 1G --cpu 2 --timeout 5m -- make test\n"
			    "holt exec -t -- bash\n"
			    "tar c src | holt exec -- sh -c 'cd /workspace && tar x && ls'\n",
		.box_opts = box_opts,
		.run = cmd_exec,
	},
	{
		.name = "run-code",
		.operands = "[ARG...]",
		.summary = "Run a piece of Python, JavaScript or shell in a new box",
		.details = "The code is read from the file, or from standard input without one. "
			   "Limits and\n"
			   "exit codes are those of 'holt exec'.\n",
		.examples = "echo 'print(6 * 7)' | holt run-code --lang python\n"
			    "holt run-code --lang node -f app.js one two\n",
		.opts = run_code_opts,
		.box_opts = box_opts,
		.run = cmd_run_code,
	},
	{
		.name = "serve",
		.operands = "",
		.summary = "Run the daemon: sandboxes over HTTP",
		.details =
			"Listens on 127.0.0.1:8765 unless told otherwise; an address that others "
			"reach needs\n"
			"TLS, or --insecure-bind. Started as root, everything but the launcher "
			"runs as an\n"
			"ordinary account. The first start makes an admin key and prints it once. "
			"Sandboxes\n"
			"outlive the daemon: the next start on the same state directory finds them "
			"again.\n"
			"\n"
			"Settings come from holt.yaml, then .env, then HOLT_* variables, then "
			"options, the\n"
			"later ones winning; 'holt config show' says where each one comes from.\n",
		.examples = "holt serve\n"
			    "holt serve --listen 127.0.0.1:9000 --state-dir /srv/holt\n"
			    "holt serve --listen :8765 --tls-cert cert.pem --tls-key key.pem\n",
		.takes_settings = true,
		.run = cmd_serve,
	},
	{
		.name = "config show",
		.operands = "",
		.summary = "Say what every setting is, and where that comes from",
		.opts = config_show_opts,
		.takes_settings = true,
		.run = cmd_config_show,
	},
	{
		.name = "doctor",
		.operands = "",
		.summary = "Check this machine and say how to mend what is missing",
		.details = "Every row is tried for real, not read from a version number. The last "
			   "one builds\n"
			   "a box and runs a program in it; the exit code is 0 when that works.\n",
		.opts = doctor_opts,
		.run = cmd_doctor,
	},
	{
		.name = "bench",
		.operands = "",
		.summary = "Measure boxes, and other sandboxes, on this machine",
		.details = "Each figure is a ratio to a reference that is run in turn with it, so "
			   "that a busy\n"
			   "machine slows both. Times are milliseconds.\n",
		.examples = "holt bench --peers\n"
			    "holt bench --only warm --n 1000\n",
		.opts = bench_opts,
		.run = cmd_bench,
	},
	{
		.name = "version",
		.operands = "",
		.summary = "Say which version this is",
		.opts = version_opts,
		.run = cmd_version,
	},
	{
		.name = "help",
		.operands = "[COMMAND]",
		.summary = "Explain a command, or print the manual page",
		.opts = help_opts,
		.run = cmd_help,
	},
	{ 0 },
};
