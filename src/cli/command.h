/* The commands of `holt`, as one table. Dispatch, help, completion and the manual page read it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "cli/options.h"

/* Exit codes of our own; anything else is the command's. */
enum {
	CLI_OK = 0,
	CLI_FAILED = 1,  /* doctor, bench: the answer is no */
	CLI_USAGE = 125, /* bad input, and every other failure that is Holt's */
	CLI_ERROR = 125,
	CLI_TIMED_OUT = 124,
	CLI_NOT_EXECUTABLE = 126,
	CLI_NOT_FOUND = 127,
	CLI_SIGNAL = 128, /* + the signal's number */
};

struct command {
	const char *name;           /* one word, or two: "sandbox create" */
	const char *operands;       /* "-- COMMAND [ARG...]", or "" */
	const char *summary;        /* one line, no full stop */
	const char *details;        /* paragraphs for --help and the manual */
	const char *examples;       /* lines of shell, or NULL */
	const struct opt *opts;     /* NULL: none */
	const struct opt *box_opts; /* the rows that commands with a box share, or NULL */
	bool takes_settings;        /* its struct begins with a struct opt_settings */
	bool mixed;                 /* options may stand behind operands too */
	int (*run)(const struct command *cmd, int argc, char **argv);
};

extern const struct command commands[]; /* ends with a NULL name */

/* The i-th option of the command, of all its tables; false behind the last. */
bool cli_option(const struct command *cmd, size_t i, struct opt *ret);

/* main() without the process around it: returns the exit code. */
int cli_main(int argc, char **argv);
/* Parses argv for cmd into *args. The first operand's index (at least 1); otherwise everything was
 * said already and the negated exit code is returned: 0 after --help. */
int cli_parse(const struct command *cmd, int argc, char **argv, void *args);
/* Whether argv[n..] are min to max operands, none of them empty; says so when not. */
bool cli_takes(const struct command *cmd, int argc, char **argv, int n, int min, int max);

