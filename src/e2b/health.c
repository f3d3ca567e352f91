#include "api/call.h"
#include "e2b/handlers.h"
#include "e2b/target.h"

/* 502 is how a client learns that its sandbox has ended. */
void e2b_envd_health(struct api_call *c)
{
	if (e2b_claimed_runs(c))
		call_reply_empty(c);
}
