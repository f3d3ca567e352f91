#include "e2b/routes.h"

#include "auth/scope.h"
#include "e2b/handlers.h"

/* A row is a line or two: what is asked for, who may, who answers. */
#define ROW(method, pattern, scope, flags, handle_, ...)                                   \
	{                                                                                  \
		.route = { method, pattern, scope, flags }, .handle = handle_, __VA_ARGS__ \
	}
#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static const struct api_route control[] = {
	ROW("GET", "/health", SCOPE_NONE, ROUTE_PUBLIC, e2b_health, NULL, "Whether we are there"),
};
const struct api_route_table e2b_control_table = { control, COUNT(control) };

static const struct api_route envd[] = {
	ROW("GET", "/health", SCOPE_NONE, ROUTE_PUBLIC, e2b_envd_health, NULL,
	    "Whether the sandbox is there"),
};
const struct api_route_table e2b_envd_table = { envd, COUNT(envd) };

static const struct api_route code[] = {
	ROW("GET", "/health", SCOPE_NONE, ROUTE_PUBLIC, e2b_envd_health, NULL,
	    "Whether the sandbox is there"),
};
const struct api_route_table e2b_code_table = { code, COUNT(code) };
