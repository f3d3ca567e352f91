/* What tells a client where tokens for this server come from (RFC 9728). */
#pragma once

struct api_call;

#define MCP_METADATA_PATH "/.well-known/oauth-protected-resource"

void mcp_metadata(struct api_call *c); /* the document; 404 without an issuer of tokens */
/* Adds WWW-Authenticate to an answer of 401. Not to one of 403: no other token would be let in. */
void mcp_metadata_challenge(struct api_call *c);
