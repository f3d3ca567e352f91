/* Any other port of a sandbox: what listens there answers. */
#include "api/call.h"
#include "e2b/handlers.h"
#include "e2b/target.h"

void e2b_port(struct api_call *c)
{
	e2b_reply_gone(c);
}
