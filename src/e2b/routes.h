/* The tables of calls, one for each plane. */
#pragma once

#include "api/routes.h"

extern const struct api_route_table e2b_control_table, e2b_envd_table, e2b_code_table,
	e2b_volume_table;
