#include "mcp/handlers.h"
#include "mcp/server_impl.h"

void mcp_resources_list(struct mcp_request *q)
{
	mcp_fail(q, RPC_NO_METHOD, "there is no method %s", q->method);
}

void mcp_resource_templates(struct mcp_request *q)
{
	mcp_fail(q, RPC_NO_METHOD, "there is no method %s", q->method);
}

void mcp_resources_read(struct mcp_request *q)
{
	mcp_fail(q, RPC_NO_METHOD, "there is no method %s", q->method);
}

void mcp_resources_subscribe(struct mcp_request *q)
{
	mcp_fail(q, RPC_NO_METHOD, "there is no method %s", q->method);
}

void mcp_resources_unsubscribe(struct mcp_request *q)
{
	mcp_fail(q, RPC_NO_METHOD, "there is no method %s", q->method);
}

void mcp_listening(struct mcp_request *q)
{
	(void)q;
}
