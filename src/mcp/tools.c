#include "mcp/handlers.h"
#include "mcp/server_impl.h"

void mcp_tools_list(struct mcp_request *q)
{
	mcp_fail(q, RPC_NO_METHOD, "there is no method %s", q->method);
}

void mcp_tools_call(struct mcp_request *q)
{
	mcp_fail(q, RPC_NO_METHOD, "there is no method %s", q->method);
}
