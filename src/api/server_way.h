/* The way out of sandboxes that others' MCP servers run in: mcpc/stdio.h's seam. */
#pragma once

#include "mcpc/stdio.h"

struct api;

struct stdio_way api_server_way(struct api *api);
void server_ways_forget(struct api *api); /* nobody is told: the api goes */
