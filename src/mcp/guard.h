/* Whether a request comes from where one may come from. */
#pragma once

#include <stdbool.h>

struct api_call;

bool mcp_guard(const struct api_call *c);
