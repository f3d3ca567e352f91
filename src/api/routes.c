#include "api/routes.h"

#include "api/bodies.h"
#include "api/handlers.h"
#include "auth/scope.h"

#define V1 "/api/v1"
#define BOX V1 "/sandboxes/:id"
#define EXEC BOX "/executions/:eid"

/* A row is a line or two: what is asked for, who may, who answers with what. */
#define ROW(method, pattern, scope, flags, handle, ...)                \
	{                                                              \
		{ method, pattern, scope, flags }, handle, __VA_ARGS__ \
	}

static const struct api_route routes[] = {
	ROW("GET", "/healthz", SCOPE_NONE, ROUTE_PUBLIC, api_healthz, NULL, "Alive", "Health"),
	ROW("GET", "/readyz", SCOPE_NONE, ROUTE_PUBLIC, api_readyz, NULL, "Ready to work", "Ready"),
	ROW("GET", "/health", SCOPE_NONE, ROUTE_PUBLIC, api_health, NULL,
	    "Ready to work, and which version", "Ready"),
	ROW("GET", "/metrics", SCOPE_METRICS, ROUTE_METRICS, api_metrics, NULL,
	    "Prometheus metrics", NULL),
	ROW("POST", V1 "/sandboxes", SCOPE_SANDBOX_WRITE, 0, api_sandbox_create, &body_sandbox,
	    "Make a sandbox", "Sandbox"),
	ROW("GET", V1 "/sandboxes", SCOPE_SANDBOX_READ, 0, api_sandbox_list, NULL, "List sandboxes",
	    "SandboxList"),
	ROW("GET", BOX, SCOPE_SANDBOX_READ, 0, api_sandbox_get, NULL, "One sandbox", "Sandbox"),
	ROW("GET", BOX "/status", SCOPE_SANDBOX_READ, 0, api_sandbox_status, NULL,
	    "One sandbox's state", "SandboxStatus"),
	ROW("PATCH", BOX, SCOPE_SANDBOX_WRITE, 0, api_sandbox_patch, &body_patch,
	    "Change a sandbox's time to live or metadata", "Sandbox"),
	ROW("DELETE", BOX, SCOPE_SANDBOX_WRITE, 0, api_sandbox_delete, NULL, "End a sandbox", NULL),
	ROW("POST", BOX "/pause", SCOPE_SANDBOX_WRITE, 0, api_sandbox_pause, NULL,
	    "Freeze a sandbox", "Sandbox"),
	ROW("POST", BOX "/resume", SCOPE_SANDBOX_WRITE, 0, api_sandbox_resume, NULL,
	    "Let a frozen sandbox go on", "Sandbox"),
	ROW("POST", BOX "/execute", SCOPE_EXEC, 0, api_exec_start, &body_execute,
	    "Run code or a command", "Execution"),
	ROW("POST", BOX "/executions", SCOPE_EXEC, 0, api_exec_start, &body_execution,
	    "Start an execution", "Execution"),
	ROW("GET", BOX "/executions", SCOPE_SANDBOX_READ, 0, api_exec_list, NULL, "List executions",
	    "ExecutionList"),
	ROW("GET", EXEC, SCOPE_SANDBOX_READ, 0, api_exec_get, NULL, "One execution", "Execution"),
	ROW("DELETE", EXEC, SCOPE_EXEC, 0, api_exec_cancel, NULL, "Cancel an execution", NULL),
	ROW("GET", EXEC "/output", SCOPE_SANDBOX_READ, 0, api_exec_output, NULL,
	    "Output from a position on, as JSON or as events", "Output"),
	ROW("POST", EXEC "/stdin", SCOPE_EXEC, 0, api_exec_stdin, NULL,
	    "Bytes for its standard input", "Input"),
	ROW("POST", EXEC "/signal", SCOPE_EXEC, 0, api_exec_signal, &body_signal, "Send a signal",
	    NULL),
	ROW("POST", EXEC "/cancel", SCOPE_EXEC, 0, api_exec_cancel, NULL, "Cancel an execution",
	    NULL),
	ROW("GET", EXEC "/wait", SCOPE_SANDBOX_READ, 0, api_exec_wait, NULL, "Wait for its end",
	    "Execution"),
	ROW("POST", EXEC "/resize", SCOPE_EXEC, 0, api_exec_resize, &body_resize,
	    "Resize its terminal", NULL),
	ROW("GET", BOX "/files", SCOPE_FILE_READ, 0, api_file_list, NULL, "List files", "FileList"),
	ROW("GET", BOX "/files/*path", SCOPE_FILE_READ, 0, api_file_get, NULL,
	    "Read a file, or a part of it", NULL),
	ROW("PUT", BOX "/files/*path", SCOPE_FILE_WRITE, 0, api_file_put, NULL, "Write a file",
	    "File"),
	ROW("POST", BOX "/files/*path", SCOPE_FILE_WRITE, 0, api_file_change, &body_file,
	    "Make a directory, or move something", "File"),
	ROW("DELETE", BOX "/files/*path", SCOPE_FILE_WRITE, 0, api_file_delete, NULL,
	    "Remove a file or directory", NULL),
	ROW("GET", BOX "/watch", SCOPE_FILE_READ, 0, api_watch, NULL,
	    "What happens to files, as events", NULL),
	ROW("GET", BOX "/archive", SCOPE_FILE_READ, 0, api_archive_get, NULL,
	    "A directory as a tar stream", NULL),
	ROW("PUT", BOX "/archive", SCOPE_FILE_WRITE, 0, api_archive_put, NULL,
	    "Unpack a tar stream", "Unpacked"),
	ROW("GET", BOX "/pty", SCOPE_EXEC, ROUTE_SOCKET, api_pty, NULL, "A terminal", NULL),
	ROW("GET", BOX "/stream", SCOPE_EXEC, ROUTE_SOCKET, api_stream, NULL,
	    "Executions over a WebSocket", NULL),
	ROW("POST", V1 "/keys", SCOPE_KEY, 0, api_key_create, &body_key, "Make a key", "Key"),
	ROW("GET", V1 "/keys", SCOPE_KEY, 0, api_key_list, NULL, "List keys", "KeyList"),
	ROW("DELETE", V1 "/keys/:kid", SCOPE_KEY, 0, api_key_revoke, NULL, "Revoke a key", NULL),
	ROW("GET", V1 "/user", SCOPE_NONE, 0, api_user, NULL, "Who the key says you are", "User"),
	ROW("GET", V1 "/pool", SCOPE_ADMIN, 0, api_pool, NULL, "State of the warm pools",
	    "PoolList"),
};

const struct api_route *routes_table(size_t *ret_count)
{
	*ret_count = sizeof(routes) / sizeof(routes[0]);
	return routes;
}
