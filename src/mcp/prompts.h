/* Prompts that Holt offers. Inside of mcp/. */
#pragma once

#include "mcp/server.h"

/* The i-th, those of tests included; NULL behind the last. */
const struct mcp_prompt *mcp_prompt_at(const struct mcp_server *s, size_t i);
const struct mcp_prompt *mcp_prompt_find(const struct mcp_server *s, const char *name); /* NULL */

/* prompt_texts.c: our own, in the order of lists */
extern const struct mcp_prompt mcp_own_prompts[];
extern const size_t mcp_n_own_prompts;