/* One line "holt: ..." on stderr; control characters are escaped. */
void cli_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void cli_hint(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Says the error; returns CLI_ERROR. */
struct err;
int cli_fail(const struct err *err);

/* The command that the words name, and how many of them; NULL when there is none. */
const struct command *cli_find(int argc, char **argv, int *ret_words);
int cli_unknown(int argc, char **argv); /* says so, with the nearest; returns CLI_USAGE */

/* Texts made from the table. */
void help_overview(FILE *to);
void help_group(const char *word, FILE *to); /* the commands whose first word that is */
void help_command(const struct command *cmd, FILE *to);
void help_man(FILE *to);
void help_completion(const char *shell, FILE *to);

/* The commands' own entry points. */
int cmd_exec(const struct command *cmd, int argc, char **argv);
int cmd_run_code(const struct command *cmd, int argc, char **argv);
int cmd_doctor(const struct command *cmd, int argc, char **argv);
int cmd_bench(const struct command *cmd, int argc, char **argv);
int cmd_sandbox_create(const struct command *cmd, int argc, char **argv);
int cmd_sandbox_ls(const struct command *cmd, int argc, char **argv);
int cmd_sandbox_inspect(const struct command *cmd, int argc, char **argv);
int cmd_sandbox_rm(const struct command *cmd, int argc, char **argv);
int cmd_sandbox_pause(const struct command *cmd, int argc, char **argv);
int cmd_sandbox_resume(const struct command *cmd, int argc, char **argv);
int cmd_shell(const struct command *cmd, int argc, char **argv);
int cmd_context_create(const struct command *cmd, int argc, char **argv);
int cmd_context_ls(const struct command *cmd, int argc, char **argv);
int cmd_context_run(const struct command *cmd, int argc, char **argv);
int cmd_context_rm(const struct command *cmd, int argc, char **argv);
int cmd_repl(const struct command *cmd, int argc, char **argv);
int cmd_cp(const struct command *cmd, int argc, char **argv);
int cmd_find(const struct command *cmd, int argc, char **argv);
int cmd_grep(const struct command *cmd, int argc, char **argv);
int cmd_skills_ls(const struct command *cmd, int argc, char **argv);
int cmd_skills_show(const struct command *cmd, int argc, char **argv);
int cmd_skills_check(const struct command *cmd, int argc, char **argv);
int cmd_profile_show(const struct command *cmd, int argc, char **argv);
int cmd_logs(const struct command *cmd, int argc, char **argv);
int cmd_top(const struct command *cmd, int argc, char **argv);
int cmd_ps(const struct command *cmd, int argc, char **argv);
int cmd_kill(const struct command *cmd, int argc, char **argv);
int cmd_wait(const struct command *cmd, int argc, char **argv);
int cmd_events(const struct command *cmd, int argc, char **argv);
int cmd_usage(const struct command *cmd, int argc, char **argv);
int cmd_audit_verify(const struct command *cmd, int argc, char **argv);
int cmd_audit_export(const struct command *cmd, int argc, char **argv);
int cmd_port_expose(const struct command *cmd, int argc, char **argv);
int cmd_port_forward(const struct command *cmd, int argc, char **argv);
int cmd_port_ls(const struct command *cmd, int argc, char **argv);
int cmd_port_rm(const struct command *cmd, int argc, char **argv);
int cmd_key_create(const struct command *cmd, int argc, char **argv);
int cmd_key_ls(const struct command *cmd, int argc, char **argv);
int cmd_key_revoke(const struct command *cmd, int argc, char **argv);
int cmd_user_create(const struct command *cmd, int argc, char **argv);
int cmd_user_ls(const struct command *cmd, int argc, char **argv);
int cmd_user_inspect(const struct command *cmd, int argc, char **argv);
int cmd_user_set(const struct command *cmd, int argc, char **argv);
int cmd_user_rm(const struct command *cmd, int argc, char **argv);
int cmd_sandbox_stop(const struct command *cmd, int argc, char **argv);
int cmd_sandbox_start(const struct command *cmd, int argc, char **argv);
int cmd_sandbox_extend(const struct command *cmd, int argc, char **argv);
int cmd_package_install(const struct command *cmd, int argc, char **argv);
int cmd_package_ls(const struct command *cmd, int argc, char **argv);
int cmd_snapshot_create(const struct command *cmd, int argc, char **argv);
int cmd_snapshot_ls(const struct command *cmd, int argc, char **argv);
int cmd_snapshot_rm(const struct command *cmd, int argc, char **argv);
int cmd_fork(const struct command *cmd, int argc, char **argv);
int cmd_template_create(const struct command *cmd, int argc, char **argv);
int cmd_template_build(const struct command *cmd, int argc, char **argv);
int cmd_build_ls(const struct command *cmd, int argc, char **argv);
int cmd_build_show(const struct command *cmd, int argc, char **argv);
int cmd_build_cancel(const struct command *cmd, int argc, char **argv);
int cmd_build_prune(const struct command *cmd, int argc, char **argv);
int cmd_template_ls(const struct command *cmd, int argc, char **argv);
int cmd_template_rm(const struct command *cmd, int argc, char **argv);
int cmd_template_show(const struct command *cmd, int argc, char **argv);
int cmd_template_alias(const struct command *cmd, int argc, char **argv);
int cmd_template_aliases(const struct command *cmd, int argc, char **argv);
int cmd_template_unalias(const struct command *cmd, int argc, char **argv);
int cmd_volume_create(const struct command *cmd, int argc, char **argv);
int cmd_volume_ls(const struct command *cmd, int argc, char **argv);
int cmd_volume_rm(const struct command *cmd, int argc, char **argv);
int cmd_webhook_create(const struct command *cmd, int argc, char **argv);
int cmd_webhook_set(const struct command *cmd, int argc, char **argv);
int cmd_webhook_ls(const struct command *cmd, int argc, char **argv);
int cmd_webhook_show(const struct command *cmd, int argc, char **argv);
int cmd_webhook_test(const struct command *cmd, int argc, char **argv);
int cmd_webhook_deliveries(const struct command *cmd, int argc, char **argv);
int cmd_webhook_rm(const struct command *cmd, int argc, char **argv);
int cmd_mcp_tools(const struct command *cmd, int argc, char **argv);
int cmd_session_create(const struct command *cmd, int argc, char **argv);
int cmd_session_ls(const struct command *cmd, int argc, char **argv);
int cmd_session_show(const struct command *cmd, int argc, char **argv);
int cmd_session_sandbox(const struct command *cmd, int argc, char **argv);
int cmd_session_rm(const struct command *cmd, int argc, char **argv);
int cmd_tools_servers(const struct command *cmd, int argc, char **argv);
int cmd_tools_ls(const struct command *cmd, int argc, char **argv);
int cmd_tools_search(const struct command *cmd, int argc, char **argv);
int cmd_tools_show(const struct command *cmd, int argc, char **argv);
int cmd_tools_call(const struct command *cmd, int argc, char **argv);
int cmd_approvals_ls(const struct command *cmd, int argc, char **argv);
int cmd_approvals_allow(const struct command *cmd, int argc, char **argv);
int cmd_approvals_deny(const struct command *cmd, int argc, char **argv);
int cmd_pool_create(const struct command *cmd, int argc, char **argv);
int cmd_pool_set(const struct command *cmd, int argc, char **argv);
int cmd_pool_ls(const struct command *cmd, int argc, char **argv);
int cmd_pool_rm(const struct command *cmd, int argc, char **argv);
int cmd_pool_status(const struct command *cmd, int argc, char **argv);
int cmd_pool(const struct command *cmd, int argc, char **argv);
int cmd_mcp(const struct command *cmd, int argc, char **argv);
int cmd_mcp_login(const struct command *cmd, int argc, char **argv);
int cmd_mcp_logout(const struct command *cmd, int argc, char **argv);
extern const struct opt mcp_login_opts[];
int cmd_serve(const struct command *cmd, int argc, char **argv);
int cmd_config_show(const struct command *cmd, int argc, char **argv);
int cmd_openapi(const struct command *cmd, int argc, char **argv);
int cmd_version(const struct command *cmd, int argc, char **argv);
int cmd_help(const struct command *cmd, int argc, char **argv);
extern const struct opt context_create_opts[], context_run_opts[], repl_opts[];
extern const struct opt mcp_opts[];
extern const struct opt tools_ls_opts[], tools_call_opts[], approvals_allow_opts[];
extern const struct opt port_expose_opts[];
extern const struct opt port_forward_opts[];
extern const struct opt mcp_tools_opts[], session_create_opts[], session_ls_opts[],
	session_sandbox_opts[];
extern const struct opt template_build_opts[], template_create_opts[], snapshot_create_opts[],
	fork_opts[], volume_create_opts[], webhook_create_opts[], webhook_set_opts[],
	pool_create_opts[], pool_set_opts[];
extern const struct opt exec_opts[], run_code_opts[], sandbox_create_opts[], sandbox_ls_opts[],
	sandbox_rm_opts[], sandbox_stop_opts[], sandbox_extend_opts[], package_install_opts[],
	shell_opts[], find_opts[], grep_opts[], logs_opts[], top_opts[], kill_opts[],
	key_create_opts[], events_opts[], usage_opts[], audit_verify_opts[], user_create_opts[],
	user_set_opts[], user_create_opts[], user_set_opts[], config_show_opts[], doctor_opts[],
	bench_opts[], version_opts[], help_opts[];
