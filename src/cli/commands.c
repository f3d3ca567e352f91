/* Every command of `holt`, one row each. */
#include "cli/box_args.h"
#include "cli/client.h"
#include "cli/command.h"

/* A row that needs no more words. */
#define PLAIN(name_, operands_, summary_, opts_, run_)                                    \
	{                                                                                 \
		.name = name_, .operands = operands_, .summary = summary_, .opts = opts_, \
		.mixed = true, .run = run_                                                \
	}

const struct command commands[] = {
	{
		.name = "exec",
		.operands = "[ID] -- COMMAND [ARG...]",
		.summary = "Run a command in a sandbox, or in a new box that is removed afterwards",
		.details =
			"The box has no network, no capability, a read-only system and private, "
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
			"125 when Holt itself failed. Ctrl-C ends the box.\n"
			"\n"
			"With the ID or name of a sandbox before the two dashes the command runs "
			"there, through\n"
			"the daemon. What the sandbox is made of was settled when it was created; "
			"Ctrl-C is passed\n"
			"on to the command, and a second one ends it.\n",
		.examples = "holt exec -- echo hello\n"
			    "holt exec --memory 1G --cpu 2 --timeout 5m -- make test\n"
			    "holt exec -t -- bash\n"
			    "tar c src | holt exec -- sh -c 'cd /workspace && tar x && ls'\n"
			    "holt exec build -- make test\n",
		.opts = exec_opts,
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
		.name = "sandbox create",
		.operands = "",
		.summary = "Make a sandbox, and print its id",
		.details = "It lives until its time is over or it is removed, whatever happens to "
			   "the daemon.\n",
		.examples = "holt sandbox create --template node --timeout 2h\n"
			    "holt sandbox create --timeout 7d --on-timeout stop --auto-resume\n"
			    "id=$(holt sandbox create --name build --get-or-create --memory 1G)\n",
		.opts = sandbox_create_opts,
		.mixed = true,
		.run = cmd_sandbox_create,
	},
	{
		.name = "sandbox ls",
		.operands = "",
		.summary = "List sandboxes",
		.examples = "holt sandbox ls --all --metadata team=red\n"
			    "holt sandbox rm $(holt sandbox ls --quiet --status paused)\n",
		.opts = sandbox_ls_opts,
		.mixed = true,
		.run = cmd_sandbox_ls,
	},
	{
		.name = "sandbox inspect",
		.operands = "ID",
		.summary = "Say everything about a sandbox",
		.opts = client_opts,
		.mixed = true,
		.run = cmd_sandbox_inspect,
	},
	{
		.name = "sandbox rm",
		.operands = "ID...",
		.summary = "End sandboxes and remove what they hold",
		.opts = sandbox_rm_opts,
		.mixed = true,
		.run = cmd_sandbox_rm,
	},
	{
		.name = "sandbox pause",
		.operands = "ID...",
		.summary = "Let sandboxes stand still; their time does too",
		.opts = client_opts,
		.mixed = true,
		.run = cmd_sandbox_pause,
	},
	{
		.name = "sandbox resume",
		.operands = "ID...",
		.summary = "Let paused sandboxes go on",
		.opts = client_opts,
		.mixed = true,
		.run = cmd_sandbox_resume,
	},
	PLAIN("sandbox stop", "ID...", "End the boxes of sandboxes, and keep their files",
	      sandbox_stop_opts, cmd_sandbox_stop),
	PLAIN("sandbox start", "ID...", "Give stopped sandboxes boxes again", client_opts,
	      cmd_sandbox_start),
	{
		.name = "sandbox extend",
		.operands = "ID...",
		.summary = "Let sandboxes live longer: their time begins anew",
		.examples = "holt sandbox extend --timeout 2d build\n",
		.opts = sandbox_extend_opts,
		.mixed = true,
		.run = cmd_sandbox_extend,
	},
	{
		.name = "package install",
		.operands = "ID PACKAGE...",
		.summary = "Install packages in a sandbox, from the registries that the daemon has",
		.details = "While it runs, the sandbox reaches the registry of that manager "
			   "(registry_pip and the like in the daemon's settings), and nothing "
			   "else.\n",
		.examples = "holt package install demo requests==2.32.3 rich\n"
			    "holt package install --manager npm demo left-pad@1.3.0\n",
		.opts = package_install_opts,
		.mixed = true,
		.run = cmd_package_install,
	},
	PLAIN("package ls", "ID", "List what was installed in a sandbox", client_opts,
	      cmd_package_ls),
	{
		.name = "shell",
		.operands = "ID",
		.summary = "Work in a sandbox: a login shell on a terminal of its own",
		.details =
			"The terminal outlives the connection. Typing ~. at the beginning of a "
			"line leaves it\n"
			"running, and so does a connection that breaks; --attach goes on in it.\n",
		.examples = "holt shell build\n"
			    "holt shell --attach 6c1v0k8m3q5x9z2w4t7r build\n",
		.opts = shell_opts,
		.mixed = true,
		.run = cmd_shell,
	},
	{
		.name = "context create",
		.operands = "SANDBOX",
		.summary = "Make an interpreter that keeps its state, and print its id",
		.examples = "holt context create --language python --name calc build\n",
		.opts = context_create_opts,
		.mixed = true,
		.run = cmd_context_create,
	},
	{
		.name = "context ls",
		.operands = "SANDBOX",
		.summary = "List the contexts of a sandbox",
		.opts = client_opts,
		.mixed = true,
		.run = cmd_context_ls,
	},
	{
		.name = "context run",
		.operands = "SANDBOX CONTEXT [CODE]",
		.summary = "Run code in a context",
		.details =
			"Without CODE it is read from the file, or from standard input. Output and "
			"values go to\n"
			"standard output, an error's traceback to standard error. The exit code is "
			"0, a shell\n"
			"command's own, 1 after an error, 124 when it ran out of time.\n",
		.examples = "holt context run build calc 'x = 20; x + 1'\n",
		.opts = context_run_opts,
		.mixed = true,
		.run = cmd_context_run,
	},
	{
		.name = "context rm",
		.operands = "SANDBOX CONTEXT...",
		.summary = "End contexts and all that runs in them",
		.opts = client_opts,
		.mixed = true,
		.run = cmd_context_rm,
	},
	{
		.name = "repl",
		.operands = "[SANDBOX]",
		.summary = "Type code and see what it gives, in a context that ends with it",
		.details = "Without a sandbox one is made, and removed at the end of the input. "
			   "Ctrl-C "
			   "interrupts what runs, whose state is kept.\n",
		.examples = "holt repl --language javascript\n"
			    "holt repl build < cells.py\n",
		.opts = repl_opts,
		.mixed = true,
		.run = cmd_repl,
	},
	{
		.name = "cp",
		.operands = "SRC DST",
		.summary = "Copy a file or a directory into a sandbox, or out of it",
		.details =
			"One side is ID:/path, the other a path of this machine, or - for "
			"standard input and\n"
			"output (a directory is then a tar stream). Into a directory that is there "
			"goes the\n"
			"source under its own name; a source that ends with /. stands for what is "
			"in it. Modes\n"
			"are kept. What comes out of a sandbox never lands outside of DST, and "
			"links that point\n"
			"out of it are left out.\n",
		.examples = "holt cp src build:/workspace\n"
			    "holt cp build:/workspace/out.csv .\n"
			    "holt cp build:/workspace - | tar t\n",
		.opts = client_opts,
		.mixed = true,
		.run = cmd_cp,
	},
	{
		.name = "find",
		.operands = "SANDBOX [PATH]",
		.summary = "Find files in a sandbox by name, type and depth",
		.examples = "holt find SANDBOX --name '*.py' --exclude node_modules\n",
		.opts = find_opts,
		.mixed = true,
		.run = cmd_find,
	},
	{
		.name = "grep",
		.operands = "SANDBOX PATTERN [PATH]",
		.summary = "Find lines in a sandbox's files",
		.details = "Plain text unless -E says otherwise. Ends with 1 when nothing matches.",
		.examples = "holt grep SANDBOX TODO /workspace/src -C 2\n"
			    "holt grep -E -i SANDBOX 'def (get|set)_' --name '*.py'\n",
		.opts = grep_opts,
		.mixed = true,
		.run = cmd_grep,
	},
	{
		.name = "skills ls",
		.operands = "",
		.summary = "List the skills that agents are given",
		.details = "Folders that were left out are named behind the list, with the reason, "
			   "for admins.\n",
		.opts = client_opts,
		.mixed = true,
		.run = cmd_skills_ls,
	},
	PLAIN("skills show", "NAME", "Print a skill's instructions", client_opts, cmd_skills_show),
	{
		.name = "skills check",
		.operands = "DIR...",
		.summary = "Say whether folders are good skills",
		.details =
			"Needs no daemon. A skill is a folder with a SKILL.md whose head has its "
			"name, which\n"
			"is the folder's, and a description. The exit code is 1 when one is not "
			"good.\n",
		.examples = "holt skills check ./skills/pdf-tools\n",
		.run = cmd_skills_check,
	},
	{
		.name = "profile show",
		.operands = "[NAME]",
		.summary = "Show what security profiles set",
		.opts = client_opts,
		.mixed = true,
		.run = cmd_profile_show,
	},
	{
		.name = "logs",
		.operands = "ID [EXECUTION]",
		.summary = "Show what an execution wrote; the newest when none is named",
		.details = "Standard output and standard error go where ours go. With --json each "
			   "piece is a line.\n",
		.opts = logs_opts,
		.mixed = true,
		.run = cmd_logs,
	},
	{
		.name = "top",
		.operands = "",
		.summary = "Watch the live sandboxes: processor, memory, processes",
		.details = "CPU% is of one core, since the look before. What a sandbox has "
			   "written is part of its\n"
			   "memory; DISK MAX says how much of it that may be. Without a terminal, "
			   "with --once or\n"
			   "--json it prints one look (of two, a second apart) and ends.\n"
			   "\n"
			   "Keys: q ends it; c, m and n sort by processor, memory and name.\n",
		.examples = "holt top\n"
			    "holt top --once --sort memory\n",
		.opts = top_opts,
		.mixed = true,
		.run = cmd_top,
	},
	{
		.name = "ps",
		.operands = "ID",
		.summary = "List a sandbox's executions, the newest first",
		.opts = client_opts,
		.mixed = true,
		.run = cmd_ps,
	},
	{
		.name = "kill",
		.operands = "ID EXECUTION",
		.summary = "End an execution, or send it a signal",
		.opts = kill_opts,
		.mixed = true,
		.run = cmd_kill,
	},
	{
		.name = "wait",
		.operands = "ID EXECUTION",
		.summary = "Wait for an execution's end; the exit code is its own",
		.opts = client_opts,
		.mixed = true,
		.run = cmd_wait,
	},
	{
		.name = "events",
		.operands = "",
		.summary = "Show what happened; with -f what happens",
		.examples = "holt events -f --kind 'sandbox.*'\n",
		.opts = events_opts,
		.mixed = true,
		.run = cmd_events,
	},
	{
		.name = "usage",
		.operands = "",
		.summary = "Show what was used, by day and user",
		.opts = usage_opts,
		.mixed = true,
		.run = cmd_usage,
	},
	{
		.name = "audit verify",
		.operands = "[FILE]",
		.summary = "Check that the audit log is as it was written",
		.details =
			"Of the daemon, or of a file that holt audit export made. Names the first "
			"line that is\nnot as it was, and fails.\n",
		.opts = audit_verify_opts,
		.mixed = true,
		.run = cmd_audit_verify,
	},
	{
		.name = "audit export",
		.operands = "",
		.summary = "Write the audit log to standard output, a line of JSON each",
		.opts = client_opts,
		.mixed = true,
		.run = cmd_audit_export,
	},
	{
		.name = "port expose",
		.operands = "ID PORT",
		.summary = "Let others reach a port of a sandbox; prints its address and token",
		.examples = "holt port expose web 3000\n"
			    "holt port expose web 8080 --public --wake\n",
		.opts = port_expose_opts,
		.mixed = true,
		.run = cmd_port_expose,
	},
	{
		.name = "port forward",
		.operands = "SANDBOX [LOCAL:]PORT...",
		.summary = "Reach ports of a sandbox as ports of this machine",
		.details =
			"Listens on 127.0.0.1 and carries each connection to the port inside, "
			"whatever it speaks, until Ctrl-C. LOCAL 0 takes any that is free.\n\n"
			"The port must be exposed. Whoever reaches the local one needs no key.\n",
		.examples = "holt port forward web 3000\n"
			    "holt port forward db --expose 16379:6379\n",
		.opts = port_forward_opts,
		.mixed = true,
		.run = cmd_port_forward,
	},
	{
		.name = "port ls",
		.operands = "ID",
		.summary = "List the ports of a sandbox that are exposed, and those that listen",
		.opts = client_opts,
		.mixed = true,
		.run = cmd_port_ls,
	},
	{
		.name = "port rm",
		.operands = "ID PORT",
		.summary = "Close a port; connections to it end",
		.opts = client_opts,
		.mixed = true,
		.run = cmd_port_rm,
	},
	{
		.name = "key create",
		.operands = "",
		.summary = "Make an API key, and print it this one time",
		.examples = "holt key create --name ci --role user --expires 30d\n"
			    "holt key create --admin --state-dir /var/lib/holt\n",
		.opts = key_create_opts,
		.mixed = true,
		.run = cmd_key_create,
	},
	{
		.name = "key ls",
		.operands = "",
		.summary = "List API keys, without the keys themselves",
		.opts = client_opts,
		.mixed = true,
		.run = cmd_key_ls,
	},
	{
		.name = "key revoke",
		.operands = "ID...",
		.summary = "Refuse API keys from now on",
		.opts = client_opts,
		.mixed = true,
		.run = cmd_key_revoke,
	},
	{
		.name = "user create",
		.operands = "NAME",
		.summary = "Make a user: a name that owns keys, with a role and limits",
		.examples = "holt user create ann --sandboxes 10 --memory 4G --executions 10000\n"
			    "holt key create --name laptop --owner ann\n",
		.opts = user_create_opts,
		.mixed = true,
		.run = cmd_user_create,
	},
	{
		.name = "user ls",
		.operands = "",
		.summary = "List users with what they have and what they may have",
		.opts = client_opts,
		.run = cmd_user_ls,
	},
	{
		.name = "user inspect",
		.operands = "[NAME]",
		.summary = "Show a user; without a name, who the key says you are",
		.opts = client_opts,
		.mixed = true,
		.run = cmd_user_inspect,
	},
	{
		.name = "user set",
		.operands = "NAME",
		.summary = "Change a user's role or limits, shut them out or let them in",
		.examples = "holt user set ann --disable\n"
			    "holt user set ann --reset-limits --rate-exec 600/m\n",
		.opts = user_set_opts,
		.mixed = true,
		.run = cmd_user_set,
	},
	{
		.name = "user rm",
		.operands = "NAME...",
		.summary = "End users, with their keys and sandboxes",
		.opts = client_opts,
		.mixed = true,
		.run = cmd_user_rm,
	},
	{
		.name = "session create",
		.operands = "[ID]",
		.summary = "Make a session of an agent, and print its id",
		.details = "A session has one sandbox of its own, made when it is first asked for "
			   "with 'holt session sandbox', and ended with it.\n",
		.examples = "holt session create chat-1 --agent helper\n"
			    "holt session sandbox chat-1\n",
		.opts = session_create_opts,
		.mixed = true,
		.run = cmd_session_create,
	},
	PLAIN("session ls", "", "List sessions of agents", session_ls_opts, cmd_session_ls),
	PLAIN("session show", "ID", "Show a session", client_opts, cmd_session_show),
	PLAIN("session sandbox", "ID", "Make or find a session's sandbox, and say how to reach it",
	      session_sandbox_opts, cmd_session_sandbox),
	PLAIN("session rm", "ID...", "End sessions, with their sandboxes", client_opts,
	      cmd_session_rm),
	PLAIN("snapshot create", "ID", "Keep what a sandbox has written, and print its id",
	      snapshot_create_opts, cmd_snapshot_create),
	PLAIN("snapshot ls", "", "List snapshots", client_opts, cmd_snapshot_ls),
	PLAIN("snapshot rm", "ID...", "Forget snapshots", client_opts, cmd_snapshot_rm),
	PLAIN("fork", "ID", "Make sandboxes with the same files, and print their ids", fork_opts,
	      cmd_fork),
	PLAIN("template create", "NAME", "Make a version of a template, and print it",
	      template_create_opts, cmd_template_create),
	{
		.name = "template build",
		.operands = "[FILE]",
		.summary = "Build a template by the steps of a YAML file, and print it",
		.details =
			"The file (holt-template.yaml) says what the API takes: name, from, env, "
			"packages, steps and the rest. A step is one of RUN, COPY, ENV, WORKDIR, "
			"USER, PIP and NPM. What was done before, on top of the same, is not done "
			"again.\n"
			"\n"
			"COPY takes what lies below the context, as [FROM, TO]. FILE - is standard "
			"input.\n",
		.examples = "holt template build app/holt-template.yaml\n"
			    "holt template build -q --context . app.yaml\n",
		.opts = template_build_opts,
		.mixed = true,
		.run = cmd_template_build,
	},
	PLAIN("build ls", "", "List builds of templates", client_opts, cmd_build_ls),
	PLAIN("build show", "ID", "Show a build, with its steps' output", client_opts,
	      cmd_build_show),
	PLAIN("build cancel", "ID...", "Cancel builds, or forget those that are over", client_opts,
	      cmd_build_cancel),
	PLAIN("build prune", "", "Forget what steps of builds have made", client_opts,
	      cmd_build_prune),
	PLAIN("template ls", "", "List your templates", client_opts, cmd_template_ls),
	PLAIN("template show", "NAME", "Show a template", client_opts, cmd_template_show),
	PLAIN("template alias", "NAME ALIAS VERSION", "Let NAME:ALIAS stand for a version",
	      client_opts, cmd_template_alias),
	PLAIN("template aliases", "NAME", "List the aliases of a template", client_opts,
	      cmd_template_aliases),
	PLAIN("template unalias", "NAME ALIAS", "Remove an alias", client_opts,
	      cmd_template_unalias),
	PLAIN("template rm", "NAME...", "Remove versions of templates", client_opts,
	      cmd_template_rm),
	PLAIN("volume create", "NAME", "Make a volume, and print its id", volume_create_opts,
	      cmd_volume_create),
	PLAIN("volume ls", "", "List volumes", client_opts, cmd_volume_ls),
	PLAIN("volume rm", "ID...", "Remove volumes and what they hold", client_opts,
	      cmd_volume_rm),
	{
		.name = "webhook create",
		.operands = "NAME URL",
		.summary = "Have events sent to a server; print the id and the secret",
		.details = "Each message is signed with the secret, which is shown this one time: "
			   "docs/operating.md\n"
			   "says how a receiver checks it.\n",
		.examples = "holt webhook create ends https://example.com/hook -e 'execution.*'\n",
		.opts = webhook_create_opts,
		.mixed = true,
		.run = cmd_webhook_create,
	},
	PLAIN("webhook set", "ID", "Change a webhook, or its secret", webhook_set_opts,
	      cmd_webhook_set),
	PLAIN("webhook ls", "", "List webhooks", client_opts, cmd_webhook_ls),
	PLAIN("webhook show", "ID", "Show a webhook, and how it does", client_opts,
	      cmd_webhook_show),
	PLAIN("webhook test", "ID", "Send a ping, and say what came back", client_opts,
	      cmd_webhook_test),
	PLAIN("webhook deliveries", "ID", "Show what became of the last events", client_opts,
	      cmd_webhook_deliveries),
	PLAIN("webhook rm", "ID...", "Remove webhooks", client_opts, cmd_webhook_rm),
	PLAIN("tools servers", "", "List the MCP servers whose tools are offered", client_opts,
	      cmd_tools_servers),
	PLAIN("tools ls", "", "List the tools of MCP servers", tools_ls_opts, cmd_tools_ls),
	PLAIN("tools search", "WORD...", "Find tools by words, the best first", tools_ls_opts,
	      cmd_tools_search),
	PLAIN("tools show", "SERVER TOOL", "Show a tool, and what it takes", client_opts,
	      cmd_tools_show),
	{
		.name = "tools call",
		.operands = "SERVER TOOL [JSON|-]",
		.summary = "Call a tool, and print what it answers",
		.details = "What the operator wants to be asked about waits for 'holt approvals "
			   "allow'. A tool that\n"
			   "fails says why on standard error, and the command ends with an "
			   "error.\n",
		.examples = "holt tools call files read_file '{\"path\": \"/srv/a.txt\"}'\n",
		.opts = tools_call_opts,
		.mixed = true,
		.run = cmd_tools_call,
	},
	PLAIN("approvals ls", "", "List what waits for an approval", client_opts, cmd_approvals_ls),
	PLAIN("approvals allow", "ID...", "Say yes", approvals_allow_opts, cmd_approvals_allow),
	PLAIN("approvals deny", "ID...", "Say no", client_opts, cmd_approvals_deny),
	PLAIN("pool create", "NAME", "Keep finished boxes of a template", pool_create_opts,
	      cmd_pool_create),
	PLAIN("pool set", "NAME", "Change a warm pool", pool_set_opts, cmd_pool_set),
	PLAIN("pool ls", "", "List the warm pools", client_opts, cmd_pool_ls),
	PLAIN("pool rm", "NAME...", "Keep no more than is usual", client_opts, cmd_pool_rm),
	PLAIN("pool status", "NAME", "Say how a warm pool does", client_opts, cmd_pool_status),
	{
		.name = "pool",
		.operands = "",
		.summary = "Show the finished boxes that wait to be sandboxes",
		.opts = client_opts,
		.mixed = true,
		.run = cmd_pool,
	},
	{
		.name = "mcp login",
		.operands = "SERVER",
		.summary = "Log in at a configured MCP server, for the daemon",
		.details =
			"Prints an address to open in a browser on this machine, and waits until "
			"the browser is\n"
			"back. The daemon keeps what it gets and uses it for all who call the "
			"server's tools; no\n"
			"token is shown. For admins.\n",
		.examples = "holt mcp login tracker\n",
		.opts = mcp_login_opts,
		.mixed = true,
		.run = cmd_mcp_login,
	},
	PLAIN("mcp logout", "SERVER", "Make the daemon forget what a login got", client_opts,
	      cmd_mcp_logout),
	{
		.name = "mcp tools", /* before "mcp", which would be found first */
		.operands = "",
		.summary = "Print the tools that clients of MCP are offered, as JSON",
		.details = "",
		.opts = mcp_tools_opts,
		.run = cmd_mcp_tools,
	},
	{
		.name = "mcp",
		.operands = "",
		.summary = "Serve MCP on standard input and output",
		.details =
			"For clients that start their servers themselves: one JSON-RPC message a "
			"line. The\n"
			"messages go to the daemon as they are, in whichever revision of the "
			"protocol the client\n"
			"speaks. Without a daemon on this machine one is started with the standard "
			"settings; it\n"
			"ends with this command, and its sandboxes with it.\n"
			"\n"
			"Nothing but messages goes to standard output. The end of standard input "
			"ends it, once\n"
			"all requests have their answers.\n",
		.examples = "holt mcp\n"
			    "holt mcp --sandbox build --no-start\n",
		.opts = mcp_opts,
		.run = cmd_mcp,
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
		.name = "openapi",
		.operands = "",
		.summary = "Print the HTTP API's contract, as OpenAPI 3.1",
		.details = "It is made from the same tables that the daemon answers by, needs no "
			   "daemon, and is\n"
			   "what GET /api/v1/openapi.json gives.\n",
		.run = cmd_openapi,
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
