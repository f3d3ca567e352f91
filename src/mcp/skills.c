#include "mcp/handlers.h"
#include "mcp/server_impl.h"

void mcp_directory_read(struct mcp_request *q)
{
	mcp_fail(q, RPC_NO_METHOD, "there is no method %s", q->method);
}

void mcp_skills_list(struct mcp_request *q)
{
	mcp_fail(q, RPC_NO_METHOD, "there is no method %s", q->method);
}

void mcp_skills_get(struct mcp_request *q)
{
	mcp_fail(q, RPC_NO_METHOD, "there is no method %s", q->method);
}
