/* Words of the contract, as others write them. */
#include "mcpc/servers.h"

const char *const mcpc_server_states[MCPC_SERVER_STATE_COUNT + 1] = { "disabled",   "failed",
								      "connecting", "ready",
								      "waiting",    NULL };
const char *const mcpc_policies[4] = { "allow", "ask", "deny", NULL };
const char *const mcpc_details[4] = { "name", "summary", "full", NULL };
