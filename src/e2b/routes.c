#include "e2b/routes.h"

#include "auth/scope.h"
#include "e2b/envd_files.h"
#include "e2b/handlers.h"
#include "e2b/interpreter.h"
#include "e2b/queries.h"
#include "e2b/sandbox_bodies.h"

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
	ROW("POST", "/sandboxes", SCOPE_SANDBOX_WRITE, 0, e2b_sandbox_create, &e2b_body_sandbox,
	    "Makes a sandbox", .rate = ROUTE_RATE_CREATE),
	ROW("POST", "/v2/sandboxes", SCOPE_SANDBOX_WRITE, 0, e2b_sandbox_create,
	    &e2b_body_sandbox_v2, "Makes a sandbox", .rate = ROUTE_RATE_CREATE),
	ROW("GET", "/sandboxes", SCOPE_SANDBOX_READ, 0, e2b_sandbox_list_old, NULL,
	    "Those that run", .query = e2b_query_metadata),
	ROW("GET", "/v2/sandboxes", SCOPE_SANDBOX_READ, 0, e2b_sandbox_list, NULL, "Sandboxes",
	    .query = e2b_query_sandboxes),
	ROW("GET", "/sandboxes/metrics", SCOPE_SANDBOX_READ, 0, e2b_sandboxes_metrics, NULL,
	    "What several took last", .query = e2b_query_metrics_of),
	ROW("GET", "/sandboxes/:id", SCOPE_SANDBOX_READ, 0, e2b_sandbox_get, NULL, "A sandbox"),
	ROW("DELETE", "/sandboxes/:id", SCOPE_SANDBOX_WRITE, 0, e2b_sandbox_delete, NULL,
	    "Ends a sandbox"),
	ROW("POST", "/sandboxes/:id/connect", SCOPE_SANDBOX_WRITE, 0, e2b_sandbox_connect,
	    &e2b_body_connect, "Wakes it, and gives it time"),
	ROW("POST", "/v2/sandboxes/:id/connect", SCOPE_SANDBOX_WRITE, 0, e2b_sandbox_connect,
	    &e2b_body_connect_v2, "Wakes it, and gives it time"),
	ROW("POST", "/sandboxes/:id/resume", SCOPE_SANDBOX_WRITE, 0, e2b_sandbox_resume,
	    &e2b_body_resume, "Wakes it"),
	ROW("POST", "/sandboxes/:id/pause", SCOPE_SANDBOX_WRITE, 0, e2b_sandbox_pause,
	    &e2b_body_pause, "Lets it stand still"),
	ROW("POST", "/sandboxes/:id/timeout", SCOPE_SANDBOX_WRITE, 0, e2b_sandbox_timeout,
	    &e2b_body_timeout, "Sets its time"),
	ROW("POST", "/sandboxes/:id/refreshes", SCOPE_SANDBOX_WRITE, 0, e2b_sandbox_refresh,
	    &e2b_body_refresh, "Gives it time"),
	ROW("PUT", "/sandboxes/:id/network", SCOPE_SANDBOX_WRITE, 0, e2b_sandbox_network, NULL,
	    "Says anew what goes out"),
	ROW("GET", "/sandboxes/:id/metrics", SCOPE_SANDBOX_READ, 0, e2b_sandbox_metrics, NULL,
	    "What it took lately", .query = e2b_query_metrics),
	ROW("GET", "/sandboxes/:id/logs", SCOPE_SANDBOX_READ, 0, e2b_sandbox_logs_old, NULL,
	    "What happened to it", .query = e2b_query_logs_old),
	ROW("GET", "/v2/sandboxes/:id/logs", SCOPE_SANDBOX_READ, 0, e2b_sandbox_logs, NULL,
	    "What happened to it", .query = e2b_query_logs),
	ROW("POST", "/sandboxes/:id/fork", SCOPE_SANDBOX_WRITE, 0, e2b_sandbox_fork, &e2b_body_fork,
	    "Others with the same files", .rate = ROUTE_RATE_CREATE),
	ROW("POST", "/sandboxes/:id/snapshots", SCOPE_TEMPLATE, 0, e2b_snapshot_create,
	    &e2b_body_snapshot, "Keeps its files"),
	ROW("GET", "/snapshots", SCOPE_TEMPLATE, 0, e2b_snapshot_list, NULL, "Snapshots",
	    .query = e2b_query_snapshots),
	ROW("GET", "/volumes", SCOPE_TEMPLATE, 0, e2b_volume_list, NULL, "Volumes"),
	ROW("POST", "/volumes", SCOPE_TEMPLATE, 0, e2b_volume_create, &e2b_body_volume,
	    "Makes a volume"),
	ROW("GET", "/volumes/:vid", SCOPE_TEMPLATE, 0, e2b_volume_get, NULL, "A volume"),
	ROW("DELETE", "/volumes/:vid", SCOPE_TEMPLATE, 0, e2b_volume_delete, NULL,
	    "Removes a volume"),
	ROW("GET", "/teams", SCOPE_SANDBOX_READ, 0, e2b_team_list, NULL, "Whose key it is"),
	ROW("GET", "/secrets", SCOPE_KEY, 0, e2b_missing, NULL, "Not here"),
	ROW("POST", "/secrets", SCOPE_KEY, 0, e2b_missing, NULL, "Not here"),
	ROW("GET", "/secrets/:sid", SCOPE_KEY, 0, e2b_missing, NULL, "Not here"),
	ROW("POST", "/secrets/:sid", SCOPE_KEY, 0, e2b_missing, NULL, "Not here"),
	ROW("DELETE", "/secrets/:sid", SCOPE_KEY, 0, e2b_missing, NULL, "Not here"),
	ROW("GET", "/api-keys", SCOPE_KEY, 0, e2b_missing, NULL, "Not here"),
	ROW("POST", "/api-keys", SCOPE_KEY, 0, e2b_missing, NULL, "Not here"),
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
	ROW("POST", PROCESS "/StreamInput", SCOPE_EXEC, 0, e2b_process_stream_input, NULL,
	    "Writes to a program, again and again"),
	ROW("POST", PROCESS "/CloseStdin", SCOPE_EXEC, 0, e2b_process_close_stdin, NULL,
	    "Ends what it reads"),
	ROW("POST", PROCESS "/SendSignal", SCOPE_EXEC, 0, e2b_process_send_signal, NULL,
	    "Ends a program"),
	ROW("POST", PROCESS "/Update", SCOPE_EXEC, 0, e2b_process_update, NULL,
	    "Changes the size of a terminal"),
	ROW("GET", "/files", SCOPE_FILE_READ, 0, e2b_files_get, NULL, "A file"),
	ROW("POST", "/files", SCOPE_FILE_WRITE, 0, e2b_files_post, NULL, "Writes files"),
	ROW("POST", FILESYSTEM "/Stat", SCOPE_FILE_READ, 0, e2b_stat, NULL, "What a file is",
	    .rate = ROUTE_RATE_READ),
	ROW("POST", FILESYSTEM "/ListDir", SCOPE_FILE_READ, 0, e2b_list_dir, NULL,
	    "What is in a directory", .rate = ROUTE_RATE_READ),
	ROW("POST", FILESYSTEM "/MakeDir", SCOPE_FILE_WRITE, 0, e2b_make_dir, NULL,
	    "Makes a directory"),
	ROW("POST", FILESYSTEM "/Move", SCOPE_FILE_WRITE, 0, e2b_move, NULL, "Moves a file"),
	ROW("POST", FILESYSTEM "/WatchDir", SCOPE_FILE_READ, 0, e2b_watch_dir, NULL,
	    "What happens in a directory", .rate = ROUTE_RATE_READ),
	ROW("POST", FILESYSTEM "/CreateWatcher", SCOPE_FILE_READ, 0, e2b_create_watcher, NULL,
	    "Keeps what happens in a directory"),
	ROW("POST", FILESYSTEM "/GetWatcherEvents", SCOPE_FILE_READ, 0, e2b_get_watcher_events,
	    NULL, "What has happened since", .rate = ROUTE_RATE_READ),
	ROW("POST", FILESYSTEM "/RemoveWatcher", SCOPE_FILE_READ, 0, e2b_remove_watcher, NULL,
	    "Ends a watcher"),
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
	ROW("POST", "/files/compose", SCOPE_FILE_WRITE, 0, e2b_files_compose, &e2b_body_compose,
	    "Makes one file of several"),
	ROW("GET", "/envs", SCOPE_SANDBOX_READ, 0, e2b_envs, NULL, "The sandbox's variables"),
	ROW("GET", "/metrics", SCOPE_SANDBOX_READ, 0, e2b_envd_metrics, NULL,
	    "What the sandbox takes"),
};
const struct api_route_table e2b_code_table = { code, COUNT(code) };
