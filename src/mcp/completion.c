#include "mcp/handlers.h"
#include "mcp/server_impl.h"

void mcp_complete(struct mcp_request *q)
{
	mcp_fail(q, RPC_NO_METHOD, "there is no method %s", q->method);
}
