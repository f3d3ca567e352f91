/* How an execution in a sandbox ended: the exit code for a shell and a line for a person. */
#pragma once

#include <stdint.h>

#include "json/jv.h"

/* execution: the API's object, or a terminal's last message. timeout_ms: what was asked for; 0:
 * nothing. */
int ending_say(struct jv execution, uint64_t timeout_ms);
