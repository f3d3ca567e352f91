#include "e2b/routes.h"

#include "auth/scope.h"
#include "e2b/handlers.h"
#include "e2b/interpreter.h"

/* A row is a line or two: what is asked for, who may, who answers. */
#define ROW(method, pattern, scope, flags, handle_, ...)                                   \
	{                                                                                  \
		.route = { method, pattern, scope, flags }, .handle = handle_, __VA_ARGS__ \
	}
#define FILESYSTEM "/filesystem.Filesystem"
#define PROCESS "/process.Process"
#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static const struct api_route control[] = {
	ROW("GET", "/health", SCOPE_NONE, ROUTE_PUBLIC, e2b_health, NULL, "Whether we are there"),
};
const struct api_route_table e2b_control_table = { control, COUNT(control) };

static const struct api_route envd[] = {
	ROW("GET", "/health", SCOPE_NONE, ROUTE_PUBLIC, e2b_envd_health, NULL,
	    "Whether the sandbox is there"),
	ROW("POST", PROCESS "/Start", SCOPE_EXEC, 0, e2b_process_start, NULL,
	    "Runs a program, and follows it", .rate = ROUTE_RATE_EXEC),
	ROW("POST", PROCESS "/Connect", SCOPE_EXEC, 0, e2b_process_connect, NULL,
	    "Follows one that runs, or did", .rate = ROUTE_RATE_READ),
	ROW("POST", PROCESS "/List", SCOPE_EXEC, 0, e2b_process_list, NULL, "Those that run",
	    .rate = ROUTE_RATE_READ),
	ROW("POST", PROCESS "/SendInput", SCOPE_EXEC, 0, e2b_process_send_input, NULL,
	    "Writes to a program"),
	ROW("POST", PROCESS "/CloseStdin", SCOPE_EXEC, 0, e2b_process_close_stdin, NULL,
	    "Ends what it reads"),
	ROW("POST", PROCESS "/SendSignal", SCOPE_EXEC, 0, e2b_process_send_signal, NULL,
	    "Ends a program"),
	ROW("POST", PROCESS "/Update", SCOPE_EXEC, 0, e2b_process_update, NULL,
	    "Changes the size of a terminal"),
	ROW("POST", FILESYSTEM "/Stat", SCOPE_FILE_READ, 0, e2b_stat, NULL, "What a file is",
	    .rate = ROUTE_RATE_READ),
	ROW("POST", FILESYSTEM "/ListDir", SCOPE_FILE_READ, 0, e2b_list_dir, NULL,
	    "What is in a directory", .rate = ROUTE_RATE_READ),
	ROW("POST", FILESYSTEM "/MakeDir", SCOPE_FILE_WRITE, 0, e2b_make_dir, NULL,
	    "Makes a directory"),
	ROW("POST", FILESYSTEM "/Move", SCOPE_FILE_WRITE, 0, e2b_move, NULL, "Moves a file"),
	ROW("POST", FILESYSTEM "/Remove", SCOPE_FILE_WRITE, 0, e2b_remove, NULL,
	    "Removes a file or a tree"),
};
const struct api_route_table e2b_envd_table = { envd, COUNT(envd) };

static const struct api_route code[] = {
	ROW("GET", "/health", SCOPE_NONE, ROUTE_PUBLIC, e2b_code_health, NULL,
	    "Whether the sandbox is there"),
	ROW("POST", "/execute", SCOPE_EXEC, 0, e2b_execute, &e2b_body_execute,
	    "Runs code in a context", .rate = ROUTE_RATE_EXEC),
	ROW("POST", "/contexts", SCOPE_EXEC, 0, e2b_context_create, &e2b_body_context,
	    "Makes a context"),
	ROW("GET", "/contexts", SCOPE_EXEC, 0, e2b_context_list, NULL, "Contexts"),
	ROW("DELETE", "/contexts/:cid", SCOPE_EXEC, 0, e2b_context_delete, NULL, "Ends a context"),
	ROW("POST", "/contexts/:cid/restart", SCOPE_EXEC, 0, e2b_context_restart, NULL,
	    "Begins a context anew"),
};
const struct api_route_table e2b_code_table = { code, COUNT(code) };
