#include "mcp/handlers.h"
#include "mcp/server_impl.h"

void mcp_tasks_get(struct mcp_request *q)
{
	mcp_fail(q, RPC_NO_METHOD, "there is no method %s", q->method);
}

void mcp_tasks_update(struct mcp_request *q)
{
	mcp_fail(q, RPC_NO_METHOD, "there is no method %s", q->method);
}

void mcp_tasks_cancel(struct mcp_request *q)
{
	mcp_fail(q, RPC_NO_METHOD, "there is no method %s", q->method);
}
