#include "api/routes.h"

#include "api/bodies.h"
#include "api/handlers.h"
#include "auth/scope.h"

#define V1 "/api/v1"
#define BOX V1 "/sandboxes/:id"
#define EXEC BOX "/executions/:eid"

static const struct api_route routes[] = {
	{ { "GET", "/healthz", SCOPE_NONE, ROUTE_PUBLIC }, api_healthz, NULL, "Alive" },
	{ { "GET", "/readyz", SCOPE_NONE, ROUTE_PUBLIC }, api_readyz, NULL, "Ready to work" },
	{ { "GET", "/health", SCOPE_NONE, ROUTE_PUBLIC },
	  api_health,
	  NULL,
	  "Ready to work, and which version" },
	{ { "GET", "/metrics", SCOPE_METRICS, ROUTE_METRICS },
	  api_metrics,
	  NULL,
	  "Prometheus metrics" },

	{ { "POST", V1 "/sandboxes", SCOPE_SANDBOX_WRITE, 0 },
	  api_sandbox_create,
	  &body_sandbox,
	  "Make a sandbox" },
	{ { "GET", V1 "/sandboxes", SCOPE_SANDBOX_READ, 0 },
	  api_sandbox_list,
	  NULL,
	  "List sandboxes" },
	{ { "GET", BOX, SCOPE_SANDBOX_READ, 0 }, api_sandbox_get, NULL, "One sandbox" },
	{ { "GET", BOX "/status", SCOPE_SANDBOX_READ, 0 },
	  api_sandbox_status,
	  NULL,
	  "One sandbox's state" },
	{ { "PATCH", BOX, SCOPE_SANDBOX_WRITE, 0 },
	  api_sandbox_patch,
	  &body_patch,
	  "Change a sandbox's time to live or metadata" },
	{ { "DELETE", BOX, SCOPE_SANDBOX_WRITE, 0 }, api_sandbox_delete, NULL, "End a sandbox" },
	{ { "POST", BOX "/pause", SCOPE_SANDBOX_WRITE, 0 },
	  api_sandbox_pause,
	  NULL,
	  "Freeze a sandbox" },
	{ { "POST", BOX "/resume", SCOPE_SANDBOX_WRITE, 0 },
	  api_sandbox_resume,
	  NULL,
	  "Let a frozen sandbox go on" },

	{ { "POST", BOX "/execute", SCOPE_EXEC, 0 },
	  api_exec_start,
	  &body_execute,
	  "Run code or a command" },
	{ { "POST", BOX "/executions", SCOPE_EXEC, 0 },
	  api_exec_start,
	  &body_execution,
	  "Start an execution" },
	{ { "GET", BOX "/executions", SCOPE_SANDBOX_READ, 0 },
	  api_exec_list,
	  NULL,
	  "List executions" },
	{ { "GET", EXEC, SCOPE_SANDBOX_READ, 0 }, api_exec_get, NULL, "One execution" },
	{ { "DELETE", EXEC, SCOPE_EXEC, 0 }, api_exec_cancel, NULL, "Cancel an execution" },
	{ { "GET", EXEC "/output", SCOPE_SANDBOX_READ, 0 },
	  api_exec_output,
	  NULL,
	  "Output from a position on, as JSON or as events" },
	{ { "POST", EXEC "/stdin", SCOPE_EXEC, 0 },
	  api_exec_stdin,
	  NULL,
	  "Bytes for its standard input" },
	{ { "POST", EXEC "/signal", SCOPE_EXEC, 0 },
	  api_exec_signal,
	  &body_signal,
	  "Send a signal" },
	{ { "POST", EXEC "/cancel", SCOPE_EXEC, 0 }, api_exec_cancel, NULL, "Cancel an execution" },
	{ { "GET", EXEC "/wait", SCOPE_SANDBOX_READ, 0 }, api_exec_wait, NULL, "Wait for its end" },
	{ { "POST", EXEC "/resize", SCOPE_EXEC, 0 },
	  api_exec_resize,
	  &body_resize,
	  "Resize its terminal" },

	{ { "POST", V1 "/keys", SCOPE_KEY, 0 }, api_key_create, &body_key, "Make a key" },
	{ { "GET", V1 "/keys", SCOPE_KEY, 0 }, api_key_list, NULL, "List keys" },
	{ { "DELETE", V1 "/keys/:kid", SCOPE_KEY, 0 }, api_key_revoke, NULL, "Revoke a key" },
	{ { "GET", V1 "/user", SCOPE_NONE, 0 }, api_user, NULL, "Who the key says you are" },
	{ { "GET", V1 "/pool", SCOPE_ADMIN, 0 }, api_pool, NULL, "State of the warm pools" },
};

const struct api_route *routes_table(size_t *ret_count)
{
	*ret_count = sizeof(routes) / sizeof(routes[0]);
	return routes;
}
